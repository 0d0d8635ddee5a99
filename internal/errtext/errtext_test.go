package errtext

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/layers"
)

var prefix = regexp.MustCompile(`^([a-z]+): `)

// The list has the names with which the errors of the sources begin, and no others: each
// begins with the name of its package, of one above it, or of the module.
func TestPackagesAreThoseOfTheSources(t *testing.T) {
	used := map[string]bool{}
	for _, dir := range layers.Packages() {
		names := append(strings.Split(dir, "/"), "sajou")
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		require.NoError(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			errorTexts(file, func(text string) {
				if m := prefix.FindStringSubmatch(text); m != nil && slices.Contains(names, m[1]) {
					used[m[1]] = true
				}
			})
		}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(used)), packages)
}

// errorTexts hands on the text literals of which a file makes errors.
func errorTexts(file *ast.File, found func(text string)) {
	literal := func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				found(text)
			}
		}
		return true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil && n.Name.Name == "Error" {
				ast.Inspect(n, literal)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "Errorf" || f.Sel.Name == "New") && len(n.Args) > 0 {
				literal(n.Args[0])
			}
		}
		return true
	})
}

func TestPlain(t *testing.T) {
	for message, want := range map[string]string{
		"":                                "",
		"eventlog":                        "eventlog",
		"eventlog: invalid: session name": "invalid: session name",
		"line 3: sajou: replay: no such address: \"x\"": "line 3: no such address: \"x\"",
		"agents: director: agents: twice":               "twice",
		"\"agents: \" is a text":                        "\"agents: \" is a text",
		"/agents: is required":                          "/agents: is required",
	} {
		assert.Equal(t, want, Plain(message))
	}
}

func TestOneLine(t *testing.T) {
	assert.Equal(t, `first; second\x1b`, OneLine("eventlog: first\r\nsajou: second\x1b\n"))
}

// A reason fits a close frame and stays UTF-8.
func TestCloseReason(t *testing.T) {
	assert.Equal(t, "short", CloseReason("signal: short"))
	for n := range 8 {
		reason := CloseReason(strings.Repeat("x", n) + strings.Repeat("né漢😀", 40))
		assert.True(t, utf8.ValidString(reason))
		assert.LessOrEqual(t, len(reason), maxCloseReason)
		assert.Greater(t, len(reason), maxCloseReason-5)
	}
}
