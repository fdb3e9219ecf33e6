package simulator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/tas"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// placesPods reports whether pods are placed by topology at all. Without topologies the engine gets no nodes
// and pods, which would cost time in simulations of large traces.
func (s *simulation) placesPods() bool { return s.engine != nil && len(s.scenario.Topologies) > 0 }

// requested is the request that Kueue makes of a template's annotations, and the group of pod sets that are placed
// together.
func requested(annotations map[string]string) (*kueue.PodSetTopologyRequest, string) {
	r, err := tas.RequestOf(annotations)
	if err != nil {
		panic(fmt.Sprintf("simulator: a scenario that was checked: %v", err))
	}
	if r == nil || r.PodSetGroupName == nil {
		return r, ""
	}
	return r, *r.PodSetGroupName
}

// gangAnnotations are those of a gang's pods, which are an indexed Job.
func gangAnnotations(t *trainingjob.Topology) map[string]string {
	annotations := t.Annotations()
	if len(annotations) > 0 {
		annotations[kueue.PodGroupPodIndexLabelAnnotation] = ""
	}
	return annotations
}

// seesNode tells the engine that a node is there.
func (s *simulation) seesNode(n *node) {
	if !s.placesPods() {
		return
	}
	s.engine.SetNode(quota.Node{
		Name: n.name, Labels: n.object.Labels, Taints: n.object.Spec.Taints, Allocatable: n.object.Status.Allocatable,
	})
	s.quotaStale = true
}

// missesNode tells the engine that a node is lost, and which workloads have pods on it. It returns those that had lost
// another one, which is not replaced yet.
func (s *simulation) missesNode(n *node) (again []*workload) {
	if !s.placesPods() {
		return nil
	}
	s.engine.DeleteNode(n.name)
	s.quotaStale = true
	var hit []*workload
	for _, w := range s.workloads {
		if w.holds() && w.isOn(n.name) {
			hit = append(hit, w)
		}
	}
	slices.SortFunc(hit, func(a, b *workload) int { return cmp.Compare(a.id, b.id) })
	for _, w := range hit {
		if len(w.spec.UnhealthyNodes) > 0 {
			again = append(again, w)
		}
		w.spec.UnhealthyNodes = append(w.spec.UnhealthyNodes, n.name)
		s.updateEngine(w)
		for _, p := range slices.Clone(w.placed) {
			if p.domain == n.name && !p.bound() { // it selects a node that is gone
				p.leaving, p.why = true, nodeGone
				s.gone(p)
			}
		}
	}
	return again
}

// losesTwo evicts a workload that has lost a second node before the first was replaced, as Kueue's node controller
// does.
func (s *simulation) losesTwo(w *workload) {
	if !w.holds() {
		return
	}
	message := "Workload eviction triggered due to multiple TAS assigned node failures, including: " + strings.Join(w.spec.UnhealthyNodes, ", ")
	w.spec.UnhealthyNodes = nil
	s.updateEngine(w)
	s.engine.Evict(w.spec.NamespacedName, kueue.WorkloadEvictedDueToNodeFailures, s.clock(s.now))
	s.evict(w, kueue.WorkloadEvictedDueToNodeFailures, "", message)
}

// tell passes changes of a workload to the engine.
func (s *simulation) updateEngine(w *workload) {
	spec := w.spec
	spec.Priority += w.boost
	s.engine.SetWorkload(spec)
	s.quotaStale = true
}

// isOn reports whether an admitted workload has pods on a host. Only topologies whose last level is the host say that.
func (w *workload) isOn(host string) bool {
	return slices.ContainsFunc(w.admission.PodSetAssignments, func(a kueue.PodSetAssignment) bool {
		t := a.TopologyAssignment
		return t != nil && t.Levels[len(t.Levels)-1] == corev1.LabelHostname && slices.ContainsFunc(tas.Domains(t), func(d tas.Domain) bool {
			return d.Values[len(d.Values)-1] == host
		})
	})
}

// seesPod and missesPod tell the engine of pods that take room on a node, and that Kueue has not placed.
func (s *simulation) seesPod(p *pod) {
	if s.placesPods() && p.domain == "" {
		s.engine.SetPod(podName(p), p.node.name, corev1.ResourceList(p.behaviour.Requests))
		s.quotaStale = true
	}
}

func (s *simulation) missesPod(p *pod) {
	if s.placesPods() && p.domain == "" {
		s.engine.DeletePod(podName(p))
		s.quotaStale = true
	}
}

func podName(p *pod) types.NamespacedName {
	return types.NamespacedName{Namespace: scenariofile.Namespace, Name: p.name}
}

// placeOf is the assignment of the pods of a role, if it says where they go; nil otherwise.
func (w *workload) placeOf(role string) *kueue.PodSetAssignment {
	if w == nil {
		return nil
	}
	for i := range w.admission.PodSetAssignments {
		a := &w.admission.PodSetAssignments[i]
		if a.TopologyAssignment != nil && (string(a.Name) == role || string(a.Name) == mainSet) {
			return a
		}
	}
	return nil
}

// placePods gives the gated pods of a role their domains, as Kueue's topology ungater does: by their index if all have
// one, otherwise as they come. Those whose node has failed wait for another one.
func (s *simulation) placePods(w *workload, role string) {
	at := w.placeOf(role)
	if at == nil {
		return
	}
	var pods []*pod
	for _, p := range w.placed {
		if p.role == role {
			pods = append(pods, p)
		}
	}
	domains := tas.Domains(at.TopologyAssignment)
	chosen := byIndex(domains, pods)
	if chosen == nil || !w.indexed[string(at.Name)] {
		chosen = inOrder(domains, pods)
	}
	for i, p := range pods {
		if chosen[i] == nil || p.phase != gated || slices.Contains(w.spec.UnhealthyNodes, domainKey(*chosen[i])) {
			continue
		}
		p.domain = domainKey(*chosen[i])
		labels := map[string]string{}
		for l, level := range at.TopologyAssignment.Levels {
			labels[level] = chosen[i].Values[l]
		}
		s.pends(p, labels)
	}
}

// byIndex gives pods the domains of their indexes; nil if that cannot be, because one is somewhere else already.
func byIndex(domains []tas.Domain, pods []*pod) []*tas.Domain {
	var all []*tas.Domain
	for i := range domains {
		for range domains[i].Count {
			all = append(all, &domains[i])
		}
	}
	chosen := make([]*tas.Domain, len(pods))
	for i, p := range pods {
		if p.number >= len(all) || p.domain != "" && p.domain != domainKey(*all[p.number]) {
			return nil
		}
		chosen[i] = all[p.number]
	}
	return chosen
}

// inOrder gives pods the domains with room, in order.
func inOrder(domains []tas.Domain, pods []*pod) []*tas.Domain {
	there := map[string]int32{}
	for _, p := range pods {
		there[p.domain]++
	}
	chosen := make([]*tas.Domain, len(pods))
	next := 0
	for i := range domains {
		for room := domains[i].Count - there[domainKey(domains[i])]; room > 0; room-- {
			for next < len(pods) && pods[next].domain != "" {
				next++
			}
			if next == len(pods) {
				return chosen
			}
			chosen[next] = &domains[i]
			next++
		}
	}
	return chosen
}

// domainKey is a text that names a domain: of a host its name.
func domainKey(d tas.Domain) string { return strings.Join(d.Values, "/") }

// moved gives the pods of a failed node their places on others.
func (s *simulation) moved(w *workload) {
	w.spec.UnhealthyNodes = nil
	for _, role := range []string{taskRole, masterRole, workerRole} {
		s.placePods(w, role)
	}
}

// domainsOf are the domains above the host that a node is in, from the widest, for the log.
func (s *simulation) domainsOf(n *node) []eventlog.Domain {
	var all []eventlog.Domain
	for _, level := range s.scenario.LevelsOf(n.object.Labels) {
		all = append(all, eventlog.Domain{Level: level, Name: n.object.Labels[level]})
	}
	return all
}
