package placement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Explanation is the reason for the placement of a pod, or for its absence.
type Explanation struct {
	Decision Decision
	// Nodes, in the cluster's order: all of them, though kube-scheduler may have stopped earlier.
	Nodes []NodeExplanation
	// Message is kube-scheduler's text in the pod's condition PodScheduled and its event FailedScheduling; "" for a pod
	// that is bound.
	Message string
}

// NodeExplanation is the result of the filters for one node, and the effect of evictions.
type NodeExplanation struct {
	Node string
	// Reasons against it, in kube-scheduler's words; none when the pod fits.
	Reasons []string
	// Detail has the reasons with figures: "Insufficient cpu (requested 3, free 2.92)".
	Detail string
	// Score is the node's score if the pod fits on several nodes.
	Score int64
	// Victims whose eviction makes room, the most important first; none: the pod fits without, or eviction does not
	// help or is not allowed.
	Victims []*Pod
}

// String is a line: "node-2: Insufficient cpu (requested 3, free 2.92); preempting default/low-1 (priority 1000) makes
// room".
func (n NodeExplanation) String() string {
	var victims []string
	for _, victim := range n.Victims {
		victims = append(victims, fmt.Sprintf("%s (priority %d)", victim, victim.Priority))
	}
	switch {
	case n.Detail == "":
		return n.Node + ": fits"
	case len(victims) == 0:
		return n.Node + ": " + n.Detail
	}
	verb := "makes"
	if len(victims) > 1 {
		verb = "make"
	}
	return fmt.Sprintf("%s: %s; preempting %s %s room", n.Node, n.Detail, list(victims), verb)
}

// list joins words: a, b and c.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// Explain explains the decision that Schedule would take; after Schedule, the pod may have lost its nomination. Of
// equals, its decision takes the first. Like all queries, it changes no later decision (see reader).
func (c *Cluster) Explain(pod *Pod) Explanation {
	c = c.reader()
	decision, _ := c.decide(pod)
	e := Explanation{Decision: decision}
	if e.Decision.Kind == Gated {
		return e
	}
	cy := c.cycle(pod)
	statuses := cy.everywhere()
	others := cy.notAmong()
	nominee, nominated := c.reserved(pod)
	var fits []int
	for at, v := range statuses {
		n := NodeExplanation{Node: c.nodes[at].name}
		if v == notTried && nominated && at == nominee { // It was tried first, although the pod's affinity does not name it.
			v = cy.at(at)
		}
		n.Reasons, n.Detail = cy.reasons(at, v)
		if v == notTried {
			n.Reasons, n.Detail = []string{others}, others
		}
		if v == feasible {
			fits = append(fits, at)
		}
		e.Nodes = append(e.Nodes, n)
	}
	if len(fits) > 1 {
		for i, score := range c.scores(pod, fits) {
			e.Nodes[fits[i]].Score = score
		}
	}
	if len(fits) > 0 {
		return e
	}
	afterwards, why := cy.evictions(statuses, e.Nodes)
	e.Message = cy.message(statuses, e, afterwards, why)
	return e
}

// everywhere are the statuses of all nodes.
func (cy *cycle) everywhere() []filterStatus {
	statuses := make([]filterStatus, len(cy.c.nodes))
	for at := range statuses {
		statuses[at] = notTried
	}
	for _, at := range cy.positions() {
		statuses[at] = cy.at(at)
	}
	return statuses
}

// notAmong is the reason against nodes that the pod's affinity does not name. kube-scheduler first tries the node that
// the pod is nominated to, and adds the plugin that rejects it (diagnosis.UnschedulablePlugins).
func (cy *cycle) notAmong() string {
	plugins := []string{"NodeAffinity"}
	if at, reserved := cy.c.reserved(cy.pod); reserved {
		if plugin := pluginOf[cy.at(at)]; plugin != "" && plugin != plugins[0] {
			plugins = append(plugins, plugin)
		}
	}
	slices.Sort(plugins)
	return fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", plugins)
}

// pluginOf is, by status, the plugin of kube-scheduler that rejects the node.
var pluginOf = map[filterStatus]string{
	cordoned:              "NodeUnschedulable",
	namedOther:            "NodeName",
	tainted:               "TaintToleration",
	unmatched:             "NodeAffinity",
	portsTaken:            "NodePorts",
	tooSmall:              "NodeResourcesFit",
	insufficient:          "NodeResourcesFit",
	volumeInUse:           "VolumeRestrictions",
	volumeLimit:           "NodeVolumeLimits",
	driverMissing:         "NodeVolumeLimits",
	volumeConflict:        "VolumeBinding",
	volumeUnmatched:       "VolumeBinding",
	volumeZone:            "VolumeZone",
	spreadUnlabelled:      "PodTopologySpread",
	spreadUnmatched:       "PodTopologySpread",
	affinityUnmatched:     "InterPodAffinity",
	antiAffinityUnmatched: "InterPodAffinity",
	othersAntiAffinity:    "InterPodAffinity",
	claimElsewhere:        "DynamicResources",
	devicesTaken:          "DynamicResources",
}

// evictions adds to the nodes whose eviction makes room there, and returns kube-scheduler's messages for nodes where
// none does; why is the reason for which it does not try at all.
func (cy *cycle) evictions(statuses []filterStatus, nodes []NodeExplanation) (afterwards map[string]int, why string) {
	w := cy.c.work
	if why = cy.ineligible(); why != "" {
		return nil, why
	}
	afterwards = map[string]int{}
	for at, v := range statuses {
		n := cy.c.nodes[at]
		if !v.resolvable() {
			afterwards["Preemption is not helpful for scheduling"]++
			continue
		}
		if _, helps, _ := cy.victims(n); helps {
			nodes[at].Victims = slices.Clone(w.victims)
			continue
		}
		for _, reason := range cy.bare(n) {
			afterwards[reason]++
		}
	}
	return afterwards, ""
}

// bare is the reasons against a node after all pods of lower priority are gone.
func (cy *cycle) bare(n *node) []string {
	without := trial{node: n, requested: slices.Clone(n.requested), count: len(n.pods)}
	least := cy.remember()
	var gone []*Pod
	for _, o := range n.pods {
		if o.pod.Priority < cy.pod.Priority {
			without.move(o.pod, -1)
			cy.shift(o.pod, n, -1)
			gone = append(gone, o.pod)
		}
	}
	reasons := []string{"No preemption victims found for incoming pod"}
	if len(gone) > 0 {
		reasons, _ = cy.texts(&without, cy.runFilterPluginsWithNominatedPods(&without))
	}
	for _, pod := range gone {
		cy.shift(pod, n, 1)
	}
	cy.restore(least)
	return reasons
}

// message is the text of framework.FitError.
func (cy *cycle) message(statuses []filterStatus, e Explanation, afterwards map[string]int, why string) string {
	nodes := e.Nodes
	if len(nodes) == 0 {
		return "no nodes available to schedule pods"
	}
	head := fmt.Sprintf("0/%d nodes are available:", len(nodes))
	text := head
	switch {
	case cy.pod.preFilterState.conflicting:
		text += " pod affinity terms conflict."
	case cy.abandoned():
		return text + " " + cy.rejection + ". not found"
	case cy.rejection != "":
		text += " " + cy.rejection + "."
	default:
		reasons := map[string]int{}
		for at := range statuses {
			for _, reason := range nodes[at].Reasons {
				reasons[reason]++
			}
		}
		text += histogram(reasons)
	}
	preempts := slices.ContainsFunc(nodes, func(n NodeExplanation) bool { return len(n.Victims) > 0 })
	switch {
	case preempts && cy.c.rules.plainMessages:
		why = fmt.Sprintf("found a potential placement for pod on node %s, preempting %d victims", e.Decision.Node, len(e.Decision.Victims))
	case preempts:
		return text
	case why == "":
		why = head + histogram(afterwards)
	}
	if cy.c.rules.plainMessages {
		return text + " preemption: " + why
	}
	claims := "no new claims to deallocate"
	if cy.pod.wants != nil && cy.pod.wants.missing == "" {
		claims = "still not schedulable"
	}
	return text + " " + claims + ", preemption: " + why
}

// histogram is " 2 a, 1 b.", ordered as text.
func histogram(reasons map[string]int) string {
	var texts []string
	for reason, count := range reasons {
		texts = append(texts, fmt.Sprintf("%d %s", count, reason))
	}
	if len(texts) == 0 {
		return ""
	}
	slices.Sort(texts)
	return " " + strings.Join(texts, ", ") + "."
}

// reasons are those of the status of a node as it is, in kube-scheduler's words, and with figures.
func (cy *cycle) reasons(at int, v filterStatus) (reasons []string, detail string) {
	n := cy.c.nodes[at]
	return cy.texts(&trial{node: n, requested: n.requested, count: len(n.pods)}, v)
}

func (cy *cycle) texts(t *trial, v filterStatus) (reasons []string, detail string) {
	switch v {
	case feasible:
		return nil, ""
	case tooSmall, insufficient:
		return cy.shortages(t)
	case tainted:
		taint, _ := cy.pod.preFilterState.untolerated(t.node)
		return []string{words[v]}, fmt.Sprintf("%s {%s: %s}", words[v], taint.Key, taint.Value)
	case rejected:
		return []string{cy.rejection}, cy.rejection
	case volumeConflict:
		reasons = []string{words[v]}
		if _, found := cy.c.bindings(cy.mounts, t.node); !found {
			reasons = append(reasons, words[volumeUnmatched])
		}
		return reasons, strings.Join(reasons, ", ")
	case driverMissing:
		volumes := map[volumeID]bool{}
		cy.c.attach(cy.pod, volumes)
		text := cy.c.missingDriver(volumes, t.name) + " CSI driver is not installed on the node"
		return []string{text}, text
	}
	return []string{words[v]}, words[v]
}

// words are kube-scheduler's.
var words = map[filterStatus]string{
	cordoned:              "node(s) were unschedulable",
	namedOther:            "node(s) didn't match the requested node name",
	tainted:               "node(s) had untolerated taint(s)",
	unmatched:             "node(s) didn't match Pod's node affinity/selector",
	portsTaken:            "node(s) didn't have free ports for the requested pod ports",
	spreadUnlabelled:      "node(s) didn't match pod topology spread constraints (missing required label)",
	spreadUnmatched:       "node(s) didn't match pod topology spread constraints",
	affinityUnmatched:     "node(s) didn't match pod affinity rules",
	antiAffinityUnmatched: "node(s) didn't match pod anti-affinity rules",
	claimElsewhere:        "resourceclaim not available on the node",
	devicesTaken:          "cannot allocate all claims",
	volumeConflict:        "node(s) didn't match PersistentVolume's node affinity",
	volumeUnmatched:       "node(s) didn't find available persistent volumes to bind",
	volumeZone:            "node(s) had no available volume zone",
	volumeInUse:           "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
	volumeLimit:           "node(s) exceed max volume count",
	othersAntiAffinity:    "node(s) didn't satisfy existing pods anti-affinity rules",
}

// shortages are the resources of which a node has too little. Where only the pods that are nominated to it stand in the
// way, they are counted.
func (cy *cycle) shortages(t *trial) (reasons []string, detail string) {
	var details []string
	short := func(t *trial, note string) {
		if t.count+1 > t.podsAllowed {
			reasons = append(reasons, "Too many pods")
			details = append(details, fmt.Sprintf("Too many pods (%d of %d%s)", t.count, t.podsAllowed, note))
		}
		for slot, request := range cy.pod.requests {
			free := t.allocatable.at(slot) - t.requested.at(slot)
			if request <= 0 || request <= free || t.byDevices[slot] != nil {
				continue
			}
			name := cy.c.slots.names[slot]
			reasons = append(reasons, "Insufficient "+string(name))
			details = append(details, fmt.Sprintf("Insufficient %s (requested %s, free %s%s)", name, amount(slot, name, request), amount(slot, name, free), note))
		}
	}
	with := *t
	with.requested = slices.Clone(t.requested)
	for _, nominated := range t.nominated {
		if nominated.Priority >= cy.pod.Priority && nominated != cy.pod {
			with.requested = with.requested.add(nominated.held, 1)
			with.count++
		}
	}
	note := ""
	if with.count > t.count {
		note = fmt.Sprintf(", %d nominated counted", with.count-t.count)
	}
	short(&with, note)
	if len(reasons) == 0 {
		short(t, "")
	}
	return reasons, strings.Join(details, ", ")
}

// amount writes a quantity as people do: 2.92 cores, 4Gi of memory, 3 of a device.
func amount(slot int, name corev1.ResourceName, value int64) string {
	switch {
	case slot == slotCPU:
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", float64(value)/1000), "0"), ".")
	case slot == slotMemory, slot == slotEphemeral, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return resource.NewQuantity(value, resource.BinarySI).String()
	}
	return fmt.Sprint(value)
}
