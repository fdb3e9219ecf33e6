package snapshot_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/snapshot"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/forecasttest"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/manifest"
)

// situation draws a cluster.
type situation struct {
	*rapid.T
	*forecast.Snapshot
	names int
}

func one[T any](s *situation, label string, of ...T) T { return rapid.SampledFrom(of).Draw(s.T, label) }

func (s *situation) yes(label string) bool { return rapid.Bool().Draw(s.T, label) }

func (s *situation) upTo(n int, label string) int { return rapid.IntRange(0, n).Draw(s.T, label) }

// name draws a name that no other object has: of words, numbers, and hashes.
func (s *situation) name() string {
	s.names++
	return fmt.Sprintf("%s%s%d", one(s, "word", "shop", "shop-a", "ab", "acme-train", "team-47110", "z9", "7d4f9b"), one(s, "separator", "-", ".", "-x-"), s.names)
}

// drawSituation draws what forecasts depend on, of each kind that has references to others.
func drawSituation(t *rapid.T) *situation {
	s := &situation{T: t, Snapshot: &forecast.Snapshot{
		AsOf: forecasttest.AsOf, Version: "v1.37.1", Jobs: map[types.NamespacedName]forecast.TrainingJob{},
		Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "acme"}}}},
	}}
	s.Storage.Classes = []*storagev1.StorageClass{{
		ObjectMeta: metav1.ObjectMeta{Name: "acme-fast"}, Provisioner: "csi.acme.example",
		Parameters: map[string]string{"key": "hunter2"}, MountOptions: []string{"password=hunter2"},
	}}
	s.Storage.Volumes = []*corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "acme-volume"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: "csi.acme.example", VolumeAttributes: map[string]string{"password": "hunter2"},
		}},
	}}}
	s.PriorityClasses = append(s.PriorityClasses, forecasttest.Class("acme-low", 1000), forecasttest.Class("acme-high", 1000000))
	for range 1 + s.upTo(1, "nodes") {
		s.node()
	}
	for range s.upTo(2, "owners") {
		s.owner()
	}
	if s.yes("queues") {
		s.queues()
	}
	for _, kind := range []forecast.Unread{{Kind: forecast.Budgets, Verb: "list poddisruptionbudgets.policy"}, {Kind: forecast.LimitRanges, Verb: "list limitranges"}} {
		if one(s, "may not be read", false, false, true) {
			s.Unread = append(s.Unread, kind)
		}
	}
	slices.SortFunc(s.Unread, func(a, b forecast.Unread) int { return bytes.Compare([]byte(a.Verb), []byte(b.Verb)) })
	if slices.ContainsFunc(s.Unread, func(u forecast.Unread) bool { return u.Kind == forecast.Budgets }) {
		s.Budgets = nil
	}
	return s
}

func (s *situation) node() {
	node := forecasttest.Node(s.name(), one(s, "CPUs", "2", "4", "5"))
	node.UID = types.UID("uid-" + node.Name)
	node.Labels["acme.example/disk"] = one(s, "disk", "ssd", "HDD")
	node.Labels["topology.kubernetes.io/zone"] = one(s, "zone", "eu-1a", "eu-1b")
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.2.3"}}
	if s.yes("tainted") {
		node.Spec.Taints = []corev1.Taint{{Key: "acme.example/team", Value: "Research", Effect: corev1.TaintEffectNoSchedule}}
	}
	node.Labels["acme.example/memory"] = one(s, "memory", "512", "81920", "491520")
	if s.yes("has devices") {
		s.devices(node.Name)
	}
	if s.yes("has an image") {
		node.Status.Images = []corev1.ContainerImage{{Names: []string{"registry.acme.example/train:latest"}, SizeBytes: 900 << 20}}
	}
	s.Nodes = append(s.Nodes, node)
}

// devices adds two devices of a node, of a class with a resource of its own.
func (s *situation) devices(node string) {
	if len(s.Devices.Classes) == 0 {
		s.Devices.Classes = []*resourcev1.DeviceClass{{
			ObjectMeta: metav1.ObjectMeta{Name: "acme-gaudi"},
			Spec:       resourcev1.DeviceClassSpec{ExtendedResourceName: new("habana.ai/gaudi")},
		}}
	}
	s.Devices.Slices = append(s.Devices.Slices, &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-devices"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: "gaudi.acme.example", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "acme-0"}, {Name: "acme-1"}},
		},
	})
}

// owner adds an object with pods.
func (s *situation) owner() {
	name, kind := s.name(), one(s, "owner", "", "Job", "ReplicaSet", "StatefulSet", "training job", "DaemonSet")
	labels := map[string]string{"app": name}
	for i := range 1 + s.upTo(1, "pods") {
		pod := s.pod(fmt.Sprintf("%s-%d", name, i))
		switch kind {
		case "":
			pod.Labels = labels
		case "Job":
			forecasttest.OfJob(pod, name)
		case "training job":
			forecasttest.Worker(pod, name, i)
		default:
			pod.Labels = labels
			controller := name
			if kind == "ReplicaSet" {
				pod.Labels = map[string]string{"app": name, appsv1.DefaultDeploymentUniqueLabelKey: "7d4f9"}
				controller += "-7d4f9"
			}
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: controller, UID: types.UID("uid-" + name), Controller: new(true)}}
		}
		s.Pods = append(s.Pods, pod)
	}
	switch {
	case kind == "Job":
		s.BatchJobs = append(s.BatchJobs, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("job-" + name)},
			Spec:       batchv1.JobSpec{BackoffLimit: new(int32(s.upTo(1, "backoff limit"))), PodReplacementPolicy: new(one(s, "replaces", batchv1.Failed, batchv1.TerminatingOrFailed))},
		})
	case kind == "training job" && s.yes("its state is known"):
		s.Jobs[types.NamespacedName{Namespace: "default", Name: name}] = forecast.TrainingJob{
			Workers: trainingjob.Workers{Min: 1, Max: 3}, Status: trainingjob.Status{Phase: trainingjob.PhaseRunning, Generation: 1, StepsDone: 40, StepsTotal: 100},
		}
	case kind != "" && s.yes("budget"):
		s.Budgets = append(s.Budgets, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("50%")), Selector: &metav1.LabelSelector{MatchLabels: labels}},
		})
	}
}

func (s *situation) pod(name string) *corev1.Pod {
	node := ""
	if one(s, "runs", true, true, true, false) {
		node = s.Nodes[s.upTo(len(s.Nodes)-1, "node")].Name
	}
	pod := forecasttest.Pod(name, node, one(s, "request", "1", "2"), one(s, "priority", int32(0), 1000, 1000000), s.upTo(9, "since"))
	pod.Annotations = map[string]string{"acme.example/owner": "Ada", corev1.LastAppliedConfigAnnotation: "{}", "kubernetes.io/change-cause": "set PASSWORD=hunter2"}
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "csi.acme.example", VolumeAttributes: map[string]string{"password": "hunter2"}}}}}
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Command = "registry.acme.example/train", []string{"train", "--secret"}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}}
	if s.yes("keeps others off") {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: one(s, "topology", corev1.LabelHostname, "acme.example/disk"), LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "new"}},
		}}}}
	}
	return pod
}

func (s *situation) queues() {
	s.Queues = forecasttest.Queues(one(s, "quota", "2", "4", "8"))
	if one(s, "configuration", "unknown", "known") == "known" {
		s.Queues.Configuration = &configuration.Configuration{
			Resources: configuration.Resources{ExcludeResourcePrefixes: []string{"example.com/"}}, FeatureGates: map[string]bool{"PriorityBoost": true},
		}
	} else {
		s.Queues.ConfigurationUnread = "getting ConfigMap kueue-system/kueue-manager-config is not allowed"
	}
	if s.yes("topologies may not be read") {
		s.Queues.TopologiesUnread = "list topologies.kueue.x-k8s.io"
		s.Queues.Flavors[0].Spec.TopologyName = new(kueue.TopologyReference("racks"))
	}
	for range s.upTo(1, "workloads") {
		name := s.name()
		pod := forecasttest.OfJob(s.pod(name+"-0"), name)
		w := forecasttest.Workload("Job", name, types.UID("job-"+name), pod, one(s, "workload's priority", int32(100), 1000), -5) // a waiting one, which has no pods: few orders of events
		s.Queues.Workloads = append(s.Queues.Workloads, w)
	}
}

// job draws what is planned.
func (s *situation) job(name string) *batchv1.Job {
	pods := int32(1)
	job := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: batchv1.JobSpec{Parallelism: &pods, Completions: &pods},
	}
	template := &job.Spec.Template
	template.Labels = map[string]string{"app": "new"}
	template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, PriorityClassName: one(s, "class", "acme-low", "acme-high", "acme-none"),
		Containers: []corev1.Container{{
			Name: "main", Image: "registry.acme.example/train", Resources: corev1.ResourceRequirements{Requests: forecasttest.CPU(one(s, "its request", "1", "3"))},
		}},
	}
	if s.yes("selects nodes") {
		template.Spec.NodeSelector = map[string]string{"acme.example/disk": "HDD"}
	}
	if s.yes("wants memory") {
		template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "acme.example/memory", Operator: corev1.NodeSelectorOpGt, Values: []string{"40000"}}},
		}}}}}
	}
	if s.yes("wants a device") {
		template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"habana.ai/gaudi": resource.MustParse("1")}
		template.Spec.Containers[0].Resources.Requests["habana.ai/gaudi"] = resource.MustParse("1")
	}
	if s.yes("tolerates") {
		template.Spec.Tolerations = []corev1.Toleration{{Key: "acme.example/team", Operator: corev1.TolerationOpEqual, Value: "Research"}}
	}
	if s.Queues != nil && s.yes("queued") {
		job.Labels = map[string]string{controllerconstants.QueueLabel: "user-queue"}
	}
	return job
}

// forecastOf is the forecast for a Job, as text and as JSON.
func forecastOf(t *rapid.T, s *forecast.Snapshot, job *batchv1.Job) string {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: fields}
	contents, err := manifest.NewSet([]*unstructured.Unstructured{object}, manifest.Given{Namespace: "default", Nodes: s.Nodes}).Read(object)
	if err != nil {
		t.Fatal(err)
	}
	answer := forecast.All(t.Context(), s, contents.Jobs)[0]
	text, err := json.MarshalIndent(answer, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return answer.Text() + "\n" + string(text)
}

func read(t *rapid.T, text []byte) *forecast.Snapshot {
	file, err := snapshot.Parse(bytes.NewReader(text), time.Time{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return file.Snapshot
}

func TestAForecastFromAFileIsThatFromTheCluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t)
		job := s.job("acme-train-4711")
		want := forecastOf(t, s.Snapshot, job)
		var file, again bytes.Buffer
		if err := snapshot.Write(&file, s.Snapshot); err != nil {
			t.Fatal(err)
		}
		restored := read(t, file.Bytes())
		if got := forecastOf(t, restored, job); got != want {
			t.Fatalf("from the cluster:\n%s\nfrom the file:\n%s\n%s", want, got, file.String())
		}
		if err := snapshot.Write(&again, restored); err != nil || again.String() != file.String() {
			t.Fatalf("%v: written again:\n%s\nfirst:\n%s", err, again.String(), file.String())
		}
		for _, secret := range []string{"hunter2", "--secret", "Ada", "10.1.2.3"} {
			if bytes.Contains(file.Bytes(), []byte(secret)) {
				t.Fatalf("%s is in the file", secret)
			}
		}
	})
}

func TestAForecastFromAnAnonymizedFileDiffersInNamesAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t)
		job := s.job("acme-train-4711")
		want := forecastOf(t, s.Snapshot, job)
		file, back, err := snapshot.Anonymized(s.Snapshot, job)
		if err != nil {
			t.Fatal(err)
		}
		got := forecastOf(t, read(t, file), job)
		if back(got) != want {
			t.Fatalf("from the cluster:\n%s\nfrom the anonymized file:\n%s\nwith the names put back:\n%s\n%s", want, got, back(got), file)
		}
		for _, word := range []string{"acme", "shop", "ssd", "HDD", "Research", "47110", "81920", "40000", "7d4f9", "eu-1", "racks", "user-queue", "any"} {
			if bytes.Contains(file, []byte(word)) {
				t.Fatalf("%s is in the file:\n%s", word, file)
			}
		}
	})
}

// The API server gives each pod a volume whose name is its own.
func TestVolumesThatEveryNodeHasChangeNoForecast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t)
		job := s.job("acme-train-4711")
		for _, pod := range s.Pods {
			pod.Spec.Volumes = nil
		}
		want := forecastOf(t, s.Snapshot, job)
		for i, pod := range s.Pods {
			withVolumes(&pod.Spec, i)
		}
		withVolumes(&job.Spec.Template.Spec, len(s.Pods))
		if got := forecastOf(t, s.Snapshot, job); got != want {
			t.Fatalf("without volumes:\n%s\nwith volumes:\n%s", want, got)
		}
	})
}

func withVolumes(spec *corev1.PodSpec, number int) {
	name := fmt.Sprintf("kube-api-access-%d", number)
	spec.Volumes = []corev1.Volume{
		{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
		{Name: "inline", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "csi.acme.example"}}},
	}
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: name, MountPath: "/var/run/secrets"}}
}
