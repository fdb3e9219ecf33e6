package differential

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// A world is a snapshot whose pods include those of a planned job, by their names: a training job has a master and then
// workers, and a Job has pods that are all the same. The owners of the other pods create none again.

// ofJob is how the names of the planned pods begin, and ofMaster that of a training job's master.
const (
	ofJob    = "job-"
	ofMaster = ofJob + "master"
)

// spare is the annotation of a planned pod that its job can run without.
const spare = "differential.example.com/optional"

// mostRunning is how many pods run, or end, in a small world.
const mostRunning = 6

// inSmallWorlds is what most families of small worlds have in common.
func inSmallWorlds(s shape) shape {
	s.nodes, s.running = span{1, 5}, span{0, 3}
	s.priorities, s.reach = 1, 0.8
	if s.large == 0 {
		s.large = 0.5
	}
	return s
}

var smallWorlds = []family{
	{"preemption", 10, inSmallWorlds(shape{})},
	{"room", 3, shape{nodes: span{1, 6}, running: span{0, 2}, priorities: 1, reach: 0.5}},
	{"ties", 5, inSmallWorlds(shape{ties: 1})},
	{"preemption policy", 2, inSmallWorlds(shape{never: 0.5})},
	{"few pods per node", 2, inSmallWorlds(shape{fewPods: 0.8})},
	{"taints", 3, inSmallWorlds(shape{taints: 0.4, cordons: 0.1})},
	{"node affinity", 3, inSmallWorlds(shape{selectors: 0.5, preferences: 0.3})},
	{"host ports", 3, inSmallWorlds(shape{ports: 0.5})},
	{"pod affinity", 5, inSmallWorlds(shape{podAffinity: 0.5})},
	{"topology spread", 5, inSmallWorlds(shape{spread: 0.6})},
	{"budgets", 6, inSmallWorlds(shape{budgets: 1})},
	{"terminating", 4, inSmallWorlds(shape{terminating: 0.3, unstarted: 0.1})},
	{"pending", 5, shape{nodes: span{1, 4}, running: span{0, 3}, pending: span{1, 2}, priorities: 1, reach: 0.6, large: 0.5}},
	{"nominated", 3, shape{nodes: span{1, 4}, running: span{0, 3}, pending: span{1, 2}, priorities: 1, reach: 0.6, large: 0.5, nominated: 0.7}},
	{"everything", 6, shape{
		nodes: span{1, 5}, running: span{0, 3}, pending: span{0, 1}, priorities: 1, reach: 0.7, large: 0.4, ties: 0.2, never: 0.1, fewPods: 0.1,
		taints: 0.1, selectors: 0.1, preferences: 0.1, ports: 0.1, podAffinity: 0.1, spread: 0.1, budgets: 0.2, terminating: 0.1, nominated: 0.1,
	}},
}

// SmallWorld makes the world of a seed, and returns its family: few enough nodes and pods that everything which may happen
// can be enumerated.
func SmallWorld(seed uint64) (world *Snapshot, familyName string) {
	d := newRNG(seed)
	drawn := drawFamily(d, smallWorlds)
	g := newGenerator(d, drawn.shape)
	g.snapshot()
	g.empty(mostRunning)
	g.plan(pick(d, 1, 2, 2, 3, 3, 3, 4))
	return g.made, drawn.name
}

// empty removes pods from nodes until so many are left.
func (g *generator) empty(most int) {
	var bound []string
	for _, pod := range g.made.Pods {
		if pod.Spec.NodeName != "" {
			bound = append(bound, nameOf(pod).String())
		}
	}
	g.Shuffle(len(bound), func(i, j int) { bound[i], bound[j] = bound[j], bound[i] })
	g.made.Pods = slices.DeleteFunc(g.made.Pods, func(pod *corev1.Pod) bool {
		return slices.Contains(bound[min(most, len(bound)):], nameOf(pod).String())
	})
}

// plan adds a job of so many pods. Nothing that waits already is more important: it could evict the job's pods later.
func (g *generator) plan(count int) {
	first := g.waiting()
	pods := []*corev1.Pod{first}
	class := g.classOf(first)
	if g.chance(0.3) && count > 1 { // a training job
		first.Name = ofMaster
		first = g.waiting()
		class = min(class, g.classOf(first))
		g.prioritize(first, class)
		pods = append(pods, first)
	}
	for len(pods) < count {
		pods = append(pods, alike(first, g.waiting()))
	}
	required := g.within(span{1, count})
	for i, pod := range pods {
		switch {
		case pod.Name == ofMaster:
		case pods[0].Name == ofMaster:
			pod.Name = ofJob + "worker-" + strconv.Itoa(i-1)
			if i > required {
				pod.Annotations = map[string]string{spare: "true"}
			}
		default:
			pod.Name = ofJob + strconv.Itoa(i)
		}
		pod.UID, pod.Namespace, pod.Status.NominatedNodeName = types.UID(pod.Name), pods[0].Namespace, ""
	}
	for _, pod := range g.made.Pods {
		if waits(pod) {
			g.prioritize(pod, min(class, g.classOf(pod)))
		}
	}
	g.made.Pods = append(g.made.Pods, pods...)
}

// classOf is the place of a pod's class among the classes.
func (g *generator) classOf(pod *corev1.Pod) int {
	return slices.IndexFunc(g.made.Classes, func(c *schedulingv1.PriorityClass) bool { return c.Name == pod.Spec.PriorityClassName })
}

// isPlanned reports whether a pod of a world belongs to the planned job.
func isPlanned(pod *corev1.Pod) bool { return strings.HasPrefix(pod.Name, ofJob) }

// stageOf is the stage of its job in which a planned pod is created.
func stageOf(pod *corev1.Pod, hasMaster bool) int {
	if hasMaster && pod.Name != ofMaster {
		return 1
	}
	return 0
}

// roleOf is the role of a planned pod in its job: "master", "worker 0", "pod 0".
func roleOf(pod *corev1.Pod, hasMaster bool) string {
	role := strings.ReplaceAll(strings.TrimPrefix(pod.Name, ofJob), "-", " ")
	if !hasMaster {
		role = "pod " + role
	}
	return role
}

func isMaster(pod *corev1.Pod) bool { return pod.Name == ofMaster }

// forForecast is a world as a forecast gets it: the cluster, and the job.
func forForecast(world *Snapshot) (*forecast.Snapshot, forecast.Job) {
	s := &forecast.Snapshot{
		AsOf: epoch.Add(4 * time.Hour), Version: "v" + SchedulerVersion + ".0",
		Nodes: world.Nodes, PriorityClasses: world.Classes, Budgets: world.Budgets, Namespaces: world.Namespaces, RuntimeClasses: world.Runtimes,
		Services: world.Services, ReplicationControllers: world.ReplicationControllers, ReplicaSets: world.ReplicaSets, StatefulSets: world.StatefulSets,
	}
	job := forecast.Job{Noun: "Job", Name: "job"}
	hasMaster := slices.ContainsFunc(world.Pods, isMaster)
	if hasMaster {
		job.Noun = "training job"
	}
	for _, pod := range world.Pods {
		switch {
		case isPlanned(pod):
			job.Namespace = pod.Namespace
			stage := stageOf(pod, hasMaster)
			for len(job.Stages) <= stage {
				job.Stages = append(job.Stages, forecast.Stage{{}})
			}
			part := &job.Stages[stage][0]
			part.Pods = append(part.Pods, forecast.Pod{Role: roleOf(pod, hasMaster), Optional: pod.Annotations[spare] != "", Pod: pod})
		case !finished(pod):
			s.Pods = append(s.Pods, pod)
		}
	}
	return s, job
}
