package modelfile

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// The names of the meters. Like the guards', no program can mention them.
const (
	meterMade      = "$made"
	meterItem      = "$item"
	meterEntry     = "$entry"
	meterKey       = "$key"
	meterElement   = "$element"
	meterAttribute = "$attribute"
	meterMethod    = "$method"
	meterSpread    = "$spread"
	meterStore     = "$store"
	meterTarget    = "$target"
	meterDefined   = "$defined"
	meterRest      = "$rest"
)

// insertMeters puts a call that counts into every expression and statement that allocates by itself. It runs behind
// insertGuards, whose functions count what operators make; built-in functions and methods count for themselves.
func insertMeters(f *syntax.File) {
	f.Stmts = meterStmts(f.Stmts)
}

func meterStmts(stmts []syntax.Stmt) []syntax.Stmt {
	if stmts == nil { // an if without else, which the parser distinguishes from an empty one
		return nil
	}
	out := make([]syntax.Stmt, 0, len(stmts))
	for _, s := range stmts {
		if d, ok := s.(*syntax.DefStmt); ok {
			out = append(out, &syntax.ExprStmt{X: guardCall(meterDefined, d.Def)})
		}
		out = append(out, meterStmt(s))
	}
	return out
}

func meterStmt(s syntax.Stmt) syntax.Stmt {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		s.RHS = meterExpr(s.RHS)
		if x, ok := s.LHS.(*syntax.IndexExpr); ok && s.Op == syntax.EQ {
			return &syntax.ExprStmt{X: guardCall(meterStore, x.Lbrack, s.RHS, meterExpr(x.X), meterExpr(x.Y))}
		}
		s.LHS = meterTargets(s.LHS)
	case *syntax.DefStmt:
		meterParams(s.Params)
		s.Body = meterStmts(s.Body)
		if rest := restOf(s.Params); len(rest) > 0 {
			s.Body = slices.Insert(s.Body, 0, syntax.Stmt(&syntax.ExprStmt{X: guardCall(meterRest, s.Def, append([]syntax.Expr{literal("", s.Def)}, rest...)...)}))
		}
	case *syntax.ExprStmt:
		s.X = meterExpr(s.X)
	case *syntax.IfStmt:
		s.Cond = meterExpr(s.Cond)
		s.True, s.False = meterStmts(s.True), meterStmts(s.False)
	case *syntax.WhileStmt:
		s.Cond = meterExpr(s.Cond)
		s.Body = meterStmts(s.Body)
	case *syntax.ForStmt:
		s.Vars, s.X = meterTargets(s.Vars), meterExpr(s.X)
		s.Body = meterStmts(s.Body)
	case *syntax.ReturnStmt:
		if s.Result != nil {
			s.Result = meterExpr(s.Result)
		}
	}
	return s
}

// restOf are the names of a function's *args and **kwargs, which each call makes.
func restOf(params []syntax.Expr) []syntax.Expr {
	var rest []syntax.Expr
	for _, p := range params {
		if u, ok := p.(*syntax.UnaryExpr); ok && u.X != nil {
			id := u.X.(*syntax.Ident)
			rest = append(rest, &syntax.Ident{Name: id.Name, NamePos: id.NamePos})
		}
	}
	return rest
}

func meterParams(params []syntax.Expr) {
	for _, p := range params {
		if b, ok := p.(*syntax.BinaryExpr); ok {
			b.Y = meterExpr(b.Y)
		}
	}
}

// meterTargets is for what is assigned to: names stay, and the containers of elements are counted as if they grew.
func meterTargets(x syntax.Expr) syntax.Expr {
	switch x := x.(type) {
	case *syntax.ParenExpr:
		x.X = meterTargets(x.X)
	case *syntax.TupleExpr:
		for i := range x.List {
			x.List[i] = meterTargets(x.List[i])
		}
	case *syntax.ListExpr:
		for i := range x.List {
			x.List[i] = meterTargets(x.List[i])
		}
	case *syntax.IndexExpr:
		x.X, x.Y = guardCall(meterTarget, x.Lbrack, meterExpr(x.X)), meterKeyOf(x.Y)
	case *syntax.DotExpr:
		x.X = meterExpr(x.X)
	}
	return x
}

func meterExprs(list []syntax.Expr) {
	for i, x := range list {
		list[i] = meterExpr(x)
	}
}

func counted(name string, x syntax.Expr) syntax.Expr { return guardCall(name, syntax.Start(x), x) }

// meterKeyOf is a key or an index: tuples are hashed part by part.
func meterKeyOf(x syntax.Expr) syntax.Expr {
	if _, plain := x.(*syntax.Literal); plain {
		return x
	}
	return counted(meterKey, meterExpr(x))
}

func meterExpr(x syntax.Expr) syntax.Expr {
	switch x := x.(type) {
	case *syntax.ParenExpr:
		x.X = meterExpr(x.X)
	case *syntax.CallExpr:
		meterCall(x)
	case *syntax.DotExpr:
		x.X = meterExpr(x.X)
		return counted(meterAttribute, x)
	case *syntax.IndexExpr:
		x.X, x.Y = meterExpr(x.X), meterKeyOf(x.Y)
		return counted(meterElement, x)
	case *syntax.SliceExpr:
		x.X = meterExpr(x.X)
		for _, part := range []*syntax.Expr{&x.Lo, &x.Hi, &x.Step} {
			if *part != nil {
				*part = meterExpr(*part)
			}
		}
		return counted(meterMade, x)
	case *syntax.Comprehension:
		meterComprehension(x)
		return counted(meterMade, x)
	case *syntax.DictExpr:
		for _, e := range x.List {
			entry := e.(*syntax.DictEntry)
			entry.Key, entry.Value = meterKeyOf(entry.Key), meterExpr(entry.Value)
		}
		return counted(meterMade, x)
	case *syntax.LambdaExpr:
		meterParams(x.Params)
		x.Body = meterExpr(x.Body)
		if rest := restOf(x.Params); len(rest) > 0 {
			x.Body = guardCall(meterRest, x.Lambda, append([]syntax.Expr{x.Body}, rest...)...)
		}
		return counted(meterMade, x)
	case *syntax.ListExpr:
		meterExprs(x.List)
		return counted(meterMade, x)
	case *syntax.TupleExpr:
		meterExprs(x.List)
		return counted(meterMade, x)
	case *syntax.CondExpr:
		x.Cond, x.True, x.False = meterExpr(x.Cond), meterExpr(x.True), meterExpr(x.False)
	case *syntax.UnaryExpr:
		if x.X != nil {
			x.X = meterExpr(x.X)
		}
	case *syntax.BinaryExpr: // and, or
		x.X, x.Y = meterExpr(x.X), meterExpr(x.Y)
	}
	return x
}

// meterCall counts what is spread into arguments, and gives Starlark's own methods their meters.
func meterCall(x *syntax.CallExpr) {
	switch fn := x.Fn.(type) {
	case *syntax.DotExpr:
		fn.X = meterExpr(fn.X)
		if slices.Contains(methodNames, fn.Name.Name) {
			x.Fn = guardCall(meterMethod, fn.NamePos, fn)
		}
	case *syntax.Ident:
	default:
		x.Fn = meterExpr(fn)
	}
	for i, a := range x.Args {
		switch a := a.(type) {
		case *syntax.UnaryExpr: // operators are guards by now: this is *args or **kwargs
			if a.Op == syntax.NOT {
				x.Args[i] = meterExpr(a)
				continue
			}
			a.X = counted(meterSpread, meterExpr(a.X))
		case *syntax.BinaryExpr:
			if a.Op == syntax.EQ {
				a.Y = meterExpr(a.Y)
				continue
			}
			x.Args[i] = meterExpr(a)
		default:
			x.Args[i] = meterExpr(a)
		}
	}
}

func meterComprehension(x *syntax.Comprehension) {
	if entry, ok := x.Body.(*syntax.DictEntry); ok {
		entry.Key, entry.Value = counted(meterEntry, meterExpr(entry.Key)), meterExpr(entry.Value)
	} else {
		x.Body = counted(meterItem, meterExpr(x.Body))
	}
	for _, c := range x.Clauses {
		switch c := c.(type) {
		case *syntax.ForClause:
			c.Vars, c.X = meterTargets(c.Vars), meterExpr(c.X)
		case *syntax.IfClause:
			c.Cond = meterExpr(c.Cond)
		}
	}
}

// methodNames are the methods of Starlark's own types.
var methodNames = func() []string {
	var names []string
	for _, v := range []starlark.HasAttrs{starlark.String(""), starlark.Bytes(""), &starlark.List{}, &starlark.Dict{}, &starlark.Set{}} {
		names = append(names, v.AttrNames()...)
	}
	return names
}()

// meters are the functions that insertMeters calls.
func meters() starlark.StringDict {
	d := starlark.StringDict{}
	meter := func(name string, do func(s *session, args starlark.Tuple) (starlark.Value, error)) {
		d[name] = starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return do(sessionOf(t), args)
		})
	}
	count1 := func(name string, do func(s *session, v starlark.Value) error) {
		meter(name, func(s *session, args starlark.Tuple) (starlark.Value, error) { return args[0], do(s, args[0]) })
	}
	count1(meterMade, (*session).made)
	count1(meterItem, func(s *session, _ starlark.Value) error { return s.spend(headerBytes) })
	count1(meterKey, (*session).key)
	count1(meterEntry, func(s *session, v starlark.Value) error {
		if err := s.spend(entryBytes); err != nil {
			return err
		}
		return s.key(v)
	})
	count1(meterElement, func(s *session, v starlark.Value) error {
		switch v.(type) {
		case *array, unknown:
			return s.spend(arrayBytes)
		}
		return s.spend(slotBytes)
	})
	count1(meterTarget, func(s *session, v starlark.Value) error {
		if _, grows := v.(*starlark.Dict); grows {
			return s.spend(entryBytes)
		}
		return nil
	})
	count1(meterSpread, func(s *session, v starlark.Value) error {
		n := count(v)
		if _, pairs := v.(*starlark.Dict); pairs {
			n *= 4
		}
		return s.spend(elementBytes * n)
	})
	meter(meterAttribute, func(s *session, args starlark.Tuple) (starlark.Value, error) { return s.attribute(args[0]) })
	meter(meterMethod, func(_ *session, args starlark.Tuple) (starlark.Value, error) { return meteredMethod(args[0]), nil })
	meter(meterStore, func(s *session, args starlark.Tuple) (starlark.Value, error) {
		return starlark.None, s.store(args[1], args[2], args[0])
	})
	meter(meterDefined, func(s *session, _ starlark.Tuple) (starlark.Value, error) {
		return starlark.None, s.spend(functionBytes)
	})
	meter(meterRest, func(s *session, args starlark.Tuple) (starlark.Value, error) {
		for _, rest := range args[1:] {
			if err := s.made(rest); err != nil {
				return nil, err
			}
		}
		return args[0], nil
	})
	return d
}

// key weighs what is hashed; most keys are a word or a number.
func (s *session) key(v starlark.Value) error {
	switch v := v.(type) {
	case starlark.Tuple:
		_, err := s.weigh(false, v)
		return err
	case starlark.String:
		return s.work(int64(len(v) / 64))
	}
	return nil
}

// attribute is an attribute that is not called at once.
func (s *session) attribute(v starlark.Value) (starlark.Value, error) {
	bytes := int64(functionBytes)
	if u, ok := v.(unknown); ok {
		bytes = int64(lookupBytes + len(u.path))
	}
	return meteredMethod(v), s.spend(bytes)
}

// store is x[key] = v, as Starlark does it.
func (s *session) store(x, key, v starlark.Value) error {
	if err := s.key(key); err != nil {
		return err
	}
	switch x := x.(type) {
	case *starlark.Dict:
		had := x.Len()
		if err := s.room(entryBytes); err != nil {
			return err
		}
		if err := x.SetKey(key, v); err != nil {
			return err
		}
		return s.spend(entryBytes * int64(x.Len()-had))
	case starlark.HasSetKey:
		return x.SetKey(key, v)
	case starlark.HasSetIndex:
		n := x.Len()
		i, err := starlark.AsInt32(key)
		if err != nil {
			return err
		}
		at := i
		if at < 0 {
			at += n
		}
		if at < 0 || at >= n {
			return fmt.Errorf("%s index %d out of range [%d:%d]", x.Type(), i, -n, n-1)
		}
		return x.SetIndex(at, v)
	}
	return fmt.Errorf("%s value does not support item assignment", x.Type())
}
