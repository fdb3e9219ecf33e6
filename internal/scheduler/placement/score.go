package placement

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// The weights of the default profile (apis/config/v1/default_plugins.go).
const (
	weightTaints    = 3
	weightAffinity  = 2
	weightFit       = 1
	weightSpread    = 2
	weightPods      = 2
	weightBalanced  = 1
	weightImages    = 1
	weightVolumes   = 1
	maxScore        = 100 // fwk.MaxNodeScore
	hardPodAffinity = 1   // InterPodAffinityArgs.HardPodAffinityWeight
)

// scores are the sums by which kube-scheduler chooses between nodes that a pod fits on (prioritizeNodes), in their
// order. They depend on which nodes are compared. The result is good until the next call.
func (c *Cluster) scores(pod *Pod, nodes []int) []int64 {
	w := c.work
	w.scores, w.part = grow(w.scores, len(nodes)), grow(w.part, len(nodes))
	for i, at := range nodes {
		w.scores[i] = base(pod, c.nodes[at])
	}
	for _, part := range scorings() {
		if part.score(c, pod, nodes, w.part) {
			for i, score := range w.part {
				w.scores[i] += part.weight * score
			}
		}
	}
	return w.scores
}

// scoring is one plugin's part of the score. score reports false where it leaves all nodes equal.
type scoring struct {
	weight   int64
	relative bool // kube-scheduler normalizes it over the nodes that it compares (NormalizeScore)
	score    func(c *Cluster, pod *Pod, nodes []int, scores []int64) bool
}

// scorings are the parts of the score beside base.
func scorings() [6]scoring {
	return [...]scoring{
		{weightTaints, true, (*Cluster).taintScores},
		{weightAffinity, true, (*Cluster).affinityScores},
		{weightSpread, true, (*Cluster).spreadScores},
		{weightPods, true, (*Cluster).podScores},
		{weightImages, false, (*Cluster).imageScores},
		{weightVolumes, false, (*Cluster).volumeScores},
	}
}

// relative reports whether nodes differ for a pod in a score that is relative to the nodes compared.
func (c *Cluster) relative(pod *Pod, nodes []int) bool {
	w := c.work
	w.part = grow(w.part, len(nodes))
	for _, part := range scorings() {
		if part.relative && part.score(c, pod, nodes, w.part) && slices.Min(w.part) != slices.Max(w.part) {
			return true
		}
	}
	return false
}

// base is what of the score depends on the node alone: 0 to 200.
func base(pod *Pod, n *node) int64 {
	return weightFit*leastAllocated(pod, n) + weightBalanced*balanced(pod, n)
}

// baseOnly reports whether nodes differ for a pod only in base.
func (c *Cluster) baseOnly(pod *Pod) bool {
	a := pod.preFilterState
	return !c.shunned && a.preferred == nil && len(a.soft) == 0 && c.withAffinity == 0 && len(pod.preferredAffinity) == 0 &&
		len(pod.preferredAntiAffinity) == 0 && !slices.ContainsFunc(a.images, func(name string) bool { return len(c.image(name).on) > 0 })
}

// leastAllocated favours nodes with much of their cpu and memory free (noderesources, leastResourceScorer).
func leastAllocated(pod *Pod, n *node) int64 {
	var sum, resources int64
	for slot := slotCPU; slot <= slotMemory; slot++ {
		has := n.allocatable[slot]
		if has == 0 {
			continue
		}
		resources++
		if requested := n.heldForScore[slot] + pod.score[slot]; requested <= has {
			sum += (has - requested) * maxScore / has
		}
	}
	if resources == 0 {
		return 0
	}
	return sum / resources
}

// balanced favours nodes that the pod brings nearer to an equal use of cpu and memory (noderesources,
// balancedResourceScorer). It is 0 for pods that request neither.
func balanced(pod *Pod, n *node) int64 {
	if pod.requests[slotCPU] == 0 && pod.requests[slotMemory] == 0 {
		return 0
	}
	return maxScore/2 + (maxScore/2+balance(n, pod.requests)-balance(n, nil))/2
}

func balance(n *node, more quantities) int64 {
	var fractions [2]float64
	count := 0
	for slot := slotCPU; slot <= slotMemory; slot++ {
		if has := n.allocatable[slot]; has != 0 {
			fractions[count] = min(float64(n.requested[slot]+more.at(slot))/float64(has), 1)
			count++
		}
	}
	deviation := 0.0
	if count == 2 {
		deviation = math.Abs((fractions[0] - fractions[1]) / 2)
	}
	return int64((1 - deviation) * maxScore)
}

// normalise stretches scores to 0..100 (helper.DefaultNormalizeScore).
func normalise(scores []int64, reverse bool) {
	var most int64
	for _, score := range scores {
		most = max(most, score)
	}
	for i, score := range scores {
		if most > 0 {
			score = maxScore * score / most
		}
		if reverse {
			score = maxScore - score
		}
		scores[i] = score
	}
}

// taintScores count the taints PreferNoSchedule that the pod does not tolerate (tainttoleration, Score).
func (c *Cluster) taintScores(pod *Pod, nodes []int, scores []int64) bool {
	if !c.shunned {
		return false
	}
	clear(scores)
	found := false
	for i, at := range nodes {
		taints := c.nodes[at].object.Spec.Taints
		for t := range taints {
			if taints[t].Effect != corev1.TaintEffectPreferNoSchedule {
				continue
			}
			if !corev1helpers.TolerationsTolerateTaint(klog.Background(), pod.preFilterState.tolerations, &taints[t], comparisonOperators) {
				scores[i]++
				found = true
			}
		}
	}
	if found {
		normalise(scores, true)
	}
	return found
}

// affinityScores are the preferred node affinity's (nodeaffinity, Score).
func (c *Cluster) affinityScores(pod *Pod, nodes []int, scores []int64) bool {
	if pod.preFilterState.preferred == nil {
		return false
	}
	for i, at := range nodes {
		scores[i] = pod.preFilterState.preferred.Score(c.nodes[at].object)
	}
	normalise(scores, false)
	return true
}

// spreadScores are those of soft topology spread constraints (podtopologyspread, scoring.go).
func (c *Cluster) spreadScores(pod *Pod, nodes []int, scores []int64) bool {
	soft := pod.preFilterState.soft
	if len(soft) == 0 {
		return false
	}
	ignored := func(n *node) bool { return pod.preFilterState.spreadAll && !labelled(n, soft) }
	counts := make([]map[string]int64, len(soft))
	compared := 0
	for i := range soft {
		counts[i] = map[string]int64{}
	}
	for _, at := range nodes {
		n := c.nodes[at]
		if ignored(n) {
			continue
		}
		compared++
		for i := range soft {
			if soft[i].key != corev1.LabelHostname {
				counts[i][n.object.Labels[soft[i].key]] = 0
			}
		}
	}
	weights := make([]float64, len(soft))
	for i := range soft {
		domains := len(counts[i])
		if soft[i].key == corev1.LabelHostname {
			domains = compared
		}
		weights[i] = math.Log(float64(domains + 2))
	}
	for _, n := range c.nodes {
		if ignored(n) {
			continue
		}
		for i := range soft {
			t := &soft[i]
			if _, counted := counts[i][n.object.Labels[t.key]]; counted && t.includes(pod, n) {
				counts[i][n.object.Labels[t.key]] += int64(t.count(n, pod.namespace))
			}
		}
	}
	least, most := int64(math.MaxInt64), int64(0)
	for i, at := range nodes {
		n := c.nodes[at]
		if ignored(n) {
			scores[i] = -1
			continue
		}
		sum := 0.0
		for j := range soft {
			t := &soft[j]
			value, has := n.object.Labels[t.key]
			if !has {
				continue
			}
			count := counts[j][value]
			if t.key == corev1.LabelHostname {
				count = int64(t.count(n, pod.namespace))
			}
			sum += float64(float64(count)*weights[j]) + float64(t.maxSkew-1)
		}
		scores[i] = int64(math.Round(sum))
		least, most = min(least, scores[i]), max(most, scores[i])
	}
	for i, score := range scores {
		switch {
		case score == -1:
			scores[i] = 0
		case most == 0:
			scores[i] = maxScore
		default:
			scores[i] = maxScore * (most + least - score) / most
		}
	}
	return true
}

// podScores are those of preferred affinity and anti-affinity, the pod's own and that of pods that run
// (interpodaffinity, scoring.go).
func (c *Cluster) podScores(pod *Pod, nodes []int, scores []int64) bool {
	own := len(pod.preferredAffinity) > 0 || len(pod.preferredAntiAffinity) > 0
	if !own && c.withAffinity == 0 {
		return false
	}
	sums := map[pair]int64{}
	score := func(terms []term, about *Pod, namespaceLabels map[string]string, n *node, sign int64) {
		for i := range terms {
			if value, has := n.object.Labels[terms[i].key]; has && terms[i].matches(about, namespaceLabels) {
				sums[pair{terms[i].key, value}] += sign * terms[i].weight
			}
		}
	}
	preferred, preferredAnti, namespaceLabels := c.reach(pod.preferredAffinity), c.reach(pod.preferredAntiAffinity), c.namespaces[pod.namespace]
	for _, n := range c.nodes {
		if !own && n.withAffinity == 0 {
			continue
		}
		for _, o := range n.pods {
			score(preferred, o.pod, nil, n, 1)
			score(preferredAnti, o.pod, nil, n, -1)
			for i := range o.pod.affinity {
				t := &o.pod.affinity[i]
				if value, has := n.object.Labels[t.key]; has && t.matches(pod, namespaceLabels) {
					sums[pair{t.key, value}] += hardPodAffinity
				}
			}
			score(o.pod.preferredAffinity, pod, namespaceLabels, n, 1)
			score(o.pod.preferredAntiAffinity, pod, namespaceLabels, n, -1)
		}
	}
	if len(sums) == 0 {
		return false
	}
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	clear(scores)
	for i, at := range nodes {
		for p, sum := range sums {
			if value, has := c.nodes[at].object.Labels[p.key]; has && value == p.value {
				scores[i] += sum
			}
		}
		least, most = min(least, scores[i]), max(most, scores[i])
	}
	for i, score := range scores {
		scores[i] = 0
		if most > least {
			scores[i] = int64(maxScore * (float64(score-least) / float64(most-least)))
		}
	}
	return true
}

// image is one container image on the cluster's nodes.
type image struct {
	size int64        // as the node says that was added first (cache.addNodeImageStates)
	on   map[int]bool // by position
}

// image looks for an image on all nodes.
func (c *Cluster) image(name string) *image {
	found, known := c.images[name]
	if known {
		return found
	}
	found = &image{on: map[int]bool{}}
	first := uint32(math.MaxUint32)
	for at, n := range c.nodes {
		for i := range n.object.Status.Images {
			for _, has := range n.object.Status.Images[i].Names {
				if has != name {
					continue
				}
				if n.added < first {
					first, found.size = n.added, n.object.Status.Images[i].SizeBytes
				}
				found.on[at] = true
			}
		}
	}
	c.images[name] = found
	return found
}

// images are those of a pod's containers and volumes, with a tag (imagelocality, normalizedImageName).
func images(spec *corev1.PodSpec) []string {
	var names []string
	add := func(name string) {
		if strings.LastIndex(name, ":") <= strings.LastIndex(name, "/") {
			name += ":latest"
		}
		names = append(names, name)
	}
	for i := range spec.InitContainers {
		add(spec.InitContainers[i].Image)
	}
	for i := range spec.Containers {
		add(spec.Containers[i].Image)
	}
	for i := range spec.Volumes {
		if spec.Volumes[i].Image != nil {
			add(spec.Volumes[i].Image.Reference)
		}
	}
	return names
}

// imageScores favour nodes that have the pod's images already (imagelocality, Score).
func (c *Cluster) imageScores(pod *Pod, nodes []int, scores []int64) bool {
	const smallest, largestEach = 23 << 20, 1000 << 20
	var found []*image
	for _, name := range pod.preFilterState.images {
		if image := c.image(name); len(image.on) > 0 {
			found = append(found, image)
		}
	}
	if len(found) == 0 {
		return false
	}
	largest := int64(largestEach * pod.preFilterState.imageCount)
	for i, at := range nodes {
		var sum int64
		for _, image := range found {
			if image.on[at] {
				sum += int64(float64(image.size) * (float64(len(image.on)) / float64(len(c.nodes))))
			}
		}
		sum = min(max(sum, smallest), largest)
		scores[i] = maxScore * (sum - smallest) / (largest - smallest)
	}
	return true
}
