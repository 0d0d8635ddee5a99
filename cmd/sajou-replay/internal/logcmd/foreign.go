package logcmd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/source"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/agentscene"
)

// foreignFlags are the flags of import that concern recordings of other tools.
type foreignFlags struct {
	format     string
	final      bool
	goOn       bool
	maxSkew    time.Duration
	maxBad     float64
	strict     bool
	keepNative bool
	noScene    bool
	dryRun     bool

	chosen bool // a flag with a default was given
}

// any reports whether a flag was given that only recordings of other tools have.
func (f *foreignFlags) any() bool {
	return f.format != "" || f.final || f.strict || f.keepNative || f.noScene || f.dryRun
}

// options are the choices of the readers.
func (f *foreignFlags) options(notes signal.Value) recording.Options {
	o := recording.Options{Final: f.final, MaxSkew: f.maxSkew, MaxBad: f.maxBad / 100, KeepNative: f.keepNative, Notes: notes}
	if f.strict || f.maxBad == 0 {
		o.MaxBad = -1
	}
	return o
}

// foreignImport is the import of the recordings of other tools, each into a session of its
// own.
type foreignImport struct {
	app      *cli.App
	flags    *foreignFlags
	declared []language.Declaration // by --define
	stages   []func(*signal.Signal)
	notes    signal.Value // of the stages, for the first signal of a recording
	single   bool         // one file was named: -o json prints one object and no list
	results  []*foreignResult
}

// foreignResult is the outcome of one recording, as -o json has it.
type foreignResult struct {
	Session     string         `json:"session"`
	File        string         `json:"file"`
	Format      string         `json:"format"`
	Reason      string         `json:"reason,omitempty"` // why the format was recognized
	Signals     int            `json:"signals"`          // recorded by this import
	Present     int            `json:"present"`          // recorded before
	Definitions int            `json:"definitions"`
	Flagged     int            `json:"flagged"`
	First       eventlog.Seq   `json:"first"`
	Head        *cli.HeadView  `json:"head,omitempty"` // absent in a dry run
	DryRun      bool           `json:"dry_run,omitempty"`
	Final       bool           `json:"final"`
	Balance     balanceView    `json:"balance"`
	Types       map[string]int `json:"types"` // of signals that were read
	Remarks     []string       `json:"remarks,omitempty"`
	Stopped     string         `json:"stopped,omitempty"`

	stopped error
	head    eventlog.Head
	grows   bool // the format does
}

// balanceView is a balance as -o json has it.
type balanceView struct {
	Records      int            `json:"records"`
	Mapped       int            `json:"mapped"`
	Kept         int            `json:"kept"`
	Skipped      map[string]int `json:"skipped"`
	Unreadable   int            `json:"unreadable"`
	Held         int            `json:"held"`
	Waiting      int            `json:"waiting"`
	Clamped      int            `json:"clamped"`
	MaxClampedMs float64        `json:"max_clamped_ms"`
	Ahead        int            `json:"ahead"`
	Repaired     int            `json:"repaired"`
	Cut          int            `json:"cut"`
}

func viewBalance(b recording.Balance) balanceView {
	v := balanceView{
		Records: b.Records, Mapped: b.Mapped, Kept: b.Kept, Skipped: b.Skipped, Unreadable: b.Unreadable, Held: b.Held, Waiting: b.Waiting,
		Clamped: b.Clamped, MaxClampedMs: float64(b.MaxClamped) / float64(time.Millisecond), Ahead: b.Ahead, Repaired: b.Repaired, Cut: b.Cut,
	}
	if v.Skipped == nil {
		v.Skipped = map[string]int{}
	}
	return v
}

// text is a balance in one line.
func (b *balanceView) text() string {
	parts := []string{fmt.Sprintf("%d mapped", b.Mapped)}
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(b.Kept, "kept as they are")
	skipped := 0
	var rules []string
	for _, rule := range slices.Sorted(maps.Keys(b.Skipped)) {
		skipped += b.Skipped[rule]
		rules = append(rules, fmt.Sprintf("%s %d", rule, b.Skipped[rule]))
	}
	if skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped (%s)", skipped, strings.Join(rules, ", ")))
	}
	add(b.Unreadable, "unreadable")
	add(b.Held, "held back")
	return fmt.Sprintf("%s: %s", cli.Plural(b.Records, "record", "records"), strings.Join(parts, ", "))
}

// remarks are the facts about the times and texts of a recording that a user should know.
func (b *balanceView) remarks(final bool) []string {
	var list []string
	say := func(n int, format string, args ...any) {
		if n > 0 {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	say(b.Clamped, "the times of %s are before those of earlier ones, by %v at most; they take effect at the time of these",
		cli.Plural(b.Clamped, "record", "records"), wording.Span(time.Duration(b.MaxClampedMs*float64(time.Millisecond))))
	say(b.Ahead, "the time of %s jumps ahead and comes back: it is a wrong clock, and was not followed; list what it recorded with: sajou-replay cat --where 'has(entry.metadata.clockAhead)'", cli.Plural(b.Ahead, "record", "records"))
	say(b.Repaired, "%s JSON that had to be mended", cli.Plural(b.Repaired, "record has", "records have"))
	say(b.Cut, "%s too long for an entry; their longest texts were cut", cli.Plural(b.Cut, "signal was", "signals were"))
	if !final {
		say(b.Held, "%s for what follows", cli.Plural(b.Held, "record waits", "records wait"))
		say(b.Waiting, "%s behind a jump of time until 64 more records follow",
			cli.Plural(b.Waiting, "record waits", "records wait"))
	}
	return list
}

// run imports recordings. Its error is that of reading or recording; results have what
// was recorded before.
func (f *foreignImport) run(ctx context.Context, recordings []source.Listed) (failed error) {
	var engine *sajou.Engine
	for _, rec := range recordings {
		if err := rec.Problem(); err != nil {
			r := f.result(rec)
			r.stopped, r.Stopped = err, cli.OneLine(err.Error())
			f.results = append(f.results, r)
			continue
		}
		if f.flags.dryRun {
			f.results = append(f.results, f.try(ctx, rec))
			continue
		}
		if engine == nil {
			var err error
			if engine, err = f.app.OpenWriting(); err != nil {
				return err
			}
		}
		result := f.record(ctx, engine, rec)
		f.results = append(f.results, result)
		if errors.Is(result.stopped, eventlog.ErrReadOnly) || ctx.Err() != nil {
			break
		}
	}
	if engine != nil {
		failed = errors.Join(failed, engine.Close())
	}
	return failed
}

// definitions are what comes into force before the first signal: by --define, or else
// for the recordings of other tools the scene for agents.
func (f *foreignImport) definitions(format recording.Format) []language.Declaration {
	if len(f.declared) > 0 || f.flags.noScene || format.Map == nil {
		return f.declared
	}
	return agentscene.Declarations()
}

// pass is one pass over a recording.
type pass interface {
	Items() iter.Seq2[recording.Item, error]
	Balance() recording.Balance
}

// reading begins the pass over a recording.
func (f *foreignImport) reading(rec source.Listed) pass {
	if rec.Format.Map == nil {
		return &signalsPass{rec: rec, notes: f.notes, stages: f.stages}
	}
	return rec.Format.Open(rec.FS, rec.Name, f.options())
}

// options are the choices of the readers.
func (f *foreignImport) options() recording.Options {
	o := f.flags.options(f.notes)
	o.Stages = f.stages
	return o
}

// signalsPass is a pass over signals of the protocol, which need no mapping.
type signalsPass struct {
	rec     source.Listed
	notes   signal.Value // of the stages
	stages  []func(*signal.Signal)
	balance recording.Balance
}

func (p *signalsPass) Balance() recording.Balance { return p.balance }

func (p *signalsPass) Items() iter.Seq2[recording.Item, error] {
	return ingest.Through(p.items(), p.stages...)
}

func (p *signalsPass) items() iter.Seq2[recording.Item, error] {
	return func(yield func(recording.Item, error) bool) {
		file, err := p.rec.FS.Open(p.rec.Name)
		if err != nil {
			yield(recording.Item{}, err)
			return
		}
		defer file.Close()
		p.balance = recording.Balance{Signals: map[string]int{}}
		for item, err := range ingest.JSONL(file, p.rec.Name, true) {
			if err == nil {
				if p.balance.Records == 0 && p.notes.Len() > 0 && !p.noted(item.Signal) {
					if !yield(recording.Item{Signal: p.origin(item.Signal.Timestamp), Place: item.Place}, nil) {
						return
					}
				}
				p.balance.Records++
				p.balance.Mapped++
				p.balance.Signals[item.Signal.Type]++
			}
			if !yield(item, err) {
				return
			}
		}
	}
}

// noted adds the notes to the first signal, if it describes an import: the session was
// exported, and its origin stays what it was.
func (p *signalsPass) noted(first *signal.Signal) bool {
	if first.Type != recording.TypeRecording || first.Raw != nil {
		return false
	}
	payload := signal.ObjectOf(first.Payload)
	for name, v := range p.notes.Members() {
		payload.Set(name, v)
	}
	first.Payload = payload.Value()
	return true
}

// origin returns the signal that names the rules by which all others were changed.
func (p *signalsPass) origin(at signal.Number) *signal.Signal {
	if !at.IsSet() {
		at = signal.Int(0)
	}
	payload := signal.NewObject(4).Text("format", formats.Sajou)
	for name, v := range p.notes.Members() {
		payload.Add(name, v)
	}
	p.balance.Signals[recording.TypeRecording]++
	return &signal.Signal{
		ID: recording.ID(formats.Sajou, "", recording.TypeRecording), Type: recording.TypeRecording, Source: "import:" + formats.Sajou,
		Timestamp: at, Payload: payload.Value(),
	}
}

func (f *foreignImport) result(rec source.Listed) *foreignResult {
	name := rec.Session
	if f.app.Session != "" {
		name = f.app.Session
	}
	return &foreignResult{
		Session: name, File: rec.Path, Format: rec.Format.Name, Reason: rec.Reason,
		Types: map[string]int{}, DryRun: f.flags.dryRun, Final: f.flags.final,
		grows: rec.Format.Grows && rec.Format.Map != nil,
	}
}

// complete adds the counts of a reading to its result.
func (r *foreignResult) complete(reading pass, stopped error) *foreignResult {
	b := reading.Balance()
	r.Balance = viewBalance(b)
	maps.Copy(r.Types, b.Signals)
	r.Remarks = append(r.Remarks, r.Balance.remarks(r.Final)...)
	if r.stopped = stopped; stopped != nil {
		r.Stopped = cli.OneLine(stopped.Error())
	}
	return r
}

// try reads a recording and records nothing.
func (f *foreignImport) try(ctx context.Context, rec source.Listed) *foreignResult {
	r := f.result(rec)
	reading := f.reading(rec)
	var stopped error
	for item, err := range reading.Items() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			stopped = err
			break
		}
		r.note(item.Signal)
	}
	return r.complete(reading, stopped)
}

// note keeps the remarks of a reader.
func (r *foreignResult) note(sig *signal.Signal) {
	const most = 100
	if sig.Type == recording.TypeRemark && len(r.Remarks) < most {
		r.Remarks = append(r.Remarks, sig.Payload.TextOf("message"))
	}
	if sig.Problem != "" {
		r.Flagged++
	}
}

// record records a recording into its session.
func (f *foreignImport) record(ctx context.Context, engine *sajou.Engine, rec source.Listed) *foreignResult {
	r := f.result(rec)
	reading := f.reading(rec)
	if f.flags.goOn && !rec.Format.Grows {
		r.Remarks = append(r.Remarks, fmt.Sprintf("a recording of the format %s is one document: --continue only completes an import that was interrupted", rec.Format.Name))
	}
	stopped := f.into(ctx, engine, rec, r, reading)
	return r.complete(reading, stopped)
}

func (f *foreignImport) into(ctx context.Context, engine *sajou.Engine, rec source.Listed, r *foreignResult, reading pass) error {
	if err := eventlog.CheckName(r.Session); err != nil {
		return cli.Misuse("%w; name it with --session", err)
	}
	log, err := engine.Log().Session(r.Session)
	if err != nil {
		return err
	}
	if log.Exists() && !f.flags.goOn {
		return cli.Fail(cli.ExitNo, "session %q exists already, with %s; continue its import with --continue, or name another with --session",
			r.Session, cli.Plural(int(log.Head().Seq), "entry", "entries"))
	}
	session, err := engine.Session(ctx, r.Session)
	if err != nil {
		return err
	}
	cfg := ingest.Config{Definitions: f.definitions(rec.Format), Lenient: true}
	if log.Exists() {
		cfg.Resume = log
	}
	m := cli.NewProgress(f.app.Stderr)
	defer m.Clear()
	recorder, err := ingest.NewRecorder(ctx, session, cfg)
	if err != nil {
		return err
	}
	defer recorder.Close()
	next, end := iter.Pull2(reading.Items())
	defer end()
	item, err, more := next()
	if !more {
		r.Remarks = append(r.Remarks, "no signal came of it: nothing was recorded")
		return nil
	}
	items := func(yield func(recording.Item, error) bool) {
		for ; more; item, err, more = next() {
			if err == nil {
				r.note(item.Signal)
				m.Show(progress(rec, item.Place))
			}
			if !yield(item, err) {
				return
			}
		}
	}
	stopped := recorder.All(ctx, items)
	t := recorder.Tally()
	r.Signals, r.Present, r.Definitions, r.First = t.Signals, t.Skipped, t.Definitions, t.First
	head := cli.ViewHead(t.Head)
	r.Head, r.head = &head, t.Head
	return stopped
}

// progress says how far the reading of a recording has come.
func progress(rec source.Listed, at recording.Place) string {
	const mb = 1 << 20
	if rec.Size <= 0 || at.Offset == 0 {
		return fmt.Sprintf("%s: line %d", termtext.Printable(rec.Path), at.Line)
	}
	return fmt.Sprintf("%s: %d of %d MiB, %d%%", termtext.Printable(rec.Path), at.Offset/mb, rec.Size/mb, min(100, 100*at.Offset/rec.Size))
}

// report prints the results, and returns the error of the command.
func (f *foreignImport) report(ctx context.Context, failed error) error {
	out := f.app.Output()
	recorded := false
	var first error
	for _, r := range f.results {
		recorded = recorded || r.First > 0
		if r.stopped != nil && first == nil {
			first = r.stopped
		}
		if f.single && f.app.Format != "text" {
			err := out.One("", r)
			if err != nil {
				return err
			}
		} else if err := out.ItemOf(r.text(), r); err != nil {
			return err
		}
		for _, remark := range r.Remarks {
			fmt.Fprintf(f.app.Stderr, "sajou-replay: %s: %s\n", termtext.Printable(r.File), termtext.Printable(remark))
		}
		if r.stopped != nil && len(f.results) > 1 {
			fmt.Fprintf(f.app.Stderr, "sajou-replay: %s: %s\n", termtext.Printable(r.File), termtext.Printable(r.Stopped))
		}
	}
	if n := f.open(); n > 0 && ctx.Err() == nil {
		fmt.Fprintf(f.app.Stderr, "sajou-replay: %s go on, so what only its end tells was left out; if it is complete, record the rest with --continue --final\n",
			map[bool]string{true: "the recording may", false: "each of the recordings may"}[n == 1])
	}
	if !f.single || f.app.Format == "text" {
		if err := out.End(); err != nil {
			return err
		}
	}
	if failed == nil {
		failed = first
	}
	switch {
	case failed == nil:
		return nil
	case ctx.Err() != nil:
		return cli.Fail(cli.ExitInterrupted, "interrupted; the signals before are recorded: complete the import with --continue")
	case cli.IsA[*ingest.MismatchError](failed):
		return &cli.ExitError{Code: cli.ExitNo, Cause: failed}
	case recorded:
		return &cli.ExitError{Code: cli.ExitLoss, Cause: failed}
	}
	return failed
}

// open counts the recordings that may go on, and were imported without their end.
func (f *foreignImport) open() int {
	n := 0
	for _, r := range f.results {
		if r.grows && !r.Final && r.stopped == nil {
			n++
		}
	}
	return n
}

// text is a result for people.
func (r *foreignResult) text() string {
	name := termtext.Printable(r.Session)
	var line string
	switch {
	case r.DryRun:
		line = fmt.Sprintf("%s (%s): would record %s into %q", termtext.Printable(r.File), r.Format, cli.Plural(total(r.Types), "signal", "signals"), name)
	case r.stopped != nil && r.First == 0:
		line = fmt.Sprintf("%s (%s): nothing was recorded in %q", termtext.Printable(r.File), r.Format, name)
	case r.First == 0 && r.Present > 0:
		line = fmt.Sprintf("%q has all %s of %s (%s) already: head %v", name, cli.Plural(r.Present, "signal", "signals"), termtext.Printable(r.File), r.Format, r.head)
	case r.First == 0:
		line = fmt.Sprintf("%s (%s): nothing was recorded in %q: no signal is known yet", termtext.Printable(r.File), r.Format, name)
	default:
		line = fmt.Sprintf("imported %s of %s (%s) into %q: entries %d..%d, head %v", cli.Plural(r.Signals, "signal", "signals"),
			termtext.Printable(r.File), r.Format, name, r.First, r.head.Seq, r.head)
	}
	line += "\n  " + r.Balance.text()
	if r.DryRun {
		for _, typ := range slices.Sorted(maps.Keys(r.Types)) {
			line += fmt.Sprintf("\n  %6d %s", r.Types[typ], termtext.Printable(typ))
		}
	}
	return line
}

func total(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}
