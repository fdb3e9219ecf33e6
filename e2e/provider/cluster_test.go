package provider_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	internalcluster "github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// through is a client of internal/cluster behind a proxy, and the config maps of namespace default.
func through(t *testing.T, p *proxy) (*internalcluster.Client, typedcorev1.ConfigMapInterface) {
	t.Helper()
	client, err := internalcluster.New(internalcluster.Config{Host: p.server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client, client.Kubernetes().CoreV1().ConfigMaps(metav1.NamespaceDefault)
}

// configMap makes one and removes it after the test, finalizers or not.
func configMap(t *testing.T, name string, finalizers ...string) *corev1.ConfigMap {
	t.Helper()
	maps := adminClient(t).CoreV1().ConfigMaps(metav1.NamespaceDefault)
	created, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := cleanupContext(t)
		_, err := maps.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err == nil {
			err = maps.Delete(ctx, name, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return created
}

// lookedAt are config maps of namespace default; before and after are called when one is read.
type lookedAt struct {
	typedcorev1.ConfigMapInterface
	before, after func()
}

func (l lookedAt) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.ConfigMap, error) {
	l.before()
	defer l.after()
	return l.ConfigMapInterface.Get(ctx, name, o)
}

func (lookedAt) GetNamespace() string { return metav1.NamespaceDefault }

func TestDeleteWaitsAndNamesWhatHoldsTheObject(t *testing.T) {
	client, maps := through(t, newProxy(t))
	held := configMap(t, "held", "example.com/in-use")
	for when, around := range map[string]func(end func()) lookedAt{
		"after a look":  func(end func()) lookedAt { return lookedAt{maps, func() {}, end} },
		"during a look": func(end func()) lookedAt { return lookedAt{maps, end, func() {}} },
	} {
		t.Run("its time ends "+when, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			looks := 0
			looked := around(func() {
				if looks++; looks == 2 { // it waits, and is to wait no longer
					cancel()
				}
			})
			err := internalcluster.Delete(ctx, client, looked, held.Name, held.UID, metav1.DeletePropagationBackground)
			var still *internalcluster.StillThereError
			if !errors.As(err, &still) || len(still.Finalizers) != 1 || still.Finalizers[0] != "example.com/in-use" || !still.Deleting {
				t.Fatalf("got %v", err)
			}
			if summary, _ := internalcluster.Explain(err); summary != "Cannot delete ConfigMap default/held" {
				t.Errorf("summary %q", summary)
			}
		})
	}
}

func TestDeleteLeavesAnotherObjectOfTheNameAlone(t *testing.T) {
	client, maps := through(t, newProxy(t))
	other := configMap(t, "other")
	if err := internalcluster.Delete(t.Context(), client, maps, "other", "00000000-0000-0000-0000-000000000000", metav1.DeletePropagationBackground); err != nil {
		t.Fatal(err)
	}
	if live, err := internalcluster.Get(t.Context(), client, maps, "other"); err != nil || live.UID != other.UID {
		t.Errorf("it was touched: %v", err)
	}
	if err := internalcluster.Delete(t.Context(), client, maps, "other", other.UID, metav1.DeletePropagationBackground); err != nil {
		t.Fatal(err)
	}
	if err := internalcluster.Delete(t.Context(), client, maps, "other", other.UID, metav1.DeletePropagationBackground); err != nil {
		t.Errorf("deleting what is gone: %v", err)
	}
}

func TestApplyDoesNotBringBackWhatIsGone(t *testing.T) {
	p := newProxy(t)
	client, maps := through(t, p)
	gone := configMap(t, "gone")
	p.setFault(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method == http.MethodPatch { // after Apply has read it
			if err := adminClient(t).CoreV1().ConfigMaps("default").Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
		return false
	})
	desired := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "gone"}, Data: map[string]string{"a": "b"}}
	if _, err := internalcluster.Apply(t.Context(), client, maps, desired, internalcluster.ApplyOptions[*corev1.ConfigMap]{UID: gone.UID}); err == nil {
		t.Error("no error")
	}
	if _, err := internalcluster.Get(t.Context(), client, maps, "gone"); !apierrors.IsNotFound(err) {
		t.Errorf("it is back: %v", err)
	}
}

func TestWaitForSeesChangesThroughWatchesThatEnd(t *testing.T) {
	p := newProxy(t)
	client, maps := through(t, p)
	configMap(t, "watched")
	var watches atomic.Int32
	p.setFault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.URL.Query().Get("watch") != "true" {
			return false
		}
		if watches.Add(1) == 1 { // the first watch fails because its version is too old
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}` + "\n"))
			return true
		}
		go func() { // the second one sees a change
			_, err := adminClient(t).CoreV1().ConfigMaps("default").Patch(t.Context(), "watched", types.MergePatchType, []byte(`{"data":{"phase":"done"}}`), metav1.PatchOptions{})
			if err != nil && t.Context().Err() == nil {
				t.Error(err)
			}
		}()
		return false
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience.Medium)
	defer cancel()
	calls := 0
	err := internalcluster.WaitFor(ctx, client, maps, internalcluster.Named("watched"), func(objects []*corev1.ConfigMap) (bool, error) {
		calls++
		if len(objects) != 1 {
			t.Errorf("selected %d objects", len(objects))
		}
		return objects[0].Data["phase"] == "done", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if watches.Load() != 2 || calls < 3 {
		t.Errorf("%d watches, %d calls", watches.Load(), calls)
	}
}

func TestWaitForEndsWithItsContextAndWithItsCaller(t *testing.T) {
	client, maps := through(t, newProxy(t))
	t.Run("a context that ends is the error, and not the server's fault", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("the user pressed Ctrl-C")
		err := internalcluster.WaitFor(ctx, client, maps, internalcluster.Named("never"), func(objects []*corev1.ConfigMap) (bool, error) {
			cancel(reason)
			return false, nil
		})
		if !errors.Is(err, reason) && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an error of the caller's is returned as it is", func(t *testing.T) {
		failed := errors.New("the job failed")
		err := internalcluster.WaitFor(t.Context(), client, maps, internalcluster.Named("never"), func([]*corev1.ConfigMap) (bool, error) { return false, failed })
		if !errors.Is(err, failed) {
			t.Errorf("got %v", err)
		}
	})
}
