package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

const (
	// maxBatchLines and maxBatchBytes bound what is held before it is recorded.
	maxBatchLines = 1000
	maxBatchBytes = 4 << 20

	// maxDefinitions bounds a file of definitions.
	maxDefinitions = 64 << 20
)

func (a *app) importCommand() *cobra.Command {
	var (
		defines []string
		lenient bool
		more    bool
	)
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Record signals from JSONL files",
		Long: `Import records the signals of JSONL files, one JSON object a line, into one
session, in the order given; - is stdin. Blank lines are skipped.

The session is called like the first file, without .jsonl, unless --session
names it. It must be new unless --append says otherwise.

A line that is not a valid signal ends the import with its number. What came
before it stays, whole, and is reported: the exit code is then 3, or 1 if
nothing was recorded. With --lenient signals that break the protocol's schema
are recorded too, as they came, and flagged; only what is no JSON object is
refused. Nothing is lost by that, so the exit code stays 0.

What files from --define declare (choreographies, sequences, easings, bindings,
a scene; see define add) comes into force before the first signal. The same
files under the same session name give the same head hash in every store.`,
		Example: `  sajou-replay import session.jsonl
  sajou-replay import part1.jsonl part2.jsonl --session release-42 --define choreo.json
  my-agent | sajou-replay import - --session live --append --lenient`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return misuse("nothing to import; name JSONL files, or - for stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.importFiles(cmd.Context(), args, defines, lenient, more)
		},
	}
	cmd.Flags().StringArrayVar(&defines, "define", nil, "file of choreographies, scenes and the like to bring into force first; repeatable")
	cmd.Flags().BoolVar(&lenient, "lenient", false, "record and flag signals that break the schema")
	cmd.Flags().BoolVar(&more, "append", false, "add to a session that exists")
	return cmd
}

func (a *app) importFiles(ctx context.Context, files, defines []string, lenient, more bool) error {
	for _, file := range files {
		if file == "-" {
			continue
		}
		// Not opened yet: what writes into a pipe would see it close again.
		switch info, err := os.Stat(file); {
		case err != nil:
			return unreadable(file, err)
		case info.IsDir():
			return misuse("%s is a directory; name JSONL files", file)
		}
	}
	name := a.session
	if name == "" {
		name = sessionName(files[0])
	}
	if err := eventlog.CheckName(name); err != nil {
		if a.session != "" {
			return misuse("--session: %s", oneLine(err.Error()))
		}
		return misuse("%w; name it with --session", err)
	}
	catalog := new(choreography.Catalog)
	if more && len(defines) > 0 {
		var err error
		if catalog, err = a.inForce(ctx, name); err != nil {
			return err
		}
	}
	definitions, err := a.readDeclared(catalog, defines, "nothing was recorded")
	if err != nil {
		return err
	}
	engine, err := a.openWriting()
	if err != nil {
		return err
	}
	err = a.importInto(ctx, engine, name, files, &recorder{definitions: definitions, lenient: lenient}, more)
	if closing := engine.Close(); err == nil {
		err = closing
	}
	return err
}

// sessionName is what a session is called after the file it comes from.
func sessionName(file string) string {
	if file == "-" {
		return "stdin"
	}
	return strings.TrimSuffix(filepath.Base(file), ".jsonl")
}

func (a *app) importInto(ctx context.Context, engine *sajou.Engine, name string, files []string, r *recorder, more bool) error {
	a.about = name
	log, err := engine.Log().Session(name)
	if err != nil {
		return err
	}
	if log.Exists() && !more {
		return fail(exitNo, "the session %q exists, with %s; add to it with --append, or name another with --session",
			name, plural(int(log.Head().Seq), "entry", "entries"))
	}
	r.session, err = engine.Session(ctx, name)
	if err != nil {
		return err
	}
	r.meter = newMeter(a.stderr)
	stopped := r.readAll(ctx, files, a.stdin)
	r.meter.clear()
	return a.reportImport(ctx, name, r, stopped)
}

func (a *app) reportImport(ctx context.Context, name string, r *recorder, stopped error) error {
	result := struct {
		Session     string       `json:"session"`
		Signals     int          `json:"signals"`
		Definitions int          `json:"definitions"`
		Flagged     int          `json:"flagged"`
		First       eventlog.Seq `json:"first"`
		Head        headView     `json:"head"`
		Stopped     string       `json:"stopped,omitempty"`
	}{name, r.signals, r.defined, r.flagged, r.first, viewHead(r.session.Head()), ""}
	text := fmt.Sprintf("nothing to import into %q", name)
	if r.first > 0 {
		text = fmt.Sprintf("imported %s into %q: entries %d..%d, head %v",
			plural(r.signals, "signal", "signals"), name, r.first, r.session.Head().Seq, r.session.Head())
	}
	if r.flagged > 0 {
		fmt.Fprintf(a.stderr, "sajou-replay: %s the schema and flagged; list them with: sajou-replay cat --where 'has(entry.problem)'\n",
			plural(r.flagged, "signal was recorded against", "signals were recorded against"))
	}
	if stopped != nil {
		result.Stopped = stopped.Error()
	}
	if stopped == nil || r.first > 0 || a.format != "text" {
		if err := a.output().one(text, result); err != nil {
			return err
		}
	}
	switch {
	case stopped == nil:
		return nil
	case ctx.Err() != nil:
		return fail(exitInterrupted, "interrupted; what was imported before is whole")
	case errors.Is(stopped, eventlog.ErrReadOnly):
		return stopped
	case r.first == 0:
		return fmt.Errorf("%w%s", stopped, importHint(stopped, r.lenient))
	}
	return &exit{exitLoss, stopped}
}

// importHint says what to do about a file of which nothing could be recorded;
// "" if nothing is known.
func importHint(stopped error, lenient bool) string {
	wrong, ok := errors.AsType[*lineError](stopped)
	if !ok || wrong.line != 1 {
		return ""
	}
	if wrong.file != "stdin" {
		head := beginningOf(wrong.file)
		if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
			return "; the file is UTF-16, and UTF-8 is wanted"
		}
		if hint := misplaced("import", wrong.file, head); hint != "" {
			return hint
		}
	}
	field, _ := errors.AsType[*signal.FieldError](stopped)
	switch {
	case errors.Is(stopped, signal.ErrSyntax), field != nil && field.Path == "":
		return "; import reads JSONL: one whole JSON object a line"
	case errors.Is(stopped, signal.ErrSchema) && !lenient:
		return "; --lenient records and flags what breaks the schema"
	}
	return ""
}

// beginningOf returns what a file begins with, as far as it says what it is.
func beginningOf(file string) []byte {
	const enough = 1 << 20
	f, err := openInput(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil // what came through a pipe is gone
	}
	head, err := io.ReadAll(io.LimitReader(f, enough))
	if err != nil {
		return nil
	}
	return head
}

// recorder records lines in batches.
type recorder struct {
	session     *sajou.Session
	definitions []choreography.Declaration // not recorded yet
	lenient     bool
	meter       *meter

	batch  []*signal.Signal
	places []place // of the batch
	bytes  int     // of the batch's lines

	// inflight is the batch before, on its way to the disk while the next is
	// read.
	inflight *flight

	first   eventlog.Seq // the first entry recorded
	signals int
	defined int
	flagged int
}

// flight is a batch that waits to be durable, and what it counts for then.
type flight struct {
	pending                   *sajou.Pending
	signals, defined, flagged int
}

// place is where a signal was read.
type place struct {
	file string
	line int
}

// error gives err the place in front, as compilers do.
func (p place) error(err error) error { return &lineError{p, err} }

// lineError says in which line what was wrong.
type lineError struct {
	place
	err error
}

func (e *lineError) Error() string {
	return fmt.Sprintf("%s:%d: %s", e.file, e.line, oneLine(e.err.Error()))
}

func (e *lineError) Unwrap() error { return e.err }

// readAll records all files. On an error, what was read before it is recorded.
func (r *recorder) readAll(ctx context.Context, files []string, stdin io.Reader) error {
	var stopped error
	for _, file := range files {
		if stopped = r.read(ctx, file, stdin); stopped != nil {
			break
		}
	}
	// What is whole is recorded, also when the context has ended: it is the
	// last thing to be done.
	flushed, settled := r.flush(context.WithoutCancel(ctx)), r.settle()
	if err := cmp.Or(flushed, settled); err != nil {
		return err
	}
	return stopped
}

func (r *recorder) read(ctx context.Context, file string, stdin io.Reader) error {
	in, name := io.Reader(newInterruptible(ctx, stdin)), "stdin"
	if file != "-" {
		f, err := openInput(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in, name = f, file
	}
	lines := newLineReader(in)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		at := place{name, lines.number}
		if err != nil {
			return at.error(err)
		}
		parse := signal.Parse
		if r.lenient {
			parse = signal.ParseLenient
		}
		sig, err := parse(line)
		if err != nil {
			return at.error(err)
		}
		r.batch, r.places = append(r.batch, sig), append(r.places, at)
		r.bytes += len(line)
		if len(r.batch) >= maxBatchLines || r.bytes >= maxBatchBytes {
			if err := r.flush(ctx); err != nil {
				return err
			}
		}
	}
}

// flush records the batch. If the log refuses it because of one of its
// signals, those before are recorded and the error has its place.
func (r *recorder) flush(ctx context.Context) error {
	if len(r.batch) == 0 && len(r.definitions) == 0 {
		return nil
	}
	err := r.record(ctx, r.batch)
	if err != nil && len(r.batch) > 0 && isRefusal(err) {
		for i, sig := range r.batch {
			if err = r.record(ctx, []*signal.Signal{sig}); err != nil {
				err = r.places[i].error(err)
				break
			}
		}
	}
	r.batch, r.places, r.bytes = r.batch[:0], r.places[:0], 0
	return err
}

// isRefusal reports whether err is about what was to be recorded, and not
// about the log.
func isRefusal(err error) bool {
	return errors.Is(err, sajou.ErrTime) || errors.Is(err, eventlog.ErrTooLarge) ||
		errors.Is(err, eventlog.ErrInvalid) || errors.Is(err, signal.ErrSchema)
}

// record hands signals over, and then waits for those before them.
func (r *recorder) record(ctx context.Context, signals []*signal.Signal) error {
	p, err := r.session.Stage(ctx, sajou.Record{Declarations: r.definitions, Signals: signals, Lenient: r.lenient})
	if err != nil {
		return err
	}
	f := &flight{pending: p, signals: len(signals), defined: len(r.definitions)}
	for _, sig := range signals {
		if sig.Problem != "" {
			f.flagged++
		}
	}
	r.definitions = nil
	err = r.settle()
	r.inflight = f
	return err
}

// settle waits for the batch in flight and counts it.
func (r *recorder) settle() error {
	f := r.inflight
	if f == nil {
		return nil
	}
	r.inflight = nil
	out, err := f.pending.Wait()
	if err != nil {
		return err
	}
	if r.first == 0 {
		r.first = out.First
	}
	r.defined += f.defined
	r.signals += f.signals
	r.flagged += f.flagged
	r.meter.show(fmt.Sprintf("%d signals", r.signals))
	return nil
}
