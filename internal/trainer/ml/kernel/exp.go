package kernel

import "math"

// Exp is eˣ in float64 from + − × ÷ only, each rounded by itself, so that it has the same bits on every platform, which
// math.Exp does not guarantee. Below −708 it is 0 and above 709 it is +Inf: subnormal results are not needed here.
// The method and coefficients are FreeBSD's e_exp.c; the error is below 1 ulp.
func Exp(x float64) float64 {
	const (
		ln2High = 6.93147180369123816490e-01
		ln2Low  = 1.90821492927058770002e-10
		log2E   = 1.44269504088896338700e+00

		p1 = 1.66666666666666657415e-01
		p2 = -2.77777777770155933842e-03
		p3 = 6.61375632143793436117e-05
		p4 = -1.65339022054652515390e-06
		p5 = 4.13813679705723846039e-08
	)
	switch {
	case x != x:
		return x
	case x < -708:
		return 0
	case x > 709:
		return math.Inf(1)
	}
	half := 0.5
	if x < 0 {
		half = -half
	}
	n := int(float64(log2E*x) + half)
	high := x - float64(float64(n)*ln2High)
	low := float64(float64(n) * ln2Low)
	r := high - low
	t := float64(r * r)
	p := p4 + float64(t*p5)
	p = p3 + float64(t*p)
	p = p2 + float64(t*p)
	p = p1 + float64(t*p)
	c := r - float64(t*p)
	y := 1 - ((low - float64(r*c)/(2-c)) - high)
	return y * math.Float64frombits(uint64(n+1023)<<52)
}

// Log is the natural logarithm of a positive normal float64, made as Exp is. The method and coefficients are FreeBSD's
// e_log.c; the error is below 1 ulp. For other arguments it is NaN.
func Log(x float64) float64 {
	const (
		ln2High = 6.93147180369123816490e-01
		ln2Low  = 1.90821492927058770002e-10

		l1 = 6.666666666666735130e-01
		l2 = 3.999999999940941908e-01
		l3 = 2.857142874366239149e-01
		l4 = 2.222219843214978396e-01
		l5 = 1.818357216161805012e-01
		l6 = 1.531383769920937332e-01
		l7 = 1.479819860511658591e-01
	)
	if !(x >= 0x1p-1022 && x <= math.MaxFloat64) {
		return math.NaN()
	}
	bits := math.Float64bits(x)
	exponent := int(bits>>52) - 1022
	fraction := math.Float64frombits(bits&(1<<52-1) | 1022<<52) // in [½, 1)
	if fraction < math.Sqrt2/2 {
		fraction *= 2
		exponent--
	}
	f := fraction - 1
	k := float64(exponent)
	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	t1 := l5 + float64(s4*l7)
	t1 = l3 + float64(s4*t1)
	t1 = l1 + float64(s4*t1)
	t1 = float64(s2 * t1)
	t2 := l4 + float64(s4*l6)
	t2 = l2 + float64(s4*t2)
	t2 = float64(s4 * t2)
	r := t1 + t2
	halfSquare := float64(float64(0.5*f) * f)
	tail := float64(s*(halfSquare+r)) + float64(k*ln2Low)
	return float64(k*ln2High) - ((halfSquare - tail) - f)
}

// Sigmoid is 1/(1 + e⁻ˣ) in float64, made of Exp so that nothing overflows: e/(1 + e) with e = eˣ below 0.
func Sigmoid(x float64) float64 {
	if x < 0 {
		e := Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + Exp(-x))
}

// Tanh is the hyperbolic tangent in float64: (1 − e)/(1 + e) with e = e⁻²ˣ for positive x; x − x³/3 below 2⁻¹², where
// that difference would lose digits and the next term is below 2⁻⁵⁰ of the result; odd. Rounded to float32 it is the
// nearest float32 but for one in a million arguments.
func Tanh(x float64) float64 {
	switch {
	case x < 0:
		return -Tanh(-x)
	case x < 0x1p-12:
		return x - float64(float64(x*x)*x)/3
	}
	e := Exp(-2 * x)
	return (1 - e) / (1 + e)
}
