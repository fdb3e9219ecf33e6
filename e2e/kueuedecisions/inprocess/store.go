package inprocess

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// store is what the fake client keeps its objects in. Objects are read from it, and statuses of workloads patched in it,
// without the fake client, which encodes and decodes an object up to ten times for that and looks for itself in the stack's
// trace: that took three quarters of the time.
type store struct {
	clienttesting.ObjectTracker
	scheme *runtime.Scheme
	lock   sync.Mutex // of patches: victims are evicted beside each other
}

// read copies an object.
func (s *store) read(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(obj, s.scheme)
	if err != nil {
		return err
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	stored, err := s.Get(plural, key.Namespace, key.Name)
	if err != nil {
		return err
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(stored).Elem())
	return nil
}

var workloads = kueue.SchemeGroupVersion.WithResource("workloads")

// patchStatus changes a workload's status as an API server does by a merge patch, and the workload to what it then is.
func (s *store) patchStatus(wl *kueue.Workload, patch client.Patch) error {
	text, err := patch.Data(wl)
	if err != nil {
		return err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	stored, err := s.Get(workloads, wl.Namespace, wl.Name)
	if err != nil {
		return err
	}
	now := stored.(*kueue.Workload)
	if err := merge(now, text); err != nil {
		return err
	}
	if err := s.Update(workloads, now, wl.Namespace); err != nil {
		return err
	}
	*wl = *now
	return nil
}

// merge applies a merge patch to the status of a workload of the version that the patch names, if it names one.
func merge(wl *kueue.Workload, patch []byte) error {
	var change struct {
		Metadata struct{ ResourceVersion string }
		Status   json.RawMessage
	}
	if err := json.Unmarshal(patch, &change); err != nil {
		return err
	}
	if of := change.Metadata.ResourceVersion; of != "" && of != wl.ResourceVersion {
		return apierrors.NewConflict(workloads.GroupResource(), wl.Name, errors.New("it was changed"))
	}
	version, err := strconv.Atoi(wl.ResourceVersion)
	if err != nil {
		return err
	}
	wl.ResourceVersion = strconv.Itoa(version + 1)
	if change.Status == nil {
		return nil
	}
	status, err := json.Marshal(wl.Status)
	if err != nil {
		return err
	}
	if status, err = jsonpatch.MergePatch(status, change.Status); err != nil {
		return err
	}
	wl.Status = kueue.WorkloadStatus{}
	return json.Unmarshal(status, &wl.Status)
}
