package statecmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/searchlog"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// The kinds of tests of a kept search.
const (
	byPerson  = "person"
	byWhere   = "where"
	byImage   = "image"
	byProgram = "program"
)

// keptSearch is a search that goes on over several commands.
type keptSearch struct {
	a      *cli.App
	t      *cli.OpenedSession
	log    *searchlog.SearchLog
	test   bisect.Test
	search *bisect.Search
}

// openSearch opens the session and continues the search that is kept of it. It refuses to
// go on if the recording, the test, or what the test sees has changed.
func openSearch(ctx context.Context, a *cli.App) (*keptSearch, error) {
	t, err := a.OpenSession("")
	if err != nil {
		return nil, err
	}
	s := &keptSearch{a: a, t: t}
	if err := s.resume(ctx); err != nil {
		_ = t.Close()
		return nil, err
	}
	return s, nil
}

func (s *keptSearch) resume(ctx context.Context) (err error) {
	if s.log, err = s.a.SearchLog(s.t.Name); err != nil {
		return err
	}
	if s.log.Torn {
		fmt.Fprintln(s.a.Stderr, "sajou-replay: the last line of the search was incomplete and is ignored; judge that moment again")
	}
	subject := &s.log.Subject
	number, _, _ := strings.Cut(subject.Head, ":")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return cli.Fail(cli.ExitNo, "the search has no valid head: %.80q", subject.Head)
	}
	head, definitions, err := fingerprint(ctx, s.t, eventlog.Seq(seq))
	if err != nil {
		return err
	}
	if s.test, err = keptTest(ctx, s.a, s.t, subject.Test); err != nil {
		return err
	}
	if err := s.log.Check(head, definitions, s.test.Identity); err != nil {
		return changed(err)
	}
	from, err := s.t.Resolve(ctx, subject.Good)
	if err != nil {
		return err
	}
	to, err := s.t.Resolve(ctx, subject.Bad)
	if err != nil {
		return err
	}
	step, err := subject.Step()
	if err != nil {
		return err
	}
	stretches, err := bisect.Stretches(ctx, s.t.Travel, replay.MomentRange{From: from, To: to, Every: step}, s.test, nil)
	if err != nil {
		return err
	}
	s.search = bisect.New(stretches, bisect.Options{Goal: bisect.Any, Probes: bisect.DefaultProbes})
	return changed(s.log.Resume(s.search))
}

// changed adds the remedy to an error about a search whose ground has changed.
func changed(err error) error {
	if c, ok := errors.AsType[*searchlog.ChangedError](err); ok {
		return cli.Fail(cli.ExitNo, "%w; restore it, or begin again with: sajou-replay bisect reset", c)
	}
	return err
}

// fingerprint returns the head of a session at an entry, and the digest of the declarations
// up to there.
func fingerprint(ctx context.Context, t *cli.OpenedSession, at eventlog.Seq) (head, definitions string, err error) {
	if last := t.Travel.Head().Seq; last < at {
		return fmt.Sprintf("shorter, %d entries", last), "", nil
	}
	digest := sha256.New()
	head = "0:" + t.Log.Genesis().String()
	err = t.Each(ctx, 1, at, func(e *eventlog.Entry) error {
		if e.Kind == eventlog.KindDefine {
			fmt.Fprintf(digest, "%d %d\n", e.Seq, len(e.Data))
			digest.Write(e.Data)
		}
		head = fmt.Sprintf("%d:%v", e.Seq, e.Hash)
		return nil
	})
	return head, hex.EncodeToString(digest.Sum(nil)), err
}

// keptTest makes the test that a search names.
func keptTest(ctx context.Context, a *cli.App, t *cli.OpenedSession, named searchlog.SearchedTest) (bisect.Test, error) {
	switch named.Kind {
	case byPerson:
		return bisect.Test{Input: pictureInput}, nil
	case byWhere:
		if len(named.Args) != 1 {
			break
		}
		p, err := cli.Compile(named.Args[0])
		if err != nil {
			return bisect.Test{}, err
		}
		test := expressionTest(p)
		test.Identity = digestOf(named.Args)
		return test, t.FoldFor(&p.Expression)
	case byImage:
		look := imageOf(named.Flags)
		c, err := look.load(ctx)
		if err != nil {
			return bisect.Test{}, err
		}
		return c.bisectTest(), nil
	case byProgram:
		if len(named.Args) == 0 {
			break
		}
		limit := time.Duration(0)
		if text := named.Flags["timeout"]; text != "" {
			var err error
			if limit, err = time.ParseDuration(text); err != nil || limit <= 0 {
				return bisect.Test{}, cli.Fail(cli.ExitNo, "the search has no valid timeout: %.80q", text)
			}
		}
		test := (&bisectFlags{timeout: limit}).programTest(t, a, named.Args)
		test.Identity = digestOf(named.Args)
		return test, nil
	}
	return bisect.Test{}, cli.Fail(cli.ExitNo, "the search names no test that this program knows: %q", named.Kind)
}

// pictureInput is what a person sees at a moment: the drawing of the stage.
func pictureInput(_ context.Context, s *replay.ScanStep) (bisect.InputHash, error) {
	f, err := film.FrameOf(s.Fold)
	if err != nil {
		return bisect.InputHash{}, err
	}
	return picture.Draw(f, picture.Options{}).Hash(), nil
}

// digestOf returns the digest of a command line or an expression, with the contents of the
// files that its arguments name, such as the script of an interpreter.
func digestOf(args []string) string {
	h := sha256.New()
	for _, arg := range args {
		fmt.Fprintf(h, "%d %s\n", len(arg), arg)
		addFile(h, arg)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// maxTestFile bounds the bytes of a file that count for the digest of a test.
const maxTestFile = 16 << 20

func addFile(h hash.Hash, name string) {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return
	}
	f, err := os.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	n, _ := io.Copy(h, io.LimitReader(f, maxTestFile))
	fmt.Fprintf(h, "\n%d\n", n)
}

// values returns the flags of an image test that have a value, by their names.
func (l *imageTest) values() map[string]string {
	values := map[string]string{
		"image": l.image, "mask": l.mask, "region": l.region, "entity": l.entity, "max-diff": l.maxDiff, "max-color": strconv.Itoa(l.maxColor),
	}
	if l.same {
		values["same"] = "true"
	}
	for name, value := range values {
		if value == "" {
			delete(values, name)
		}
	}
	return values
}

// imageOf is the inverse of values.
func imageOf(values map[string]string) *imageTest {
	color, _ := strconv.Atoi(values["max-color"])
	return &imageTest{
		image: values["image"], mask: values["mask"], region: values["region"], entity: values["entity"],
		maxDiff: values["max-diff"], maxColor: color, same: values["same"] == "true",
	}
}

// term returns the word of the search for a result.
func (s *keptSearch) term(r bisect.TestResult) string {
	if words := s.log.Subject.Terms; len(words) == 2 && r != bisect.Skip {
		return termtext.Printable(words[int(r-bisect.Good)])
	}
	return r.String()
}

// judge records a result for a stretch, durably, before the search takes it.
func (s *keptSearch) judge(i int, m replay.Moment, r bisect.TestResult, by string) error {
	v := searchlog.KeptJudgment{Result: r, Moment: m.String(), Input: s.search.Stretches()[i].Input, By: by}
	line, err := v.Line()
	if err != nil {
		return err
	}
	if err := s.a.ExtendSearch(s.log, line); err != nil {
		return err
	}
	s.log.Verdicts = append(s.log.Verdicts, v)
	return s.search.Judge(i, r)
}

// undo takes back the latest verdict.
func (s *keptSearch) undo() (replay.Moment, bool, error) {
	if len(s.log.Verdicts) == 0 {
		return replay.Moment{}, false, nil
	}
	if err := s.a.ExtendSearch(s.log, searchlog.Undo()); err != nil {
		return replay.Moment{}, false, err
	}
	s.log.Verdicts = s.log.Verdicts[:len(s.log.Verdicts)-1]
	i, ok := s.search.Undo()
	return s.search.Stretches()[i].From, ok, nil
}

// run judges with the test until the search wants nothing more.
func (s *keptSearch) run(ctx context.Context) error {
	if s.log.Subject.Test.Kind == byPerson {
		return cli.Misuse("this search is judged by a person: use bisect ask, or bisect good, bad and skip; a test is named at bisect start")
	}
	cursor := s.t.Travel.Cursor()
	for p, more := s.search.Next(); more; p, more = s.search.Next() {
		at := s.search.Stretches()[p.Index]
		r := bisect.TestResult(0)
		if s.test.Judge == nil { // the input is the result
			for _, known := range []bisect.TestResult{bisect.Good, bisect.Bad} {
				if at.Input == bisect.ResultInput(known) {
					r = known
				}
			}
		} else {
			if err := cursor.Seek(ctx, at.From); err != nil {
				return err
			}
			var err error
			if r, err = s.test.Judge(ctx, at.From, cursor.Fold()); err != nil {
				return err
			}
		}
		if err := s.judge(p.Index, at.From, r, "test"); err != nil {
			return err
		}
		fmt.Fprintf(s.a.Stderr, "%6v  %s  %s\n", at.From, cli.ClockText(at.At), s.term(r))
	}
	return s.report()
}

// searchView is the state of a kept search for JSON.
type searchView struct {
	Session    string   `json:"session"`
	Next       string   `json:"next,omitempty"`
	Why        string   `json:"why,omitempty"`
	Left       int      `json:"left"`
	Judged     int      `json:"judged"`
	Candidates int      `json:"candidates"`
	Good       string   `json:"good,omitempty"`
	Bad        string   `json:"bad,omitempty"`
	Finished   bool     `json:"finished"`
	Conclusive bool     `json:"conclusive"`
	Assumes    string   `json:"assumes,omitempty"`
	Islands    []string `json:"islands,omitempty"`
	Conflict   string   `json:"conflict,omitempty"`
}

// view returns the state of the search, and a text about it.
func (s *keptSearch) view() (searchView, string) {
	c := s.search.Conclusion()
	stretches := s.search.Stretches()
	v := searchView{Session: s.t.Name, Judged: c.Judged, Candidates: c.Candidates, Conclusive: c.Conclusive(), Assumes: c.Assumes()}
	left, judgments := s.search.Left()
	v.Left = left
	text := ""
	if c.Found {
		v.Good, v.Bad = stretches[c.Good].From.String(), stretches[c.Bad].From.String()
		text = fmt.Sprintf("%s is %s, and %s is %s\n", v.Good, s.term(bisect.Good), v.Bad, s.term(bisect.Bad))
	}
	for _, island := range c.Islands() {
		v.Islands = append(v.Islands, stretches[island.First].From.String())
		text += fmt.Sprintf("but %v is %s\n", stretches[island.First].From, s.term(island.Result))
	}
	if p, more := s.search.Next(); more {
		at := stretches[p.Index]
		v.Next, v.Why = at.From.String(), p.Purpose.String()
		text += fmt.Sprintf("next: %v (%s), to %s; %s left, about %s\n", at.From, cli.ClockText(at.At), purposes[p.Purpose],
			cli.Plural(left, "candidate", "candidates"), cli.Plural(judgments, "judgment", "judgments"))
		return v, text
	}
	v.Finished = s.search.Err() == nil
	if v.Finished && c.Exact() {
		// The good side lasts until the transition.
		v.Good = stretches[c.Good].Last.String()
		kind := "entry"
		if stretches[c.Bad].From.Offset > 0 {
			kind = "moment"
		}
		text = fmt.Sprintf("%s is a %s %s after a %s one, %s: a transition\n", v.Bad, s.term(bisect.Bad), kind, s.term(bisect.Good), v.Good)
		for _, island := range c.Islands() {
			text += fmt.Sprintf("but %v is %s\n", stretches[island.First].From, s.term(island.Result))
		}
	}
	if len(c.Conflicts) > 0 {
		at := c.Conflicts[0]
		v.Conflict = stretches[at.Index].From.String()
		text += fmt.Sprintf("but %s was judged %s and then %s, although the test saw the same\n", v.Conflict, s.term(at.Was), s.term(at.Now))
	}
	switch {
	case v.Conclusive:
		text += fmt.Sprintf("conclusive: all %s were judged\n", cli.Plural(c.Candidates, "candidate", "candidates"))
	case v.Finished:
		text += fmt.Sprintf("finished; %d of %d candidates were judged; assumes: one transition\n", c.Judged, c.Candidates)
	}
	return v, text
}

// purposes are the purposes of judgments in words.
var purposes = map[bisect.Purpose]string{
	bisect.ForEnd: "judge an end of the range", bisect.ForHalving: "halve what is open", bisect.ForProbe: "look for an island",
	bisect.ForAll: "judge every input", bisect.ForRecheck: "judge an end again",
}

// report writes the state of the search.
func (s *keptSearch) report() error {
	v, text := s.view()
	if err := s.a.Output().One(text, v); err != nil {
		return err
	}
	if err := s.search.Err(); err != nil {
		return cli.Fail(cli.ExitNo, "%w; take back a verdict with: sajou-replay bisect undo", err)
	}
	if v.Conflict != "" {
		return cli.Fail(cli.ExitInconclusive, "the judgments contradict each other at %s; take back the latest with: sajou-replay bisect undo", v.Conflict)
	}
	if v.Finished && len(v.Islands) > 0 {
		return &cli.ExitError{Code: cli.ExitInconclusive}
	}
	return nil
}

// remaining returns the stretches that the search may still judge, at most n of them,
// evenly: those between its good and its bad side.
func (s *keptSearch) remaining(n int) []bisect.Stretch {
	all := s.search.Stretches()
	if good, bad, ok := s.search.Bracket(); ok {
		all = all[good : bad+1]
	}
	if len(all) <= n {
		return all
	}
	var some []bisect.Stretch
	for i := range n {
		some = append(some, all[i*(len(all)-1)/(n-1)])
	}
	return slices.Clip(some)
}

// shot returns the picture of the stage at a moment.
func (s *keptSearch) shot(ctx context.Context, m replay.Moment) (film.Shot, error) {
	return s.t.Reel(nil).Shot(ctx, m)
}
