package modelfile

import (
	"fmt"

	"go.starlark.net/starlark"
)

// typeValue is a class, for isinstance.
type typeValue string

func (v typeValue) String() string        { return string(v) }
func (v typeValue) Type() string          { return "type" }
func (v typeValue) Freeze()               {}
func (v typeValue) Truth() starlark.Bool  { return true }
func (v typeValue) Hash() (uint32, error) { return starlark.String(v).Hash() }

const (
	eagerClass typeValue = "EagerTensor"
	arrayClass typeValue = "np.ndarray"
)

// The values of ElasticDL's Mode class.
const (
	modeTraining   = "training"
	modeEvaluation = "evaluation"
	modePrediction = "prediction"
)

func typeValues() map[string]starlark.Value {
	const constants = "elasticdl.python.common.constants.Mode."
	values := map[string]starlark.Value{
		"tensorflow.python.framework.ops.EagerTensor": eagerClass,
		"numpy.ndarray":            arrayClass,
		constants + "TRAINING":     starlark.String(modeTraining),
		constants + "EVALUATION":   starlark.String(modeEvaluation),
		constants + "PREDICTION":   starlark.String(modePrediction),
		"tensorflow.string":        dtypeValue{stringType},
		"tensorflow.dtypes.string": dtypeValue{stringType},
	}
	for _, d := range namedTypes {
		values["tensorflow."+string(d)] = dtypeValue{d}
		values["tensorflow.dtypes."+string(d)] = dtypeValue{d}
		values["numpy."+string(d)] = dtypeValue{d}
	}
	return values
}

// isInstance is Python's, for the classes that have a meaning here.
func isInstance(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, class starlark.Value
	if err := starlark.UnpackPositionalArgs("isinstance", args, kwargs, 2, &x, &class); err != nil {
		return nil, err
	}
	classes, ok := class.(starlark.Tuple)
	if !ok {
		classes = starlark.Tuple{class}
	}
	for _, c := range classes {
		is, err := hasClass(x, c)
		if is || err != nil {
			return starlark.Bool(is), err
		}
	}
	return starlark.False, nil
}

func hasClass(x, class starlark.Value) (bool, error) {
	if err := checkTyped(x); err != nil {
		return false, err
	}
	switch c := class.(type) {
	case unknown:
		return false, c.use()
	case typeValue:
		switch x.(type) {
		case eager:
			return c == eagerClass, nil
		case *array:
			return c == arrayClass, nil
		}
		return false, nil
	case *starlark.Builtin:
		if starlark.Universe[c.Name()] != nil || plainClasses[c.Name()] != "" {
			_, isBool := x.(starlark.Bool)
			return plainClasses[c.Name()] == x.Type() || c.Name() == "int" && isBool, nil
		}
	}
	return false, fmt.Errorf("isinstance with %s is not implemented", printed(class))
}

// checkTyped refuses to say of a traced value which class it will have.
func checkTyped(x starlark.Value) error {
	if s, ok := x.(*symbol); ok {
		return s.knownOnlyWhileTraining("the class")
	}
	return checkValue(x, "the class")
}

// plainClasses maps Python's classes to Starlark's names for them.
var plainClasses = map[string]string{
	"int": "int", "float": "float", "str": "string", "bool": "bool", "list": "list", "dict": "dict", "tuple": "tuple", "set": "set",
}
