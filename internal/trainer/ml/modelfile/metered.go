package modelfile

import (
	"fmt"
	mathbits "math/bits"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// paid accounts for what was made unless making it failed.
func (s *session) paid(err error, bytes int64) error {
	if err != nil {
		return err
	}
	return s.spend(bytes)
}

// comparison accounts for the work of a comparison of containers, and of a search.
func (s *session) comparison(op syntax.Token, x, y starlark.Value) error {
	if op != syntax.IN && op != syntax.NOT_IN {
		_, err := s.weighContainers(x, y)
		return err
	}
	switch y := y.(type) {
	case *starlark.List, starlark.Tuple:
		return s.search(x, starlark.Len(y))
	case starlark.String, starlark.Bytes:
		return s.work(int64(starlark.Len(y) / 64))
	}
	return s.key(x)
}

// search is a comparison of x with each of n elements, which end where x ends.
func (s *session) search(x starlark.Value, n int) error {
	nodes, err := s.weighContainers(x)
	if err != nil {
		return err
	}
	return s.work(int64(n) * (nodes + 1))
}

// weighContainers weighs what has parts, and long texts; all else costs nothing to compare.
func (s *session) weighContainers(values ...starlark.Value) (nodes int64, err error) {
	for _, v := range values {
		switch v.(type) {
		case *starlark.List, starlark.Tuple, *starlark.Dict, *starlark.Set, starlark.String, starlark.Bytes:
			w, err := s.weigh(false, v)
			if err != nil {
				return 0, err
			}
			nodes += w.nodes
		}
	}
	return nodes, nil
}

// format bounds the text that a format with some of the marker makes: each may take all values.
func (s *session) format(format starlark.Value, values starlark.Tuple, marker string) error {
	text, ok := format.(starlark.String)
	if !ok {
		return nil
	}
	w, err := s.weigh(true, values...)
	if err != nil {
		return err
	}
	times := int64(strings.Count(string(text), marker))
	if hi, lo := mathbits.Mul64(uint64(w.bytes), uint64(times)); hi > 0 || lo > 1<<62 {
		return s.room(1 << 62)
	}
	return s.room(w.bytes*times + int64(len(text)))
}

// unite bounds operators of dicts and sets.
func (s *session) unite(values ...starlark.Value) error {
	entries := int64(0)
	for _, v := range values {
		switch v.(type) {
		case *starlark.Dict, *starlark.Set:
			if _, err := s.weigh(false, v); err != nil {
				return err
			}
			entries += int64(starlark.Len(v))
		}
	}
	return s.room(entryBytes * entries)
}

// metered is a function of Starlark's that counts.
func metered(name string, f *starlark.Builtin) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return callMetered(t, name, f, args, kwargs)
	})
}

// callMetered calls a function of Starlark's within the session's limits.
func callMetered(t *starlark.Thread, name string, f *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	s := sessionOf(t)
	if err := s.beforeFunction(name, args, kwargs); err != nil {
		return nil, err
	}
	v, err := f.CallInternal(t, args, kwargs)
	if err != nil {
		return nil, err
	}
	switch name {
	case "max", "min": // one of the elements
	case "getattr":
		return s.attribute(v)
	default:
		err = s.made(v)
	}
	return v, err
}

func (s *session) beforeFunction(name string, args starlark.Tuple, kwargs []starlark.Tuple) error {
	switch name {
	case "str", "repr", "print", "fail":
		w, err := s.weigh(true, args...)
		if err != nil {
			return err
		}
		for _, kw := range kwargs { // print's sep, between all of them
			more, err := s.weigh(true, kw[1])
			if err != nil {
				return err
			}
			w.bytes += more.bytes * int64(len(args)+1)
		}
		return s.room(w.bytes)
	case "hash":
		_, err := s.weigh(false, args...)
		return err
	case "dir", "getattr", "hasattr":
		return s.spend(lookupBytes)
	case "int":
		for _, a := range args {
			if text, ok := a.(starlark.String); ok && len(text) > maxIntDigits {
				return fmt.Errorf("int() of a text of %d characters; at most %d are read", len(text), maxIntDigits)
			}
		}
		return nil
	case "zip":
		return s.zip(args)
	}
	if len(args) == 0 {
		return nil
	}
	n := count(args[0])
	if err := s.work(n); err != nil {
		return err
	}
	if err := s.elements(args[0], n); err != nil && name != "len" {
		return err
	}
	switch name {
	case "list", "tuple", "reversed", "bytes":
		return s.room(elementBytes * n)
	case "enumerate":
		return s.spend((headerBytes + 3*slotBytes) * n)
	case "sorted", "max", "min":
		nodes := int64(0)
		for _, a := range args {
			more, err := s.weighContainers(a)
			if err != nil {
				return err
			}
			nodes += more
		}
		if name == "sorted" {
			nodes *= int64(mathbits.Len64(uint64(n)))
		}
		if err := s.work(nodes); err != nil {
			return err
		}
		return s.room(elementBytes * n)
	case "set", "dict":
		if _, err := s.weighContainers(args[0]); err != nil {
			return err
		}
		return s.room(entryBytes * (n + int64(len(kwargs))))
	}
	return nil
}

// zip makes a list of as many tuples as the shortest argument has elements.
func (s *session) zip(args starlark.Tuple) error {
	rows := int64(0)
	for i, a := range args {
		if n := count(a); i == 0 || n < rows {
			rows = n
		}
	}
	if rows > int64(s.limits.sequenceSize) {
		return fmt.Errorf("zip() of %d elements is more than a model file may hold", rows)
	}
	for _, a := range args {
		if err := s.elements(a, rows); err != nil {
			return err
		}
	}
	return s.spend(rows * (headerBytes + slotBytes*int64(len(args)+1)))
}

// elements accounts for n elements that a value makes only when it is looped over.
func (s *session) elements(v starlark.Value, n int64) error {
	switch v.(type) {
	case *array:
		return s.spend(arrayBytes * n)
	case *starlark.List, starlark.Tuple, *starlark.Dict, *starlark.Set, starlark.String:
		return nil
	}
	if _, ok := v.(starlark.Iterable); ok {
		return s.spend(slotBytes * n)
	}
	return nil
}

// meteredMethod is v, and counts if it is a method of Starlark's own types.
func meteredMethod(v starlark.Value) starlark.Value {
	b, ok := v.(*starlark.Builtin)
	if !ok {
		return v
	}
	switch b.Receiver().(type) {
	case starlark.String, starlark.Bytes, *starlark.List, *starlark.Dict, *starlark.Set:
	default:
		return v
	}
	return starlark.NewBuiltin(b.Name(), func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		s := sessionOf(t)
		if err := s.beforeMethod(b, args, kwargs); err != nil {
			return nil, err
		}
		had := starlark.Len(b.Receiver())
		v, err := b.CallInternal(t, args, kwargs)
		if err != nil {
			return nil, err
		}
		return v, s.afterMethod(b, v, had)
	}).BindReceiver(b.Receiver())
}

func (s *session) beforeMethod(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) error {
	var first starlark.Value = starlark.None
	if len(args) > 0 {
		first = args[0]
	}
	switch receiver := b.Receiver().(type) {
	case starlark.String:
		return s.beforeStringMethod(string(receiver), b.Name(), args, kwargs)
	case *starlark.List:
		n := int64(receiver.Len())
		switch b.Name() {
		case "append":
			return s.spend(elementBytes)
		case "extend":
			return s.spend(elementBytes * count(first))
		case "index", "remove":
			return s.search(first, receiver.Len())
		case "insert":
			if err := s.spend(elementBytes); err != nil {
				return err
			}
		}
		return s.work(n / 16) // the elements behind move
	case *starlark.Dict:
		n := int64(receiver.Len())
		switch b.Name() {
		case "items":
			return s.room((headerBytes + 3*slotBytes) * n)
		case "update":
			return s.unite(append(args, asDict(kwargs))...)
		case "keys", "values":
			return s.room(elementBytes * n)
		case "clear":
			return s.work(n)
		}
		return s.key(first)
	case *starlark.Set:
		if err := s.work(int64(receiver.Len())); err != nil {
			return err
		}
		switch b.Name() {
		case "add", "discard", "remove", "pop", "clear":
			return s.key(first)
		}
		entries := int64(receiver.Len())
		for _, a := range args {
			if _, err := s.weighContainers(a); err != nil {
				return err
			}
			entries += count(a)
		}
		if err := s.work(entries); err != nil {
			return err
		}
		return s.room(entryBytes * entries)
	}
	return nil
}

func (s *session) beforeStringMethod(text, name string, args starlark.Tuple, kwargs []starlark.Tuple) error {
	if err := s.work(int64(len(text) / 16)); err != nil {
		return err
	}
	argument := func(i int) string {
		if i >= len(args) {
			return ""
		}
		v, _ := args[i].(starlark.String)
		return string(v)
	}
	switch name {
	case "replace":
		times := strings.Count(text, argument(0))
		if len(args) > 2 {
			if n, ok := asInt(args[2]); ok && n >= 0 {
				times = min(times, n)
			}
		}
		return s.text("replace()", int64(len(text))+int64(times)*int64(len(argument(1))))
	case "format":
		for _, kw := range kwargs {
			args = append(args, kw[1])
		}
		return s.format(starlark.String(text), args, "{")
	case "join":
		if len(args) == 0 {
			return nil
		}
		list, ok := args[0].(starlark.Iterable)
		if !ok {
			return nil
		}
		size := int64(0)
		for v := range starlark.Elements(list) {
			size += int64(len(text) + max(starlark.Len(v), 0))
			if size > int64(s.limits.sequenceSize) {
				break
			}
		}
		return s.text("join()", size)
	case "split", "rsplit", "splitlines":
		return s.room(elementBytes * int64(len(text)))
	case "startswith", "endswith":
		return s.work(count(args))
	}
	return s.room(4 * int64(len(text)))
}

// text bounds a string as checkResultSize does, which a method makes in one step.
func (s *session) text(what string, size int64) error {
	if size > int64(s.limits.sequenceSize) {
		return fmt.Errorf("%s makes a string of more than %d elements, which is larger than a model file may make", what, s.limits.sequenceSize)
	}
	return s.room(size)
}

// afterMethod accounts for what a method made; what it took out of a container was counted before.
func (s *session) afterMethod(b *starlark.Builtin, v starlark.Value, had int) error {
	switch receiver := b.Receiver().(type) {
	case starlark.String:
		if list, ok := v.(*starlark.List); ok { // of strings that share the receiver's bytes
			return s.spend(elementBytes * int64(list.Len()+1))
		}
		return s.made(v)
	case *starlark.Dict:
		switch b.Name() {
		case "items":
			return s.spend((headerBytes + 3*slotBytes) * int64(receiver.Len()+1))
		case "keys", "values":
			return s.made(v)
		}
		return s.spend(entryBytes * int64(max(receiver.Len()-had, 0)))
	case *starlark.Set:
		if made, ok := v.(*starlark.Set); ok {
			return s.made(made)
		}
		return s.spend(entryBytes * int64(max(receiver.Len()-had, 0)))
	}
	return nil
}

func asDict(kwargs []starlark.Tuple) starlark.Value {
	d := starlark.NewDict(len(kwargs))
	for _, kw := range kwargs {
		_ = d.SetKey(kw[0], kw[1]) // the names of arguments are strings
	}
	return d
}
