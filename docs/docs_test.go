// Package docs_test holds the pages about the whole house to the code: what they
// name exists, and what is drawn from the list of packages is current.
package docs_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/layers"
	"github.com/sajou-dev/sajou-go/redact"
	"github.com/sajou-dev/sajou-go/session"
)

var update = flag.Bool("update", false, "draw architecture.svg again")

// The drawing of the import graph is that of the list.
func TestImportGraphIsCurrent(t *testing.T) {
	if *update {
		require.NoError(t, os.WriteFile("architecture.svg", layers.SVG(), 0o644))
		return
	}
	drawn, err := os.ReadFile("architecture.svg")
	require.NoError(t, err)
	if string(drawn) != string(layers.SVG()) {
		t.Error("docs/architecture.svg is stale; run go test ./docs -update")
	}
}

// reference is a name of the code in a page: `dir.Name`, `dir.Type.Method` or the
// dir of a package alone. The root package is called sajou.
var reference = regexp.MustCompile("`([a-z]+(?:[/-][a-z]+)*)(?:\\.(\\w+(?:\\.\\w+)?))?(?:\\([^`]*\\))?`")

// Every function, method, type and package that the page names exists.
func TestArchitecturePage(t *testing.T) {
	page, err := os.ReadFile("architecture.md")
	require.NoError(t, err)
	known := map[string]map[string]bool{}
	names, packages := 0, layers.Packages()
	for _, m := range reference.FindAllStringSubmatch(string(page), -1) {
		dir, name := m[1], m[2]
		if dir == "sajou" {
			dir = "."
		}
		if !slices.Contains(packages, dir) {
			if name != "" && !strings.Contains(name, ".") && len(name) <= 4 {
				continue // a file: layers.go
			}
			if name != "" || strings.Contains(dir, "/") {
				t.Errorf("the page names %s: there is no package %s", m[0], dir)
			}
			continue
		}
		if name == "" {
			continue
		}
		if known[dir] == nil {
			known[dir] = declared(t, dir)
		}
		names++
		if !known[dir][name] {
			t.Errorf("the page names %s: package %s does not declare %s", m[0], dir, name)
		}
	}
	if names < 30 {
		t.Errorf("the page names only %d functions and types: the test looks for the wrong thing", names)
	}
}

// declared returns the functions, methods (as Type.Method), types, constants and
// variables that a package declares outside of tests.
func declared(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	require.NoError(t, err)
	fset := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names[spec.Name.Name] = true
						if i, ok := spec.Type.(*ast.InterfaceType); ok {
							for _, m := range i.Methods.List {
								for _, n := range m.Names {
									names[spec.Name.Name+"."+n.Name] = true
								}
							}
						}
					case *ast.ValueSpec:
						for _, n := range spec.Names {
							names[n.Name] = true
						}
					}
				}
			}
		}
	}
	return names
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	x := d.Recv.List[0].Type
	if p, ok := x.(*ast.StarExpr); ok {
		x = p.X
	}
	if g, ok := x.(*ast.IndexExpr); ok {
		x = g.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}

// The blocks of Go in embedding.md are the program in examples/service, whole and in
// order. That program has tests of its own.
func TestEmbeddingPage(t *testing.T) {
	page, err := os.ReadFile("embedding.md")
	require.NoError(t, err)
	program, err := os.ReadFile("examples/service/main.go")
	require.NoError(t, err)
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1) {
		blocks = append(blocks, string(m[1]))
	}
	if diff := cmp.Diff(string(program), strings.Join(blocks, "\n")); diff != "" {
		t.Errorf("docs/embedding.md is not docs/examples/service/main.go (-program +page):\n%s", diff)
	}
}

// compatibility.md names the present rules, and each public package in one row of its
// table.
func TestCompatibilityPage(t *testing.T) {
	text, err := os.ReadFile("compatibility.md")
	require.NoError(t, err)
	page := string(text)
	require.Contains(t, page, fmt.Sprintf("(`session.Rules`, today %d)", session.Rules))
	_, table, _ := strings.Cut(page, "| Packages | What to expect |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]int{}
	for _, m := range regexp.MustCompile("`([a-z/]+)`").FindAllStringSubmatch(table, -1) {
		rows[m[1]]++
	}
	for _, dir := range layers.Public() {
		if dir == "." {
			dir = "sajou"
		}
		if below, _, _ := strings.Cut(dir, "/"); rows[dir] == 0 && strings.Contains(table, "`"+below+"/*`") {
			continue // a row has the packages below a folder together
		}
		if rows[dir] != 1 {
			t.Errorf("package %s is %d times in the table of packages", dir, rows[dir])
		}
		delete(rows, dir)
	}
	require.Empty(t, rows, "not public packages")
}

// withoutExample are public packages whose documentation has no Example, with the reason.
var withoutExample = map[string]string{
	"agents/query": "programs ask through agents/history, which has one",
}

// Every public package has an Example that runs as a test.
func TestExamples(t *testing.T) {
	example := regexp.MustCompile(`(?ms)^func Example\w*\(\) \{.*?^\t// Output:`)
	for _, dir := range layers.Public() {
		files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
		require.NoError(t, err)
		found := false
		for _, name := range files {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			found = found || example.Match(text)
		}
		if found == (withoutExample[dir] != "") {
			t.Errorf("package %s has an Example: %t; is in withoutExample: %t", dir, found, withoutExample[dir] != "")
		}
	}
}

// Every relative link of a page leads to a file, and to a heading of it if it names one.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	require.NoError(t, err)
	records, err := filepath.Glob("adr/*.md")
	require.NoError(t, err)
	link := regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]*))?\)`)
	fences := regexp.MustCompile("(?s)```.*?```")
	for _, page := range append(append(pages, records...), "../README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(fences.ReplaceAllString(string(text), ""), -1) {
			target := path.Join(path.Dir(page), m[1])
			if strings.Contains(m[1], "://") {
				continue
			}
			if m[1] == "" {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: a link leads nowhere: %v", page, err)
			} else if m[2] != "" && !headings(t, target)[m[2]] {
				t.Errorf("%s: %s has no heading %s", page, target, m[2])
			}
		}
	}
}

// headings returns the anchors of the headings of a page.
func headings(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		anchor := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return anchors
}

// row is a line of the glossary's tables: the noun, its package or type, what it is.
var row = regexp.MustCompile(`(?m)^\| \*\*(.+?)\*\* \| (.+?) \| .+ \|$`)

// The glossary tells each noun once, and the types that it names exist.
func TestGlossary(t *testing.T) {
	page, err := os.ReadFile("glossary.md")
	require.NoError(t, err)
	known := map[string]map[string]bool{}
	nouns := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		noun := strings.ToLower(m[1])
		if nouns[noun] {
			t.Errorf("%q stands twice", m[1])
		}
		nouns[noun] = true
		found := reference.FindAllStringSubmatch(m[2], -1)
		if len(found) == 0 {
			t.Errorf("%q has no package", m[1])
		}
		for _, ref := range found {
			dir := ref[1]
			if dir == "sajou" {
				dir = "."
			}
			if !slices.Contains(layers.Packages(), dir) {
				t.Errorf("%q: there is no package %s", m[1], ref[1])
				continue
			}
			if known[dir] == nil {
				known[dir] = declared(t, dir)
			}
			if ref[2] != "" && !known[dir][ref[2]] {
				t.Errorf("%q: package %s does not declare %s", m[1], ref[1], ref[2])
			}
		}
	}
	if len(nouns) < 60 {
		t.Errorf("only %d nouns: the test looks for the wrong thing", len(nouns))
	}
}

// The comment of each package that the glossary names links to it, or that of the
// package around it does.
func TestPackagesLinkToTheGlossary(t *testing.T) {
	page, err := os.ReadFile("glossary.md")
	require.NoError(t, err)
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		for _, ref := range reference.FindAllStringSubmatch(m[2], -1) {
			dir := ref[1]
			if dir == "sajou" {
				dir = "."
			}
			if !links(t, dir) && !links(t, path.Dir(dir)) {
				t.Errorf("the comment of package %s does not mention docs/glossary.md", ref[1])
			}
		}
	}
}

func links(t *testing.T, dir string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	require.NoError(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly|parser.ParseComments)
		require.NoError(t, err)
		if !strings.HasSuffix(name, "_test.go") && strings.Contains(file.Doc.Text(), "docs/glossary.md") {
			return true
		}
	}
	return false
}

// The page about privacy has the table of kinds as package redact documents them.
func TestPrivacyPage(t *testing.T) {
	page, err := os.ReadFile("privacy.md")
	require.NoError(t, err)
	for _, k := range redact.Kinds() {
		row := fmt.Sprintf("| `%s` | `%s` | %s | %s |\n", k.Name, k.Mark, k.Finds, k.Stays)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/privacy.md lacks the row\n%s", row)
		}
	}
}
