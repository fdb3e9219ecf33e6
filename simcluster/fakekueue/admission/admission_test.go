package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/admission"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

// valuesOf is a patch as path: value.
func valuesOf(patch admission.Patch) map[string]any {
	all := map[string]any{}
	for _, o := range patch {
		all[o.Path] = o.Value
	}
	return all
}

func queued(queue string) map[string]string { return map[string]string{kueue.QueueLabel: queue} }

func ownedBy(apiVersion, kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
}

func TestJobsThatAreCreated(t *testing.T) {
	suspended := map[string]any{"/spec/suspend": true}
	for name, c := range map[string]struct {
		job                       batchv1.Job
		defaultQueue, ownerQueued bool
		want                      map[string]any
	}{
		"in no queue":              {want: map[string]any{}},
		"in a queue":               {job: batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: queued("q")}}, want: suspended},
		"suspended already":        {job: batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: queued("q")}, Spec: batchv1.JobSpec{Suspend: ptr.To(true)}}, want: map[string]any{}},
		"its owner is in a queue":  {job: batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: queued("q")}}, ownerQueued: true, want: map[string]any{}},
		"in the default queue":     {defaultQueue: true, want: map[string]any{"/spec/suspend": true, "/metadata/labels": queued("default")}},
		"a named one is preferred": {job: batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: queued("q")}}, defaultQueue: true, want: suspended},
		"a pod's Job gets no default": {
			job: batchv1.Job{ObjectMeta: metav1.ObjectMeta{OwnerReferences: ownedBy("v1", "Pod", "p", "1")}}, defaultQueue: true, want: map[string]any{},
		},
		"a CronJob's Job does": {
			job: batchv1.Job{ObjectMeta: metav1.ObjectMeta{OwnerReferences: ownedBy("batch/v1", "CronJob", "c", "1")}}, defaultQueue: true,
			want: map[string]any{"/spec/suspend": true, "/metadata/labels": queued("default")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := valuesOf(admission.DefaultJob(&c.job, c.defaultQueue, c.ownerQueued)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%v; want %v", got, c.want)
			}
		})
	}
}

func TestPodsThatAreCreated(t *testing.T) {
	gates := func(names ...string) []corev1.PodSchedulingGate {
		var all []corev1.PodSchedulingGate
		for _, name := range names {
			all = append(all, corev1.PodSchedulingGate{Name: name})
		}
		return all
	}
	t.Run("in no queue", func(t *testing.T) {
		if patch, err := admission.DefaultPod(&corev1.Pod{}, false, false); err != nil || patch != nil {
			t.Error(patch, err)
		}
	})
	t.Run("below something that is in a queue", func(t *testing.T) {
		if patch, err := admission.DefaultPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: queued("q")}}, true, true); err != nil || patch != nil {
			t.Error(patch, err)
		}
	})
	t.Run("in a queue, with gates and finalizers of their own", func(t *testing.T) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: queued("q"), Annotations: map[string]string{"a": "b"}, Finalizers: []string{"f"}},
			Spec:       corev1.PodSpec{SchedulingGates: gates("mine", kueue.AdmissionGate)},
		}
		patch, err := admission.DefaultPod(pod, false, false)
		role, roleErr := workload.Role(pod)
		want := map[string]any{
			"/metadata/labels":      map[string]string{kueue.QueueLabel: "q", kueue.ManagedLabel: "true"},
			"/metadata/annotations": map[string]string{"a": "b", kueue.RoleHashAnnotation: role},
			"/metadata/finalizers":  []string{"f", kueue.PodFinalizer},
			"/spec/schedulingGates": gates("mine", kueue.AdmissionGate, kueue.TopologyGate),
		}
		if err != nil || roleErr != nil || !reflect.DeepEqual(valuesOf(patch), want) {
			t.Errorf("%v, %v; want %v", valuesOf(patch), err, want)
		}
		if len(pod.Spec.SchedulingGates) != 2 || len(pod.Labels) != 1 {
			t.Error("the pod itself was changed")
		}
	})
}

func TestChangesOfJobs(t *testing.T) {
	job := func(change ...func(*batchv1.Job)) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: queued("q"), Annotations: map[string]string{}}, Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](3)}}
		for _, c := range change {
			c(j)
		}
		return j
	}
	suspend := func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }
	label := func(key, value string) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Labels[key] = value }
	}
	note := func(key, value string) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Annotations[key] = value }
	}
	without := func(key string) func(*batchv1.Job) { return func(j *batchv1.Job) { delete(j.Labels, key) } }
	pods := func(n int32) func(*batchv1.Job) { return func(j *batchv1.Job) { j.Spec.Parallelism = &n } }
	class, seconds := kueue.WorkloadPriorityClassLabel, kueue.MaxExecTimeSecondsLabel
	for name, c := range map[string]struct {
		old, job *batchv1.Job
		message  string
	}{
		"created":                             {job: job()},
		"a queue's name that is none":         {job: job(label(kueue.QueueLabel, "Not A Name")), message: "RFC 1123 subdomain"},
		"a time that is no number":            {job: job(label(seconds, "x")), message: "invalid syntax"},
		"a time of nothing":                   {job: job(label(seconds, "0")), message: "should be greater than 0"},
		"a minimum that is no number":         {job: job(note(kueue.JobMinParallelismAnnotation, "x")), message: "invalid syntax"},
		"a minimum of all":                    {job: job(note(kueue.JobMinParallelismAnnotation, "3")), message: "should be between 0 and 2"},
		"completions that follow, no indexes": {job: job(note(kueue.JobCompletionsEqualParallelismAnnotation, "true")), message: "should not be enabled for NonIndexed jobs"},
		"the queue of a running Job":          {old: job(), job: job(label(kueue.QueueLabel, "r")), message: "field is immutable"},
		"the queue of a suspended Job":        {old: job(suspend), job: job(suspend, label(kueue.QueueLabel, "r"))},
		"the class of a running Job":          {old: job(label(class, "a")), job: job(label(class, "b"))},
		"a class for a running Job":           {old: job(), job: job(label(class, "b")), message: "cannot be added to a non-suspended workload"},
		"a class for a suspended Job":         {old: job(suspend), job: job(suspend, label(class, "b"))},
		"no class any more":                   {old: job(suspend, label(class, "a")), job: job(suspend), message: "cannot be removed"},
		"the time of a running Job":           {old: job(), job: job(label(seconds, "5")), message: "field is immutable"},
		"the pods of a running partial Job":   {old: job(note(kueue.JobMinParallelismAnnotation, "1")), job: job(note(kueue.JobMinParallelismAnnotation, "1"), pods(2)), message: "cannot change when partial admission is enabled"},
		"no queue, where one is default":      {old: job(suspend), job: job(suspend, without(kueue.QueueLabel)), message: "queue-name must not be empty in namespace with default queue"},
	} {
		t.Run(name, func(t *testing.T) {
			err := admission.ValidateJob(c.job, c.old, true).ToAggregate()
			if (err == nil) != (c.message == "") || err != nil && !strings.Contains(err.Error(), c.message) {
				t.Errorf("%v; want %q", err, c.message)
			}
		})
	}
}

func TestChangesOfPods(t *testing.T) {
	pod := func(change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: queued("q"), Annotations: map[string]string{}}}
		for _, c := range change {
			c(p)
		}
		return p
	}
	label := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels[key] = value }
	}
	note := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations[key] = value }
	}
	group, total := label(kueue.PodGroupNameLabel, "g"), note(kueue.PodGroupTotalCountAnnotation, "2")
	for name, c := range map[string]struct {
		old, pod *corev1.Pod
		message  string
	}{
		"alone":                     {pod: pod()},
		"in a group":                {pod: pod(group, total)},
		"managed by nobody":         {pod: pod(label(kueue.ManagedLabel, "false")), message: "managed label value can only be 'true'"},
		"a group of unknown size":   {pod: pod(group), message: "both the 'kueue.x-k8s.io/pod-group-total-count' annotation"},
		"a size of no group":        {pod: pod(total), message: "both the 'kueue.x-k8s.io/pod-group-total-count' annotation"},
		"a group of none":           {pod: pod(group, note(kueue.PodGroupTotalCountAnnotation, "0")), message: "group total count should be greater than zero"},
		"another group":             {old: pod(label(kueue.PodGroupNameLabel, "h"), total), pod: pod(group, total), message: "field is immutable"},
		"replaceable after all":     {old: pod(group, total, note(kueue.RetriableInGroupAnnotation, "false")), pod: pod(group, total), message: "unretriable pod group can't be converted to retriable"},
		"the queue while it runs":   {old: pod(), pod: pod(label(kueue.QueueLabel, "r")), message: "field is immutable"},
		"the queue while it waits":  {old: pod(gate), pod: pod(gate, label(kueue.QueueLabel, "r"))},
		"a group's name is no name": {pod: pod(label(kueue.PodGroupNameLabel, "A_"), total), message: "RFC 1123 subdomain"},
	} {
		t.Run(name, func(t *testing.T) {
			err := admission.ValidatePod(c.pod, c.old, false).ToAggregate()
			if (err == nil) != (c.message == "") || err != nil && !strings.Contains(err.Error(), c.message) {
				t.Errorf("%v; want %q", err, c.message)
			}
		})
	}
}

func gate(p *corev1.Pod) {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: kueue.AdmissionGate}}
}

func TestWhatIsBelowAQueuedJobIsNotQueuedItself(t *testing.T) {
	objects := map[string]metav1.Object{
		"queued": &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "1", Labels: queued("q")}},
		"free":   &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "1"}},
		"middle": &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "2", OwnerReferences: ownedBy("batch/v1", "Job", "queued", "1")}},
		"circle": &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "3", OwnerReferences: ownedBy("v1", "Pod", "circle", "3")}},
	}
	read := func(_ context.Context, _ string, owner *metav1.OwnerReference) (metav1.Object, error) {
		if o, ok := objects[owner.Name]; ok {
			return o, nil
		}
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "jobs"}, owner.Name)
	}
	for name, c := range map[string]struct {
		owners []metav1.OwnerReference
		queued bool
		fails  bool
	}{
		"without an owner":               {},
		"a queued Job's":                 {owners: ownedBy("batch/v1", "Job", "queued", "1"), queued: true},
		"a free Job's":                   {owners: ownedBy("batch/v1", "Job", "free", "1")},
		"another Job's of the name":      {owners: ownedBy("batch/v1", "Job", "queued", "9")},
		"two below a queued Job":         {owners: ownedBy("v1", "Pod", "middle", "2"), queued: true},
		"its own owner's owner":          {owners: ownedBy("v1", "Pod", "circle", "3")},
		"another kind's":                 {owners: ownedBy("apps/v1", "ReplicaSet", "queued", "1")},
		"the owner is not there":         {owners: ownedBy("batch/v1", "Job", "gone", "1"), fails: true},
		"an owner that does not control": {owners: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "queued", UID: "1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := admission.Queued(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: c.owners}}, read)
			if got != c.queued || (err != nil) != c.fails {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func handler() http.Handler {
	return admission.Handler(admission.Cluster{
		DefaultQueue: func(string) bool { return false },
		Owner: func(context.Context, string, *metav1.OwnerReference) (metav1.Object, error) {
			return nil, apierrors.NewNotFound(schema.GroupResource{}, "none")
		},
	})
}

func ask(body []byte, path string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	handler().ServeHTTP(answer, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	return answer
}

func TestTheHandler(t *testing.T) {
	review := func(o any) []byte {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
			Request:  &admissionv1.AdmissionRequest{UID: "7", Namespace: "team", Object: runtime.RawExtension{Raw: raw}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	response := func(answer *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
		var out admissionv1.AdmissionReview
		if err := json.Unmarshal(answer.Body.Bytes(), &out); err != nil || out.Response == nil || out.Response.UID != "7" || out.Kind != "AdmissionReview" {
			t.Fatalf("%s, %v", answer.Body, err)
		}
		return out.Response
	}
	t.Run("patches what is to be changed", func(t *testing.T) {
		got := response(ask(review(batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: queued("q")}}), admission.MutateJobPath))
		if !got.Allowed || string(got.Patch) != `[{"op":"add","path":"/spec/suspend","value":true}]` {
			t.Errorf("%+v, %s", got, got.Patch)
		}
	})
	t.Run("gives queues and flavors their finalizer", func(t *testing.T) {
		got := response(ask(review(kueue.ResourceFlavor{}), admission.MutateFlavorPath))
		if string(got.Patch) != `[{"op":"add","path":"/metadata/finalizers","value":["kueue.x-k8s.io/resource-in-use"]}]` {
			t.Errorf("%s", got.Patch)
		}
	})
	t.Run("refuses with 403 and the reason", func(t *testing.T) {
		got := response(ask(review(corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{kueue.ManagedLabel: "no"}}}), admission.ValidatePodPath))
		if got.Allowed || got.Result.Code != http.StatusForbidden || !strings.Contains(got.Result.Message, "managed label value") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("does not answer what is no review", func(t *testing.T) {
		if answer := ask([]byte("{}"), admission.MutateJobPath); answer.Code != http.StatusBadRequest {
			t.Error(answer.Code)
		}
	})
}

// Whatever is sent, the answer is a review or an error, and never a panic.
func FuzzHandler(f *testing.F) {
	f.Add([]byte(`{"request":{"uid":"1","object":{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q"}},"spec":{}}}}`))
	f.Add([]byte(`{"request":{"object":{"metadata":{"ownerReferences":[{"controller":true,"kind":"Job","apiVersion":"batch/v1"}]}},"oldObject":{}}}`))
	paths := []string{
		admission.MutateJobPath, admission.ValidateJobPath, admission.MutatePodPath, admission.ValidatePodPath, admission.MutateClusterQueuePath,
		admission.ValidateClusterQueuePath, admission.ValidateCohortPath, admission.MutateFlavorPath, admission.ValidateFlavorPath,
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range paths {
			if answer := ask(body, path); answer.Code != http.StatusOK && answer.Code != http.StatusBadRequest {
				t.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
			}
		}
	})
}
