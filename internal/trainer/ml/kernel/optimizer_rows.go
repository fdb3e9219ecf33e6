package kernel

import "math"

// The update rules of an embedding table w for the gradient g of the rows at index, where TF 2.0's optimizer_v2 defines
// them in other operations than those of a dense gradient. (SGD, its momentum and AdaGrad apply the dense rule to the
// rows alone.) The table and its slots have rows of len(g)/len(index) elements. Each operation is rounded to float32 by
// itself.

// eachOfRows calls do with the place in the table of every element of g.
func eachOfRows(index []int32, g []float32, do func(at int, g float32)) {
	for k, row := range index {
		width := len(g) / len(index)
		for i, v := range g[k*width:][:width] {
			do(int(row)*width+i, v)
		}
	}
}

// adamRows is Set.AdamRows, made of a set's operations on the whole table.
func adamRows(
	scale func(x []float32, factor float32), descend func(w, m, v []float32, s AdamStep),
) func(w, m, v []float32, index []int32, g []float32, s AdamStep) {
	return func(w, m, v []float32, index []int32, g []float32, s AdamStep) {
		need("the slots", min(len(m), len(v)), len(w))
		scale(m[:len(w)], s.Beta1)
		scale(v[:len(w)], s.Beta2)
		eachOfRows(index, g, func(at int, g float32) {
			m[at] += float32(g * s.Rest1)
			v[at] += float32(float32(g*g) * s.Rest2)
		})
		descend(w, m, v, s)
	}
}

// RMSPropRows is r ← r × rho for the whole slot; for the rows r ← r + ((g × g) × rest); w ← w − ((rate × g) ÷ (√r +
// ε)). Keras' RMSprop without momentum (_resource_apply_sparse), which costs a walk over the slot in every step.
func RMSPropRows(w, r []float32, index []int32, g []float32, rate, rho, rest, epsilon float32) {
	need("the slot", len(r), len(w))
	for i := range r[:len(w)] {
		r[i] *= rho
	}
	eachOfRows(index, g, func(at int, g float32) {
		r[at] += float32(float32(g*g) * rest)
		w[at] -= float32(rate*g) / (root(r[at]) + epsilon)
	})
}

// RMSPropMomentumRows is, for the rows alone, r ← (r × rho) + ((g × g) × rest); a ← (a × momentum) + ((g × rate) ÷ √(r
// + ε)); w ← w − a. Keras' RMSprop with momentum (ResourceSparseApplyRMSProp).
func RMSPropMomentumRows(w, r, a []float32, index []int32, g []float32, rate, rho, rest, momentum, epsilon float32) {
	need("the slots", min(len(r), len(a)), len(w))
	eachOfRows(index, g, func(at int, g float32) {
		r[at] = float32(r[at]*rho) + float32(float32(g*g)*rest)
		a[at] = float32(a[at]*momentum) + float32(g*rate)/root(r[at]+epsilon)
		w[at] -= a[at]
	})
}

// AdaMaxRows is, for the rows alone, m ← (m × β₁) + (g × (1 − β₁)); v ← the larger of v × β₂ and |g|; w ← w − ((m ÷ (v
// + ε)) × rate). Keras' Adamax (_resource_apply_sparse).
func AdaMaxRows(w, m, v []float32, index []int32, g []float32, s AdaMaxStep) {
	need("the slots", min(len(m), len(v)), len(w))
	eachOfRows(index, g, func(at int, g float32) {
		m[at] = float32(m[at]*s.Beta1) + float32(g*s.Rest1)
		v[at] = max(float32(v[at]*s.Beta2), float32(math.Abs(float64(g))))
		w[at] -= float32(m[at] / (v[at] + s.Epsilon) * s.Rate)
	})
}
