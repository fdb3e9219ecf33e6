package manifest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/manifest"
)

// objects are the documents of a file.
func objects(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, document := range strings.Split(text, "\n---\n") {
		asJSON, err := yaml.YAMLToJSONStrict([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(asJSON); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

// nodes are two of one pool and one of another, which is tainted.
func nodes() []*corev1.Node {
	node := func(name, pool string, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": pool, corev1.LabelHostname: name}},
			Spec:       corev1.NodeSpec{Taints: taints},
		}
	}
	return []*corev1.Node{
		node("cpu-1", "cpu"), node("cpu-2", "cpu", corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}),
		node("gpu-1", "gpu", corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}),
	}
}

// read reads a file in namespace team, by the nodes.
func read(t testing.TB, text string) (manifest.Contents, error) {
	t.Helper()
	var all manifest.Contents
	given := objects(t, text)
	set := manifest.NewSet(given, manifest.Given{Namespace: "team", Nodes: nodes()})
	for _, object := range given {
		contents, err := set.Read(object)
		if err != nil {
			return all, err
		}
		all.Jobs, all.Objects = append(all.Jobs, contents.Jobs...), append(all.Objects, contents.Objects...)
	}
	return all, nil
}

// outline is a job in a line: its kind, and for each Workload the queue and its pods by pod set and wave.
func outline(job forecast.Job) string {
	text := fmt.Sprintf("%s %s", job.Noun, job)
	if job.Suspended {
		text += " (suspended)"
	}
	for _, stage := range job.Stages {
		for _, part := range stage {
			text += fmt.Sprintf(" | %s", part.Queue)
			if part.PriorityClassName != "" || part.Class != "" {
				text += fmt.Sprintf("(%s%s)", part.Class, part.PriorityClassName)
			}
			var groups []string
			counts := map[string]int{}
			for _, pod := range part.Pods {
				word, _, _ := strings.Cut(pod.Role, " ")
				group := word
				if pod.Set != "" && pod.Set != word {
					group = pod.Set + "/" + word
				}
				if pod.Wave > 0 {
					group += fmt.Sprintf("@%d", pod.Wave)
				}
				if pod.Ends {
					group += "!"
				}
				if counts[group]++; counts[group] == 1 {
					groups = append(groups, group)
				}
			}
			for _, group := range groups {
				text += fmt.Sprintf(" %s×%d", group, counts[group])
			}
		}
	}
	if len(job.Approximate) > 0 {
		text += " ~"
	}
	return text
}

func pods(job forecast.Job) []forecast.Pod {
	var all []forecast.Pod
	for _, stage := range job.Stages {
		for _, part := range stage {
			all = append(all, part.Pods...)
		}
	}
	return all
}

const (
	template = "{spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}"
	queued   = "labels: {kueue.x-k8s.io/queue-name: user-queue}"
)

// with puts a template and a queue's label into a file.
func with(text string) string {
	return strings.NewReplacer("TEMPLATE", template, "QUEUED", queued).Replace(text)
}

// eachKind has an object of every kind that a forecast knows, and its jobs.
var eachKind = map[string]struct{ text, want string }{
	"Job: as many pods as run at once": {
		"{apiVersion: batch/v1, kind: Job, metadata: {name: j, QUEUED}, spec: {parallelism: 3, completions: 2, template: TEMPLATE}}",
		"Job team/j | user-queue pod×2",
	},
	"CronJob: one run, in the queue of its template": {
		"{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly}, spec: {schedule: '0 1 * * *', jobTemplate: {metadata: {QUEUED}, spec: {template: TEMPLATE}}}}",
		"CronJob team/nightly | user-queue the×1 ~",
	},
	"Deployment: each pod is a Workload": {
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, QUEUED}, spec: {replicas: 2, selector: {}, template: TEMPLATE}}",
		"Deployment team/web | user-queue main/pod×1 | user-queue main/pod×1",
	},
	"Deployment without a queue: its pods go together": {
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {}, template: TEMPLATE}}",
		"Deployment team/web |  main/pod×2",
	},
	"ReplicaSet": {
		"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web, QUEUED}, spec: {replicas: 2, selector: {}, template: TEMPLATE}}",
		"ReplicaSet team/web |  main/pod×2", // Kueue has no integration for it
	},
	"StatefulSet: one Workload, one pod after the other": {
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, QUEUED}, spec: {replicas: 2, selector: {}, template: TEMPLATE}}",
		"StatefulSet team/db | user-queue main/pod×1 main/pod@1×1",
	},
	"StatefulSet: in parallel": {
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, QUEUED}, spec: {podManagementPolicy: Parallel, replicas: 2, selector: {}, template: TEMPLATE}}",
		"StatefulSet team/db | user-queue main/pod×2",
	},
	"DaemonSet: a pod on each node that it tolerates": {
		"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {}, template: TEMPLATE}}",
		"DaemonSet team/agent |  pod×2",
	},
	"pod group: one Workload, with a pod set for each shape": {
		`{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: user-queue, kueue.x-k8s.io/pod-group-name: g}, annotations: {kueue.x-k8s.io/pod-group-total-count: "2", kueue.x-k8s.io/role-hash: x}}, spec: {containers: [{name: c}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: b, labels: {kueue.x-k8s.io/queue-name: user-queue, kueue.x-k8s.io/pod-group-name: g}, annotations: {kueue.x-k8s.io/pod-group-total-count: "2", kueue.x-k8s.io/role-hash: z}}, spec: {containers: [{name: c}]}}`,
		"pod group team/g | user-queue x/a×1 z/b×1",
	},
	"JobSet: replicas times parallelism, of each replicated job": {
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: js, QUEUED}, spec: {replicatedJobs: [{name: leader, template: {spec: {template: TEMPLATE}}}, {name: workers, replicas: 2, template: {spec: {parallelism: 4, completions: 3, template: TEMPLATE}}}]}}",
		"JobSet team/js | user-queue leader×1 workers×6",
	},
	"JobSet: in order": {
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: js}, spec: {suspend: true, startupPolicy: {startupPolicyOrder: InOrder}, replicatedJobs: [{name: driver, template: {spec: {template: TEMPLATE}}}, {name: workers, template: {spec: {template: TEMPLATE}}}]}}",
		"JobSet team/js (suspended) |  driver×1 workers@1×1",
	},
	"JobSet: what depends on a Job's end comes after it": {
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: js}, spec: {replicatedJobs: [{name: initializer, template: {spec: {template: TEMPLATE}}}, {name: node, dependsOn: [{name: initializer, status: Complete}], template: {spec: {template: TEMPLATE}}}]}}",
		"JobSet team/js |  initializer!×1 node@1×1",
	},
	"JobSet: each Job in a rack of its own": {
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: js, annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack}}, spec: {replicatedJobs: [{name: w, template: {spec: {template: TEMPLATE}}}]}}",
		"JobSet team/js |  w×1 ~",
	},
	"TrainJob: the runtime's Jobs, with the TrainJob's nodes": {
		`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: tune, QUEUED}, spec: {runtimeRef: {name: torch}, trainer: {numNodes: 3, resourcesPerNode: {requests: {cpu: 4}}}}}
---
{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: torch}, spec: {mlPolicy: {numNodes: 1, torch: {}}, template: {spec: {replicatedJobs: [{name: dataset-initializer, replicas: 1, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}, spec: {template: TEMPLATE}}}, {name: node, dependsOn: [{name: dataset-initializer, status: Complete}], template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: node, image: torch}]}}}}}]}}}}`,
		"TrainJob team/tune | user-queue dataset-initializer!×1 node@1×3",
	},
	"TrainJob: MPI, where the launcher is one of the nodes": {
		`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: ds}, spec: {runtimeRef: {name: ds, kind: TrainingRuntime}, trainer: {numNodes: 4}}}
---
{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: ds}, spec: {mlPolicy: {numNodes: 1, mpi: {runLauncherAsNode: true}}, template: {spec: {replicatedJobs: [{name: launcher, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: TEMPLATE}}}, {name: node, template: {spec: {template: TEMPLATE}}}]}}}}`,
		"TrainJob team/ds |  launcher×1 node×3",
	},
	"RayCluster: a head, and replicas times hosts": {
		"{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: ray, QUEUED}, spec: {rayVersion: '2.52', headGroupSpec: {rayStartParams: {num-cpus: '0'}, template: TEMPLATE}, workerGroupSpecs: [{groupName: Small-Group, replicas: 1, minReplicas: 2, maxReplicas: 5, template: TEMPLATE}, {groupName: tpu, replicas: 1, numOfHosts: 4, template: TEMPLATE}]}}",
		"RayCluster team/ray | user-queue head×1 small-group×2 tpu×4",
	},
	"RayJob: the cluster and, when it runs, the submitter": {
		"{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: ray, QUEUED}, spec: {entrypoint: python x.py, rayClusterSpec: {headGroupSpec: {template: TEMPLATE}, workerGroupSpecs: [{groupName: w, replicas: 2, template: TEMPLATE}]}}}",
		"RayJob team/ray | user-queue head×1 w×2 submitter@1×1",
	},
	"RayJob: with HTTP there is no submitter": {
		"{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: ray}, spec: {submissionMode: HTTPMode, suspend: true, rayClusterSpec: {enableInTreeAutoscaling: true, headGroupSpec: {template: TEMPLATE}}}}",
		"RayJob team/ray (suspended) |  head×1 ~",
	},
	"RayJob on an existing cluster: not Kueue's": {
		"{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: ray, QUEUED}, spec: {clusterSelector: {ray.io/cluster: c}}}",
		"RayJob team/ray |  submitter×1",
	},
	"RayService: its cluster": {
		"{apiVersion: ray.io/v1, kind: RayService, metadata: {name: ray}, spec: {serveConfigV2: x, rayClusterConfig: {headGroupSpec: {template: TEMPLATE}}}}",
		"RayService team/ray |  head×1",
	},
	"MPIJob: the launcher once the workers run, with the priority of its policy": {
		"{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: mpi, QUEUED}, spec: {slotsPerWorker: 1, launcherCreationPolicy: WaitForWorkersReady, runPolicy: {cleanPodPolicy: Running, schedulingPolicy: {priorityClass: high}}, mpiReplicaSpecs: {Launcher: {replicas: 1, template: TEMPLATE}, Worker: {replicas: 2, template: TEMPLATE}}}}",
		"MPIJob team/mpi | user-queue(high) worker×2 launcher@1×1",
	},
	"PyTorchJob: the master first": {
		"{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: pt, QUEUED}, spec: {runPolicy: {suspend: true}, pytorchReplicaSpecs: {worker: {replicas: 2, restartPolicy: ExitCode, template: TEMPLATE}, Master: {replicas: 1, template: TEMPLATE}}}}",
		"PyTorchJob team/pt (suspended) | user-queue master×1 worker×2",
	},
	"TFJob": {
		"{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: tf}, spec: {tfReplicaSpecs: {PS: {replicas: 2, template: TEMPLATE}, Worker: {replicas: 2, template: TEMPLATE}, Chief: {template: TEMPLATE}}}}",
		"TFJob team/tf |  chief×1 ps×2 worker×2",
	},
	"LeaderWorkerSet: each group is a Workload": {
		"{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: vllm, QUEUED}, spec: {replicas: 2, startupPolicy: LeaderReady, leaderWorkerTemplate: {size: 3, restartPolicy: RecreateGroupOnPodRestart, leaderTemplate: TEMPLATE, workerTemplate: TEMPLATE}}}",
		"LeaderWorkerSet team/vllm | user-queue leader×1 worker@1×2 | user-queue leader×1 worker@1×2",
	},
	"LeaderWorkerSet with one template: one pod set": {
		"{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: vllm}, spec: {leaderWorkerTemplate: {size: 3, workerTemplate: TEMPLATE}}}",
		"LeaderWorkerSet team/vllm |  main/leader×1 main/worker×2",
	},
	"AppWrapper: all that it wraps is one Workload": {
		"{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: aw, QUEUED}, spec: {components: [{template: {apiVersion: batch/v1, kind: Job, metadata: {name: a, QUEUED}, spec: {parallelism: 2, template: TEMPLATE}}}, {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}, {template: {apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{name: c}]}}}]}}",
		"AppWrapper team/aw | user-queue aw-0/a-pod×2 aw-1/b-pod×1",
	},
	"another kind: its templates, with the numbers beside them": {
		"{apiVersion: serving.example.com/v1, kind: InferencePool, metadata: {name: p}, spec: {roles: [{name: prefill, replicas: 2, template: TEMPLATE}, {name: decode, replicas: 3, template: TEMPLATE}], router: {template: TEMPLATE}}}",
		"InferencePool team/p |  prefill×2 decode×3 router×1 ~",
	},
}

func TestJobsOfEachKind(t *testing.T) {
	for behaviour, c := range eachKind {
		t.Run(behaviour, func(t *testing.T) {
			contents, err := read(t, with(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if len(contents.Jobs) != 1 || outline(contents.Jobs[0]) != c.want {
				var got []string
				for _, job := range contents.Jobs {
					got = append(got, outline(job))
				}
				t.Fatalf("got  %q\nwant %q", got, c.want)
			}
			roles := map[string]bool{}
			for _, pod := range pods(contents.Jobs[0]) {
				if roles[pod.Role] || pod.Name == "" || pod.Namespace != "team" {
					t.Errorf("pod %q is named %s/%s", pod.Role, pod.Namespace, pod.Name)
				}
				roles[pod.Role] = true
			}
			if contents.Jobs[0].Object == nil {
				t.Error("the object that a user applies is lost")
			}
		})
	}
}

// one is the only job of a file.
func one(t *testing.T, text string) forecast.Job {
	t.Helper()
	contents, err := read(t, with(text))
	if err != nil || len(contents.Jobs) != 1 {
		t.Fatalf("%d jobs, %v", len(contents.Jobs), err)
	}
	return contents.Jobs[0]
}

func TestPodsAreLabelledAsTheirControllersDo(t *testing.T) {
	for behaviour, c := range map[string]struct {
		text, pod string
		labels    map[string]string
	}{
		"Job": {"{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {completionMode: Indexed, parallelism: 2, completions: 2, template: TEMPLATE}}", "j-1", map[string]string{
			"job-name": "j", "batch.kubernetes.io/job-completion-index": "1",
		}},
		"JobSet": {"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: js}, spec: {replicatedJobs: [{name: a, template: {spec: {template: TEMPLATE}}}, {name: w, replicas: 2, template: {spec: {parallelism: 2, template: TEMPLATE}}}]}}", "js-w-1-0", map[string]string{
			"jobset.sigs.k8s.io/jobset-name": "js", "jobset.sigs.k8s.io/replicatedjob-name": "w", "jobset.sigs.k8s.io/job-index": "1",
			"jobset.sigs.k8s.io/job-global-index": "2", "jobset.sigs.k8s.io/global-replicas": "3", "job-name": "js-w-1",
			"jobset.sigs.k8s.io/job-key":               "3dfc6b69c27d27e2ca4be417e694b53a97c2c2e3",
			"batch.kubernetes.io/job-completion-index": "0",
		}},
		"Deployment":  {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {}, template: TEMPLATE}}", "web-planned-0", map[string]string{"pod-template-hash": "planned"}},
		"StatefulSet": {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {ordinals: {start: 5}, selector: {}, template: TEMPLATE}}", "db-5", map[string]string{"apps.kubernetes.io/pod-index": "5", "statefulset.kubernetes.io/pod-name": "db-5"}},
		"RayCluster":  {"{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: ray}, spec: {headGroupSpec: {template: TEMPLATE}}}", "ray-head", map[string]string{"ray.io/cluster": "ray", "ray.io/node-type": "head", "ray.io/group": "headgroup"}},
		"PyTorchJob": {"{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: pt}, spec: {pytorchReplicaSpecs: {Worker: {replicas: 2, template: TEMPLATE}}}}", "pt-worker-1", map[string]string{
			"training.kubeflow.org/job-name": "pt", "training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "1", "training.kubeflow.org/operator-name": "pytorchjob-controller",
		}},
		"MPIJob": {"{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: mpi}, spec: {runLauncherAsWorker: true, mpiReplicaSpecs: {Launcher: {template: TEMPLATE}, Worker: {replicas: 1, template: TEMPLATE}}}}", "mpi-worker-0", map[string]string{
			"training.kubeflow.org/job-role": "worker", "training.kubeflow.org/replica-index": "1",
		}},
		"LeaderWorkerSet": {"{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: vllm}, spec: {replicas: 2, leaderWorkerTemplate: {size: 2, workerTemplate: TEMPLATE}}}", "vllm-1-1", map[string]string{
			"leaderworkerset.sigs.k8s.io/name": "vllm", "leaderworkerset.sigs.k8s.io/group-index": "1", "leaderworkerset.sigs.k8s.io/worker-index": "1",
		}},
	} {
		t.Run(behaviour, func(t *testing.T) {
			job := one(t, c.text)
			all := pods(job)
			at := slices.IndexFunc(all, func(p forecast.Pod) bool { return p.Name == c.pod })
			if at < 0 && behaviour != "Job" { // those of a Job have random names
				t.Fatalf("there is no pod %s, but %s", c.pod, all[len(all)-1].Name)
			}
			if at < 0 {
				at = len(all) - 1
			}
			for key, value := range c.labels {
				if got := all[at].Labels[key]; got != value {
					t.Errorf("label %s is %q, want %q", key, got, value)
				}
			}
		})
	}
}

// TestControllersSpreadTheirPodsByWhatTheyCreate counts, for each kind, the pods that the Services and StatefulSets select
// which its controller creates: kube-scheduler spreads these.
func TestControllersSpreadTheirPodsByWhatTheyCreate(t *testing.T) {
	for behaviour, c := range map[string]struct {
		text     string
		selected map[string]int
	}{
		"JobSet": {
			"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: js}, spec: {replicatedJobs: [{name: w, replicas: 2, template: {spec: {parallelism: 2, template: TEMPLATE}}}]}}",
			map[string]int{"Service js": 4},
		},
		"JobSet with a subdomain": {
			"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: js}, spec: {network: {subdomain: net}, replicatedJobs: [{name: w, template: {spec: {template: TEMPLATE}}}]}}",
			map[string]int{"Service net": 1},
		},
		"JobSet without host names": {
			"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: js}, spec: {network: {enableDNSHostnames: false}, replicatedJobs: [{name: w, template: {spec: {template: TEMPLATE}}}]}}",
			map[string]int{},
		},
		"AppWrapper of a JobSet": {
			"{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: wrapped}, spec: {components: [{template: {apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: js}, spec: {replicatedJobs: [{name: w, template: {spec: {template: TEMPLATE}}}]}}}]}}",
			map[string]int{"Service js": 1},
		},
		"MPIJob": {
			"{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: mpi}, spec: {mpiReplicaSpecs: {Launcher: {template: TEMPLATE}, Worker: {replicas: 2, template: TEMPLATE}}}}",
			map[string]int{"Service mpi": 3},
		},
		"LeaderWorkerSet": {
			"{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: vllm}, spec: {replicas: 2, leaderWorkerTemplate: {size: 3, workerTemplate: TEMPLATE}}}",
			map[string]int{"StatefulSet vllm": 2, "StatefulSet vllm-0": 3, "StatefulSet vllm-1": 3},
		},
		"RayCluster with several hosts for each worker": {
			"{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: ray}, spec: {headGroupSpec: {template: TEMPLATE}, workerGroupSpecs: [{groupName: tpu, replicas: 2, numOfHosts: 2, template: TEMPLATE}]}}",
			map[string]int{"Service ray-headless": 4},
		},
		"RayCluster": {
			"{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: ray}, spec: {headGroupSpec: {template: TEMPLATE}, workerGroupSpecs: [{groupName: cpu, replicas: 2, template: TEMPLATE}]}}",
			map[string]int{},
		},
	} {
		t.Run(behaviour, func(t *testing.T) {
			job := one(t, c.text)
			got := map[string]int{}
			count := func(name string, selector map[string]string) {
				for _, pod := range pods(job) {
					if labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
						got[name]++
					}
				}
			}
			for _, service := range job.Services {
				count("Service "+service.Name, service.Spec.Selector)
			}
			for _, set := range job.StatefulSets {
				count("StatefulSet "+set.Name, set.Spec.Selector.MatchLabels)
			}
			if diff := cmp.Diff(c.selected, got); diff != "" {
				t.Errorf("selected pods (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResourcesThatControllersAddAndChange(t *testing.T) {
	cpus := func(job forecast.Job) string {
		var text []string
		for _, pod := range pods(job) {
			sum := pod.Spec.Containers[0].Resources.Requests.Cpu().DeepCopy()
			for _, c := range pod.Spec.Containers[1:] {
				sum.Add(*c.Resources.Requests.Cpu())
			}
			text = append(text, pod.Role+" "+sum.String())
		}
		return strings.Join(text, ", ")
	}
	for behaviour, c := range map[string]struct{ text, want string }{
		"Ray's autoscaler runs beside the head, and the submitter has its own": {
			"{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: ray}, spec: {rayClusterSpec: {enableInTreeAutoscaling: true, headGroupSpec: {template: TEMPLATE}}}}",
			"head 1500m, submitter 500m",
		},
		"the submitter is a container of the head": {
			"{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: ray}, spec: {submissionMode: SidecarMode, rayClusterSpec: {headGroupSpec: {template: TEMPLATE}}}}",
			"head 1500m",
		},
		"a TrainJob's nodes, and what it changes of its runtime": {
			`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: t}, spec: {runtimeRef: {name: r}, trainer: {resourcesPerNode: {requests: {cpu: 4}}}, runtimePatches: [{manager: me, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {nodeSelector: {pool: gpu}}}}}}]}}}}]}}
---
{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: r}, spec: {mlPolicy: {numNodes: 2}, template: {spec: {replicatedJobs: [{name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: node, image: torch, resources: {requests: {cpu: 1}}}]}}}}}]}}}}`,
			"node 0 4, node 1 4",
		},
	} {
		t.Run(behaviour, func(t *testing.T) {
			job := one(t, c.text)
			if got := cpus(job); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if job.Noun == "TrainJob" && pods(job)[0].Spec.NodeSelector["pool"] != "gpu" {
				t.Error("its runtime was not patched")
			}
		})
	}
}

func TestKueueDoesNotCountTheInitContainerOfARayClustersWorkers(t *testing.T) {
	job := one(t, "{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: ray}, spec: {headGroupSpec: {template: TEMPLATE}, workerGroupSpecs: [{groupName: w, replicas: 1, maxReplicas: 1, template: TEMPLATE}]}}")
	head, worker := pods(job)[0], pods(job)[1]
	if head.Uncounted != "" || len(head.Spec.InitContainers) != 0 {
		t.Errorf("the head has init container %q", head.Uncounted)
	}
	if added := worker.Spec.InitContainers; len(added) != 1 || added[0].Name != worker.Uncounted {
		t.Errorf("the worker has init containers %v, of which %q is not counted", added, worker.Uncounted)
	}
}

func TestThePodsOfAGroupHaveTheNamesThatAreGenerated(t *testing.T) {
	pod := func(metadata string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {` + metadata + `, labels: {kueue.x-k8s.io/queue-name: q, kueue.x-k8s.io/pod-group-name: g},
annotations: {kueue.x-k8s.io/pod-group-total-count: "4"}}, spec: {containers: [{name: c}]}}`
	}
	contents, err := read(t, strings.Join([]string{pod("generateName: leader-"), pod("generateName: worker-"), pod("generateName: worker-"), pod("name: other")}, "\n---\n"))
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, pod := range pods(contents.Jobs[0]) {
		roles = append(roles, pod.Role+"="+pod.Name)
	}
	if want := []string{"leader=leader", "worker 0=worker-0", "worker 1=worker-1", "other=other"}; !slices.Equal(roles, want) {
		t.Errorf("got %q, want %q", roles, want)
	}
	if _, err := read(t, pod("name: a")+"\n---\n"+pod("finalizers: []")); err == nil || !strings.Contains(err.Error(), "metadata.generateName") {
		t.Errorf("a pod without a name: %v", err)
	}
}

func TestADaemonSetsPodsAreTiedToTheirNodes(t *testing.T) {
	job := one(t, "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {}, template: TEMPLATE}}")
	var tied []string
	for _, pod := range pods(job) {
		term := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0]
		tied = append(tied, term.Values...)
	}
	if want := []string{"cpu-1", "cpu-2"}; !slices.Equal(tied, want) { // one is cordoned, which daemons tolerate
		t.Errorf("got %q, want %q", tied, want)
	}
}

func TestObjectsThatAffectPodsAreReadBesideTheJobs(t *testing.T) {
	contents, err := read(t, with(`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {selector: {app: a}}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
---
{apiVersion: kueue.x-k8s.io/v1beta1, kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: c}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: TEMPLATE}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, object := range contents.Objects {
		named := object.(metav1.Object)
		got = append(got, fmt.Sprintf("%T %s/%s", object, named.GetNamespace(), named.GetName()))
	}
	want := []string{"*v1.Service team/s", "*v1.PriorityClass /high", "*v1beta2.LocalQueue team/q"}
	if !slices.Equal(got, want) || len(contents.Jobs) != 1 {
		t.Errorf("got %q and %d jobs, want %q", got, len(contents.Jobs), want)
	}
}

func TestWhatIsRefused(t *testing.T) {
	for text, wantText := range map[string]string{
		"{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 3}}":                                                                                                                                      "Widget w: a forecast does not know this kind",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {paralelism: 2, template: TEMPLATE}}":                                                                                                                     `unknown field "spec.paralelism"`,
		"{apiVersion: batch/v1, kind: Job, metadata: {}, spec: {template: TEMPLATE}}":                                                                                                                                           "metadata.name is missing",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {containers: []}}}}":                                                                                                                    "has no containers",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {containers: [{name: c, resources: {requests: {cpu: '-1'}}}]}}}}":                                                                       "requests -1 of cpu",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {completionMode: Indexed, template: TEMPLATE}}":                                                                                                           "spec.completions is missing",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 1000000000, template: TEMPLATE}}":                                                                                                        "spec.replicas is 1000000000",
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: j}, spec: {}}":                                                                                                                                   "spec.replicatedJobs is empty",
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: j}, spec: {replicatedJobs: [{name: a, template: {spec: {template: {spec: {container: []}}}}}]}}":                                                 `unknown field "spec.replicatedJobs[0].template.spec.template.spec.container"`,
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: j}, spec: {replicatedJobs: [{name: a, replicas: 9999, template: {spec: {parallelism: 9999, template: TEMPLATE}}}]}}":                             "at most 10000 are forecast",
		"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: j}, spec: {replicatedJobs: [{name: a, dependsOn: [{name: b}], template: {spec: {template: TEMPLATE}}}]}}":                                        `depends on "b"`,
		"{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: t}, spec: {runtimeRef: {name: torch}}}":                                                                                                   "ClusterTrainingRuntime torch is not in the file",
		"{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {}}":                                                                                                                                                  "spec.rayClusterSpec is missing",
		"{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r}, spec: {}}":                                                                                                                                              "headGroupSpec has no containers",
		"{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: p}, spec: {pytorchReplicaSpecs: {Boss: {template: TEMPLATE}}}}":                                                                                       `has "Boss"; it takes Master, Worker`,
		"{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: m}, spec: {mpiReplicaSpecs: {}}}":                                                                                                                    "has no Launcher",
		"{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: a}, spec: {components: [{template: {apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: b}}}]}}":            "spec.components[0]",
		"{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {kueue.x-k8s.io/queue-name: q, kueue.x-k8s.io/pod-group-name: g}, annotations: {kueue.x-k8s.io/pod-group-total-count: '2'}}, spec: {containers: [{name: c}]}}": "has 1 of 2 pods",
		"{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {kueue.x-k8s.io/queue-name: q, kueue.x-k8s.io/pod-group-name: g}}, spec: {containers: [{name: c}]}}":                                                           "it says of how many pods the group consists",
	} {
		if _, err := read(t, with(text)); err == nil || !strings.Contains(err.Error(), wantText) {
			t.Errorf("%.70s…: %v, not %q", text, err, wantText)
		}
	}
}

// FuzzRead checks that no file crashes the reader, or makes it plan too many pods.
func FuzzRead(f *testing.F) {
	for _, c := range eachKind {
		f.Add(with(c.text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var given []*unstructured.Unstructured
		for document := range strings.SplitSeq(text, "\n---\n") {
			asJSON, err := yaml.YAMLToJSONStrict([]byte(document))
			if err != nil {
				return
			}
			object := &unstructured.Unstructured{}
			if object.UnmarshalJSON(asJSON) != nil {
				return
			}
			given = append(given, object)
		}
		set := manifest.NewSet(given, manifest.Given{Namespace: "team", Nodes: nodes()})
		for _, object := range given {
			contents, err := set.Read(object)
			if err != nil {
				continue
			}
			for _, job := range contents.Jobs {
				if n := len(pods(job)); n > manifest.MaxPods {
					t.Errorf("%s has %d pods", job, n)
				}
			}
		}
	})
}
