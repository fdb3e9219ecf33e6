package truth

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Minimal is the outcome of the smallest situation found that is still forecast wrongly, each time that it is played.
func Minimal(ctx context.Context, stage *Stage, outcome Outcome) Outcome {
	refused := outcome.Happened.Refused != ""
	Shrink(ctx, outcome.Situation, func(s *Situation) bool {
		var again Outcome
		for range 2 { // so that it is no chance
			var err error
			again, err = stage.Play(ctx, s)
			if err != nil || again.Verdict != Wrong || again.Happened.Refused != "" && !refused {
				return false
			}
		}
		outcome = again
		return true
	})
	return outcome
}

// Shrink removes the parts of a situation that a predicate does not need, until ctx ends: objects first, then numbers
// and fields. It returns the smallest situation found, which may be the given one.
func Shrink(ctx context.Context, s *Situation, holds func(*Situation) bool) *Situation {
	for {
		smaller := false
		for _, cut := range cuts(s) {
			if ctx.Err() != nil {
				return s
			}
			part := s.Clone()
			if cut(part); len(part.Job) == 0 || same(part, s) { // an earlier cut has done it
				continue
			}
			if holds(part) {
				s, smaller = part, true
			}
		}
		if !smaller {
			return s
		}
	}
}

func same(a, b *Situation) bool {
	setupA, jobA := a.Texts()
	setupB, jobB := b.Texts()
	return setupA == setupB && jobA == jobB
}

// cuts are ways to make a situation smaller, those that take much away first. They do nothing where there is nothing
// left to do.
func cuts(s *Situation) []func(*Situation) {
	var all []func(*Situation)
	if len(s.Setup) > 1 {
		all = append(all, func(s *Situation) { s.Setup = [][]*unstructured.Unstructured{slices.Concat(s.Setup...)} })
	}
	names := map[string]bool{}
	for _, object := range s.objects() {
		name := nameOf(object)
		names[name] = true
		all = append(all, func(s *Situation) { s.without(name) })
	}
	for _, object := range s.objects() {
		name := nameOf(object)
		for _, path := range paths(object.Object, nil) {
			all = append(all, func(s *Situation) {
				for _, object := range s.objects() {
					if nameOf(object) == name {
						cutAt(object.Object, path)
					}
				}
			})
		}
	}
	return all
}

func nameOf(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

// objects are all objects, those of the setup first.
func (s *Situation) objects() []*unstructured.Unstructured {
	return append(slices.Concat(s.Setup...), s.Job...)
}

// without takes an object away.
func (s *Situation) without(name string) {
	is := func(object *unstructured.Unstructured) bool { return nameOf(object) == name }
	for i := range s.Setup {
		s.Setup[i] = slices.DeleteFunc(s.Setup[i], is)
	}
	s.Setup = slices.DeleteFunc(s.Setup, func(part []*unstructured.Unstructured) bool { return len(part) == 0 })
	s.Job = slices.DeleteFunc(s.Job, is)
}

// needed are fields without which an object is none, or another one.
var needed = []string{
	".apiVersion", ".kind", ".metadata", ".metadata.name", ".spec", ".spec.template", ".spec.template.spec", ".spec.selector",
	".spec.template.metadata.labels.app", ".spec.terminationGracePeriodSeconds", ".spec.template.spec.terminationGracePeriodSeconds",
}

// paths are the fields of a value that may be taken away or lowered, the outer ones first.
func paths(value any, at []string) [][]string {
	var all [][]string
	switch value := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(value))
		for key := range value {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			path := append(slices.Clip(at), key)
			field := "." + strings.Join(path, ".")
			if !slices.Contains(needed, field) && !inContainer(field) {
				all = append(all, path)
			}
			all = append(all, paths(value[key], path)...)
		}
	case []any:
		for i := len(value) - 1; i >= 0; i-- { // the first container is the one that matters
			path := append(slices.Clip(at), fmt.Sprint(i))
			if len(value) > 1 && !inContainer("."+strings.Join(path, ".")) {
				all = append(all, path)
			}
			all = append(all, paths(value[i], path)...)
		}
	}
	return all
}

// inContainer reports whether every container has a field.
func inContainer(field string) bool {
	parts := strings.Split(field, ".")
	n := len(parts)
	return n > 2 && strings.HasSuffix(strings.ToLower(parts[n-3]), "containers") && slices.Contains([]string{"name", "image", "command"}, parts[n-1]) ||
		n > 3 && strings.HasSuffix(strings.ToLower(parts[n-4]), "containers") && parts[n-2] == "command" ||
		parts[n-1] == "containers"
}

// cutAt takes the field at a path away, or makes a number there smaller.
func cutAt(value any, path []string) {
	last := len(path) - 1
	for depth, key := range path {
		switch in := value.(type) {
		case map[string]any:
			next, there := in[key]
			if !there {
				return
			}
			if depth < last {
				// Slices are cut in what holds them.
				if list, ok := next.([]any); ok && depth == last-1 {
					var at int
					if _, err := fmt.Sscan(path[last], &at); err == nil && at < len(list) && len(list) > 1 {
						in[key] = slices.Delete(slices.Clone(list), at, at+1)
					}
					return
				}
				value = next
				continue
			}
			if number, ok := next.(int64); ok && number > 1 {
				in[key] = number - 1
				return
			}
			delete(in, key)
		case []any:
			var at int
			if _, err := fmt.Sscan(key, &at); err != nil || at >= len(in) {
				return
			}
			value = in[at]
		default:
			return
		}
	}
}
