//go:build !offline

package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/podadmission"
)

// maxDryRuns bounds the requests that are under way at one time.
const maxDryRuns = 8

// DryRun asks the API server what it would store of the jobs' objects and pods, with all that admits them there,
// webhooks and policies too: by a create that is a dry run, one for each object and for each template. It returns the
// jobs with what was answered. Where nothing may be created, or the answer depends on what is planned too, the pods are
// as they were, and what the API server would do is computed. Nothing is changed in the cluster, nor in the jobs given.
func DryRun(ctx context.Context, client *cluster.Client, jobs []forecast.Job) []forecast.Job {
	jobs = slices.Clone(jobs)
	d := dryRuns{client: client, replies: map[string]*reply{}, slots: make(chan struct{}, maxDryRuns)}
	for i := range jobs {
		d.inTurn(func() { jobs[i].Stored = stored(ctx, client, jobs[i]) })
		d.askPods(ctx, jobs[i])
	}
	d.asking.Wait()
	live := map[int]forecast.Job{}
	for i, job := range jobs {
		if of, exists := ofLive(job); exists {
			live[i] = of
			d.askPods(ctx, of)
		}
	}
	d.asking.Wait()
	for i := range jobs {
		jobs[i] = d.answered(jobs[i])
		if of, exists := live[i]; exists {
			jobs[i] = merged(jobs[i], d.answered(of))
		}
	}
	return jobs
}

// dryRuns are requests that are under way, at most maxDryRuns at a time, and the replies by template.
type dryRuns struct {
	client  *cluster.Client
	replies map[string]*reply
	asking  sync.WaitGroup
	slots   chan struct{}
}

func (d *dryRuns) inTurn(ask func()) {
	d.asking.Go(func() {
		d.slots <- struct{}{}
		defer func() { <-d.slots }()
		ask()
	})
}

// askPods asks about the templates of a job that were not asked about before.
func (d *dryRuns) askPods(ctx context.Context, job forecast.Job) {
	withAccount := job.Object != nil // the ServiceAccounts of this project's jobs are planned with them
	forecast.MapPods([]forecast.Job{job}, func(pod forecast.Pod) forecast.Pod {
		key := template(pod)
		if d.replies[key] == nil {
			r := &reply{}
			d.replies[key] = r
			d.inTurn(func() { r.ask(ctx, d.client, pod, withAccount) })
		}
		return pod
	})
}

func (d *dryRuns) answered(job forecast.Job) forecast.Job {
	return forecast.MapPods([]forecast.Job{job}, func(pod forecast.Pod) forecast.Pod { return d.replies[template(pod)].of(pod) })[0]
}

// reply is the API server's answer about a template.
type reply struct {
	pod *corev1.Pod
	err error
	// account is what it says about a ServiceAccount that does not exist.
	account string
}

// ask asks about a pod; if its ServiceAccount is not there, what holds apart from that.
func (r *reply) ask(ctx context.Context, client *cluster.Client, pod forecast.Pod, withAccount bool) {
	create := func(account string) error {
		object := request(pod.Pod)
		object.Spec.ServiceAccountName = account
		pods, options := client.Kubernetes().CoreV1().Pods(pod.Namespace), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		if r.pod, r.err = pods.Create(ctx, object, options); apierrors.IsAlreadyExists(r.err) { // it is to be replaced, or made again
			object.Name, object.GenerateName = "", object.Name+"-"
			r.pod, r.err = pods.Create(ctx, object, options)
		}
		return r.err
	}
	if withAccount && pod.Spec.ServiceAccountName != "" {
		if err := create(pod.Spec.ServiceAccountName); err == nil || !noAccount.MatchString(err.Error()) {
			return
		}
		r.account = refusal(r.err)
	}
	_ = create("") // which is kept
}

// noAccount matches what the API server says about a ServiceAccount that does not exist.
var noAccount = regexp.MustCompile(`error looking up service account .* not found`)

// template is equal for pods that the API server treats alike: they differ in the numbers in their names and in their index
// only.
func template(pod forecast.Pod) string {
	labels := maps.Clone(pod.Labels)
	delete(labels, batchv1.JobCompletionIndexAnnotation)
	name := strings.TrimRight(cmp.Or(pod.GenerateName, pod.Name), "-0123456789")
	text, err := json.Marshal([]any{pod.Namespace, name, labels, pod.Annotations, pod.Spec})
	if err != nil {
		return pod.Namespace + "/" + pod.Name
	}
	return string(text)
}

// request is the pod as it can be created before what belongs to it is: its ServiceAccount may be planned. Its name, or the
// beginning of it, is that which its controller gives it: policies and webhooks may decide by that.
func request(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	name := pod.Name
	if pod.GenerateName != "" {
		name = ""
	}
	pod.ObjectMeta = metav1.ObjectMeta{Namespace: pod.Namespace, Name: name, GenerateName: pod.GenerateName, Labels: pod.Labels, Annotations: pod.Annotations}
	pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "", ""
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Image == "" { // of a job that is described rather than planned
			pod.Spec.Containers[i].Image = "forecast"
		}
	}
	return pod
}

// withoutRight matches what RBAC says, and later what depends on objects that may be planned, or on quotas, which count
// all pods.
var (
	withoutRight = regexp.MustCompile(`cannot create resource "pods"`)
	computable   = regexp.MustCompile(`exceeded quota|no PriorityClass with name|RuntimeClass "[^"]*" not found|namespaces "[^"]*" not found|no API token found`)
)

// of is the pod with what was answered.
func (r *reply) of(pod forecast.Pod) forecast.Pod {
	pod.NoAccount = r.account
	switch {
	case r.err == nil:
		object := pod.DeepCopy()
		account := object.Spec.ServiceAccountName
		object.Labels, object.Annotations, object.Spec = r.pod.Labels, r.pod.Annotations, *r.pod.Spec.DeepCopy()
		object.Spec.ServiceAccountName = account
		if index, indexed := pod.Labels[batchv1.JobCompletionIndexAnnotation]; indexed {
			object.Labels = maps.Clone(object.Labels)
			object.Labels[batchv1.JobCompletionIndexAnnotation] = index
		}
		object.Spec.SchedulingGates = slices.DeleteFunc(object.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool {
			return strings.HasPrefix(g.Name, kueue.SchemeGroupVersion.Group+"/") // the forecast computes admission by the queue separately
		})
		pod.Pod, pod.Answered = object, true
	case withoutRight.MatchString(r.err.Error()), computable.MatchString(r.err.Error()):
	case apierrors.IsForbidden(r.err), apierrors.IsInvalid(r.err), apierrors.IsBadRequest(r.err) && !strings.Contains(r.err.Error(), "dry run"):
		pod.Answered, pod.Refusal = true, &podadmission.Refusal{Message: refusal(r.err)}
	}
	return pod
}

// named is how an error begins that names the pod of the dry run.
var named = regexp.MustCompile(`^(pods|Pod) "[^"]*" is (forbidden|invalid): `)

func refusal(err error) string {
	return named.ReplaceAllString(fmt.Sprint(err), "")
}
