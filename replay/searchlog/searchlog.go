// Package searchlog keeps a search of package bisect over days and among people, as git
// does: what was judged, in which order, and for which recording and test.
//
// A [SearchLog] is written as JSON Lines, and only ever appended to. The first line says
// what is searched, each further line is a verdict, or takes back the one before:
//
//	{"bisect":1,"session":"night","head":"54:1f0c…","definitions":"9b2e…","good":"0","bad":"54","test":{"kind":"person","digest":"…"}}
//	{"verdict":"bad","moment":"36+50ms","input":"77d1…","by":"person"}
//	{"undo":true}
//
// The first line has further members if they are not the default: "every", "find", "probes",
// "define" and "terms", and in "test" the arguments and flags of the test.
//
// # What is checked
//
// A verdict counts for the input that was judged, so it holds its hash. [SearchLog.Resume]
// refuses to go on, with a [ChangedError], if the recording has another history or other
// definitions, if the test is another one, or if the test sees another input at a moment
// that was judged, for example because the pictures of another version differ.
//
// A last line that is incomplete, as a crash leaves it, is ignored and reported; the search
// then goes on before that verdict. Any other damage is an error.
//
// docs/glossary.md has the nouns of all packages.
package searchlog

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
)

// The bounds of a log.
const (
	MaxLine  = 1 << 20
	MaxSteps = 1_000_000
)

// version is the format of a log.
const version = 1

// ErrMalformed is wrapped by the errors for a file that is no log of a search.
var ErrMalformed = errors.New("not a log of a search")

func malformed(format string, args ...any) error {
	return fmt.Errorf("searchlog: %w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// SearchedTest says by what a search judges.
type SearchedTest struct {
	Kind   string            `json:"kind"`             // "person", "where", "image" or "program"
	Args   []string          `json:"args,omitempty"`   // the expression, or the command line
	Flags  map[string]string `json:"flags,omitempty"`  // that refine the test, by their names, such as "max-diff", "see" and "repeat"
	Digest string            `json:"digest,omitempty"` // of all that determines the verdicts but the input
}

// SearchSubject is what a search is about, the first line of its log.
type SearchSubject struct {
	Version     int          `json:"bisect"`
	Session     string       `json:"session"`
	Head        string       `json:"head"`        // of the session when the search began, as "seq:hash"
	Definitions string       `json:"definitions"` // digest of the declarations up to the head, and of the files of Define
	Good        string       `json:"good"`        // the ends, as moments
	Bad         string       `json:"bad"`
	Every       string       `json:"every,omitempty"`  // the step of a grid of session time whose moments are compared too
	Find        string       `json:"find,omitempty"`   // the name of a bisect.Goal; the default is bisect.Any
	Probes      *int         `json:"probes,omitempty"` // as in bisect.Options; the default is bisect.DefaultProbes
	Define      []string     `json:"define,omitempty"` // the files of definitions through which the session is seen
	Terms       []string     `json:"terms,omitempty"`  // the words for good and bad, if they are others
	Test        SearchedTest `json:"test"`
}

// KeptJudgment is one judgment of a log.
type KeptJudgment struct {
	Result bisect.TestResult
	Moment string // as replay.Moment writes it
	Input  bisect.InputHash
	By     string // "given", "person" or "test"
}

// line is a line after the first.
type line struct {
	Verdict string `json:"verdict,omitempty"`
	Moment  string `json:"moment,omitempty"`
	Input   string `json:"input,omitempty"`
	By      string `json:"by,omitempty"`
	Undo    bool   `json:"undo,omitempty"`
}

// SearchLog is a search that is kept.
type SearchLog struct {
	Subject  SearchSubject
	Verdicts []KeptJudgment // without those that were taken back

	// Torn says that the last line was incomplete and ignored; Size is the number of bytes
	// before it, at which the next line belongs.
	Torn bool
	Size int64
}

// Read reads a log. The error is an [ErrMalformed] with the number of the line, or that of r.
func Read(r io.Reader) (*SearchLog, error) {
	l := &SearchLog{}
	lines := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		text, whole, err := readLine(lines)
		if err != nil {
			return nil, err
		}
		if len(text) == 0 && !whole {
			break
		}
		if !whole { // no line is complete without its end
			l.Torn = n > 1
			break
		}
		if n > MaxSteps {
			return nil, malformed("more than %d lines", MaxSteps)
		}
		if err := l.take(n, text); err != nil {
			return nil, fmt.Errorf("%w (line %d)", err, n)
		}
		l.Size += int64(len(text)) + 1
	}
	if l.Subject.Version == 0 {
		return nil, malformed("it has no first line")
	}
	return l, nil
}

// readLine returns the next line without its end, and whether it has one.
func readLine(r *bufio.Reader) (text []byte, whole bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text) > MaxLine:
			return nil, false, malformed("a line is longer than %d bytes", MaxLine)
		case err == nil:
			return text[:len(text)-1], true, nil
		case errors.Is(err, io.EOF):
			return text, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
}

// take adds line n.
func (l *SearchLog) take(n int, text []byte) error {
	if n == 1 {
		if err := strictly(text, &l.Subject); err != nil {
			return err
		}
		return l.Subject.check()
	}
	var step line
	if err := strictly(text, &step); err != nil {
		return err
	}
	if step.Undo {
		if len(l.Verdicts) == 0 || step.Verdict != "" {
			return malformed("there is nothing to undo")
		}
		l.Verdicts = l.Verdicts[:len(l.Verdicts)-1]
		return nil
	}
	v := KeptJudgment{Moment: step.Moment, By: step.By}
	for r := bisect.Good; r <= bisect.Skip; r++ {
		if step.Verdict == r.String() {
			v.Result = r
		}
	}
	hash, err := hex.DecodeString(step.Input)
	if v.Result == 0 || err != nil || len(hash) != len(v.Input) {
		return malformed("it has no verdict or no hash of its input")
	}
	copy(v.Input[:], hash)
	if _, err := moment(step.Moment); err != nil {
		return err
	}
	l.Verdicts = append(l.Verdicts, v)
	return nil
}

func (s *SearchSubject) check() error {
	switch {
	case s.Version == 0:
		return malformed("the member \"bisect\" is missing")
	case s.Version != version:
		return malformed("its version is %d, and this program knows %d", s.Version, version)
	case s.Session == "" || s.Head == "":
		return malformed("the session or its head is missing")
	case len(s.Terms) != 0 && (len(s.Terms) != 2 || s.Terms[0] == "" || s.Terms[0] == s.Terms[1]):
		return malformed("the terms are not two different words")
	}
	if _, err := s.Step(); err != nil {
		return err
	}
	if _, err := s.Options(); err != nil {
		return err
	}
	for _, end := range []string{s.Good, s.Bad} {
		if _, err := moment(end); err != nil {
			return err
		}
	}
	return nil
}

// Step returns the step of the grid, or 0 for none.
func (s *SearchSubject) Step() (time.Duration, error) {
	if s.Every == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s.Every)
	if err != nil || d < time.Millisecond {
		return 0, malformed("the step %.80q is not a duration of at least 1ms", s.Every)
	}
	return d, nil
}

// Options returns the options of the search.
func (s *SearchSubject) Options() (bisect.Options, error) {
	o := bisect.Options{Probes: bisect.DefaultProbes}
	if s.Probes != nil {
		o.Probes = *s.Probes
	}
	var ok bool
	if o.Goal, ok = bisect.GoalByName(s.Find); !ok || o.Probes < 0 {
		return o, malformed("it cannot find %.80q with %d probes", s.Find, o.Probes)
	}
	return o, nil
}

// moment reads a moment as its String method writes it.
func moment(text string) (replay.Moment, error) {
	number, after, between := strings.Cut(text, "+")
	seq, err := strconv.ParseUint(number, 10, 64)
	m := replay.Moment{Seq: eventlog.Seq(seq)}
	if between && err == nil {
		m.Offset, err = time.ParseDuration(after)
	}
	if err != nil || m.Offset < 0 || m.String() != text {
		return m, malformed("%.80q is not a moment", text)
	}
	return m, nil
}

// strictly reads one JSON object and nothing else.
func strictly(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return malformed("%v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return malformed("there is more after the object")
	}
	return nil
}

// Begin returns the first line of the log of a search, with its end.
func Begin(s SearchSubject) ([]byte, error) {
	s.Version = version
	if err := s.check(); err != nil {
		return nil, err
	}
	return marshal(s)
}

// Line returns the line of a verdict, with its end.
func (v KeptJudgment) Line() ([]byte, error) {
	return marshal(line{Verdict: v.Result.String(), Moment: v.Moment, Input: hex.EncodeToString(v.Input[:]), By: v.By})
}

// Undo returns the line that takes back the latest verdict, with its end.
func Undo() []byte { return []byte(`{"undo":true}` + "\n") }

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// Text returns the log as its subject and the verdicts that count, which is a log too.
func (l *SearchLog) Text() ([]byte, error) {
	text, err := Begin(l.Subject)
	if err != nil {
		return nil, err
	}
	for _, v := range l.Verdicts {
		line, err := v.Line()
		if err != nil {
			return nil, err
		}
		text = append(text, line...)
	}
	return text, nil
}

// ChangedError reports that a search cannot go on because something is not as it was.
type ChangedError struct {
	What     string // "recording", "definitions", "test" or "input"
	Was, Now string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("searchlog: the %s changed since the search began: it was %s, and is %s", e.What, e.Was, e.Now)
}

// Check compares the subject of the log with what is there now, and returns a
// [*ChangedError] for the first difference. An empty digest of a test is not compared.
func (l *SearchLog) Check(head, definitions, test string) error {
	s := &l.Subject
	switch {
	case s.Head != head:
		return &ChangedError{"recording", s.Head, head}
	case s.Definitions != definitions:
		return &ChangedError{"definitions", s.Definitions, definitions}
	case s.Test.Digest != test && test != "":
		return &ChangedError{"test", s.Test.Digest, test}
	}
	return nil
}

// Resume gives the verdicts of the log to a search, in their order. The error is a
// [*ChangedError] if a verdict is about another input than the one that the search has at
// that moment.
func (l *SearchLog) Resume(s *bisect.Search) error {
	for _, v := range l.Verdicts {
		m, err := moment(v.Moment)
		if err != nil {
			return err
		}
		i, ok := Find(s, m)
		if !ok {
			return &ChangedError{"input", v.Moment, "not in the range"}
		}
		if now := s.Stretches()[i].Input; now != v.Input {
			return &ChangedError{"input", fmt.Sprintf("%x… at %s", v.Input[:4], v.Moment), fmt.Sprintf("%x…", now[:4])}
		}
		if err := s.Judge(i, v.Result); err != nil {
			return err
		}
	}
	return nil
}

// Find returns the index of the stretch of a search that holds at a moment, or false if the
// moment is not in the range.
func Find(s *bisect.Search, m replay.Moment) (int, bool) {
	stretches := s.Stretches()
	found := -1
	for i := range stretches {
		if stretches[i].From.Compare(m) > 0 {
			break
		}
		found = i
	}
	if found < 0 || found == len(stretches)-1 && m.Compare(stretches[found].Last) > 0 {
		return 0, false
	}
	return found, true
}
