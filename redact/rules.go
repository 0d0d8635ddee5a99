package redact

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
)

// tableVersion is part of the digest of rules. It grows with every change after which
// the kinds of the table find more or less than before.
const tableVersion = 1

// Bounds of the text of rules.
const (
	maxList    = 1000 // names, patterns or paths
	maxPattern = 1000 // bytes of an expression, a name or a path
)

// A Ruleset says what [Redactor] removes from signals. It is immutable and can be used
// concurrently.
type Ruleset struct {
	rules  *rules
	paths  []path
	all    string // the mark of every match; "" for that of its kind
	digest string
}

// pattern is an expression of the rules' author.
type pattern struct {
	name  string
	re    *regexp.Regexp
	match string
	mark  string
}

// path is a pointer from the envelope to the values that are replaced.
type path struct {
	text     string
	segments []string
}

// Default returns the rules that find all [Kinds].
func Default() *Ruleset {
	r, _ := compile(source{})
	return r
}

// Compile reads rules from the text of a file, YAML if its name ends in .yaml or .yml
// and JSON otherwise. It returns either rules or diagnostics, which say what is wrong
// and where. The text is an object; every member may be absent:
//
//	kinds:       [email, token]      the kinds to find; all of them without this member
//	except:      [phone]             kinds not to find
//	names:       [codename]          more names whose values are replaced, in any case
//	keep:        [build]             names of identifiers: their values are searched for
//	                                 [Kinds] with a published form only
//	patterns:                        expressions of the author, in RE2 syntax
//	  - name: ticket                 the name under which matches are counted
//	    match: 'ACME-([0-9]+)'       the first group is replaced, or the whole match
//	    replacement: '[TICKET]'      absent: [REDACTED]
//	paths:       [/metadata/cwd]     JSON pointers from the envelope; * is any member or
//	                                 element, ** any number of them
//	replacement: '[GONE]'            in place of the marks of all kinds, patterns and paths
//
// A replacement is a word of capitals, digits, "_" and "-" in brackets, at most 32 bytes
// long, that the rules do not match themselves.
func Compile(file string, text []byte) (*Ruleset, authored.Diagnostics) {
	t, refused := authored.Read(file, text)
	if refused != nil {
		return nil, refused
	}
	r := ruleReader{}
	src := r.source(authored.Located{Value: t.Value})
	if !r.Refused() {
		rules, err := compile(src)
		if err == nil {
			return rules, nil
		}
		r.Errorf(nil, "%v", err)
	}
	return nil, t.Placed(r.Diagnostics(file, t.JSON))
}

// Digest returns the SHA-256 of the rules and of the version of the table of kinds, as
// 64 hexadecimal digits. Equal digests mean that equal signals are redacted equally.
func (r *Ruleset) Digest() string { return r.digest }

// source is what a file of rules says.
type source struct {
	on       map[kind]bool // nil: all
	names    []string
	keep     []string
	patterns []pattern
	paths    []path
	all      string
}

func compile(src source) (*Ruleset, error) {
	r := newRules(Options{Fields: src.names, Keep: src.keep})
	r.maxText = math.MaxInt
	r.marks = slices.Clone(marks)
	r.patterns = slices.Clone(src.patterns)
	own := func(mark string) string {
		if src.all != "" {
			mark = src.all
		}
		if !slices.Contains(r.marks, mark) {
			r.marks = append(r.marks, mark)
		}
		return mark
	}
	var on []string
	for k := range kinds {
		r.mark[k] = own(r.mark[k])
		if r.on[k] = src.on == nil || src.on[k]; r.on[k] {
			on = append(on, table[k].Name)
		}
	}
	var patterns [][3]string
	for i := range r.patterns {
		p := &r.patterns[i]
		p.mark = own(p.mark)
		patterns = append(patterns, [3]string{p.name, p.match, p.mark})
	}
	var paths []string
	for _, p := range src.paths {
		paths = append(paths, p.text)
	}
	for _, mark := range r.marks {
		if f := newFinder(r); f.text(mark, false) != mark {
			return nil, fmt.Errorf("the rules match the replacement %s; name another one", mark)
		}
	}
	canonical, err := json.Marshal([]any{tableVersion, on, sorted(src.names), sorted(src.keep), patterns, paths, src.all})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(canonical)
	return &Ruleset{rules: r, paths: src.paths, all: src.all, digest: hex.EncodeToString(sum[:])}, nil
}

func sorted(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}

// ruleReader reads a file of rules.
type ruleReader struct{ authored.Remarks }

func (r *ruleReader) source(n authored.Located) (src source) {
	members := []string{"kinds", "except", "names", "keep", "patterns", "paths", "replacement"}
	r.object(n, "rules", members)
	for name, list := range r.kinds(n.At("kinds")) {
		if src.on == nil {
			src.on = map[kind]bool{}
		}
		if k, ok := r.kind(name, list); ok {
			src.on[k] = true
		}
	}
	if n.Has("kinds") && src.on == nil {
		src.on = map[kind]bool{}
	}
	for name, list := range r.kinds(n.At("except")) {
		if src.on == nil {
			src.on = map[kind]bool{}
			for k := range kinds {
				src.on[k] = true
			}
		}
		if k, ok := r.kind(name, list); ok {
			src.on[k] = false
		}
	}
	for name, at := range r.texts(n.At("names"), "names") {
		r.check(len(split(name)) > 0, at, "%s has no letter or digit", wording.Quoted(name))
		src.names = append(src.names, name)
	}
	for name := range r.texts(n.At("keep"), "keep") {
		src.keep = append(src.keep, name)
	}
	i := 0
	for _, e := range r.list(n.At("patterns"), "patterns") {
		if p, ok := r.pattern(e); ok {
			if slices.ContainsFunc(src.patterns, func(q pattern) bool { return q.name == p.name }) {
				r.Errorf(e.Location.At("name"), "a pattern before has the name %s too; matches are counted by name", wording.Quoted(p.name))
			}
			src.patterns = append(src.patterns, p)
		}
		i++
	}
	for text, at := range r.texts(n.At("paths"), "paths") {
		if p, ok := r.path(text, at); ok {
			src.paths = append(src.paths, p)
		}
	}
	src.all, _ = r.replacement(n.At("replacement"))
	return src
}

func (r *ruleReader) check(ok bool, at *authored.Location, format string, args ...any) {
	if !ok {
		r.Errorf(at, format, args...)
	}
}

// object checks that n is an object without unknown members.
func (r *ruleReader) object(n authored.Located, what string, members []string) bool {
	if n.Value.Kind() != signal.KindObject {
		r.Errorf(n.Location, "%s are an object, not %s", what, n.Value.Kind().WithArticle())
		return false
	}
	for name, m := range n.Members {
		if slices.Contains(members, name) {
			continue
		}
		hint := "known are " + strings.Join(members, ", ")
		if meant, ok := spelling.Nearest(name, members); ok {
			hint = "did you mean " + meant + "?"
		}
		r.Errorf(m.Location.Key(), "unknown member %s; %s", wording.Quoted(name), hint)
	}
	return true
}

// list yields the elements of a member that has to be an array.
func (r *ruleReader) list(n authored.Located, name string) func(yield func(int, authored.Located) bool) {
	switch n.Value.Kind() {
	case signal.KindAbsent, signal.KindNull:
		return func(func(int, authored.Located) bool) {}
	case signal.KindArray:
		if n.Value.Len() <= maxList {
			return n.Elements
		}
		r.Errorf(n.Location, "%s has %d elements; the most are %d", name, n.Value.Len(), maxList)
	default:
		r.Errorf(n.Location, "%s is an array, not %s", name, n.Value.Kind().WithArticle())
	}
	return func(func(int, authored.Located) bool) {}
}

// texts yields the elements of an array of strings.
func (r *ruleReader) texts(n authored.Located, name string) func(yield func(string, *authored.Location) bool) {
	return func(yield func(string, *authored.Location) bool) {
		for _, e := range r.list(n, name) {
			if text, ok := r.text(e, "an element of "+name); ok && !yield(text, e.Location) {
				return
			}
		}
	}
}

func (r *ruleReader) text(n authored.Located, what string) (string, bool) {
	text, ok := n.Value.Text()
	switch {
	case !ok:
		r.Errorf(n.Location, "%s is a text, not %s", what, n.Value.Kind().WithArticle())
	case text == "" || len(text) > maxPattern:
		r.Errorf(n.Location, "%s has 1 to %d bytes, not %d", what, maxPattern, len(text))
		ok = false
	}
	return text, ok
}

func (r *ruleReader) kinds(n authored.Located) func(yield func(string, *authored.Location) bool) {
	return r.texts(n, "the kinds")
}

func (r *ruleReader) kind(name string, at *authored.Location) (kind, bool) {
	k, ok := kindOf(name)
	if !ok {
		var names []string
		for _, known := range table {
			names = append(names, known.Name)
		}
		r.Errorf(at, "unknown kind %s; the kinds are %s", wording.Quoted(name), strings.Join(names, ", "))
	}
	return k, ok
}

// patternName is the form of the names of patterns, which are names in counts.
var patternName = express(`^[a-z][a-z0-9_-]{0,39}$`)

func (r *ruleReader) pattern(n authored.Located) (p pattern, ok bool) {
	if !r.object(n, "patterns", []string{"name", "match", "replacement"}) {
		return p, false
	}
	name, named := r.text(n.At("name"), "the name of a pattern")
	if _, builtin := kindOf(name); named && (builtin || name == kindPath || !patternName().MatchString(name)) {
		r.Errorf(n.Location.At("name"), "%s is not a name for a pattern: small letters, digits, - and _, at most 40, and not the name of a kind", wording.Quoted(name))
		named = false
	}
	match, given := r.text(n.At("match"), "the expression of a pattern")
	p = pattern{name: name, match: match, mark: Mark}
	if given {
		var err error
		if p.re, err = regexp.Compile(match); err != nil {
			r.Errorf(n.Location.At("match"), "not an expression in RE2 syntax: %v", err)
			given = false
		}
	}
	if mark, ok := r.replacement(n.At("replacement")); ok {
		p.mark = mark
	}
	return p, named && given
}

// markForm is the form of marks. Texts of this form are left as they are by everything
// else that is searched for, so that redaction is idempotent.
var markForm = express(`^\[[A-Z][A-Z0-9_-]{0,29}\]$`)

func (r *ruleReader) replacement(n authored.Located) (string, bool) {
	if k := n.Value.Kind(); k == signal.KindAbsent || k == signal.KindNull {
		return "", false
	}
	mark, ok := r.text(n, "a replacement")
	if ok && !markForm().MatchString(mark) {
		r.Errorf(n.Location, "%s is not a replacement: a word of capitals, digits, _ and - in brackets, such as [GONE]", wording.Quoted(mark))
		ok = false
	}
	return mark, ok
}

func (r *ruleReader) path(text string, at *authored.Location) (path, bool) {
	segments := jsonpointer.Split(text)
	switch {
	case !strings.HasPrefix(text, "/") || len(segments) > signal.MaxDepth:
		r.Errorf(at, "%s is not a JSON pointer from the envelope, such as /metadata/cwd", wording.Quoted(text))
	case !slices.Contains([]string{"id", "source", "correlationId", "metadata", "payload", "*", "**"}, segments[0]):
		r.Errorf(at, "%s begins with no member of an envelope that can be replaced: id, source, correlationId, metadata, payload", wording.Quoted(text))
	default:
		return path{text, segments}, true
	}
	return path{}, false
}

// matches reports whether a path leads to the value at the names and indexes.
func (p *path) matches(at []string) bool { return leads(p.segments, at) }

func leads(segments, at []string) bool {
	// The places in the pattern from which a further ** may take one more name, as in
	// the usual match of wildcards, which is quadratic at most.
	i, star, resume := 0, -1, 0
	for k := 0; k < len(at); {
		switch {
		case i < len(segments) && segments[i] == "**":
			star, resume = i, k
			i++
		case i < len(segments) && (segments[i] == "*" || segments[i] == at[k]):
			i++
			k++
		case star >= 0:
			resume++
			i, k = star+1, resume
		default:
			return false
		}
	}
	for i < len(segments) && segments[i] == "**" {
		i++
	}
	return i == len(segments)
}
