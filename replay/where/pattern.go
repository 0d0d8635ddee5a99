package where

import (
	"errors"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/sajou-dev/sajou-go/internal/find"
)

const (
	// patternWork is the number of instructions of a pattern that one step covers:
	// a pattern of n instructions takes n / patternWork steps for a character.
	patternWork = 32

	// quickWork is the work, in instructions times bytes, up to which a text is
	// matched in one call. A longer text is passed piece by piece, so that the meter
	// can end the match.
	quickWork = 1 << 17

	// maxRegexp bounds a compiled pattern, in instructions.
	maxRegexp = 10_000
)

var (
	errPattern     = errors.New("this is not a pattern that RE2 can run")
	errPatternSize = errors.New("the pattern is longer than 4096 bytes or compiles to more than 10000 instructions")
)

// pattern is a compiled pattern with the number of its instructions.
type pattern struct {
	source string
	re     *regexp.Regexp
	size   int
	prefix string // the literal prefix of each match
	whole  bool   // the pattern consists of prefix alone
}

// compilePattern compiles a pattern after counting its instructions: "x{1000}" is
// seven characters long and has a thousand instructions.
func compilePattern(source string) (*pattern, error) {
	if len(source) > MaxExpression {
		return nil, errPatternSize
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, errPattern
	}
	if patternSize(tree) > maxRegexp {
		return nil, errPatternSize
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, errPattern
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, errPattern
	}
	prefix, whole := re.LiteralPrefix()
	return &pattern{source, re, len(program.Inst), prefix, whole}, nil
}

// patternSize returns an upper bound of the instructions of a pattern. The parser
// bounds the depth of the tree.
func patternSize(re *syntax.Regexp) int {
	size := 2 + len(re.Rune)
	for _, sub := range re.Sub {
		if size > maxRegexp {
			return size
		}
		size += patternSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1) + 1
	}
	return size
}

// patterns caches the last pattern that a call of matches used.
type patterns struct{ last *pattern }

func (p *patterns) match(m *meter, text, source ref.Val) ref.Val {
	t, ok := text.(types.String)
	s, isText := source.(types.String)
	if !ok || !isText {
		return types.NoSuchOverloadErr()
	}
	if p.last == nil || p.last.source != string(s) {
		if len(s) > MaxExpression {
			return types.WrapErr(errPatternSize)
		}
		// Parsing builds a tree and tables of a class's characters, and the program has
		// 40 bytes for each instruction.
		if !m.step(1000+100*len(s)) || !m.build(1000*len(s)) {
			return aborted
		}
		next, err := compilePattern(string(s))
		if err != nil {
			return types.WrapErr(err)
		}
		if !m.step(10*next.size) || !m.build(200*next.size) {
			return aborted
		}
		p.last = next
	}
	return p.last.match(m, string(t))
}

// match reports whether the pattern matches somewhere in the text.
func (p *pattern) match(m *meter, text string) ref.Val {
	if len(text) <= quickWork/p.size {
		if !m.step(1 + len(text)*p.size/patternWork) {
			return aborted
		}
		return types.Bool(p.re.MatchString(text))
	}
	// The engine searches for the literal prefix only in a complete text, not in a
	// reader.
	if p.prefix != "" {
		found, done := find.Search(text, p.prefix, m.text)
		switch {
		case !done:
			return aborted
		case !found || p.whole:
			return types.Bool(found)
		}
	}
	reader := &meteredText{m: m, text: text, size: p.size}
	found := p.re.MatchReader(reader)
	if m.err != nil {
		return aborted
	}
	return types.Bool(found)
}

// meteredText passes a text to a pattern and requests the steps for every piece. If
// the meter refuses, the text ends.
type meteredText struct {
	m       *meter
	text    string
	size    int // instructions of the pattern
	granted int // bytes of text that the meter granted and that are not passed yet
}

// ReadRune implements [io.RuneReader].
func (t *meteredText) ReadRune() (rune, int, error) {
	if t.granted <= 0 {
		t.granted = max(64, quickWork/t.size)
		if !t.m.step(1 + t.granted*t.size/patternWork) {
			t.text = ""
		}
	}
	if t.text == "" {
		return 0, 0, io.EOF
	}
	r, n := utf8.DecodeRuneInString(t.text)
	t.text = t.text[n:]
	t.granted -= n
	return r, n, nil
}
