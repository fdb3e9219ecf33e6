package kernel

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
