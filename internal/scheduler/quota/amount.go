package quota

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
)

// Amount is a quantity of a resource: thousandths for cpu, whole units for everything else, and Unlimited when that
// does not fit into 63 bits. Arithmetic saturates, and Unlimited minus something bounded is Unlimited still (as in
// Kueue's pkg/resources/amount.go).
type Amount int64

// Unlimited is more than any request.
const Unlimited Amount = math.MaxInt64

// amountOf converts a quota (nominal, borrowing or lending limit).
func amountOf(name corev1.ResourceName, q resource.Quantity) Amount {
	largest := int64(math.MaxInt64)
	if name == corev1.ResourceCPU {
		largest /= 1000
	}
	if q.CmpInt64(largest) >= 0 {
		return Unlimited
	}
	return requestOf(name, q)
}

// requestOf converts a request; one that does not fit is cut off at the largest number.
func requestOf(name corev1.ResourceName, q resource.Quantity) Amount {
	return Amount(scheduler.Unit(name, q))
}

// quantity is the inverse of amountOf, in the notation that is usual for the resource.
func (a Amount) quantity(name corev1.ResourceName) resource.Quantity {
	format := resource.DecimalSI
	switch {
	case name == corev1.ResourceCPU:
		return *resource.NewMilliQuantity(int64(a), resource.DecimalSI)
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		format = resource.BinarySI
	}
	q := *resource.NewQuantity(int64(a), format)
	if format == resource.BinarySI {
		// The canonical form: a number that is no multiple of 1024 is written in decimal.
		if canonical, err := resource.ParseQuantity(q.String()); err == nil {
			return canonical
		}
	}
	return q
}

// text is how Kueue writes an amount in messages.
func (a Amount) text(name corev1.ResourceName) string {
	if a == Unlimited {
		return "<unlimited>"
	}
	q := a.quantity(name)
	return q.String()
}

func (a Amount) plus(b Amount) Amount {
	if a == Unlimited || b == Unlimited {
		return Unlimited
	}
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return Unlimited
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

func (a Amount) minus(b Amount) Amount {
	switch {
	case a == Unlimited && b == Unlimited:
		return 0
	case a == Unlimited:
		return Unlimited
	case b == Unlimited:
		return math.MinInt64
	}
	difference := a - b
	switch {
	case a >= 0 && b < 0 && difference < 0:
		return Unlimited
	case a < 0 && b > 0 && difference >= 0:
		return math.MinInt64
	}
	return difference
}

// times multiplies with a number of pods.
func (a Amount) times(count int64) Amount {
	if a == 0 || count == 0 {
		return 0
	}
	product := int64(a) * count
	if product/count != int64(a) {
		if (a < 0) == (count < 0) {
			return Unlimited
		}
		return math.MinInt64
	}
	return Amount(product)
}
