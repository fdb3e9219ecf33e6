package quota

import (
	"github.com/elastic-training/terraform-provider-elastic/internal/kueue"
	corev1 "k8s.io/api/core/v1"
)

func flavorsOf(n int) (map[corev1.ResourceName]kueue.ResourceFlavorReference, corev1.ResourceList) {
	return make(map[corev1.ResourceName]kueue.ResourceFlavorReference, n), make(corev1.ResourceList, n)
}

// why explains an entry's outcome.
func (en *entry) why() Explanation {
	x := Explanation{Flavors: en.a.trials}
	if en.hunt == nil {
		return x
	}
	x.Nobody = en.hunt.nobody
	if len(en.targets) > 0 {
		x.Nobody = ""
	}
	for _, v := range en.targets {
		x.Victims = append(x.Victims, v.trial(true))
	}
	for _, v := range en.hunt.returned {
		x.Victims = append(x.Victims, v.trial(false))
	}
	return x
}

func (v victim) trial(evicted bool) VictimTrial {
	t := VictimTrial{Workload: v.w.NamespacedName, Priority: v.w.Priority, Reason: v.reason, Evicted: evicted}
	if v.w.heldIn != nil {
		t.ClusterQueue = v.w.heldIn.name
	}
	return t
}
