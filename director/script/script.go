// Package script reads scripts, the written lines of a character, and contains the bundled
// episodes with their scripts. With a script an episode can be played to its end without
// a model, always in the same way.
//
// # A script
//
// A script is a JSON object:
//
//	{ "sajou": "script", "version": 1,
//	  "episode": "interview", "character": "Morgan",
//	  "lines": [
//	    {"beat": "name_range", "urgency": "required",
//	     "say": "From fifty to sixty.", "judge": {"name_range": "YES"}},
//	    {"choice": "offer_answer/take", "say": "On the first."},
//	    {"turn": 1, "flag": "met", "say": "You again."},
//	    {"say": "Go on."} ] }
//
// Every member of a line but say and judge is a condition:
//
//	turn     the number of the turn
//	beat     the beat that the director directs
//	urgency  its least urgency: suggested, required or overdue
//	choice   the user's choice that is the input of the turn: POINT/OPTION
//	flag     a flag that is set
//
// The character says the first line whose conditions all hold and that it has not said
// yet. If there is none, it repeats the lines without a condition in turn.
//
// judge holds the answers of a judge about the line, by the id of the beat or objective.
// The answer about any other is NO.
//
// The package is pure: no clock, no goroutine, no input or output.
package script

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
)

// ErrScript is wrapped by the errors about scripts that are refused.
var ErrScript = errors.New("not a script")

// MaxSize bounds the text of a script, in bytes.
const MaxSize = 4 << 20

const (
	scriptWord    = "script"
	scriptVersion = 1
)

// Script holds the written lines of a character. It must not be changed after [Parse].
type Script struct {
	// Episode is the id of the episode that it is written for, "" for any.
	Episode string
	// Character is the character's name, "" for none.
	Character string
	Lines     []Line
}

// Line is one line of a character, with its conditions.
type Line struct {
	Turn    int    `json:"turn"`    // 0 for any
	Beat    string `json:"beat"`    // "" for any, as below
	Urgency string `json:"urgency"` // at least
	Choice  string `json:"choice"`  // POINT/OPTION
	Flag    string `json:"flag"`
	Say     string `json:"say"`
	// Judge holds a judge's answers about the line, by the id of the beat or objective.
	Judge map[string]string `json:"judge"`
	Note  string            `json:"note"` // for authors
}

// always reports whether a line has no condition.
func (l *Line) always() bool {
	return l.Turn == 0 && l.Beat == "" && l.Urgency == "" && l.Choice == "" && l.Flag == ""
}

// degrees are the urgencies in ascending order.
var degrees = []episode.Urgency{episode.Suggested, episode.Required, episode.Overdue}

func degree(name string) (episode.Urgency, bool) {
	i := slices.IndexFunc(degrees, func(u episode.Urgency) bool { return u.String() == name })
	if i < 0 {
		return episode.NotDue, false
	}
	return degrees[i], true
}

// Parse reads a script. Its errors wrap [ErrScript] and say where: the
// line of the text, or the number of the script's line, from 1.
func Parse(text []byte) (*Script, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrScript, MaxSize)
	}
	var head struct {
		Sajou   string          `json:"sajou"`
		Version json.RawMessage `json:"version"`
	}
	// The version is read first: a later version may allow what this one refuses.
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, refused(text, err)
	}
	if head.Sajou != scriptWord {
		return nil, fmt.Errorf("%w: the member sajou must be %q", ErrScript, scriptWord)
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

// check returns the reason why a line is refused, "" if it is not.
func (l *Line) check() string {
	_, known := degree(l.Urgency)
	point, option, split := strings.Cut(l.Choice, "/")
	switch {
	case strings.TrimSpace(l.Say) == "":
		return "say is empty"
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

// refused returns an error of encoding/json as one of this package, with the line of the
// text if that is known.
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

// Check returns an error about the first beat or choice of the script that the episode
// does not have.
func (s *Script) Check(e *episode.Episode) error {
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
		if !ok || !slices.ContainsFunc(e.Choices[at].Options, func(o episode.Option) bool { return o.ID == option }) {
			return fmt.Errorf("%w: line %d of the script: the episode has no choice %q", ErrScript, i+1, l.Choice)
		}
	}
	return nil
}

// LineContext holds the facts by which a line is chosen.
type LineContext struct {
	Turn      int
	Directive *director.Directive // nil if no beat is directed
	Choice    string              // the input of the turn if it was chosen: POINT/OPTION
	Flag      func(name string) bool
	Said      func(words string) bool // by the character, before
}

// holds reports whether all conditions of a line hold.
func (l *Line) holds(m LineContext) bool {
	if l.Turn != 0 && l.Turn != m.Turn || l.Choice != "" && l.Choice != m.Choice || l.Flag != "" && !m.Flag(l.Flag) {
		return false
	}
	if l.Beat == "" {
		return true
	}
	least, _ := degree(l.Urgency) // any, if it is not said
	return m.Directive != nil && m.Directive.Beat == l.Beat && m.Directive.Urgency >= least
}

// silence is the line of a script without a line to say.
const silence = "…"

// Line returns the line that the character says.
func (s *Script) Line(m LineContext) string {
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

// Answer returns a judge's answer about a beat or objective in a line of the script. It is
// NO unless the script has another one.
func (s *Script) Answer(said, subject string) string {
	for i := range s.Lines {
		if answer := s.Lines[i].Judge[subject]; s.Lines[i].Say == said && answer != "" {
			return answer
		}
	}
	return "NO"
}

//go:embed interview.json *.script.json
var files embed.FS

// names are the bundled episodes, each with a script.
var names = []string{"interview"}

// Names returns the names of the bundled episodes.
func Names() []string { return slices.Clone(names) }

// Bundled returns the texts of a bundled episode and of its script; false if there is none
// of that name.
func Bundled(name string) (episode, lines []byte, ok bool) {
	if !slices.Contains(names, name) {
		return nil, nil, false
	}
	episode, err := files.ReadFile(name + ".json")
	if err != nil {
		return nil, nil, false
	}
	lines, err = files.ReadFile(name + ".script.json")
	return episode, lines, err == nil
}
