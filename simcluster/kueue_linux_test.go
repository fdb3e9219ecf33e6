package simcluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/addon"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// queueOfFour has room for one of the Jobs below. It is written as v1beta1, the version of most manifests.
const queueOfFour = `
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: research}
spec:
  cohort: all
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: main, namespace: default}
spec: {clusterQueue: research}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: WorkloadPriorityClass
metadata: {name: high}
value: 1000
`

const job = `
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: default, labels: {kueue.x-k8s.io/queue-name: main%s}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: busybox, command: [sleep, "1000"], resources: {requests: {cpu: 3}}}
`

func TestKueueItselfQueuesAndPreempts(t *testing.T) {
	cluster := simcluster.Start(t, simcluster.Nodes(1, "8", "32Gi"), simcluster.Image(controlplane.AnyImage, controlplane.HostImage), simcluster.Kueue())
	u := newUser(t, cluster)

	u.apply(queueOfFour)
	if have := u.field("clusterqueues", "", "research", "spec", "cohortName"); have != "all" {
		t.Errorf("v1beta1's cohort has become %v in v1beta2, want what Kueue's conversion makes of it", have)
	}
	u.apply(fmt.Sprintf(job, "low", ""))
	waitFor(t, "the first Job is admitted", u.suspended("low", false))
	u.apply(fmt.Sprintf(job, "high", ", kueue.x-k8s.io/priority-class: high"))
	waitFor(t, "the urgent Job is admitted", u.suspended("high", false))
	waitFor(t, "the first Job waits again", u.suspended("low", true))
	waitFor(t, "Kueue's event says for whom", u.event("Preempted", "Preempted to accommodate a workload"))

	err := u.create(strings.Replace(queueOfFour[strings.Index(queueOfFour, "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue"):strings.Index(queueOfFour, "---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue")],
		"nominalQuota: 4", "nominalQuota: 4, lendingLimit: 5", 1))
	if err == nil || !strings.Contains(err.Error(), "lendingLimit") {
		t.Errorf("a queue that lends more than it has: %v, want Kueue's webhook to refuse it", err)
	}

	if err := cluster.KillComponent(t.Context(), addon.Kueue); err != nil {
		t.Fatal(err)
	}
	if err := cluster.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := u.client.Resource(schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}).Namespace("default").Delete(t.Context(), "high", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the Kueue that was started again admits the first Job", u.suspended("low", false))

	log, err := os.ReadFile(filepath.Join(cluster.Dir, "logs", addon.Kueue+".log"))
	if err != nil || !strings.Contains(string(log), "sigs.k8s.io/kueue") {
		t.Errorf("the log is not Kueue's: %v", err)
	}
}

func TestKueueRunsWithTheConfigurationOfAFile(t *testing.T) {
	config := filepath.Join(t.TempDir(), "kueue.yaml")
	text := "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfairSharing: {preemptionStrategies: [LessThanInitialShare]}\nintegrations: {frameworks: [batch/job]}\nfeatureGates: {PriorityBoost: true}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster := simcluster.Start(t, simcluster.Nodes(1, "8", "32Gi"), simcluster.KueueConfig(config))
	u := newUser(t, cluster)
	u.apply(queueOfFour)
	shared := func() error {
		if share := u.field("clusterqueues", "", "research", "status", "fairSharing", "weightedShare"); share == nil {
			return errors.New("its status has no share")
		}
		return nil
	}
	waitFor(t, "the queue's status has its share", shared)
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	inCluster, err := client.CoreV1().ConfigMaps("kueue-system").Get(t.Context(), "kueue-manager-config", metav1.GetOptions{})
	if err != nil || !strings.Contains(inCluster.Data["controller_manager_config.yaml"], "PriorityBoost: true") {
		t.Errorf("the ConfigMap says %v, %v; want the file's configuration", inCluster.Data, err)
	}
}

func TestJobSetAndTrainJobRunUnderKueue(t *testing.T) {
	cluster := simcluster.Start(t, simcluster.Nodes(1, "8", "32Gi"), simcluster.Image(controlplane.AnyImage, controlplane.HostImage),
		simcluster.Kueue(), simcluster.Controllers(addon.JobSet, addon.Trainer))
	u := newUser(t, cluster)
	u.apply(queueOfFour)
	u.apply(`
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: plain, namespace: default, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 1}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: busybox, command: [sleep, "1000"]}]}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: train, namespace: default, labels: {kueue.x-k8s.io/queue-name: main}}
spec:
  runtimeRef: {apiGroup: trainer.kubeflow.org, kind: TrainingRuntime, name: plain}
  trainer: {numNodes: 2, resourcesPerNode: {requests: {cpu: 2}}}
`)
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "both nodes of the TrainJob run", func() error {
		pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "jobset.sigs.k8s.io/jobset-name=train"})
		if err != nil {
			return err
		}
		running := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Status.Phase != corev1.PodRunning })
		if len(running) != 2 {
			return fmt.Errorf("%d pods run", len(running))
		}
		return nil
	})
	// Kueue writes the status of a queue after it has admitted a workload.
	waitFor(t, "the queue has admitted the TrainJob", func() error {
		if admitted := u.field("clusterqueues", "", "research", "status", "admittedWorkloads"); admitted != int64(1) {
			return fmt.Errorf("it has admitted %v workloads", admitted)
		}
		return nil
	})
}

// A user works on a cluster with manifests, as with kubectl.
type user struct {
	t      *testing.T
	client dynamic.Interface
}

func newUser(t *testing.T, cluster *simcluster.Cluster) user {
	t.Helper()
	config, err := cluster.Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return user{t: t, client: client}
}

// create creates an object, in the version in which it is written.
func (u user) create(manifest string) error {
	u.t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		u.t.Fatal(err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	_, err := u.client.Resource(resource).Namespace(object.GetNamespace()).Create(u.t.Context(), object, metav1.CreateOptions{})
	return err
}

func (u user) apply(manifests string) {
	u.t.Helper()
	for manifest := range strings.SplitSeq(manifests, "\n---\n") {
		if err := u.create(manifest); err != nil {
			u.t.Fatalf("%v\n%s", err, manifest)
		}
	}
}

// field reads a field of an object of Kueue's, as v1beta2 has it; nil: it has none.
func (u user) field(resource, namespace, name string, path ...string) any {
	u.t.Helper()
	kind := schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: resource}
	object, err := u.client.Resource(kind).Namespace(namespace).Get(u.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		u.t.Fatal(err)
	}
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil {
		u.t.Fatal(err)
	}
	return value
}

// suspended looks whether a Job is suspended.
func (u user) suspended(name string, want bool) func() error {
	return func() error {
		job, err := u.client.Resource(schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}).Namespace("default").Get(u.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if have, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend"); have != want {
			return fmt.Errorf("suspend is %v", have)
		}
		return nil
	}
}

// event looks for an event.
func (u user) event(reason, message string) func() error {
	return func() error {
		events, err := u.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace("default").List(u.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			have, _, _ := unstructured.NestedString(event.Object, "message")
			why, _, _ := unstructured.NestedString(event.Object, "reason")
			if why == reason && strings.Contains(have, message) {
				return nil
			}
		}
		return fmt.Errorf("none of %d events", len(events.Items))
	}
}
