package modelfile

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// What a value takes, in bytes, from above. An element of a list counts three times, because a list grows by
// copying and a number or letter in it has a box of its own; an entry of a dict or set is its share of a bucket of
// Starlark's hash table, half full.
const (
	slotBytes     = 16
	elementBytes  = 3 * slotBytes
	entryBytes    = 160
	tableBytes    = 640
	headerBytes   = 64
	functionBytes = 256
	arrayBytes    = 160 // of an array without its elements
	callBytes     = 1024
	lookupBytes   = 4096 // a name that the facade lacks is explained by all that it has
)

// The bounds on one value, besides the memory that it takes. What compares, hashes, prints or freezes a value visits
// it as a tree, so a part that is shared counts as often as it is reached.
const (
	maxValueNodes = 1 << 20
	maxValueDepth = 200
	maxLayers     = 10_000
	maxFeatures   = 10_000
	maxIntDigits  = 4300 // Python's own bound on int() of text
)

// spend accounts for memory before it is allocated. Nothing is given back: what a file allocated in all is what it can
// hold at most, whenever the garbage collector runs.
func (s *session) spend(bytes int64) error {
	if err := s.room(bytes); err != nil {
		return err
	}
	s.spent += bytes
	return nil
}

// room reports whether spend(bytes) would be accepted.
func (s *session) room(bytes int64) error {
	if bytes > s.limits.memory-s.spent {
		return fmt.Errorf("the file makes values of more than %s MiB in all; does a loop make more than the model needs?",
			wording.Count(s.limits.memory>>20))
	}
	if s.layers != nil && len(s.layers.nodes) > maxLayers {
		return fmt.Errorf("the model has more than %d layers", maxLayers)
	}
	return nil
}

// work accounts for what a built-in function does, which Starlark counts as one step whatever it is.
func (s *session) work(steps int64) error {
	if s.worked += uint64(max(steps, 0)); s.worked > s.limits.steps {
		return fmt.Errorf("the file did not finish within %d steps; does a loop never end?", s.limits.steps)
	}
	return nil
}

// maxSyntaxDepth is far above what people write, and far below where the compiler, which calls itself for each part of
// an expression, needs a large stack.
const maxSyntaxDepth = 1000

// checkNesting refuses a file whose syntax tree is too deep: a sum of so many terms is as deep as so many brackets.
func checkNesting(f *syntax.File) error {
	depth, deepest := 0, 0
	var at syntax.Node
	syntax.Walk(f, func(n syntax.Node) bool {
		if n == nil {
			depth--
			return true
		}
		if depth++; depth > deepest {
			deepest, at = depth, n
		}
		return depth <= maxSyntaxDepth
	})
	if deepest <= maxSyntaxDepth {
		return nil
	}
	start := syntax.Start(at)
	return &Error{Line: int(start.Line), Column: int(start.Col), Msg: fmt.Sprintf("expressions or blocks are nested deeper than %d", maxSyntaxDepth)}
}

// weight is what visiting a value as a tree costs.
type weight struct {
	nodes int64
	bytes int64 // of its text; only where texts are wanted
	texts bool
}

// weigh visits values as hashing, comparing and printing would, and refuses those that would take too long.
func (s *session) weigh(texts bool, values ...starlark.Value) (weight, error) {
	w := weight{texts: texts}
	for _, v := range values {
		if !w.add(v, maxValueNodes, maxValueDepth) {
			return w, fmt.Errorf("a %s is nested or shared too deeply to be compared, printed or a key: it has more than %d parts or %d levels",
				v.Type(), maxValueNodes, maxValueDepth)
		}
	}
	return w, s.work(4 * w.nodes) // once here, and once where the value is used
}

// add is false where v has more parts or levels than it may have.
func (w *weight) add(v starlark.Value, nodes int64, depth int) bool {
	if w.nodes++; w.nodes > nodes || depth == 0 {
		return false
	}
	each := func(parts ...starlark.Value) bool {
		for _, p := range parts {
			w.bytes += 4
			if !w.add(p, nodes, depth-1) {
				return false
			}
		}
		return true
	}
	switch v := v.(type) {
	case starlark.String:
		w.nodes += int64(len(v) / 64)
		w.bytes += 4 * int64(len(v)) // quoted, with escapes
	case starlark.Bytes:
		w.nodes += int64(len(v) / 64)
		w.bytes += 4 * int64(len(v))
	case starlark.Tuple:
		return each(v...)
	case *starlark.List:
		for p := range v.Elements() {
			if !each(p) {
				return false
			}
		}
	case *starlark.Dict:
		for key, value := range v.Entries() {
			if !each(key, value) {
				return false
			}
		}
	case *starlark.Set:
		for p := range v.Elements() {
			if !each(p) {
				return false
			}
		}
	case starlark.Int:
		w.bytes += int64(bits(v)/3 + 2)
	case starlark.NoneType, starlark.Bool, starlark.Float:
		w.bytes += 24
	default:
		if w.texts {
			w.bytes += int64(len(v.String()))
		}
	}
	return true
}

// made accounts for a value that was just made, without its parts.
func (s *session) made(v starlark.Value) error {
	n := int64(max(starlark.Len(v), 0))
	switch v := v.(type) {
	case nil, starlark.NoneType, starlark.Bool:
		return nil
	case starlark.String, starlark.Bytes:
		return s.spend(slotBytes + n)
	case starlark.Int:
		return s.integer(v)
	case *starlark.List, starlark.Tuple:
		return s.spend(headerBytes + slotBytes*n)
	case *starlark.Dict, *starlark.Set:
		return s.spend(tableBytes + entryBytes*n)
	case *starlark.Function, *symbol:
		return s.spend(functionBytes)
	case *array, eager: // the elements were counted when they were made
		return s.spend(arrayBytes)
	}
	return s.spend(headerBytes)
}

// integer keeps integers from growing by operators that have no bound of their own.
func (s *session) integer(i starlark.Int) error {
	n := bits(i)
	if n > s.limits.integerBits {
		return fmt.Errorf("an integer of more than %d bits is larger than a model file may make", s.limits.integerBits)
	}
	if n <= 32 {
		return nil
	}
	return s.spend(headerBytes + int64(n/8))
}

// count is the number of elements of what can be looped over, however it is made; other values have none.
func count(v starlark.Value) int64 {
	if n := starlark.Len(v); n >= 0 {
		return int64(n)
	}
	n := int64(0)
	if list, ok := v.(starlark.Iterable); ok { // the code points of a string
		for range starlark.Elements(list) {
			n++
		}
	}
	return n
}

// notFreezable names a value that Starlark's Freeze would visit for ever or until the stack ends: it follows tuples and
// functions as a tree, and a nested function that names itself in a circle. All others give "".
func notFreezable(globals starlark.StringDict) (name string) {
	f := freezer{seen: map[starlark.Value]bool{}}
	for _, name := range globals.Keys() {
		if !f.visit(globals[name], maxFreezeDepth) {
			return name
		}
	}
	return ""
}

// The bounds leave room for all tuples that a file has memory for.
const (
	maxFreezeDepth = 10_000
	maxFreezeNodes = 1 << 24
)

type freezer struct {
	nodes int64
	seen  map[starlark.Value]bool // lists, dicts, sets and objects: these are frozen once
}

func (f *freezer) visit(v starlark.Value, depth int) bool {
	if f.nodes++; depth == 0 {
		return false
	}
	switch v := v.(type) {
	case starlark.Tuple:
		return f.all(len(v), depth, func(i int) starlark.Value { return v[i] })
	case *starlark.Function:
		if n := v.NumParams(); n > 0 && !f.all(n, depth, v.ParamDefault) {
			return false
		}
		return f.all(v.NumFreeVars(), depth, func(i int) starlark.Value { _, value := v.FreeVar(i); return value })
	case boundMethod:
		return f.visit(v.self, depth-1)
	case parent:
		return f.visit(v.self, depth-1)
	case *rateSchedule:
		return f.visit(v.f, depth-1)
	case *class:
		return f.visit(v.members, depth-1)
	case *enumMember:
		return f.visit(v.value, depth-1)
	case *object:
		if f.seen[v] {
			return true
		}
		f.seen[v] = true
		f.nodes--
		for _, p := range v.fields {
			if !f.visit(p, depth-1) {
				return false
			}
		}
	case *starlark.Builtin:
		return v.Receiver() == nil || f.visit(v.Receiver(), depth-1)
	case *starlark.List, *starlark.Dict, *starlark.Set:
		if f.seen[v] {
			return true
		}
		f.seen[v] = true
		f.nodes-- // as many as there are cost nothing but their memory
		if d, ok := v.(*starlark.Dict); ok {
			for key, value := range d.Entries() {
				if !f.visit(key, depth-1) || !f.visit(value, depth-1) {
					return false
				}
			}
			return true
		}
		for p := range starlark.Elements(v.(starlark.Iterable)) {
			if !f.visit(p, depth-1) {
				return false
			}
		}
	}
	return true
}

// all visits the parts of a tuple or function, which are counted as often as they are reached.
func (f *freezer) all(n, depth int, part func(int) starlark.Value) bool {
	for i := range n {
		if p := part(i); p != nil && (f.nodes > maxFreezeNodes || !f.visit(p, depth-1)) {
			return false
		}
	}
	return true
}
