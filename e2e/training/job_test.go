package training_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	_ "github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob/strategicmerge" // for pod_overrides
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

const (
	referenceModel = "../../internal/trainer/runtime/local/testdata/reference_model.py"
	tutorialModel  = "../../examples/models/mnist_functional_api.py"
)

// job is a training job on the cluster.
type job struct {
	*testing.T
	client  kubernetes.Interface
	name    string
	ns      string
	objects *trainingjob.Objects
	uid     types.UID
}

// define is the job of the tests: 30 steps of 4 virtual workers, two workers of which one will do.
func define(t *testing.T, model string) trainingjob.Definition {
	t.Helper()
	text, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	small := func() *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
		}}
	}
	d := trainingjob.Definition{
		Job: trainingjob.Job{
			Name:     "digits",
			Model:    trainingjob.Model{File: model},
			Data:     trainingjob.Data{Training: "synthetic://digits?records=1200&seed=1", Format: "recordio", Codec: "bytes", RecordsPerTask: 50},
			Training: trainingjob.Training{Epochs: 1, MinibatchSize: 10, GradsToWait: 4, Seed: 1},
		},
		ModelText: string(text),
		Min:       1, Max: 2,
	}
	d.Image = image
	on := map[string]string{nodeKind: stable}
	d.Master = trainingjob.PodSettings{Resources: small(), NodeSelector: on}
	d.Workers = trainingjob.PodSettings{Resources: small(), NodeSelector: on}
	return d
}

// paced makes every gradient last at least so long, so that there is time to disturb the job.
func paced(d trainingjob.Definition, pace time.Duration) trainingjob.Definition {
	d.Workers.PodOverrides = fmt.Appendf(nil, `{"spec":{"containers":[{"name":"worker","args":["worker","--threads","1","--pace","%v"]}]}}`, pace)
	return d
}

// create makes a job's objects in the order of the provider, all but the last touch: the Job is suspended.
func create(t *testing.T, d trainingjob.Definition) *job {
	t.Helper()
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	if d.Job.Namespace == "" {
		d.Job.Namespace = cluster.Namespace(t)
	}
	credentials, err := trainingjob.NewCredentials(rand.Reader, time.Now(), trainingjob.MasterName(d.Job.Name))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := trainingjob.Render(d, credentials)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{T: t, client: client, name: d.Job.Name, ns: d.Job.Namespace, objects: objects}
	created, err := client.BatchV1().Jobs(j.ns).Create(t.Context(), objects.Job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	j.uid = created.UID
	objects.Own(j.ref())
	core, rbac, o := client.CoreV1(), client.RbacV1(), metav1.CreateOptions{}
	for _, configMap := range []*corev1.ConfigMap{objects.ConfigMap, objects.Status, objects.Model} {
		j.made(core.ConfigMaps(j.ns).Create(t.Context(), configMap, o))
	}
	j.made(core.Secrets(j.ns).Create(t.Context(), objects.Credentials, o))
	j.made(core.ServiceAccounts(j.ns).Create(t.Context(), objects.ServiceAccount, o))
	j.made(rbac.Roles(j.ns).Create(t.Context(), objects.Role, o))
	j.made(rbac.RoleBindings(j.ns).Create(t.Context(), objects.RoleBinding, o))
	j.made(client.CoordinationV1().Leases(j.ns).Create(t.Context(), objects.Lease, o))
	service, err := core.Services(j.ns).Create(t.Context(), objects.Service, o)
	j.made(service, err)
	t.Cleanup(j.explain)
	if objects.MinJob != nil {
		objects.SetMasterAddress(trainingjob.MasterAddress(service))
		j.made(client.BatchV1().Jobs(j.ns).Create(t.Context(), objects.MinJob, o))
	}
	return j
}

func (j *job) made(_ metav1.Object, err error) {
	j.Helper()
	if err != nil {
		j.Fatal(err)
	}
}

func (j *job) ref() trainingjob.JobRef {
	return trainingjob.JobRef{Name: j.name, Namespace: j.ns, UID: j.uid}
}

// start creates a job and lets it run.
func start(t *testing.T, d trainingjob.Definition) *job {
	t.Helper()
	j := create(t, d)
	j.resume()
	return j
}

func (j *job) resume() {
	j.Helper()
	_, err := j.client.BatchV1().Jobs(j.ns).Patch(j.Context(), j.name, types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{})
	if err != nil {
		j.Fatal(err)
	}
}

// await polls until ok, and fails with what it saw last. An error of the API server is one more thing to see.
func (j *job) await(what string, ok func(ctx context.Context) (seen string, ok bool, err error)) {
	j.Helper()
	ctx, cancel := context.WithTimeout(j.Context(), patience.Long)
	defer cancel()
	err := await.Until(ctx, what, 25*time.Millisecond, func(ctx context.Context) error {
		seen, done, err := ok(ctx)
		if err == nil && !done {
			err = errors.New(seen)
		}
		return err
	})
	if err != nil {
		j.Fatal(err)
	}
}

func (j *job) status(ctx context.Context) (trainingjob.Status, error) {
	configMap, err := j.client.CoreV1().ConfigMaps(j.ns).Get(ctx, trainingjob.StatusName(j.name), metav1.GetOptions{})
	if err != nil {
		return trainingjob.Status{}, err
	}
	return trainingjob.DecodeStatus(configMap)
}

// awaitStatus polls the status until ok, and returns it. A job that ends otherwise fails the test at once.
func (j *job) awaitStatus(what string, ok func(trainingjob.Status) bool) trainingjob.Status {
	j.Helper()
	var found trainingjob.Status
	ended := false
	j.await(what, func(ctx context.Context) (string, bool, error) {
		s, err := j.status(ctx)
		if err != nil {
			return "", false, err
		}
		found = s
		done := ok(s)
		ended = !done && s.Phase.Finished()
		text, err := json.Marshal(s)
		return string(text), done || ended, err
	})
	if ended {
		j.Fatalf("%s: the job ended first: %+v", what, found)
	}
	return found
}

// awaitStep waits until the job has come so far, and is not done.
func (j *job) awaitStep(step int64) {
	j.Helper()
	j.awaitStatus(fmt.Sprintf("step %d", step), func(s trainingjob.Status) bool { return s.StepsDone >= step && !s.Phase.Finished() })
}

// awaitSuccess waits for the job's end, of the status and of the Job, and returns the model's hash.
func (j *job) awaitSuccess() string {
	j.Helper()
	s := j.awaitStatus("success", func(s trainingjob.Status) bool { return s.Phase == trainingjob.PhaseSucceeded })
	j.await("the Job's completion", func(ctx context.Context) (string, bool, error) { return j.condition(ctx, batchv1.JobComplete) })
	return s.ModelSHA256
}

func (j *job) condition(ctx context.Context, of batchv1.JobConditionType) (string, bool, error) {
	live, err := j.client.BatchV1().Jobs(j.ns).Get(ctx, j.name, metav1.GetOptions{})
	if err != nil {
		return "", false, err
	}
	for _, c := range live.Status.Conditions {
		if c.Type == of && c.Status == corev1.ConditionTrue {
			return "", true, nil
		}
	}
	return fmt.Sprintf("%+v", live.Status), false, nil
}

// pods lists the job's pods of a role, by the label that the tutorial uses.
func (j *job) pods(ctx context.Context, role string) ([]corev1.Pod, error) {
	selector := trainingjob.LabelJobName + "=" + j.name
	if role != "" {
		selector += "," + trainingjob.LabelRole + "=" + role
	}
	list, err := j.client.CoreV1().Pods(j.ns).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// awaitWorkers waits until the workers' pods are as wanted, and returns them.
func (j *job) awaitWorkers(what string, ok func([]corev1.Pod) bool) []corev1.Pod {
	j.Helper()
	var found []corev1.Pod
	j.await(what, func(ctx context.Context) (string, bool, error) {
		pods, err := j.pods(ctx, trainingjob.RoleWorker)
		if err != nil {
			return "", false, err
		}
		found = pods
		return names(pods), ok(pods), nil
	})
	return found
}

func names(pods []corev1.Pod) string {
	var seen []string
	for _, p := range pods {
		seen = append(seen, fmt.Sprintf("%s (%s)", p.Name, p.Status.Phase))
	}
	return strings.Join(seen, ", ")
}

// living are the pods that are there to stay.
func living(pods []corev1.Pod) []corev1.Pod {
	var out []corev1.Pod
	for _, p := range pods {
		if p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded {
			out = append(out, p)
		}
	}
	return out
}

func running(pods []corev1.Pod) []corev1.Pod {
	var out []corev1.Pod
	for _, p := range living(pods) {
		if p.Status.Phase == corev1.PodRunning {
			out = append(out, p)
		}
	}
	return out
}

// log is what a pod's container has printed.
func (j *job) log(ctx context.Context, pod string) (string, error) {
	text, err := j.client.CoreV1().Pods(j.ns).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
	return string(text), err
}

// awaitLog waits until a pod has printed all of the words.
func (j *job) awaitLog(pod string, words ...string) {
	j.Helper()
	j.await(fmt.Sprintf("%q in the log of pod %s", words, pod), func(ctx context.Context) (string, bool, error) {
		text, err := j.log(ctx, pod)
		return text, has(text, words...), err
	})
}

func has(text string, words ...string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// worker finds a worker's process on this machine, master the master's.
func (j *job) worker(id int) int {
	j.Helper()
	return j.process(trainingjob.RoleWorker, "--id", strconv.Itoa(id))
}

func (j *job) master() int {
	j.Helper()
	return j.process(trainingjob.RoleMaster)
}

// process finds a process by its role, its last arguments, and the pod's environment.
func (j *job) process(role string, last ...string) int {
	j.Helper()
	suffix := strings.Join(append(last, ""), "\x00")
	found := 0
	j.await(fmt.Sprintf("the process of %s %s", role, strings.Join(last, " ")), func(context.Context) (string, bool, error) {
		commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range commands {
			command, _ := os.ReadFile(path) // it may have ended
			if !strings.Contains(string(command), "\x00"+role+"\x00") || !strings.HasSuffix(string(command), suffix) {
				continue
			}
			environment, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
			if strings.Contains(string(environment), "MY_POD_NAMESPACE="+j.ns+"\x00") {
				found, err = strconv.Atoi(filepath.Base(filepath.Dir(path)))
				return "", true, err
			}
		}
		return "no such process", false, err
	})
	return found
}

// setSize writes the numbers of workers as the provider does.
func (j *job) setSize(minimum, most int) {
	j.Helper()
	configMaps := j.client.CoreV1().ConfigMaps(j.ns)
	live, err := configMaps.Get(j.Context(), trainingjob.ConfigMapName(j.name), metav1.GetOptions{})
	if err != nil {
		j.Fatal(err)
	}
	workers, err := trainingjob.DecodeWorkers([]byte(live.Data[trainingjob.WorkersKey]))
	if err != nil {
		j.Fatal(err)
	}
	workers.Min, workers.Max = minimum, most
	text, err := json.Marshal(workers)
	if err != nil {
		j.Fatal(err)
	}
	live.Data[trainingjob.WorkersKey] = string(text)
	secret, err := j.client.CoreV1().Secrets(j.ns).Get(j.Context(), trainingjob.CredentialsName(j.name), metav1.GetOptions{})
	if err != nil {
		j.Fatal(err)
	}
	live.Data[trainingjob.SignatureKey] = trainingjob.Sign(live.Data, trainingjob.CredentialsOf(secret))
	j.made(configMaps.Update(j.Context(), live, metav1.UpdateOptions{}))
}

// explain prints what is known of a job whose test failed.
func (j *job) explain() {
	if !j.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience.Short)
	defer cancel()
	status, err := j.status(ctx)
	j.Logf("status: %+v %v", status, err)
	pods, err := j.pods(ctx, "")
	j.Logf("pods: %s %v", names(pods), err)
	for _, p := range pods {
		text, err := j.log(ctx, p.Name)
		j.Logf("pod %s, %+v: %v\n%s", p.Name, p.Status.ContainerStatuses, err, text)
	}
	events, err := j.client.CoreV1().Events(j.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		j.Log(err)
		return
	}
	j.Log("events:\n" + strings.Join(trainingjob.EventLines(events.Items, 30), "\n"))
}

// local is the hash of the model that the tests' job gives on this machine, without a cluster.
func local(t *testing.T, model string) string {
	t.Helper()
	return localOf(t, define(t, model))
}

// localOf is that of any job. It is trained once.
func localOf(t *testing.T, definition trainingjob.Definition) string {
	t.Helper()
	localRuns.Lock()
	defer localRuns.Unlock()
	d, model := definition.Job, definition.Job.Model.File
	run := fmt.Sprintf("%s %+v %+v", model, d.Data, d.Training)
	if hash := localRuns.hashes[run]; hash != "" {
		return hash
	}
	hash, err := program.Train(t.Context(), trainer, t.TempDir(), "--model-file", model, "--threads", "1",
		"--train-data-dir", d.Data.Training, "--record-per-task", strconv.Itoa(d.Data.RecordsPerTask),
		"--num-epoch", strconv.Itoa(d.Training.Epochs), "--minibatch-size", strconv.Itoa(d.Training.MinibatchSize),
		"--grads-to-wait", strconv.Itoa(d.Training.GradsToWait), "--seed", strconv.FormatUint(d.Training.Seed, 10))
	if err != nil {
		t.Fatal(err)
	}
	localRuns.hashes[run] = hash
	return hash
}

var localRuns = struct {
	sync.Mutex
	hashes map[string]string
}{hashes: map[string]string{}}
