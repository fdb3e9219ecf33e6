package modelfile

import (
	"fmt"
	"strings"

	"go.starlark.net/syntax"
)

// Starlark has no classes. The rewriter turns `class X(A, B):` into `def X():` at the same place and keeps the bases;
// this pass makes of that function one that returns the class's members, and of the statement behind it the class:
//
//	def $class X(): …; return {"call": X.call, …}
//	X = $class("X", (A, B), $class X())
//
// Names that a class binds are renamed, because methods do not see them in Python.

// The names of the functions that classes need. As guards are, they are no identifiers.
const (
	sharedName = "$shared " // before a name that functions declare global
	sharedHome = "$module"  // has them

	classMake  = "$class"
	classSuper = "$super"
	valueCopy  = "$copy"
)

// classHead is what the rewriter keeps of a class statement.
type classHead struct {
	name  string
	bases []token // between the brackets
	line  int
}

// convertClasses turns the functions that stand for classes into classes. heads has them by the line of their name.
func convertClasses(f *syntax.File, heads map[int]classHead) error {
	var out []syntax.Stmt
	for _, s := range f.Stmts {
		def, ok := s.(*syntax.DefStmt)
		head, isClass := classHead{}, false
		if ok {
			head, isClass = heads[int(def.Name.NamePos.Line)]
		}
		if !isClass {
			out = append(out, s)
			continue
		}
		made, err := convertClass(def, head)
		if err != nil {
			return err
		}
		out = append(out, made...)
	}
	f.Stmts = out
	return nil
}

// classBody converts the statements of one class.
type classBody struct {
	class string
	names map[string]bool // that the class binds
	order []string
}

func (c *classBody) renamed(name string) string { return c.class + "." + name }

func (c *classBody) bind(name string) {
	if !c.names[name] {
		c.names[name] = true
		c.order = append(c.order, name)
	}
}

func convertClass(def *syntax.DefStmt, head classHead) ([]syntax.Stmt, error) {
	pos := def.Name.NamePos
	c := &classBody{class: head.name, names: map[string]bool{}}
	for _, s := range def.Body {
		if err := c.statement(s); err != nil {
			return nil, err
		}
	}
	members := &syntax.DictExpr{Lbrace: pos, Rbrace: pos}
	for _, name := range c.order {
		members.List = append(members.List, &syntax.DictEntry{Key: literal(name, pos), Colon: pos, Value: &syntax.Ident{Name: c.renamed(name), NamePos: pos}})
	}
	def.Body = append(def.Body, &syntax.ReturnStmt{Return: pos, Result: members})
	def.Name = &syntax.Ident{Name: classMake + " " + head.name, NamePos: pos}
	bases, err := head.parse()
	if err != nil {
		return nil, err
	}
	body := guardCall(def.Name.Name, pos)
	return []syntax.Stmt{def, &syntax.AssignStmt{
		OpPos: pos, Op: syntax.EQ, LHS: &syntax.Ident{Name: head.name, NamePos: pos},
		RHS: guardCall(classMake, pos, literal(head.name, pos), bases, body),
	}}, nil
}

// parse makes the tuple of a class's bases.
func (h classHead) parse() (syntax.Expr, error) {
	text := ""
	for _, t := range h.bases {
		text += t.text + " "
	}
	if !strings.HasSuffix(text, ", ") && text != "" {
		text += ","
	}
	x, err := (&syntax.FileOptions{}).ParseExpr("", "("+text+")", 0)
	if err != nil {
		return nil, &Error{Line: h.line, Msg: fmt.Sprintf("the bases of class %s (%s) are no list of names", h.name, strings.TrimSuffix(text, " ,"))}
	}
	place(x, h.line)
	return x, nil
}

// place gives the names of an expression the line where it stands.
func place(x syntax.Expr, line int) {
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Ident:
			n.NamePos.Line = int32(line)
		case *syntax.DotExpr:
			n.Dot.Line, n.NamePos.Line = int32(line), int32(line)
		}
		return true
	})
}

func (c *classBody) statement(s syntax.Stmt) error {
	switch s := s.(type) {
	case *syntax.DefStmt:
		c.supers(s)
		c.bind(s.Name.Name)
		s.Name = &syntax.Ident{Name: c.renamed(s.Name.Name), NamePos: s.Name.NamePos}
		for _, p := range s.Params { // defaults are of the class's scope
			if d, ok := p.(*syntax.BinaryExpr); ok {
				c.rename(d.Y)
			}
		}
		return nil
	case *syntax.AssignStmt:
		c.rename(s.RHS)
		if id, ok := s.LHS.(*syntax.Ident); ok && s.Op == syntax.EQ {
			c.bind(id.Name)
			id.Name = c.renamed(id.Name)
			return nil
		}
	case *syntax.ExprStmt:
		if _, ok := s.X.(*syntax.Literal); ok { // its documentation
			return nil
		}
	case *syntax.BranchStmt:
		if s.Token == syntax.PASS {
			return nil
		}
	}
	start, _ := s.Span()
	return &Error{Line: int(start.Line), Column: int(start.Col), Msg: fmt.Sprintf("in the body of class %s only methods and assignments to names are implemented; move the statement into __init__", c.class)}
}

// rename makes names of the class mean its own in an expression of its body. Functions in it see the module's.
func (c *classBody) rename(x syntax.Expr) {
	syntax.Walk(x, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.LambdaExpr:
			return false
		case *syntax.DotExpr:
			c.rename(n.X)
			return false
		case *syntax.BinaryExpr:
			if n.Op == syntax.EQ { // a keyword argument
				c.rename(n.Y)
				return false
			}
		case *syntax.Ident:
			if c.names[n.Name] {
				n.Name = c.renamed(n.Name)
			}
		}
		return true
	})
}

// supers completes `super()` in a method, and takes `super(X, self)` for what it is.
func (c *classBody) supers(def *syntax.DefStmt) {
	self := ""
	if len(def.Params) > 0 {
		if id, ok := def.Params[0].(*syntax.Ident); ok {
			self = id.Name
		}
	}
	syntax.Walk(def, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		if id, ok := call.Fn.(*syntax.Ident); ok && id.Name == "super" {
			id.Name = classSuper
			if len(call.Args) == 0 && self != "" {
				call.Args = []syntax.Expr{&syntax.Ident{Name: c.class, NamePos: id.NamePos}, &syntax.Ident{Name: self, NamePos: id.NamePos}}
			}
		}
		return true
	})
}

// markShared renames the names that functions declare global, where they stand; guardExpr makes attributes of them.
func markShared(f *syntax.File, at map[[2]int]bool) {
	if len(at) == 0 {
		return
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok && at[[2]int{int(id.NamePos.Line), int(id.NamePos.Col)}] {
			id.Name = sharedName + id.Name
		}
		return true
	})
}

// sharedAttribute is what a renamed name means.
func sharedAttribute(id *syntax.Ident) syntax.Expr {
	name, ok := strings.CutPrefix(id.Name, sharedName)
	if !ok {
		return id
	}
	return &syntax.DotExpr{
		X: &syntax.Ident{Name: sharedHome, NamePos: id.NamePos}, Dot: id.NamePos, NamePos: id.NamePos,
		Name: &syntax.Ident{Name: name, NamePos: id.NamePos},
	}
}
