package scenariofile

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation"
)

// Namespace is where everything is: a scenario has no other.
const Namespace = "default"

func (c *checker) checkQueues() {
	s := c.s
	names(c, "resourceFlavors", s.ResourceFlavors, func(f ResourceFlavor) string { return f.Name })
	names(c, "cohorts", s.Cohorts, func(o Cohort) string { return o.Name })
	clusterQueues := names(c, "clusterQueues", s.ClusterQueues, func(q ClusterQueue) string { return q.Name })
	c.queues = names(c, "localQueues", s.LocalQueues, func(q LocalQueue) string { return q.Name })
	topologies := names(c, "topologies", s.Topologies, func(t Topology) string { return t.Name })
	c.levels = map[string]bool{}
	for i, t := range s.Topologies {
		c.refused(fmt.Sprintf("topologies[%d]", i), validation.ValidateTopology(&kueue.Topology{ObjectMeta: meta(t.Name, ""), Spec: t.TopologySpec}))
		for _, level := range t.Levels {
			c.levels[level.NodeLabel] = true
		}
	}
	flavors := map[string]bool{}
	for i, f := range s.ResourceFlavors {
		flavors[f.Name] = true
		if f.TopologyName != nil {
			c.known(fmt.Sprintf("resourceFlavors[%d].topologyName", i), string(*f.TopologyName), "topology", topologies)
		}
		c.refused(fmt.Sprintf("resourceFlavors[%d]", i), validation.ValidateResourceFlavor(&kueue.ResourceFlavor{ObjectMeta: meta(f.Name, ""), Spec: f.ResourceFlavorSpec}))
	}
	for i, o := range s.Cohorts {
		c.refused(fmt.Sprintf("cohorts[%d]", i), validation.ValidateCohort(&kueue.Cohort{ObjectMeta: meta(o.Name, ""), Spec: o.CohortSpec}))
	}
	for i := range s.ClusterQueues {
		q := &s.ClusterQueues[i]
		path := fmt.Sprintf("clusterQueues[%d]", i)
		if q.NamespaceSelector == nil {
			q.NamespaceSelector = &metav1.LabelSelector{}
		}
		c.refused(path, validation.ValidateClusterQueue(&kueue.ClusterQueue{ObjectMeta: meta(q.Name, ""), Spec: q.ClusterQueueSpec}))
		for g, group := range q.ResourceGroups {
			for f, flavor := range group.Flavors {
				c.known(fmt.Sprintf("%s.resourceGroups[%d].flavors[%d].name", path, g, f), string(flavor.Name), "resource flavor", flavors)
			}
		}
		if q.AdmissionChecksStrategy != nil {
			c.problem(below(path, "admissionChecksStrategy"), "cannot be simulated: nobody here answers admission checks")
		}
		if q.ConcurrentAdmissionPolicy != nil {
			c.problem(below(path, "concurrentAdmissionPolicy"), "cannot be simulated: it is of Kueue's feature gate ConcurrentAdmission, which is off by default")
		}
	}
	for i, q := range s.LocalQueues {
		path := fmt.Sprintf("localQueues[%d]", i)
		c.refused(path, validation.ValidateLocalQueue(&kueue.LocalQueue{ObjectMeta: meta(q.Name, Namespace), Spec: q.LocalQueueSpec}))
		if q.ClusterQueue == "" {
			c.problem(path, "names no cluster queue")
		}
		c.known(below(path, "clusterQueue"), string(q.ClusterQueue), "cluster queue", clusterQueues)
	}
	c.checkCycles()
}

func meta(name, namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace}
}

// refused reports what Kueue's webhooks would reject. In a scenario the fields of an object's spec are beside its name.
func (c *checker) refused(path string, errs field.ErrorList) {
	for _, err := range errs {
		at := err.Field
		if at == "metadata.name" {
			continue // reported already
		}
		at = strings.TrimPrefix(strings.TrimPrefix(at, "spec"), ".")
		text := err.ErrorBody()
		if at == "" {
			c.problem(path, "%s", text)
			continue
		}
		c.problem(below(path, at), "%s", text)
	}
}

// checkCycles rejects cycles of cohorts: Kueue would stop every queue in them, so that nothing could be
// simulated.
func (c *checker) checkCycles() {
	parent, at := map[string]string{}, map[string]int{}
	for i, o := range c.s.Cohorts {
		parent[o.Name], at[o.Name] = string(o.ParentName), i
	}
	walk := map[string]int{} // the walk that first reached a cohort
	for i, o := range c.s.Cohorts {
		name := o.Name
		for name != "" && walk[name] == 0 {
			walk[name] = i + 1
			name = parent[name]
		}
		if name == "" || walk[name] != i+1 {
			continue
		}
		// This walk has found a cycle.
		way := []string{name}
		for above := parent[name]; above != name && len(way) < maxWay; above = parent[above] {
			way = append(way, above)
		}
		c.problem(fmt.Sprintf("cohorts[%d].parentName", at[name]), "leads back to itself: %s → %s", strings.Join(way, " → "), name)
	}
}

// maxWay is how many cohorts of a cycle are reported.
const maxWay = 10
