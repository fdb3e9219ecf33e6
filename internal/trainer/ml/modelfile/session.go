package modelfile

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// limits bound one run of a model file's code.
type limits struct {
	steps        uint64 // Starlark instructions, and as many again of the work of built-in functions
	memory       int64  // bytes of all values that are made, whether they are kept or not
	sequenceSize int    // elements of a list or bytes of a string that an operator makes
	integerBits  int    // of an integer
}

// defaultLimits leave room for anything that a model file does: 10⁸ instructions take up to half a minute. The process
// takes at most twice the memory, because what is not kept is collected late.
var defaultLimits = limits{steps: 1e8, memory: 192 << 20, sequenceSize: 1 << 20, integerBits: 4096}

// times is the limits of one run over n records, of which two took the bytes probed when the file was loaded.
func (l limits) times(n int, probed int64) limits {
	n = max(n, 1)
	l.steps *= uint64(n)
	l.memory += 2 * probed * int64(n)
	l.sequenceSize = max(l.sequenceSize, 8*n)
	return l
}

// session is what one run of a model file's code may touch: Load has one, and every call of Feed.Function.
type session struct {
	limits limits
	report *Report // nil after Load: a call on real records has nobody to report to
	spent  int64   // bytes, of limits.memory
	worked uint64  // steps of built-in functions, of limits.steps

	layers *layerGraph // nil when the model is complete: no layer can be made any more
	schema *schema     // what parse_single_example declared so far

	nested int            // models that are being called in one another
	phase  starlark.Value // the `training` of the model's call that is traced; nil outside of one
	at     graph.Place    // of the preprocessing layer that is being called
}

const sessionKey = "session"

func (s *session) thread(name string) *starlark.Thread {
	t := &starlark.Thread{Name: name, Print: func(*starlark.Thread, string) {}}
	t.SetLocal(sessionKey, s)
	t.SetMaxExecutionSteps(s.limits.steps)
	t.OnMaxSteps = func(t *starlark.Thread) {
		t.Cancel(fmt.Sprintf("the file did not finish within %d steps; does a loop never end?", s.limits.steps))
	}
	return t
}

func sessionOf(t *starlark.Thread) *session { return t.Local(sessionKey).(*session) }

// charge accounts for an array of n elements.
func (s *session) charge(n int) error {
	if int64(n)*8 > s.limits.memory {
		return fmt.Errorf("an array of %d elements is larger than a model file may make (%d bytes)", n, s.limits.memory)
	}
	if err := s.work(int64(n)); err != nil {
		return err
	}
	return s.spend(int64(n)*8 + arrayBytes)
}

func (s *session) notice(t *starlark.Thread, format string, args ...any) {
	if s.report != nil {
		add(&s.report.Notices, placeOf(t), format, args...)
	}
}

func (s *session) warn(at graph.Place, format string, args ...any) {
	if s.report != nil {
		add(&s.report.Warnings, at, format, args...)
	}
}

// placeOf is the line that called the built-in function which runs now.
func placeOf(t *starlark.Thread) graph.Place {
	if t.CallStackDepth() < 2 {
		return graph.Place{}
	}
	return placeIn(t.Name, t.CallFrame(1).Pos)
}

// placeIn is a position as a place: that of a module if it is not in the model file.
func placeIn(file string, at syntax.Position) graph.Place {
	place := graph.Place{Line: int(at.Line)}
	if at.Line > 0 && at.Filename() != file {
		place.Module = at.Filename()
	}
	return place
}

// schema is the set of features that records hold, in the order of their first declaration.
type schema struct{ features []graph.Feature }

func (s *schema) find(name string) (graph.Feature, int, bool) {
	for i, f := range s.features {
		if f.Name == name {
			return f, i, true
		}
	}
	return graph.Feature{}, 0, false
}

// declare adds a feature; declaring it twice with the same type and shape is no harm.
func (s *schema) declare(f graph.Feature) error {
	have, _, found := s.find(f.Name)
	if !found {
		if len(s.features) == maxFeatures {
			return fmt.Errorf("a record of more than %d features is larger than a model file may declare", maxFeatures)
		}
		s.features = append(s.features, f)
		return nil
	}
	if have.DType != f.DType || fmt.Sprint(have.Shape) != fmt.Sprint(f.Shape) {
		return fmt.Errorf("feature %q is declared as %s%v here and as %s%v before", f.Name, f.DType, f.Shape, have.DType, have.Shape)
	}
	return nil
}
