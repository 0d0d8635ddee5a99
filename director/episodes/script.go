package episodes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/director"
)

// ErrScript is wrapped by the errors about scripts that cannot be meant.
var ErrScript = errors.New("not a script")

// MaxScript bounds the text of a script, in bytes.
const MaxScript = 4 << 20

const (
	scriptWord    = "script"
	scriptVersion = 1
)

// Script is a character whose lines are written down. It must not be changed
// after [ParseScript].
type Script struct {
	// Episode is the id of the episode that it is written for, "" for any.
	Episode string
	// Character is what the character is called, "" if that is not said.
	Character string
	Lines     []Line
}

// Line is what the character says, and when.
type Line struct {
	Turn    int    `json:"turn"`    // 0 for any
	Beat    string `json:"beat"`    // "" for any, as with those that follow
	Urgency string `json:"urgency"` // at least
	Choice  string `json:"choice"`  // POINT/OPTION
	Flag    string `json:"flag"`
	Say     string `json:"say"`
	// Judge has a judge's answers about the line, by the id of what is judged.
	Judge map[string]string `json:"judge"`
	Note  string            `json:"note"` // for authors
}

// always reports whether a line has no condition.
func (l *Line) always() bool {
	return l.Turn == 0 && l.Beat == "" && l.Urgency == "" && l.Choice == "" && l.Flag == ""
}

// degrees are the urgencies, each more urgent than the one before.
var degrees = []director.Urgency{director.Suggested, director.Required, director.Overdue}

func degree(name string) (director.Urgency, bool) {
	i := slices.IndexFunc(degrees, func(u director.Urgency) bool { return u.String() == name })
	if i < 0 {
		return director.NotDue, false
	}
	return degrees[i], true
}

// ParseScript reads a script. Its errors wrap [ErrScript] and say where: the
// line of the text, or the number of the script's line, from 1.
func ParseScript(text []byte) (*Script, error) {
	if len(text) > MaxScript {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrScript, MaxScript)
	}
	var head struct {
		Sajou   string          `json:"sajou"`
		Version json.RawMessage `json:"version"`
	}
	// What it is comes before any judgement of what a later version may allow.
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, refused(text, err)
	}
	if head.Sajou != scriptWord {
		return nil, fmt.Errorf("%w: the member sajou must say %q", ErrScript, scriptWord)
	}
	if v := string(head.Version); v != strconv.Itoa(scriptVersion) {
		return nil, fmt.Errorf("%w: this program reads version %d, and the member version is not that", ErrScript, scriptVersion)
	}
	var whole struct {
		Sajou     string `json:"sajou"`
		Version   int    `json:"version"`
		Episode   string `json:"episode"`
		Character string `json:"character"`
		Lines     []Line `json:"lines"`
		Note      string `json:"note"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&whole); err != nil {
		return nil, refused(text, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows its end", ErrScript)
	}
	s := &Script{whole.Episode, whole.Character, whole.Lines}
	for i := range s.Lines {
		if reason := s.Lines[i].check(); reason != "" {
			return nil, fmt.Errorf("%w: line %d of the script: %s", ErrScript, i+1, reason)
		}
	}
	return s, nil
}

// check returns why a line cannot be meant, "" if it can.
func (l *Line) check() string {
	_, known := degree(l.Urgency)
	point, option, split := strings.Cut(l.Choice, "/")
	switch {
	case strings.TrimSpace(l.Say) == "":
		return "it says nothing"
	case l.Turn < 0:
		return "a turn below 0"
	case l.Urgency != "" && !known:
		return "its urgency is none of suggested, required and overdue"
	case l.Urgency != "" && l.Beat == "":
		return "an urgency without a beat"
	case l.Choice != "" && (!split || point == "" || option == ""):
		return "its choice is not POINT/OPTION"
	}
	return ""
}

// refused makes one error of what encoding/json says, with the line of the text
// if that is known.
func refused(text []byte, err error) error {
	offset := int64(-1)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = syntax.Offset
	} else if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = kind.Offset
	}
	reason := strings.TrimPrefix(err.Error(), "json: ")
	if offset < 0 || offset > int64(len(text)) {
		return fmt.Errorf("%w: %s", ErrScript, reason)
	}
	return fmt.Errorf("%w: line %d: %s", ErrScript, 1+bytes.Count(text[:offset], []byte("\n")), reason)
}

// Check says which names of the script the episode does not have.
func (s *Script) Check(e *director.Episode) error {
	for i := range s.Lines {
		l := &s.Lines[i]
		if _, ok := e.BeatIndex(l.Beat); l.Beat != "" && !ok {
			return fmt.Errorf("%w: line %d of the script: the episode has no beat %q", ErrScript, i+1, l.Beat)
		}
		point, option, _ := strings.Cut(l.Choice, "/")
		if l.Choice == "" {
			continue
		}
		at, ok := e.ChoiceIndex(point)
		if !ok || !slices.ContainsFunc(e.Choices[at].Options, func(o director.Option) bool { return o.ID == option }) {
			return fmt.Errorf("%w: line %d of the script: the episode has no choice %q", ErrScript, i+1, l.Choice)
		}
	}
	return nil
}

// Moment is what a line is chosen by.
type Moment struct {
	Turn      int
	Directive *director.Directive // nil if no beat is directed
	Choice    string              // the input of the turn if it was chosen: POINT/OPTION
	Flag      func(name string) bool
	Said      func(words string) bool // by the character, before
}

// holds reports whether all conditions of a line do.
func (l *Line) holds(m Moment) bool {
	if l.Turn != 0 && l.Turn != m.Turn || l.Choice != "" && l.Choice != m.Choice || l.Flag != "" && !m.Flag(l.Flag) {
		return false
	}
	if l.Beat == "" {
		return true
	}
	least, _ := degree(l.Urgency) // any, if it is not said
	return m.Directive != nil && m.Directive.Beat == l.Beat && m.Directive.Urgency >= least
}

// silence is said where a script has nothing to say.
const silence = "…"

// Line returns what the character says.
func (s *Script) Line(m Moment) string {
	var again []string // those without a condition
	for i := range s.Lines {
		l := &s.Lines[i]
		if l.holds(m) && !m.Said(l.Say) {
			return l.Say
		}
		if l.always() {
			again = append(again, l.Say)
		}
	}
	if len(again) == 0 {
		return silence
	}
	return again[max(m.Turn, 0)%len(again)]
}

// Answer returns what a judge says about a subject in a line of the script; NO
// if the line is none, or says nothing about it.
func (s *Script) Answer(said, subject string) string {
	for i := range s.Lines {
		if answer := s.Lines[i].Judge[subject]; s.Lines[i].Say == said && answer != "" {
			return answer
		}
	}
	return "NO"
}
