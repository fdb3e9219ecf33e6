package modelfile

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

// builtinBase is a class of Python or Keras that files derive theirs from.
type builtinBase string

const (
	objectBase builtinBase = "object"
	enumBase   builtinBase = "Enum"
	layerBase  builtinBase = "tf.keras.layers.Layer"
	modelBase  builtinBase = "tf.keras.Model"
)

func (b builtinBase) String() string        { return string(b) }
func (b builtinBase) Type() string          { return "type" }
func (b builtinBase) Name() string          { return string(b) }
func (b builtinBase) Freeze()               {}
func (b builtinBase) Truth() starlark.Bool  { return true }
func (b builtinBase) Hash() (uint32, error) { return starlark.String(b).Hash() }

// CallInternal refuses an object of the class itself: it would do nothing.
func (b builtinBase) CallInternal(*starlark.Thread, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return nil, fmt.Errorf("%s() makes nothing that can be trained; derive a class from it", b)
}

// class is a class of the file.
type class struct {
	name    string
	base    *class      // nil where builtin is the base
	builtin builtinBase // at the end of the chain of bases
	members *starlark.Dict
}

func (c *class) String() string        { return "class " + c.name }
func (c *class) Type() string          { return "type" }
func (c *class) Name() string          { return c.name }
func (c *class) Freeze()               { c.members.Freeze() }
func (c *class) Truth() starlark.Bool  { return true }
func (c *class) Hash() (uint32, error) { return starlark.String(c.name).Hash() }

// find looks a member up in the class and then in its bases.
func (c *class) find(name string) (starlark.Value, bool) {
	for at := c; at != nil; at = at.base {
		if v, ok, _ := at.members.Get(starlark.String(name)); ok { //nolint:errcheck // a string can be looked up
			return v, true
		}
	}
	return nil, false
}

// Attr is a member as `X.name` gives it: a function is called with the object then.
func (c *class) Attr(name string) (starlark.Value, error) {
	if v, ok := c.find(name); ok {
		return v, nil
	}
	if name == "__name__" {
		return starlark.String(c.name), nil
	}
	return nil, fmt.Errorf("class %s has no %q", c.name, name)
}

// AttrNames lists the members.
func (c *class) AttrNames() []string {
	var names []string
	for at := c; at != nil; at = at.base {
		for _, k := range at.members.Keys() {
			names = append(names, string(k.(starlark.String)))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// CallInternal makes an object.
func (c *class) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if c.builtin == enumBase {
		return nil, fmt.Errorf("%s(…) is not implemented; name the member: %s.NAME", c.name, c.name)
	}
	if (c.builtin == layerBase || c.builtin == modelBase) && sessionOf(t).layers == nil {
		return nil, fmt.Errorf("%s is made outside of the model; layers are made at the top of the file or in custom_model()", c.name)
	}
	if err := sessionOf(t).spend(callBytes); err != nil {
		return nil, err
	}
	o := &object{class: c, fields: starlark.StringDict{}}
	if init, ok := c.find("__init__"); ok {
		_, err := starlark.Call(t, init, append(starlark.Tuple{o}, args...), kwargs)
		return o, err
	}
	_, err := o.builtinInit(t, args, kwargs)
	return o, err
}

// makeClass is `class name(bases): members`.
func makeClass(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	name, bases, members := string(args[0].(starlark.String)), args[1].(starlark.Tuple), args[2].(*starlark.Dict)
	c := &class{name: name, builtin: objectBase, members: members}
	if len(bases) > 1 {
		return nil, fmt.Errorf("class %s has %d bases; only one is implemented", name, len(bases))
	}
	for _, b := range bases {
		switch b := b.(type) {
		case *class:
			c.base, c.builtin = b, b.builtin
			continue
		case builtinBase:
			c.builtin = b
			continue
		case *starlark.Builtin:
			if b.Name() == "tf.keras.Model" || b.Name() == "tf.keras.models.Model" {
				c.builtin = modelBase
				continue
			}
		case unknown:
			if b.path != string(objectBase) {
				return nil, fmt.Errorf("class %s: its base %w", name, b.use())
			}
			continue
		}
		return nil, fmt.Errorf("class %s: the base %s is not implemented; tf.keras.Model, tf.keras.layers.Layer, object, Enum and classes of the file are", name, printed(b))
	}
	if c.builtin == enumBase {
		for _, item := range members.Items() {
			key := item[0].(starlark.String)
			if err := members.SetKey(key, &enumMember{c, string(key), item[1]}); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// enumMember is a member of an Enum: equal to itself alone.
type enumMember struct {
	class *class
	name  string
	value starlark.Value
}

func (m *enumMember) String() string        { return m.class.name + "." + m.name }
func (m *enumMember) Type() string          { return m.class.name }
func (m *enumMember) Freeze()               { m.value.Freeze() }
func (m *enumMember) Truth() starlark.Bool  { return true }
func (m *enumMember) Hash() (uint32, error) { return starlark.String(m.String()).Hash() }
func (m *enumMember) AttrNames() []string   { return []string{"name", "value"} }

// Attr offers name and value.
func (m *enumMember) Attr(name string) (starlark.Value, error) {
	switch name {
	case "name":
		return starlark.String(m.name), nil
	case "value":
		return m.value, nil
	}
	return nil, noAttribute(m, name)
}

// object is an object of a class of the file.
type object struct {
	class  *class
	fields starlark.StringDict
	frozen bool
}

func (o *object) String() string        { return o.class.name + " object" }
func (o *object) Type() string          { return o.class.name }
func (o *object) Truth() starlark.Bool  { return true }
func (o *object) Hash() (uint32, error) { return 0, errors.New("an object cannot be a key") }
func (o *object) Name() string          { return o.class.name }

// Freeze makes the object unchangeable, and what it holds.
func (o *object) Freeze() {
	if !o.frozen {
		o.frozen = true
		o.fields.Freeze()
	}
}

// Attr is a field, or a member of the class: a function as a method.
func (o *object) Attr(name string) (starlark.Value, error) {
	if v, ok := o.fields[name]; ok {
		return v, nil
	}
	if v, ok := o.class.find(name); ok {
		return o.bind(v), nil
	}
	if v, err := o.builtinAttr(name); v != nil || err != nil {
		return v, err
	}
	return nil, fmt.Errorf("%s has no attribute %q", o, name)
}

// bind makes a method of a function of the class.
func (o *object) bind(v starlark.Value) starlark.Value {
	if f, ok := v.(*starlark.Function); ok {
		return boundMethod{o, f}
	}
	return v
}

// AttrNames lists fields and members.
func (o *object) AttrNames() []string {
	names := append(o.fields.Keys(), o.class.AttrNames()...)
	slices.Sort(names)
	return slices.Compact(names)
}

// SetField is `self.name = value`.
func (o *object) SetField(name string, v starlark.Value) error {
	if o.frozen {
		return fmt.Errorf("cannot set %q of a frozen object", name)
	}
	o.fields[name] = v
	return nil
}

// boundMethod is a function of a class with its object.
type boundMethod struct {
	self *object
	f    *starlark.Function
}

func (m boundMethod) String() string        { return "method " + m.f.Name() }
func (m boundMethod) Type() string          { return "method" }
func (m boundMethod) Name() string          { return m.f.Name() }
func (m boundMethod) Freeze()               { m.self.Freeze() }
func (m boundMethod) Truth() starlark.Bool  { return true }
func (m boundMethod) Hash() (uint32, error) { return 0, errors.New("a method cannot be a key") }

// CallInternal calls the function with the object in front.
func (m boundMethod) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return starlark.Call(t, m.f, append(starlark.Tuple{m.self}, args...), kwargs)
}

// parent is super(): the members of an object that its class's bases have.
type parent struct {
	self  *object
	class *class // whose bases are meant
}

func (p parent) String() string        { return "super of " + p.class.name }
func (p parent) Type() string          { return "super" }
func (p parent) Freeze()               { p.self.Freeze() }
func (p parent) Truth() starlark.Bool  { return true }
func (p parent) Hash() (uint32, error) { return 0, errors.New("super() cannot be a key") }
func (p parent) AttrNames() []string   { return nil }

// Attr is the base's member, as a method of the object.
func (p parent) Attr(name string) (starlark.Value, error) {
	if p.class.base != nil {
		if v, ok := p.class.base.find(name); ok {
			return p.self.bind(v), nil
		}
	}
	if name == "__init__" {
		return starlark.NewBuiltin(p.class.name+".__init__", func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return p.self.builtinInit(t, args, kwargs)
		}), nil
	}
	if v, err := p.self.builtinAttr(name); v != nil || err != nil {
		return v, err
	}
	return nil, fmt.Errorf("the base of class %s has no %q here", p.class.name, name)
}

// makeSuper is super(class, object).
func makeSuper(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 2 && len(kwargs) == 0 {
		c, isClass := args[0].(*class)
		o, isObject := args[1].(*object)
		if isClass && isObject {
			return parent{o, c}, nil
		}
	}
	return nil, errors.New("super() is implemented in methods, as super() or super(Class, self)")
}

// copyValue is x.copy(), which Starlark's dicts and lists do not have.
func copyValue(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if err := sessionOf(t).made(args[0]); err != nil { // the copy is as large
		return nil, err
	}
	switch v := args[0].(type) {
	case *starlark.Dict:
		out := starlark.NewDict(v.Len())
		for _, item := range v.Items() {
			if err := out.SetKey(item[0], item[1]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *starlark.List:
		return starlark.NewList(slices.Collect(v.Elements())), nil
	}
	h, ok := args[0].(starlark.HasAttrs)
	if !ok {
		return nil, fmt.Errorf("%s has no method copy", printed(args[0]))
	}
	f, err := h.Attr("copy")
	if err == nil && f == nil {
		err = fmt.Errorf("%s has no method copy", printed(args[0]))
	}
	if err != nil {
		return nil, err
	}
	return starlark.Call(t, f, nil, nil)
}
