package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// change is one change of one file: bytes from up to to are replaced.
type change struct {
	dir, file string // dir relative to the module's root, file with it
	line      int
	from, to  int
	old, new  string
	what      string
	function  string
}

func (c change) String() string {
	return fmt.Sprintf("%s:%d %s: %s: %s -> %s", c.file, c.line, c.function, c.what, oneLine(c.old), oneLine(c.new))
}

// key names a change in equivalent.txt. It has no line number, since lines move.
func (c change) key() string {
	return strings.Join([]string{c.file, c.function, oneLine(c.old), oneLine(c.new)}, " | ")
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 100 {
		s = s[:97] + "..."
	}
	if s == "" {
		return "(nothing)"
	}
	return s
}

// readEquivalent reads lines of the form
//
//	FILE | FUNCTION | OLD | NEW | reason
func readEquivalent(name string) (map[string]string, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, " | ")
		if at < 0 || strings.Count(line, " | ") < 4 {
			return nil, fmt.Errorf("%s: not FILE | FUNCTION | OLD | NEW | reason: %s", name, line)
		}
		all[line[:at]] = line[at+3:]
	}
	return all, nil
}

// sitesOf returns all changes that can be made to the files of a folder that
// are neither tests nor generated.
func sitesOf(dir string) ([]change, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []change
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_gen.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, src, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if ast.IsGenerated(file) {
			continue
		}
		f := &finder{set: set, src: src, dir: dir, file: filepath.ToSlash(name)}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				f.function = nameOf(fn)
				ast.Inspect(fn.Body, f.visit)
			}
		}
		all = append(all, f.found...)
	}
	return all, nil
}

func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	if x, ok := t.(*ast.IndexExpr); ok {
		t = x.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// finder gathers the changes of one file.
type finder struct {
	set       *token.FileSet
	src       []byte
	dir, file string
	function  string
	found     []change
}

func (f *finder) text(n ast.Node) string {
	return string(f.src[f.set.Position(n.Pos()).Offset:f.set.Position(n.End()).Offset])
}

func (f *finder) add(n ast.Node, what, replacement string) {
	from, to := f.set.Position(n.Pos()), f.set.Position(n.End())
	f.found = append(f.found, change{
		dir: f.dir, file: f.file, line: from.Line, from: from.Offset, to: to.Offset,
		old: f.text(n), new: replacement, what: what, function: f.function,
	})
}

// near are the comparisons that are off by one.
var near = map[string]string{"<": "<=", "<=": "<", ">": ">=", ">=": ">"}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.condition(n.Cond)
		}
	case *ast.CaseClause:
		for _, e := range n.List {
			if b, ok := e.(*ast.BinaryExpr); ok {
				f.add(b, "negated case", "!("+f.text(b)+")")
			}
		}
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.BasicLit:
		if n.Kind == token.INT {
			if v, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
				f.add(n, "off by one", strconv.FormatInt(v+1, 10))
			}
		}
	case *ast.ExprStmt:
		f.add(n, "dropped statement", "")
	case *ast.IncDecStmt:
		f.add(n, "dropped statement", "")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			f.add(n, "dropped statement", "")
		}
	case *ast.BranchStmt:
		if n.Label == nil && n.Tok == token.CONTINUE {
			f.add(n, "dropped statement", "")
		}
	case *ast.DeferStmt:
		f.add(n, "dropped statement", "")
	}
	return true
}

func (f *finder) condition(e ast.Expr) {
	if text := f.text(e); text == "err != nil" {
		f.add(e, "dropped error check", "false && err != nil")
	} else {
		f.add(e, "negated condition", "!("+text+")")
	}
}

func (f *finder) binary(n *ast.BinaryExpr) {
	x, y := f.text(n.X), f.text(n.Y)
	switch op := n.Op.String(); op {
	case "<", "<=", ">", ">=":
		f.add(n, "off by one", x+" "+near[op]+" "+y)
	case "&&":
		f.add(n, "or for and", "("+x+") || ("+y+")")
	case "||":
		f.add(n, "and for or", "("+x+") && ("+y+")")
	case "-", "/", "%", "<<", ">>":
		f.add(n, "swapped operands", "("+y+") "+op+" ("+x+")")
	}
}
