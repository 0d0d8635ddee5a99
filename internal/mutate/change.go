package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// span is a range of bytes of a file.
type span struct{ from, to int }

func (s span) in(src []byte) string { return string(src[s.from:s.to]) }

func (s span) contains(t span) bool { return s.from <= t.from && t.to <= s.to }

// change is one change of one file. The changed code stands beside the old code
// and takes effect when the program runs with the change's number.
type change struct {
	number    int
	dir, file string // dir relative to the module's root, file with it
	line      int
	span
	x, y     span // the operands; set if render takes them
	old, new string
	within   string // the line on which it begins, whole
	what     string
	function string
	render   func(on, self, x, y string) string // the code with the change; on is true if it takes effect
}

func (c *change) String() string {
	return fmt.Sprintf("%s:%d %s: %s: %s -> %s", c.file, c.line, c.function, c.what, oneLine(c.old), oneLine(c.new))
}

// key names a change in equivalent.txt. It has the text of the line and not its
// number, since lines move.
func (c *change) key() string {
	return strings.Join([]string{c.file, c.function, oneLine(c.within), oneLine(c.old), oneLine(c.new)}, " | ")
}

// isAt reports whether the change is at one of the places FILE, FILE:LINE and
// FILE:FUNCTION.
func (c *change) isAt(places []string) bool {
	for _, place := range places {
		file, in, narrow := strings.Cut(place, ":")
		if file == c.file && (!narrow || in == strconv.Itoa(c.line) || in == c.function) {
			return true
		}
	}
	return false
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
//	FILE | FUNCTION | LINE | OLD | NEW | reason
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
		if at < 0 || strings.Count(line, " | ") < 5 {
			return nil, fmt.Errorf("%s: not FILE | FUNCTION | LINE | OLD | NEW | reason: %s", name, line)
		}
		all[line[:at]] = line[at+3:]
	}
	return all, nil
}

// source is a package whose code is changed.
type source struct {
	dir     string            // relative to the module's root
	name    string            // of the package
	files   map[string][]byte // by path
	changes []*change
}

// load reads and checks a package and finds its changes. exports has the files
// of export data of the packages that it imports.
func load(dir string, names []string, exports map[string]string) (*source, error) {
	set := token.NewFileSet()
	s := &source{dir: dir, files: map[string][]byte{}}
	var files []*ast.File
	var paths []string
	for _, name := range names {
		path := filepath.ToSlash(filepath.Join(dir, name))
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(set, path, src, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		s.name, s.files[path] = file.Name.Name, src
		files, paths = append(files, file), append(paths, path)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	conf := types.Config{Importer: importer.ForCompiler(set, "gc", lookup)}
	pkg, err := conf.Check(dir, set, files, info)
	if err != nil {
		return nil, err
	}
	for i, file := range files {
		if ast.IsGenerated(file) || strings.HasSuffix(paths[i], "_gen.go") {
			continue
		}
		f := &finder{set: set, src: s.files[paths[i]], dir: dir, file: paths[i], info: info, pkg: pkg, imports: importsOf(file), skip: map[ast.Node]bool{}, within: map[*ast.BasicLit]types.Type{}}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				f.function = nameOf(fn)
				ast.Inspect(fn.Body, f.visit)
			}
		}
		s.changes = append(s.changes, f.found...)
	}
	return s, nil
}

// importsOf returns the names under which a file imports packages, by path.
func importsOf(file *ast.File) map[string]string {
	all := map[string]string{}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		switch {
		case err != nil:
		case spec.Name != nil:
			all[path] = spec.Name.Name
		default:
			all[path] = path[strings.LastIndex(path, "/")+1:]
		}
	}
	return all
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
	info      *types.Info
	pkg       *types.Package
	imports   map[string]string
	function  string
	skip      map[ast.Node]bool            // nodes without a change
	within    map[*ast.BasicLit]types.Type // of the constants that have numbers
	found     []*change
}

func (f *finder) span(n ast.Node) span {
	return span{f.set.Position(n.Pos()).Offset, f.set.Position(n.End()).Offset}
}

func (f *finder) text(n ast.Node) string { return f.span(n).in(f.src) }

func (f *finder) add(n ast.Node, what, replacement string, render func(on, self, x, y string) string) *change {
	at := f.span(n).from
	begin := bytes.LastIndexByte(f.src[:at], '\n') + 1
	line, _, _ := bytes.Cut(f.src[begin:], []byte("\n"))
	c := &change{
		within: string(line), dir: f.dir, file: f.file, line: f.set.Position(n.Pos()).Line, span: f.span(n),
		old: f.text(n), new: replacement, what: what, function: f.function, render: render,
	}
	f.found = append(f.found, c)
	return c
}

// near are the comparisons that are off by one.
var near = map[string]string{"<": "<=", "<=": "<", ">": ">=", ">=": ">"}

func (f *finder) visit(n ast.Node) bool {
	if n == nil || f.skip[n] {
		return n != nil
	}
	switch n := n.(type) {
	case *ast.IfStmt:
		f.skip[n.Init] = true
		f.condition(n.Cond)
	case *ast.ForStmt:
		// A loop without its step ends at the time limit: that says nothing.
		f.skip[n.Init], f.skip[n.Post] = true, true
		if n.Cond != nil {
			f.condition(n.Cond)
		}
	case *ast.SwitchStmt:
		f.skip[n.Init] = true
	case *ast.TypeSwitchStmt:
		f.skip[n.Init], f.skip[n.Assign] = true, true
	case *ast.CommClause:
		f.skip[n.Comm] = true
	case *ast.CallExpr:
		// A capacity alters no behaviour.
		if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "make" && len(n.Args) == 3 {
			ast.Inspect(n.Args[2], func(n ast.Node) bool { f.skip[n] = true; return true })
		}
	case *ast.CaseClause:
		for _, e := range n.List {
			if b, ok := e.(*ast.BinaryExpr); ok {
				f.negate(b, "negated case")
			}
		}
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.BasicLit:
		f.number(n)
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt:
		f.drop(n)
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			f.drop(n)
		}
	case *ast.BranchStmt:
		if n.Label == nil && n.Tok == token.CONTINUE {
			f.drop(n)
		}
	}
	return true
}

func (f *finder) drop(n ast.Node) {
	f.add(n, "dropped statement", "", func(on, self, _, _ string) string { return "if !" + on + " { " + self + " }" })
}

func (f *finder) condition(e ast.Expr) {
	if text := f.text(e); text == "err != nil" {
		f.add(e, "dropped error check", "false && err != nil", func(on, self, _, _ string) string { return "!" + on + " && (" + self + ")" })
	} else {
		f.negate(e, "negated condition")
	}
}

func (f *finder) negate(e ast.Expr, what string) {
	f.add(e, what, "!("+f.text(e)+")", func(on, self, _, _ string) string { return "(" + self + ") != " + on })
}

func (f *finder) number(n *ast.BasicLit) {
	v, err := strconv.ParseInt(n.Value, 0, 64)
	if n.Kind != token.INT || err != nil {
		return
	}
	name, ok := "int", true
	for _, t := range []types.Type{f.within[n], f.info.Types[n].Type} {
		if t != nil && !isUntyped(t) {
			name = types.TypeString(t, func(p *types.Package) string {
				if p == f.pkg {
					return ""
				}
				name, imported := f.imports[p.Path()]
				ok = ok && imported
				return name
			})
		}
	}
	if !ok {
		return
	}
	f.add(n, "off by one", strconv.FormatInt(v+1, 10), func(on, self, _, _ string) string {
		return "mutantNumber[" + name + "](" + on + ", " + self + ")"
	})
}

func isUntyped(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Info()&types.IsUntyped != 0
}

func (f *finder) binary(n *ast.BinaryExpr) {
	// The numbers of a constant have no type of their own.
	if tv := f.info.Types[n]; tv.Value != nil && !isUntyped(tv.Type) {
		ast.Inspect(n, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok {
				f.within[lit] = tv.Type
			}
			return true
		})
	}
	x, y, op := f.text(n.X), f.text(n.Y), n.Op.String()
	// either chooses between two conditions.
	either := func(what, with, changed string) {
		c := f.add(n, what, changed, func(on, self, x, y string) string {
			return "(" + on + " && ((" + x + ") " + with + " (" + y + ")) || !" + on + " && ((" + x + ") " + op + " (" + y + ")))"
		})
		c.x, c.y = f.span(n.X), f.span(n.Y)
	}
	switch op {
	case "<", "<=", ">", ">=":
		either("off by one", near[op], x+" "+near[op]+" "+y)
	case "&&":
		either("or for and", "||", "("+x+") || ("+y+")")
	case "||":
		either("and for or", "&&", "("+x+") && ("+y+")")
	case "-", "/", "%", "<<", ">>":
		if tv := f.info.Types[n]; tv.Value != nil {
			return // a constant
		}
		call := map[string]string{"-": "mutantSub", "/": "mutantDiv", "%": "mutantMod", "<<": "mutantShl", ">>": "mutantShr"}[op]
		c := f.add(n, "swapped operands", "("+y+") "+op+" ("+x+")", func(on, self, x, y string) string {
			return call + "(" + on + ", " + x + ", " + y + ")"
		})
		c.x, c.y = f.span(n.X), f.span(n.Y)
	}
}
