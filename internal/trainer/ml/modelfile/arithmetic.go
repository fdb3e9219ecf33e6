package modelfile

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// operand is an array, or a Python number that takes the array's type where numpy lets it.
type operand struct {
	a    *array
	weak bool // a Python number or an array without dimensions: its type counts only where its kind is higher
}

// asOperand makes an operand of numpy arithmetic; ok is false for what is no number.
func asOperand(s *session, v starlark.Value) (operand, bool, error) {
	switch v := v.(type) {
	case *array:
		return operand{v, len(v.shape) == 0}, true, nil
	case starlark.Float:
		a, err := newArray(s, float64Type, nil)
		if err != nil {
			return operand{}, false, err
		}
		a.f[0] = float64(v)
		return operand{a, true}, true, nil
	case starlark.Int, starlark.Bool:
		n := int64(0)
		if i, isInt := v.(starlark.Int); isInt {
			var ok bool
			if n, ok = i.Int64(); !ok {
				return operand{}, false, fmt.Errorf("%s is too large for an array", printed(v))
			}
		} else if v == starlark.True {
			n = 1
		}
		a, err := newArray(s, int64Type, nil)
		if err != nil {
			return operand{}, false, err
		}
		a.i[0] = n
		return operand{a, true}, true, nil
	}
	return operand{}, false, nil
}

// resultType is numpy's: a weak operand of no higher kind takes the other's type; / makes floats of integers.
func resultType(op syntax.Token, x, y operand) (dtype, error) {
	var d dtype
	switch {
	case x.weak == y.weak:
		d = promote(x.a.dtype, y.a.dtype)
	case x.weak:
		return resultType(op, y, x)
	case y.a.dtype.kind() <= x.a.dtype.kind(), !y.a.dtype.float() && x.a.dtype.kind() >= 1:
		d = x.a.dtype
		if !d.float() {
			probe := &array{dtype: d, i: make([]int64, 1)}
			if probe.setInt(0, y.a.i[0]); probe.i[0] != y.a.i[0] {
				return "", fmt.Errorf("%d does not fit a %s array", y.a.i[0], d)
			}
		}
	default:
		d = promote(x.a.dtype, y.a.dtype)
	}
	if op == syntax.SLASH && !d.float() {
		d = float64Type
	}
	if d == boolType {
		return "", fmt.Errorf("arithmetic on arrays of bool is not implemented")
	}
	return d, nil
}

// calculate is x op y over numpy arrays: of one shape, or one of them with a single element.
func calculate(s *session, op syntax.Token, x, y operand) (*array, error) {
	d, err := resultType(op, x, y)
	if err != nil {
		return nil, err
	}
	shape := x.a.shape
	switch {
	case x.a.size() == y.a.size() && fmt.Sprint(x.a.shape) == fmt.Sprint(y.a.shape):
	case y.a.size() == 1 && len(y.a.shape) <= len(x.a.shape):
	case x.a.size() == 1 && len(x.a.shape) <= len(y.a.shape):
		shape = y.a.shape
	default:
		return nil, fmt.Errorf("%s %s %s: only arrays of one shape, or an array and a number, are implemented", x.a, op, y.a)
	}
	out, err := newArray(s, d, shape)
	if err != nil {
		return nil, err
	}
	step := func(a *array) int { return min(1, a.size()-1) * min(1, len(a.shape)) }
	dx, dy := step(x.a), step(y.a)
	for k := range out.size() {
		if err := calculateOne(out, k, op, x.a, k*dx, y.a, k*dy); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// calculateOne computes one element in the type of the result: float32 operands are rounded to it first.
func calculateOne(out *array, k int, op syntax.Token, x *array, i int, y *array, j int) error {
	if out.dtype.float() {
		a, b := x.at(i), y.at(j)
		if out.dtype == float32Type {
			a, b = float64(float32(a)), float64(float32(b))
		}
		var r float64
		switch op {
		case syntax.PLUS:
			r = a + b
		case syntax.MINUS:
			r = a - b
		case syntax.STAR:
			r = a * b
		case syntax.SLASH:
			r = a / b
		default:
			return fmt.Errorf("the operator %s on arrays is not implemented", op)
		}
		return out.set(k, r)
	}
	a, b := x.i[i], y.i[j]
	switch op {
	case syntax.PLUS:
		a += b
	case syntax.MINUS:
		a -= b
	case syntax.STAR:
		a *= b
	default:
		return fmt.Errorf("the operator %s on integer arrays is not implemented", op)
	}
	out.setInt(k, a)
	return nil
}

// calculateInPlace is x op= y: the result is written into x's elements, which views share.
func calculateInPlace(s *session, op syntax.Token, x *array, y operand) (*array, error) {
	switch {
	case x.frozen:
		return nil, fmt.Errorf("an array that belongs to the whole module cannot be changed; copy() it first")
	case x.readOnly:
		return nil, fmt.Errorf("an array made by np.frombuffer cannot be changed; astype() or copy() it first")
	}
	r, err := calculate(s, op, operand{x, false}, y)
	if err != nil {
		return nil, err
	}
	if r.dtype.kind() > x.dtype.kind() {
		return nil, fmt.Errorf("%s= makes %s of a %s array, which cannot hold it; astype(np.float32) first", op, r.dtype, x.dtype)
	}
	if r.size() != x.size() {
		return nil, fmt.Errorf("%s %s= %s: the result does not fit", x, op, y.a)
	}
	if err := x.take(0, r); err != nil {
		return nil, err
	}
	x.origin = nil
	return x, nil
}
