package modelfile

import "go.starlark.net/syntax"

// The names of the guards. No program can mention or rebind them: they are no identifiers.
const (
	guardTruth   = "$truth"
	guardCompare = "$compare"
	guardBinary  = "$binary"
	guardUnary   = "$unary"
	guardInPlace = "$inplace"
	guardIterate = "$iterate"
	guardRaise   = "$raise"
	guardFailed  = "$failed"
)

// insertGuards replaces what Starlark would decide by itself, silently and other than Python, with calls that may
// refuse: truth values, comparisons (a traced value never equals a number), loops, operators, assignments in place.
func insertGuards(f *syntax.File) {
	guardStmts(f.Stmts)
}

func guardCall(name string, pos syntax.Position, args ...syntax.Expr) syntax.Expr {
	return &syntax.CallExpr{Fn: &syntax.Ident{Name: name, NamePos: pos}, Lparen: pos, Args: args, Rparen: pos}
}

func literal(text string, pos syntax.Position) syntax.Expr {
	return &syntax.Literal{Token: syntax.STRING, TokenPos: pos, Raw: `"` + text + `"`, Value: text}
}

func guardTruthOf(x syntax.Expr) syntax.Expr {
	return guardCall(guardTruth, syntax.Start(x), guardExpr(x))
}

func guardStmts(stmts []syntax.Stmt) {
	for i, s := range stmts {
		stmts[i] = guardStmt(s)
	}
}

func guardStmt(s syntax.Stmt) syntax.Stmt {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		return guardAssign(s)
	case *syntax.DefStmt:
		guardExprs(s.Params)
		guardStmts(s.Body)
	case *syntax.ExprStmt:
		s.X = guardExpr(s.X)
	case *syntax.IfStmt:
		s.Cond = guardTruthOf(s.Cond)
		guardStmts(s.True)
		guardStmts(s.False)
	case *syntax.WhileStmt:
		s.Cond = guardTruthOf(s.Cond)
		guardStmts(s.Body)
	case *syntax.ForStmt:
		s.X = guardCall(guardIterate, syntax.Start(s.X), guardExpr(s.X))
		guardStmts(s.Body)
	case *syntax.ReturnStmt:
		if s.Result != nil {
			s.Result = guardExpr(s.Result)
		}
	}
	return s
}

func guardAssign(s *syntax.AssignStmt) syntax.Stmt {
	if id, ok := s.LHS.(*syntax.Ident); ok && s.Op == syntax.EQ {
		switch id.Name {
		case raiseMarker:
			return &syntax.ExprStmt{X: guardCall(guardRaise, id.NamePos, guardExpr(s.RHS))}
		case assertMarker:
			return guardAssert(id.NamePos, s.RHS)
		}
	}
	s.LHS = guardExpr(s.LHS)
	s.RHS = guardExpr(s.RHS)
	if s.Op != syntax.EQ {
		s.RHS = guardCall(guardInPlace, s.OpPos, s.RHS)
	}
	return s
}

// guardAssert turns `assert cond, message` into an if, so that the message is evaluated only when it is needed.
func guardAssert(pos syntax.Position, x syntax.Expr) syntax.Stmt {
	message := literal("", pos)
	if t, ok := x.(*syntax.TupleExpr); ok && !t.Lparen.IsValid() && len(t.List) == 2 {
		x, message = t.List[0], t.List[1]
	}
	return &syntax.IfStmt{
		If:      pos,
		Cond:    guardTruthOf(x),
		True:    []syntax.Stmt{&syntax.BranchStmt{Token: syntax.PASS, TokenPos: pos}},
		ElsePos: pos,
		False:   []syntax.Stmt{&syntax.ExprStmt{X: guardCall(guardFailed, pos, guardExpr(message))}},
	}
}

func guardExprs(list []syntax.Expr) {
	for i, x := range list {
		list[i] = guardExpr(x)
	}
}

func guardExpr(x syntax.Expr) syntax.Expr {
	switch x := x.(type) {
	case *syntax.Ident:
		return sharedAttribute(x)
	case *syntax.ParenExpr:
		x.X = guardExpr(x.X)
	case *syntax.CallExpr:
		if dot, ok := x.Fn.(*syntax.DotExpr); ok && dot.Name.Name == "copy" && len(x.Args) == 0 {
			return guardCall(valueCopy, dot.NamePos, guardExpr(dot.X))
		}
		x.Fn = guardExpr(x.Fn)
		guardExprs(x.Args)
	case *syntax.DotExpr:
		x.X = guardExpr(x.X)
	case *syntax.IndexExpr:
		x.X = guardExpr(x.X)
		x.Y = guardExpr(x.Y)
	case *syntax.SliceExpr:
		x.X = guardExpr(x.X)
		for _, part := range []*syntax.Expr{&x.Lo, &x.Hi, &x.Step} {
			if *part != nil {
				*part = guardExpr(*part)
			}
		}
	case *syntax.Comprehension:
		guardComprehension(x)
	case *syntax.DictExpr:
		guardExprs(x.List)
	case *syntax.DictEntry:
		x.Key = guardExpr(x.Key)
		x.Value = guardExpr(x.Value)
	case *syntax.LambdaExpr:
		guardExprs(x.Params)
		x.Body = guardExpr(x.Body)
	case *syntax.ListExpr:
		guardExprs(x.List)
	case *syntax.TupleExpr:
		guardExprs(x.List)
	case *syntax.CondExpr:
		x.Cond = guardTruthOf(x.Cond)
		x.True = guardExpr(x.True)
		x.False = guardExpr(x.False)
	case *syntax.UnaryExpr:
		return guardUnaryExpr(x)
	case *syntax.BinaryExpr:
		return guardBinaryExpr(x)
	}
	return x
}

func guardComprehension(x *syntax.Comprehension) {
	x.Body = guardExpr(x.Body)
	for _, c := range x.Clauses {
		switch c := c.(type) {
		case *syntax.ForClause:
			c.X = guardCall(guardIterate, syntax.Start(c.X), guardExpr(c.X))
		case *syntax.IfClause:
			c.Cond = guardTruthOf(c.Cond)
		}
	}
}

func guardUnaryExpr(x *syntax.UnaryExpr) syntax.Expr {
	switch {
	case x.X == nil: // the bare * of a parameter list
		return x
	case x.Op == syntax.NOT:
		x.X = guardTruthOf(x.X)
		return x
	case x.Op == syntax.STAR || x.Op == syntax.STARSTAR: // *args and **kwargs
		x.X = guardExpr(x.X)
		return x
	}
	return guardCall(guardUnary, x.OpPos, literal(x.Op.String(), x.OpPos), guardExpr(x.X))
}

func guardBinaryExpr(x *syntax.BinaryExpr) syntax.Expr {
	switch x.Op {
	case syntax.EQ: // a keyword argument or a parameter's default
		x.Y = guardExpr(x.Y)
		return x
	case syntax.AND, syntax.OR:
		x.X = guardTruthOf(x.X)
		x.Y = guardExpr(x.Y)
		return x
	case syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE, syntax.IN, syntax.NOT_IN:
		return guardCall(guardCompare, x.OpPos, literal(x.Op.String(), x.OpPos), guardExpr(x.X), guardExpr(x.Y))
	}
	return guardCall(guardBinary, x.OpPos, literal(x.Op.String(), x.OpPos), guardExpr(x.X), guardExpr(x.Y))
}
