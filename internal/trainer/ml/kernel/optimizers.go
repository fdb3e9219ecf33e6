package kernel

import "math"

// The update rules of optimizers with slots. Momentum and Adam are in every set; the others are the same Go for all.
// Each operation is rounded to float32 by itself; √ is the float32 nearest to the square root.

func portableMomentum(w, a, g []float32, rate, momentum float32) {
	need("the slots and the gradient", min(len(a), len(g)), len(w))
	for i := range w {
		a[i] = float32(a[i]*momentum) - float32(g[i]*rate)
		w[i] += a[i]
	}
}

// Nesterov is a ← (a × momentum) − (g × rate); w ← w + ((a × momentum) − (g × rate)), with the new a.
func Nesterov(w, a, g []float32, rate, momentum float32) {
	need("the slots and the gradient", min(len(a), len(g)), len(w))
	for i := range w {
		step := float32(g[i] * rate)
		a[i] = float32(a[i]*momentum) - step
		w[i] += float32(a[i]*momentum) - step
	}
}

// AdamStep holds the numbers of one step of Adam.
type AdamStep struct {
	Rate         float32 // rate·√(1 − β₂ᵗ) ÷ (1 − β₁ᵗ)
	Beta1, Beta2 float32
	Rest1, Rest2 float32 // 1 − β₁, 1 − β₂
	Epsilon      float32
}

// NewAdamStep is step t (from 1) of Adam: every number is computed in float64, left to right, and rounded once; the
// powers of β are made by squaring and multiplying.
func NewAdamStep(rate, beta1, beta2, epsilon float64, t int64) AdamStep {
	return AdamStep{
		Rate:  float32(float64(rate*math.Sqrt(1-Power(beta2, t))) / (1 - Power(beta1, t))),
		Beta1: float32(beta1), Beta2: float32(beta2),
		Rest1: float32(1 - beta1), Rest2: float32(1 - beta2), Epsilon: float32(epsilon),
	}
}

// Power is xⁿ for n ≥ 0: x is squared from the lowest bit of n up, and multiplied in where a bit is set.
func Power(x float64, n int64) float64 {
	p := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			p = float64(p * x)
		}
		x = float64(x * x)
	}
	return p
}

func portableAdam(w, m, v, g []float32, s AdamStep) {
	need("the slots and the gradient", min(len(m), len(v), len(g)), len(w))
	for i := range w {
		m[i] += float32((g[i] - m[i]) * s.Rest1)
		v[i] += float32((float32(g[i]*g[i]) - v[i]) * s.Rest2)
	}
	portableDescend(w, m, v, s)
}

// portableDescend is the last of Adam's operations.
func portableDescend(w, m, v []float32, s AdamStep) {
	for i := range w {
		w[i] -= float32(m[i]*s.Rate) / (root(v[i]) + s.Epsilon)
	}
}

func portableScale(x []float32, factor float32) {
	for i := range x {
		x[i] *= factor
	}
}

// AdaGrad is a ← a + (g × g); w ← w − ((g × rate) ÷ (√a + ε)). Keras' Adagrad (ResourceApplyAdagradV2).
func AdaGrad(w, a, g []float32, rate, epsilon float32) {
	need("the slots and the gradient", min(len(a), len(g)), len(w))
	for i := range w {
		a[i] += float32(g[i] * g[i])
		w[i] -= float32(g[i]*rate) / (root(a[i]) + epsilon)
	}
}

// RMSProp is r ← (rho × r) + (rest × (g × g)); w ← w − ((rate × g) ÷ (√r + ε)), rest = 1 − rho. Keras' RMSprop without
// momentum, which is made of single operations there.
func RMSProp(w, r, g []float32, rate, rho, rest, epsilon float32) {
	need("the slots and the gradient", min(len(r), len(g)), len(w))
	for i := range w {
		r[i] = float32(rho*r[i]) + float32(rest*float32(g[i]*g[i]))
		w[i] -= float32(rate*g[i]) / (root(r[i]) + epsilon)
	}
}

// RMSPropMomentum is r ← r + (((g × g) − r) × rest); a ← (a × momentum) + ((g × rate) ÷ √(r + ε)); w ← w − a. Keras'
// RMSprop with momentum (ResourceApplyRMSProp): other roundings, and ε under the root.
func RMSPropMomentum(w, r, a, g []float32, rate, rest, momentum, epsilon float32) {
	need("the slots and the gradient", min(len(r), len(a), len(g)), len(w))
	for i := range w {
		r[i] += float32((float32(g[i]*g[i]) - r[i]) * rest)
		a[i] = float32(a[i]*momentum) + float32(g[i]*rate)/root(r[i]+epsilon)
		w[i] -= a[i]
	}
}

// AdaMaxStep holds the numbers of one step of AdaMax.
type AdaMaxStep struct {
	Rate         float32 // rate ÷ (1 − β₁ᵗ)
	Beta1, Beta2 float32
	Rest1        float32 // 1 − β₁
	Epsilon      float32
}

// NewAdaMaxStep is step t (from 1) of AdaMax, computed as NewAdamStep's.
func NewAdaMaxStep(rate, beta1, beta2, epsilon float64, t int64) AdaMaxStep {
	return AdaMaxStep{
		Rate: float32(rate / (1 - Power(beta1, t))), Beta1: float32(beta1), Beta2: float32(beta2),
		Rest1: float32(1 - beta1), Epsilon: float32(epsilon),
	}
}

// AdaMax is m ← m + ((g − m) × (1 − β₁)); v ← the larger of v × β₂ and |g|; w ← w − ((m ÷ (v + ε)) × rate). Keras'
// Adamax (ResourceApplyAdaMax).
func AdaMax(w, m, v, g []float32, s AdaMaxStep) {
	need("the slots and the gradient", min(len(m), len(v), len(g)), len(w))
	for i := range w {
		m[i] += float32((g[i] - m[i]) * s.Rest1)
		v[i] = max(float32(v[i]*s.Beta2), float32(math.Abs(float64(g[i]))))
		w[i] -= float32(m[i] / (v[i] + s.Epsilon) * s.Rate)
	}
}

// root is the float32 nearest to √x: rounding the float64 root again changes nothing.
func root(x float32) float32 { return float32(math.Sqrt(float64(x))) }
