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

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/searchlog"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// keptSearch is a search that goes on over several commands.
type keptSearch struct {
	a      *cli.App
	t      *cli.OpenedSession
	log    *searchlog.SearchLog
	test   bisect.Test
	repeat bisect.Repeat // of the test
	search *bisect.Search
	onset  *bisect.Onset // of the transition; nil if the test did not go on between its sides
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
	head, definitions, err := fingerprint(ctx, s.t, eventlog.Seq(seq), subject.Define)
	if err != nil {
		return err
	}
	if err := s.log.Check(head, definitions, ""); err != nil {
		return changed(err)
	}
	if err := s.a.SeeThrough(ctx, s.t, subject.Define); err != nil {
		return err
	}
	if s.test, s.repeat, err = keptTest(ctx, s.a, s.t, subject.Test); err != nil {
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
	options, err := subject.Options()
	if err != nil {
		return err
	}
	s.search = bisect.New(stretches, options)
	if err := s.log.Resume(s.search); err != nil {
		return changed(err)
	}
	if subject.Test.Kind == byWhere && s.search.Conclusion().Conclusive() {
		return s.proceed(ctx, bisect.Config{}) // evaluates an expression, and judges nothing
	}
	return nil
}

// changed adds the remedy to an error about a search whose ground has changed.
func changed(err error) error {
	if c, ok := errors.AsType[*searchlog.ChangedError](err); ok {
		return cli.Fail(cli.ExitNo, "%w; restore it, or begin again with: sajou-replay bisect reset", c)
	}
	return err
}

// fingerprint returns the head of a session at an entry as it was recorded, and the digest
// of the declarations up to there and of the files of --define.
func fingerprint(ctx context.Context, t *cli.OpenedSession, at eventlog.Seq, files cli.Definitions) (head, definitions string, err error) {
	if last := t.Log.Head().Seq; last < at {
		return fmt.Sprintf("shorter, %d entries", last), "", nil
	}
	digest := sha256.New()
	head = "0:" + t.Log.Genesis().String()
	for e, err := range t.Log.Entries(ctx, 1) {
		if err != nil {
			return "", "", err
		}
		if e.Seq > at {
			break
		}
		if e.Kind == eventlog.KindDefine {
			fmt.Fprintf(digest, "%d %d\n", e.Seq, len(e.Data))
			digest.Write(e.Data)
		}
		head = fmt.Sprintf("%d:%v", e.Seq, e.Hash)
	}
	err = files.AppendTexts(ctx, digest)
	return head, hex.EncodeToString(digest.Sum(nil)), err
}

// keptTest makes the test that a search names, and returns how often it is run.
func keptTest(ctx context.Context, a *cli.App, t *cli.OpenedSession, named searchlog.SearchedTest) (bisect.Test, bisect.Repeat, error) {
	f, err := flagsOf(named)
	if err != nil || named.Kind == byPerson {
		return bisect.Test{Input: pictureInput}, bisect.Repeat{}, err
	}
	made, err := f.compile(ctx, named.Args)
	if err != nil {
		return bisect.Test{}, f.repeat, err
	}
	test, err := f.test(a, t, made)
	if named.Kind != byImage {
		test.Identity = digestOf(named.Args)
	}
	// Searches of earlier versions have none of these flags.
	for _, name := range append([]string{"see"}, repeatFlags...) {
		if value := named.Flags[name]; value != "" {
			test.Identity += " " + name + "=" + value
		}
	}
	return test, f.repeat, err
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

// term returns the word of the search for a result.
func (s *keptSearch) term(r bisect.TestResult) string {
	if words := s.log.Subject.Terms; len(words) == 2 && r != bisect.Skip {
		return termtext.Printable(words[int(r-bisect.Good)])
	}
	return r.String()
}

// judge records a result for a stretch, durably, before the search takes it.
func (s *keptSearch) judge(i int, m replay.Moment, r bisect.TestResult, by string) error {
	if err := s.record(i, m, r, by); err != nil {
		return err
	}
	return s.search.Judge(i, r)
}

// record writes a result for a stretch to the log of the search.
func (s *keptSearch) record(i int, m replay.Moment, r bisect.TestResult, by string) error {
	s.onset = nil // it may be of another transition now
	v := searchlog.KeptJudgment{Result: r, Moment: m.String(), Input: s.search.Stretches()[i].Input, By: by}
	line, err := v.Line()
	if err != nil {
		return err
	}
	if err := s.a.ExtendSearch(s.log, line); err != nil {
		return err
	}
	s.log.Verdicts = append(s.log.Verdicts, v)
	return nil
}

// undo takes back the latest verdict.
func (s *keptSearch) undo() (replay.Moment, bool, error) {
	if len(s.log.Verdicts) == 0 {
		return replay.Moment{}, false, nil
	}
	if err := s.a.ExtendSearch(s.log, searchlog.Undo()); err != nil {
		return replay.Moment{}, false, err
	}
	s.log.Verdicts, s.onset = s.log.Verdicts[:len(s.log.Verdicts)-1], nil
	i, ok := s.search.Undo()
	return s.search.Stretches()[i].From, ok, nil
}

// run judges with the test until the search wants nothing more, and then goes on between the
// two sides of the transition.
func (s *keptSearch) run(ctx context.Context, jobs int) error {
	if s.log.Subject.Test.Kind == byPerson {
		return cli.Misuse("this search is judged by a person: use bisect ask, or bisect good, bad and skip; a test is named at bisect start")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	say := func(j bisect.Judged) { fmt.Fprintln(s.a.Stderr, judgedText(j, s.term(j.Result))) }
	if s.test.Judge == nil { // the input is the result
		for i, at := range s.search.Stretches() {
			if s.search.Result(i) != 0 {
				continue
			}
			r, err := at.Input.Result()
			if err != nil {
				return err
			}
			if err := s.judge(i, at.From, r, "test"); err != nil {
				return err
			}
			say(bisect.Judged{Moment: at.From, At: at.At, Result: r})
		}
	}
	err := s.proceed(ctx, bisect.Config{Repeat: s.repeat, Jobs: jobs, Judged: func(j bisect.Judged) {
		// Judgments within the transition are not kept: the log has those of candidates.
		if !j.Onset {
			if err := s.record(j.Index, j.Moment, j.Result, "test"); err != nil {
				cancel(err)
				return
			}
		}
		say(j)
	}})
	if failed := context.Cause(ctx); failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	return s.report()
}

// proceed judges with the test, and finds the onset. Ends that do not hold are
// not an error here: the report names them.
func (s *keptSearch) proceed(ctx context.Context, cfg bisect.Config) error {
	found, err := bisect.Continue(ctx, s.t.Travel, s.search, s.test, cfg)
	if errors.Is(err, bisect.ErrEndpoint) || errors.Is(err, bisect.ErrAlike) {
		return nil
	}
	if err == nil {
		s.onset = found.Onset
	}
	return err
}

// searchView is the state of a kept search for JSON.
type searchView struct {
	Session    string             `json:"session"`
	Next       string             `json:"next,omitempty"`
	Why        string             `json:"why,omitempty"`
	Left       int                `json:"left"`
	Judged     int                `json:"judged"`
	Candidates int                `json:"candidates"`
	Good       string             `json:"good,omitempty"`
	Bad        string             `json:"bad,omitempty"`
	Moment     string             `json:"moment,omitempty"`
	At         *float64           `json:"at,omitempty"`
	ByEntry    *bool              `json:"byEntry,omitempty"`
	Finished   bool               `json:"finished"`
	Conclusive bool               `json:"conclusive"`
	Assumes    string             `json:"assumes,omitempty"`
	Phases     []answer.PhaseView `json:"phases,omitempty"`
	Islands    []string           `json:"islands,omitempty"`
	Conflict   string             `json:"conflict,omitempty"`
}

// view returns the state of the search, and a text about it.
func (s *keptSearch) view() (searchView, string) {
	c := s.search.Conclusion()
	stretches := s.search.Stretches()
	v := searchView{Session: s.t.Name, Judged: c.Judged, Candidates: c.Candidates, Conclusive: c.Conclusive(), Assumes: c.Assumes()}
	var islands []bisect.Phase // the other goals assume no single transition
	if c.Goal == bisect.Any {
		islands = c.Islands()
	}
	left, judgments := s.search.Left()
	v.Left = left
	text := ""
	if c.Found {
		v.Good, v.Bad = stretches[c.Good].From.String(), stretches[c.Bad].From.String()
		text = fmt.Sprintf("%s is %s, and %s is %s\n", v.Good, s.term(bisect.Good), v.Bad, s.term(bisect.Bad))
	}
	for _, island := range islands {
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
		text = s.transition(&v, c)
		for _, island := range islands {
			text += fmt.Sprintf("but %v is %s\n", stretches[island.First].From, s.term(island.Result))
		}
	}
	if len(c.Conflicts) > 0 {
		at := c.Conflicts[0]
		v.Conflict = stretches[at.Index].From.String()
		text += fmt.Sprintf("but %s was judged %s and then %s, although the test saw the same\n", v.Conflict, s.term(at.Was), s.term(at.Now))
	}
	if v.Finished && c.Goal != bisect.Any {
		phases := answer.ViewPhases(stretches, c.Phases)
		if v.Conclusive {
			v.Phases = phases
		}
		text += s.phases(phases)
	}
	switch {
	case v.Conclusive:
		text += fmt.Sprintf("conclusive: all %s were judged\n", cli.Plural(c.Candidates, "candidate", "candidates"))
	case v.Finished:
		text += fmt.Sprintf("finished; %d of %d candidates were judged", c.Judged, c.Candidates)
		if v.Assumes != "" {
			text += "; assumes: " + v.Assumes
		}
		text += "\n"
	}
	return v, text
}

// phases returns a text about the times at which the session is bad.
func (s *keptSearch) phases(phases []answer.PhaseView) (text string) {
	for _, p := range phases {
		if p.Result == bisect.Bad.String() {
			p.Result = s.term(bisect.Bad)
			text += p.String() + "\n"
		}
	}
	if text == "" && s.search.Conclusion().Conclusive() {
		return fmt.Sprintf("nothing is %s in %s..%s\n", s.term(bisect.Bad), s.log.Subject.Good, s.log.Subject.Bad)
	}
	return text
}

// transition puts the transition of a search that has finished into its view, and returns a
// text about it.
func (s *keptSearch) transition(v *searchView, c bisect.Conclusion) string {
	side := s.search.Stretches()[c.Bad]
	kind, name, on := "entry", side.From, s.onset
	if side.From.Offset > 0 {
		kind = "moment"
		if on != nil {
			name = on.Bad // what moves turned bad before the boundary
		}
	}
	bad, good := s.term(bisect.Bad), s.term(bisect.Good)
	text := fmt.Sprintf("%v is a %s %s after a %s one, %s: a transition\n", name, bad, kind, good, v.Good)
	if on != nil && v.Conclusive && answer.BeginsGood(c) {
		text = fmt.Sprintf("%v is the first %s %s\n", name, bad, kind)
	}
	switch {
	case on != nil:
		at := projection.Millis(on.At)
		v.Moment, v.At, v.ByEntry = on.Bad.String(), &at, &on.ByEntry
		text += onsetText(on, side, bad) + "\n"
	case s.test.Judge != nil:
		text += "the instant between the two is not known; find it with: sajou-replay bisect run\n"
	}
	return text
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
	if v.Finished {
		return exitOf(s.search.Conclusion(), v.Conclusive)
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
