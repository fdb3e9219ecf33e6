package scheduler

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Unit is a quantity as Kueue counts it: thousandths for cpu, whole units for everything else. One that does not fit is
// the largest number.
func Unit(name corev1.ResourceName, q resource.Quantity) int64 {
	if name != corev1.ResourceCPU {
		if q.CmpInt64(math.MaxInt64) >= 0 {
			return math.MaxInt64
		}
		return q.Value()
	}
	if q.CmpInt64(math.MaxInt64/1000) >= 0 {
		return math.MaxInt64
	}
	return q.MilliValue()
}

// Units are quantities as Kueue counts them.
func Units(l corev1.ResourceList) map[corev1.ResourceName]int64 {
	all := make(map[corev1.ResourceName]int64, len(l))
	for name, q := range l {
		all[name] = Unit(name, q)
	}
	return all
}
