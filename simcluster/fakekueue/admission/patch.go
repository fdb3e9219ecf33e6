package admission

import "slices"

// An Operation is one step of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// A Patch changes an object that is about to be created.
type Patch []Operation

// set appends the step that gives a member of an existing object its value, whether it has one or not: RFC 6902's "add"
// replaces.
func (p *Patch) set(path string, value any) {
	*p = append(*p, Operation{Op: "add", Path: path, Value: value})
}

// withFinalizer is the patch that adds a finalizer where it is missing.
func withFinalizer(finalizers []string, name string) Patch {
	var patch Patch
	if !slices.Contains(finalizers, name) {
		patch.set("/metadata/finalizers", append(slices.Clip(finalizers), name))
	}
	return patch
}
