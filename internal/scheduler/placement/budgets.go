package placement

import (
	"fmt"
	"iter"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// budget is a PodDisruptionBudget.
type budget struct {
	namespace string
	selector  labels.Selector
	allowed   int32
	disrupted map[string]bool
}

func newBudget(pdb *policyv1.PodDisruptionBudget) *budget {
	b := &budget{namespace: pdb.Namespace, selector: selector(pdb.Spec.Selector), allowed: pdb.Status.DisruptionsAllowed, disrupted: map[string]bool{}}
	if b.selector.Empty() {
		return nil // A selector that is nil or empty matches nothing here.
	}
	for name := range pdb.Status.DisruptedPods {
		b.disrupted[name] = true
	}
	return b
}

// Budgets is the allowed disruptions of PodDisruptionBudgets at one moment. The disruption controller writes them, and
// kube-scheduler may still read older values.
type Budgets struct {
	list []*budget
}

// Budgets are those that decisions go by now.
func (c *Cluster) Budgets() Budgets { return Budgets{slices.Clone(c.budgets)} }

// Equal reports whether two moments allow the same.
func (b Budgets) Equal(other Budgets) bool { return slices.Equal(b.list, other.list) }

// String has what each budget allows.
func (b Budgets) String() string {
	allowed := make([]int32, len(b.list))
	for i, one := range b.list {
		allowed[i] = one.allowed
	}
	return fmt.Sprint(allowed)
}

// At is a copy of the cluster whose decisions use the budgets of another moment.
func (c *Cluster) At(budgets Budgets) *Cluster {
	clone := c.Clone()
	clone.budgets = slices.Clone(budgets.list)
	return clone
}

func (b *budget) covers(pod *Pod) bool {
	return b.namespace == pod.namespace && len(pod.labels) > 0 && b.selector.Matches(pod.labels) && !b.disrupted[pod.Name]
}

// violating reports for each of several pods, in their order, whether its budgets would not allow its eviction after
// those before it (FilterVictimsWithPDBViolation). The result is valid until the next call.
func (c *Cluster) violating(n *node, pods []int) []bool {
	c.work.violating = grow(c.work.violating, len(pods))
	result := c.work.violating
	clear(result)
	if len(c.budgets) == 0 {
		return result
	}
	left := make([]int32, len(c.budgets))
	for i, b := range c.budgets {
		left[i] = b.allowed
	}
	for j, at := range pods {
		for i, b := range c.budgets {
			if !b.covers(n.pods[at].pod) {
				continue
			}
			left[i]--
			if result[j] = result[j] || left[i] < 0; result[j] && c.rules.untilViolated {
				break
			}
		}
	}
	return result
}

// mostContested bounds how many budgets are put into every order: 5 have 120.
const mostContested = 5

// budgetOrders are the orders of the budgets that count, the present one first. The scheduler has them in the order of its
// lister, that of a Go map, and since 1.37 a victim takes nothing from those after the first that does not allow its
// eviction. complete is false if there are more orders than are made.
func (cy *cycle) budgetOrders() (orders iter.Seq[[]*budget], complete bool) {
	contested := cy.contested()
	if len(contested) > mostContested {
		contested, complete = nil, false
	} else {
		complete = true
	}
	return func(yield func([]*budget) bool) {
		order := slices.Clone(cy.c.budgets)
		permutations(contested, func(permuted []int) bool {
			for i, at := range contested {
				order[at] = cy.c.budgets[permuted[i]]
			}
			return yield(slices.Clone(order))
		})
	}, complete
}

// contested are the places of the budgets whose order counts: on some node one of them may not allow all evictions, and
// another one covers one of its pods, too.
func (cy *cycle) contested() []int {
	budgets := cy.c.budgets
	if !cy.c.rules.untilViolated || len(budgets) < 2 {
		return nil
	}
	counts := make([]bool, len(budgets))
	for _, n := range cy.c.nodes {
		covered := make([]int32, len(budgets))
		var shared [][]int
		for _, o := range n.pods {
			if o.pod.Priority >= cy.pod.Priority {
				continue
			}
			var by []int
			for i, b := range budgets {
				if b.covers(o.pod) {
					covered[i]++
					by = append(by, i)
				}
			}
			if len(by) > 1 {
				shared = append(shared, by)
			}
		}
		for _, by := range shared {
			if slices.ContainsFunc(by, func(i int) bool { return covered[i] > budgets[i].allowed }) {
				for _, i := range by {
					counts[i] = true
				}
			}
		}
	}
	var contested []int
	for i, does := range counts {
		if does {
			contested = append(contested, i)
		}
	}
	return contested
}

// permutations visits every order of some numbers, the given one first, until visit returns false.
func permutations(numbers []int, visit func([]int) bool) {
	order := slices.Clone(numbers)
	var permute func(from int) bool
	permute = func(from int) bool {
		if from >= len(order) {
			return visit(order)
		}
		for i := from; i < len(order); i++ {
			rotate(order[from:i+1], 1)
			goOn := permute(from + 1)
			rotate(order[from:i+1], -1)
			if !goOn {
				return false
			}
		}
		return true
	}
	permute(0)
}
