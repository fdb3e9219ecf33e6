package trainingjob

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kueueconstants "sigs.k8s.io/kueue/pkg/constants"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"
)

// terminationTarget is the condition by which Kueue says that it is taking a pod away.
const terminationTarget corev1.PodConditionType = "TerminationTarget"

// queueLabelPrefix is of the labels that attribute queue sets, or Kueue itself.
const queueLabelPrefix = "kueue.x-k8s.io/"

// Kueue's labels for a queue and a WorkloadPriorityClass. Its package of constants, which has them too, links all types of the
// API and registers them: 0.2 MB more in the image of every worker.
const (
	queueNameLabel     = queueLabelPrefix + "queue-name"
	workloadClassLabel = queueLabelPrefix + "priority-class"
)

// DefaultQueue is the LocalQueue that Kueue gives to Jobs which name none. In its namespace Kueue would queue each of a
// job's two Jobs by itself, and their pods would never form a group.
const DefaultQueue = "default"

// burstMasterTimeout is how long a worker above the minimum looks for its master: the quota that it holds meanwhile may
// be what the master waits for.
const burstMasterTimeout = "15s"

// Queue defines where a job waits for its quota, and with which priorities. The master and the minimum are admitted,
// and evicted, together; every worker above the minimum by itself, so that the queue takes and gives them one by one.
type Queue struct {
	Name             string `json:"name"`                                  // a LocalQueue in the job's namespace
	PriorityClass    string `json:"workload_priority_class,omitempty"`     // WorkloadPriorityClass of the workers above the minimum
	MinPriorityClass string `json:"min_workload_priority_class,omitempty"` // of the master and the minimum workers; "" is PriorityClass
	// Topology is where the minimum workers run, and with them the master; nil requests nothing.
	Topology *Topology `json:"topology,omitempty"`
}

// MinClass is the WorkloadPriorityClass of the master and the minimum workers, "" for none.
func (q Queue) MinClass() string {
	return cmp.Or(q.MinPriorityClass, q.PriorityClass)
}

// Classes are the queue without the topology, which is an attribute of its own; nil for none.
func (q *Queue) Classes() *Queue {
	if q == nil {
		return nil
	}
	classes := *q
	classes.Topology = nil
	return &classes
}

// Place is the topology that is requested; nil for none.
func (q *Queue) Place() *Topology {
	if q == nil {
		return nil
	}
	return q.Topology
}

// labels queue a pod.
func (q Queue) labels(class string) map[string]string {
	labels := map[string]string{queueNameLabel: q.Name}
	if class != "" {
		labels[workloadClassLabel] = class
	}
	return labels
}

// addToGroup makes the pods of a template members of the group of the master and the minimum workers.
func (q Queue) addToGroup(t *corev1.PodTemplateSpec, group string, members int) {
	t.Labels = Merge(t.Labels, q.labels(q.MinClass()))
	t.Labels[podconstants.GroupNameLabel] = group
	t.Annotations = Merge(t.Annotations, map[string]string{podconstants.GroupTotalCountAnnotation: strconv.Itoa(members)})
}

// MinJobName is the name of the Job that runs the first workers of a job under a queue.
func MinJobName(job string) string { return job + "-min" }

// groupName is the name of the group, and of its Workload. The same job made again is another group: what Kueue still
// knows of the first one is not taken for it. The digits come from the token, of which they reveal nothing.
func groupName(job string, c Credentials) string {
	sum := sha256.Sum256([]byte(c.Token))
	return MinJobName(job) + "-" + hex.EncodeToString(sum[:4])
}

// GroupOf is the name of the group that a job's pod, or the pods of one of its Jobs by their template, belong to, and
// of its Workload; "" for none.
func GroupOf(labels map[string]string) string { return labels[podconstants.GroupNameLabel] }

// Managed reports whether Kueue manages a pod: it marks them as they are created.
func Managed(pod *corev1.Pod) bool {
	return pod.Labels[kueueconstants.ManagedByKueueLabelKey] == "true"
}

// EvictionMessage is what Kueue says of a pod that it takes away, and whether it does.
func EvictionMessage(pod *corev1.Pod) (message string, evicted bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == terminationTarget && c.Status == corev1.ConditionTrue {
			return c.Message, true
		}
	}
	return "", false
}

func isWorker(c corev1.Container) bool { return c.Name == RoleWorker }

func (p *problems) queue(d Definition) {
	for key := range d.Labels {
		if strings.HasPrefix(key, queueLabelPrefix) {
			p.add("labels", "sets %q: Kueue would queue the Job, and not what its master makes; use attribute queue", key)
		}
	}
	q := d.Queue
	if q == nil {
		return
	}
	switch q.Name {
	case "":
		p.add("queue.name", "is empty; name a LocalQueue of the job's namespace")
	case DefaultQueue:
		p.add("queue.name", "is %q, the LocalQueue that Kueue gives to every Job without one: it would queue the master and the minimum workers apart from each other, and neither could ever run alone; use a LocalQueue of another name, in a namespace that has none called %q", q.Name, q.Name)
	}
	for _, name := range []struct{ field, is string }{
		{"queue.name", q.Name}, {"queue.workload_priority_class", q.PriorityClass}, {"queue.min_workload_priority_class", q.MinPriorityClass},
	} {
		if name.is != "" && (len(validation.IsDNS1123Subdomain(name.is)) > 0 || len(validation.IsValidLabelValue(name.is)) > 0) {
			p.add(name.field, "is %q; it must be a name of at most 63 characters: lower case letters, digits, \"-\" and \".\"", name.is)
		}
	}
}

// queueWarning is about minimum workers that Kueue might evict while it keeps what is above it.
func (p *problems) queueWarning(q *Queue) {
	if q == nil || (q.MinPriorityClass != "" && q.MinPriorityClass != q.PriorityClass) {
		return
	}
	is := "is not set"
	if q.MinPriorityClass != "" {
		is = fmt.Sprintf("is %q, as workload_priority_class is", q.MinPriorityClass)
	}
	p.add("queue.min_workload_priority_class", "%s: Kueue may then evict the master with the minimum workers, which stops the job, where it could take a worker above the minimum; set a WorkloadPriorityClass of a higher value", is)
}
