package modelfile

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// operatorTokens are the operators that the guards name by their text.
var operatorTokens = func() map[string]syntax.Token {
	m := map[string]syntax.Token{}
	for _, t := range []syntax.Token{
		syntax.PLUS, syntax.MINUS, syntax.STAR, syntax.SLASH, syntax.SLASHSLASH, syntax.PERCENT, syntax.AMP, syntax.PIPE,
		syntax.CIRCUMFLEX, syntax.LTLT, syntax.GTGT, syntax.TILDE, syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT,
		syntax.GE, syntax.IN, syntax.NOT_IN,
	} {
		m[t.String()] = t
	}
	return m
}()

// guards are the functions that insertGuards calls.
func guards() starlark.StringDict {
	guard := func(name string, do func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error)) starlark.Value {
		return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return do(t, args)
		})
	}
	operator := func(args starlark.Tuple) syntax.Token { return operatorTokens[string(args[0].(starlark.String))] }
	return starlark.StringDict{
		classMake:  starlark.NewBuiltin("class", makeClass),
		classSuper: starlark.NewBuiltin("super", makeSuper),
		valueCopy:  starlark.NewBuiltin("copy", copyValue),
		guardTruth: guard(guardTruth, func(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			return args[0], checkTruth(args[0])
		}),
		guardIterate: guard(guardIterate, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			if a, ok := args[0].(*array); ok { // each element is an array
				return a, sessionOf(t).spend(arrayBytes * int64(a.Len()))
			}
			return args[0], checkLoop(args[0])
		}),
		guardCompare: guard(guardCompare, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			if err := sessionOf(t).comparison(operator(args), args[1], args[2]); err != nil {
				return nil, err
			}
			return compare(operator(args), args[1], args[2])
		}),
		guardBinary: guard(guardBinary, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			if v, mine, err := layerArithmetic(t, operator(args), args[1], args[2]); mine {
				return v, sessionOf(t).paid(err, callBytes)
			}
			return operate(sessionOf(t), operator(args), args[1], args[2])
		}),
		guardUnary: guard(guardUnary, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			return unary(sessionOf(t), operator(args), args[1])
		}),
		guardInPlace: guard(guardInPlace, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			return inPlace{sessionOf(t), args[0]}, nil
		}),
		guardRaise: guard(guardRaise, func(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			return nil, fmt.Errorf("the file raises %s", printed(args[0]))
		}),
		guardFailed: guard(guardFailed, func(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			if args[0] == starlark.String("") {
				return nil, errors.New("the assertion does not hold")
			}
			return nil, fmt.Errorf("the assertion does not hold: %s", printed(args[0]))
		}),
	}
}

// checkValue refuses what has no value yet, or never will.
func checkValue(v starlark.Value, what string) error {
	switch v := v.(type) {
	case unknown:
		return v.use()
	case *symbol:
		return v.knownOnlyWhileTraining(what)
	case dataset:
		return fmt.Errorf("%s of a dataset: its records are known only while training", what)
	}
	return nil
}

func checkTruth(v starlark.Value) error {
	if err := checkValue(v, "the truth value"); err != nil {
		return err
	}
	a, ok := v.(*array)
	if e, isEager := v.(eager); isEager {
		a, ok = e.a, true
	}
	if ok && a.size() != 1 {
		return fmt.Errorf("the truth value of a %s is ambiguous", a)
	}
	return nil
}

func checkLoop(v starlark.Value) error {
	if err := checkValue(v, "a loop over the elements"); err != nil {
		return err
	}
	if e, ok := v.(eager); ok {
		return fmt.Errorf("a loop over a %s is not implemented; loop over its numpy()", e)
	}
	return nil
}

// compare is Python's comparison of plain values. A traced value or an array compares element by element in TensorFlow
// and numpy, which is implemented of a traced value that is above a number, as metrics have it, and never equals a
// number by accident, which Starlark would say.
func compare(op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	if above, ok := greater(op, x, y); ok {
		return above, nil
	}
	for _, v := range []starlark.Value{x, y} {
		if (op == syntax.EQL || op == syntax.NEQ) && (x == starlark.None || y == starlark.None) {
			break // `is None` is about the object, which is there
		}
		if err := checkValue(v, "a comparison"); err != nil {
			return nil, err
		}
		switch v.(type) {
		case *array, eager:
			if a, ok := v.(*array); ok && len(a.shape) == 0 {
				continue
			}
			return nil, fmt.Errorf("comparing a %s is not implemented", v)
		}
	}
	x, y = plainNumber(x, y), plainNumber(y, x)
	if op == syntax.IN || op == syntax.NOT_IN {
		found, err := starlark.Binary(syntax.IN, x, y)
		if err != nil {
			return nil, err
		}
		return starlark.Bool(bool(found.Truth()) == (op == syntax.IN)), nil
	}
	holds, err := starlark.Compare(op, x, y)
	return starlark.Bool(holds), err
}

// plainNumber turns a numpy scalar into a number, and a bool into one where the other side is a number, as in Python.
func plainNumber(v, other starlark.Value) starlark.Value {
	if a, ok := v.(*array); ok && len(a.shape) == 0 {
		if a.dtype.float() {
			return starlark.Float(a.f[0])
		}
		return starlark.MakeInt64(a.i[0])
	}
	if b, ok := v.(starlark.Bool); ok {
		switch other.(type) {
		case starlark.Int, starlark.Float:
			if b {
				return starlark.MakeInt(1)
			}
			return starlark.MakeInt(0)
		}
	}
	return v
}

// operate is x op y: traced for symbols, computed for arrays, tensors and plain values.
func operate(s *session, op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	for _, v := range []starlark.Value{x, y} {
		if u, ok := v.(unknown); ok {
			return nil, u.use()
		}
	}
	_, xs := x.(*symbol)
	_, ys := y.(*symbol)
	if xs || ys {
		v, err := arithmetic(op, x, y)
		return v, s.paid(err, functionBytes)
	}
	_, xe := x.(eager)
	_, ye := y.(eager)
	if xe || ye {
		return eagerArithmetic(s, op, x, y)
	}
	_, xa := x.(*array)
	_, ya := y.(*array)
	if xa || ya {
		a, aok, err := asOperand(s, x)
		if err != nil {
			return nil, err
		}
		b, bok, err := asOperand(s, y)
		if err != nil {
			return nil, err
		}
		if !aok || !bok {
			return nil, fmt.Errorf("the operator %s of %s and %s is not implemented", op, printed(x), printed(y))
		}
		return calculate(s, op, a, b)
	}
	if err := checkResultSize(s, op, x, y); err != nil {
		return nil, err
	}
	v, err := starlark.Binary(op, x, y)
	if err != nil {
		return nil, err
	}
	return v, s.made(v)
}

// eagerArithmetic is TensorFlow's: both sides have one type, and numbers take the tensor's.
func eagerArithmetic(s *session, op syntax.Token, x, y starlark.Value) (starlark.Value, error) {
	side := func(v, other starlark.Value) (operand, error) {
		if e, ok := v.(eager); ok {
			return operand{e.a, false}, nil
		}
		o, ok, err := asOperand(s, v)
		if err == nil && !ok {
			err = fmt.Errorf("the operator %s of %s and %s is not implemented", op, printed(x), printed(y))
		}
		if err == nil && len(o.a.shape) == 0 {
			if e, isEager := other.(eager); isEager {
				if o.a.dtype.float() && !e.a.dtype.float() {
					return operand{}, fmt.Errorf("%s %s %s: TensorFlow converts no types; tf.cast the tensor", printed(x), op, printed(y))
				}
				o.a, err = o.a.convert(s, e.a.dtype)
			}
		}
		return o, err
	}
	a, err := side(x, y)
	if err != nil {
		return nil, err
	}
	b, err := side(y, x)
	if err != nil {
		return nil, err
	}
	if a.a.dtype != b.a.dtype {
		return nil, fmt.Errorf("%s %s %s: TensorFlow converts no types; tf.cast one of them", printed(x), op, printed(y))
	}
	if op == syntax.SLASH && !a.a.dtype.float() {
		return nil, fmt.Errorf("dividing a %s tensor is not implemented; tf.cast it to tf.float32", a.a.dtype)
	}
	r, err := calculate(s, op, a, b)
	if err != nil {
		return nil, err
	}
	return eager{r}, nil
}

// checkResultSize keeps an operator from making a value that fills the memory.
func checkResultSize(s *session, op syntax.Token, x, y starlark.Value) error {
	size := 0
	switch op {
	case syntax.STAR:
		if _, ok := x.(starlark.Int); ok {
			x, y = y, x
		}
		n, isInt := y.(starlark.Int)
		if !isInt {
			return nil
		}
		if m, both := x.(starlark.Int); both {
			if bits(m)+bits(n) > s.limits.integerBits {
				return fmt.Errorf("a product of more than %d bits is larger than a model file may make", s.limits.integerBits)
			}
			return nil
		}
		count, ok := asInt(n)
		length := starlark.Len(x)
		if length > 0 && (!ok || count > s.limits.sequenceSize) {
			count, length = s.limits.sequenceSize+1, 1
		}
		size = length * max(count, 0)
	case syntax.PLUS:
		size = max(starlark.Len(x), 0) + max(starlark.Len(y), 0)
	case syntax.PERCENT:
		return s.format(x, starlark.Tuple{y}, "%")
	case syntax.PIPE, syntax.AMP, syntax.CIRCUMFLEX, syntax.MINUS:
		return s.unite(x, y)
	}
	if size > s.limits.sequenceSize {
		return fmt.Errorf("a %s of more than %d elements is larger than a model file may make", x.Type(), s.limits.sequenceSize)
	}
	return s.room(slotBytes * int64(size))
}

func bits(i starlark.Int) int { return i.BigInt().BitLen() }

func unary(s *session, op syntax.Token, x starlark.Value) (starlark.Value, error) {
	switch x.(type) {
	case unknown, *symbol, dataset:
		if err := checkValue(x, "the operator "+op.String()); err != nil {
			return nil, err
		}
	case *array, eager:
		if op == syntax.MINUS {
			return operate(s, syntax.STAR, x, starlark.MakeInt(-1))
		}
		return nil, fmt.Errorf("the operator %s on arrays is not implemented", op)
	}
	v, err := starlark.Unary(op, x)
	if err != nil {
		return nil, err
	}
	return v, s.made(v)
}

// inPlace is the right side of an assignment like x += y. Starlark asks it for the result, because no x knows it.
type inPlace struct {
	session *session
	y       starlark.Value
}

func (p inPlace) String() string        { return p.y.String() }
func (p inPlace) Type() string          { return p.y.Type() }
func (p inPlace) Freeze()               { p.y.Freeze() }
func (p inPlace) Truth() starlark.Bool  { return p.y.Truth() }
func (p inPlace) Hash() (uint32, error) { return p.y.Hash() }

// Binary changes arrays and lists where they are, as Python does, and makes a new value of everything else.
func (p inPlace) Binary(op syntax.Token, x starlark.Value, _ starlark.Side) (starlark.Value, error) {
	switch x := x.(type) {
	case *array:
		y, ok, err := asOperand(p.session, p.y)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%s %s= %s is not implemented", x, op, printed(p.y))
		}
		return calculateInPlace(p.session, op, x, y)
	case *starlark.List:
		more, ok := p.y.(starlark.Iterable)
		if op != syntax.PLUS || !ok {
			break
		}
		if err := checkLoop(p.y); err != nil {
			return nil, err
		}
		if err := checkResultSize(p.session, op, x, p.y); err != nil {
			return nil, err
		}
		var added []starlark.Value // collected first: x += x ends
		for v := range starlark.Elements(more) {
			added = append(added, v)
		}
		if err := p.session.spend(elementBytes * int64(len(added))); err != nil {
			return nil, err
		}
		for _, v := range added {
			if err := x.Append(v); err != nil {
				return nil, err
			}
		}
		return x, nil
	}
	return operate(p.session, op, x, p.y)
}
