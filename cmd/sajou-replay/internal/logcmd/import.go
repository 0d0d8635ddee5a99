package logcmd

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/signal"
)

// Import returns the command "import".
func Import(a *cli.App) *cobra.Command {
	var (
		defines []string
		lenient bool
		more    bool
		goOn    bool
		raw     bool
		foreign foreignFlags
		scrub   scrubFlags
		watch   bool
		latest  bool
		number  int
	)
	cmd := &cobra.Command{
		Use:   "import FILE|DIR...",
		Short: "Record signals, or what other tools have recorded",
		Long: `Import records files of signals, and the recordings that agents and their tools
leave behind: transcripts, traces, trajectories. It recognizes the format by the
content (sajou-replay formats lists them); --format names it. A file may be
compressed (.gz, .zst) or an archive (.zip, .tar); - is stdin. --latest takes
the newest recording that find lists, --found N the one numbered N. The store is
created if its directory is absent or empty, and removed again if nothing was
recorded.

Recordings of other tools. Each is a session of its own, named after its file
unless --session names it; a folder or an archive may hold any number. Its
records become signals: tasks, calls and results of tools, tokens, states,
errors, texts. Each record counts once in the balance that import prints: as
mapped, as kept (a signal of the type FORMAT.KIND), as skipped by a named rule,
or as unreadable. A scene for agents comes into force first, so that render and
play show something; --define or --no-scene take its place. The same file gives
the same head hash in every store.

A recording may go on. Import leaves out what a later record could change, such
as the usage of the last message; --continue reads the grown file again,
compares and adds what is new. If the recording is complete, --final records
what its end implies; after that it cannot be continued. --watch follows the
recordings of a folder while they grow.

A record whose time is before that of an earlier one takes effect at the time of
that one. A jump ahead of more than --max-skew is a wrong clock if one of the
next 64 records comes back. More than --max-bad unreadable records end the
import.

--redact removes secrets before anything reaches the disk, and --no-content
records only the lengths of prompts, texts, arguments and outputs.

Files of signals. Each line is one signal, a JSON object such as

  {"id":"1","type":"tool_call","timestamp":1763000000000,"source":"agent:ann","payload":{"toolName":"search","agentId":"ann"}}

with the timestamp in milliseconds since 1970. Blank lines are skipped. Several
files are one session, in their order, named after the first, without .jsonl. It
must be new unless --append or --continue is given.

A line that is not a valid signal ends the import. The signals before it stay
recorded: the exit code is then 3, or 1 if nothing was recorded. With --lenient,
import records signals that violate the schema as they are and flags them; it
refuses only lines that are not JSON objects, and the exit code stays 0.

Session time never goes back. A signal whose timestamp is before the time that
the signals before it have reached takes effect at that time; import counts such
signals on stderr, and info counts those of a session. Timestamps are not
compared with the clock, so that the head depends on the files alone.

--define brings the declarations of a file (choreographies, sequences, easings,
bindings, a scene; see define add) into force before the first signal. The same
files under the same session name give the same head hash in every store.

--continue also completes an import that was interrupted, by a signal, a full
disk or a crash. It compares the session with the files and records the missing
rest; if they differ, it records nothing. The head is then that of an
uninterrupted import.

--raw imports one file that export --raw has written: all entries of the session
as they were, under its name and with the same head. It recomputes the chain,
and ends at the first entry that does not follow. If the session is there
already, --raw adds the entries that it lacks. A file that export --all has
written is recognized, and imported in the same way under the name that
--session gives.

All files are opened before the store is locked. If several are named pipes,
each needs its writer at the same time.`,
		Example: `  sajou-replay import session.jsonl
  sajou-replay import --latest
  sajou-replay import ~/.claude/projects/my-project --dry-run
  sajou-replay import transcript.jsonl --final --redact default
  sajou-replay import transcript.jsonl --continue
  sajou-replay import traces.json.gz --session release-42 --no-content
  cat session.jsonl | sajou-replay import - --session live --append --lenient`,
		Args: func(cmd *cobra.Command, args []string) error {
			chosen := latest || cmd.Flags().Changed("found")
			switch {
			case len(args) == 0 && !chosen:
				return cli.Misuse("no file to import; name a file, a folder, or - for stdin, or give --latest")
			case len(args) > 0 && chosen:
				return cli.Misuse("--latest and --found choose the recording; name no file")
			case latest && cmd.Flags().Changed("found") || chosen && !latest && number < 1:
				return cli.Misuse("--found takes a number of sajou-replay find, from 1 on; --latest is --found 1")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if latest {
				number = 1
			}
			if number > 0 {
				path, err := recordingNumber(cmd.Context(), a, number)
				if err != nil {
					return err
				}
				args = []string{path}
			}
			if more && goOn {
				return cli.Misuse("--append and --continue exclude each other: one adds signals, the other completes an import")
			}
			if raw {
				if len(args) != 1 || a.Session != "" || lenient || more || goOn || len(defines) > 0 {
					return cli.Misuse("--raw takes one file, which has the name of the session, and no other flag of import")
				}
				return importRaw(cmd.Context(), a, args, nil, false)
			}
			foreign.goOn = goOn
			foreign.chosen = foreign.chosen || cmd.Flags().Changed("max-bad") || cmd.Flags().Changed("max-skew")
			job := &importJob{app: a, args: args, defines: defines, foreign: &foreign, scrub: &scrub}
			if watch {
				return job.watch(cmd.Context(), more || goOn || lenient)
			}
			stdin, isForeign, err := job.classify(cmd.Context())
			if err != nil {
				return err
			}
			if job.raw != "" {
				return cli.Misuse("%s is a raw export; import all entries as they were, with: sajou-replay import --raw %s", job.raw, cli.ShellWord(job.raw))
			}
			if job.entries {
				if len(args) != 1 || lenient || more || goOn || len(defines) > 0 || foreign.any() || scrub.any() {
					return cli.Misuse("%s is an export of all entries: it is imported by itself, as it was, with no flag but --session", args[0])
				}
				return importRaw(cmd.Context(), a, args, stdin, true)
			}
			if isForeign {
				if more || lenient {
					return cli.Misuse("--append and --lenient are for files of signals; a recording of another tool is a session of its own, and is always read leniently")
				}
				return job.run(cmd.Context(), stdin)
			}
			if foreign.chosen || foreign.any() || scrub.any() {
				return job.run(cmd.Context(), stdin)
			}
			return importFiles(cmd.Context(), a, args, stdin, defines, lenient, more, goOn)
		},
	}
	cmd.Flags().StringArrayVar(&defines, "define", nil, "`FILE` of declarations to bring into force first; repeatable")
	cmd.Flags().BoolVar(&lenient, "lenient", false, "record and flag signals that violate the schema")
	cmd.Flags().BoolVar(&more, "append", false, "add to an existing session")
	cmd.Flags().BoolVar(&goOn, "continue", false, "complete an interrupted import of the same files")
	cmd.Flags().StringVar(&foreign.format, "format", "", "`NAME` of the format; see sajou-replay formats")
	cmd.Flags().BoolVar(&foreign.final, "final", false, "the recording is complete: record what its end implies too")
	cmd.Flags().DurationVar(&foreign.maxSkew, "max-skew", recording.DefaultMaxSkew, "a jump of time that comes back is a wrong clock beyond this `SPAN`")
	cmd.Flags().Float64Var(&foreign.maxBad, "max-bad", 100*recording.DefaultMaxBad, "end the import beyond this `PERCENTAGE` of unreadable records; three are always allowed, unless it is 0")
	cmd.Flags().BoolVar(&foreign.strict, "strict", false, "end the import at the first unreadable record")
	cmd.Flags().BoolVar(&foreign.keepNative, "keep-native", false, "keep each native record in the metadata of its first signal")
	cmd.Flags().BoolVar(&foreign.noScene, "no-scene", false, "bring no scene and choreographies for agents into force")
	cmd.Flags().BoolVar(&foreign.dryRun, "dry-run", false, "tell what would be recorded, and record nothing")
	cmd.Flags().BoolVar(&latest, "latest", false, "import the newest recording of an agent on this machine; see find")
	cmd.Flags().IntVar(&number, "found", 0, "import recording `N` of the list of find")
	cmd.Flags().BoolVar(&watch, "watch", false, "follow the recordings of a folder while they grow, until Ctrl-C")
	scrub.register(cmd)
	cmd.Flags().BoolVar(&raw, "raw", false, "import all entries of a session from the file that export --raw wrote")
	return cmd
}

func importFiles(ctx context.Context, a *cli.App, files []string, stdin io.Reader, defines []string, lenient, more, goOn bool) error {
	name := a.Session
	if name == "" {
		name = sessionName(files[0])
	}
	if err := eventlog.CheckName(name); err != nil {
		if a.Session != "" {
			return cli.Misuse("--session: %s", cli.OneLine(err.Error()))
		}
		return cli.Misuse("%w; name it with --session", err)
	}
	catalog := new(language.Catalog)
	if more && len(defines) > 0 {
		inForce, err := a.InForce(ctx, name)
		if err != nil {
			return err
		}
		catalog = inForce.Catalog()
	}
	definitions, err := a.ReadDeclared(ctx, catalog, defines, "nothing was recorded")
	if err != nil {
		return err
	}
	in, err := openInputs(ctx, a, files, stdin)
	if err != nil {
		return err
	}
	defer in.close()
	engine, err := a.OpenWriting()
	if err != nil {
		return err
	}
	i := &importing{name: name, in: in, more: more, cfg: ingest.Config{Definitions: definitions, Lenient: lenient}}
	stopped, err := importInto(ctx, a, engine, i, goOn)
	closing := engine.Close()
	if err != nil {
		return err
	}
	if errors.Is(stopped, eventlog.ErrReadOnly) || closing != nil {
		// After a failed write more may be durable than was reported. Count the
		// entries that the next import will find.
		stopped = cmp.Or(stopped, closing)
		err = readBack(ctx, a, i)
	}
	return cmp.Or(err, reportImport(ctx, a, i, stopped))
}

// importRaw records the session of a raw export, or of an export of entries.
func importRaw(ctx context.Context, a *cli.App, files []string, stdin io.Reader, entries bool) error {
	name := cmp.Or(a.Session, sessionName(files[0]))
	if err := eventlog.CheckName(name); entries && err != nil {
		return cli.Misuse("%w; name it with --session", err)
	}
	in, err := openInputs(ctx, a, files, stdin)
	if err != nil {
		return err
	}
	defer in.close()
	file := in[0].in
	if file == nil {
		if file, err = cli.OpenFile(files[0]); err != nil {
			return err
		}
		defer file.Close()
	}
	engine, err := a.OpenWriting()
	if err != nil {
		return err
	}
	m := cli.NewProgress(a.Stderr)
	record := ingest.Raw
	if entries {
		record = ingest.Entries
	}
	n, err := record(ctx, engine, file, ingest.RawConfig{
		Session: name, File: in[0].file, Progress: func(entries int) { m.Show(fmt.Sprintf("%d entries", entries)) },
	})
	m.Clear()
	err = errors.Join(err, engine.Close())
	text := fmt.Sprintf("%q has all %s already: head %v", n.Session, cli.Plural(n.Skipped, "entry", "entries"), n.Head)
	if n.Entries > 0 {
		text = fmt.Sprintf("imported %s into %q: head %v", cli.Plural(n.Entries, "entry", "entries"), n.Session, n.Head)
	}
	if err == nil || n.Entries > 0 {
		result := struct {
			Session string       `json:"session"`
			Entries int          `json:"entries"`
			Skipped int          `json:"skipped"`
			Head    cli.HeadView `json:"head"`
		}{n.Session, n.Entries, n.Skipped, cli.ViewHead(n.Head)}
		if err := a.Output().One(text, result); err != nil {
			return err
		}
	}
	if entries && errors.Is(err, eventlog.ErrCorrupt) && n.Head.Seq == 0 {
		err = fmt.Errorf("%w; the hashes depend on the name of the session: name it with --session", err)
	}
	if err != nil && n.Entries > 0 && ctx.Err() == nil {
		return &cli.ExitError{Code: cli.ExitLoss, Cause: err}
	}
	return err
}

// importing is one import and its tally.
type importing struct {
	name   string
	in     inputs
	more   bool // --append
	cfg    ingest.Config
	before eventlog.Head // of the session
	tally  ingest.Tally
	leap   leap // if timestamps are out of order
}

// input is a file to import.
type input struct {
	file string        // its name, "stdin" for stdin
	in   io.ReadCloser // nil for a regular file, which is opened when it is read
}

// inputs are the files to import, in order.
type inputs []input

// names returns the names of the files.
func (in inputs) names() []string {
	names := make([]string, len(in))
	for i, s := range in {
		names[i] = s.file
	}
	return names
}

// text names several files, as the end of "imported 5 signals"; it is empty for one.
func (in inputs) text() string {
	const most = 5
	names := in.names()
	if len(names) == 1 {
		return ""
	}
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	return termtext.Printable(fmt.Sprintf(" of %d files (%s%s)", len(in), strings.Join(names, ", "), more))
}

// openInputs opens the inputs that can block, pipes and devices, all at once and
// before the store is locked, and waits until the first has a byte to read. A
// slow writer thus never holds the lock of the store.
func openInputs(ctx context.Context, a *cli.App, files []string, stdin io.Reader) (in inputs, err error) {
	in = make(inputs, len(files))
	defer func() {
		if err != nil {
			in.close()
		}
	}()
	failed := make([]error, len(files))
	var opening sync.WaitGroup
	for i, file := range files {
		in[i].file = file
		if file == "-" {
			if stdin == nil {
				stdin = a.OpenStdin(ctx)
			}
			in[i] = input{"stdin", io.NopCloser(stdin)}
			continue
		}
		switch info, err := os.Stat(file); {
		case err != nil:
			return in, cli.Unreadable(file, err)
		case info.IsDir():
			return in, cli.Misuse("%s is a directory; name JSONL files", file)
		case !info.Mode().IsRegular():
			opening.Go(func() { in[i].in, failed[i] = cli.OpenInput(ctx, file) })
		default:
			f, err := cli.OpenFile(file) // an unreadable file is an error before anything is recorded
			if err == nil {
				err = f.Close()
			}
			failed[i] = err
		}
	}
	opening.Wait()
	if err := cmp.Or(failed...); err != nil {
		return in, err
	}
	if first := &in[0]; first.in != nil {
		ahead := bufio.NewReader(first.in)
		if _, err := ahead.Peek(1); err != nil && !errors.Is(err, io.EOF) {
			return in, err
		}
		first.in = readCloser{ahead, first.in}
	}
	return in, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

func (in inputs) close() {
	for _, s := range in {
		if s.in != nil {
			_ = s.in.Close()
		}
	}
}

// readBack counts the durable entries of an import.
func readBack(ctx context.Context, a *cli.App, i *importing) error {
	i.tally = ingest.Tally{Head: i.before}
	engine, err := a.OpenReading()
	if err != nil {
		return fmt.Errorf("a write failed, and the durable entries cannot be read back: %w", err)
	}
	defer engine.Close()
	log, err := engine.Log().Session(i.name)
	if err != nil {
		return err
	}
	i.tally, err = ingest.TallyOf(context.WithoutCancel(ctx), log, i.before)
	return err
}

// sessionName returns the name of the session of a file.
func sessionName(file string) string {
	if file == "-" {
		return "stdin"
	}
	return strings.TrimSuffix(filepath.Base(file), ".jsonl")
}

// importInto records the files. Stopped is the reason for not reaching their end.
func importInto(ctx context.Context, a *cli.App, engine *sajou.Engine, i *importing, goOn bool) (stopped, err error) {
	a.Opened = i.name
	log, err := engine.Log().Session(i.name)
	if errors.Is(err, eventlog.ErrDeleted) {
		return nil, cli.Fail(cli.ExitNo, "%w; its name cannot be used again: name another with --session", err)
	}
	if err != nil {
		return nil, err
	}
	if log.Exists() && !i.more && !goOn {
		return nil, cli.Fail(cli.ExitNo, "session %q exists already, with %s; add to it with --append, or name another with --session",
			i.name, cli.Plural(int(log.Head().Seq), "entry", "entries"))
	}
	if i.more {
		if err := a.RemarkNew(engine, i.name); err != nil {
			return nil, err
		}
	}
	session, err := engine.Session(ctx, i.name)
	if err != nil {
		return nil, err
	}
	i.before = log.Head()
	if goOn && log.Exists() {
		i.cfg.Resume = log
	}
	m := cli.NewProgress(a.Stderr)
	defer m.Clear()
	i.cfg.Progress = func(signals int) { m.Show(fmt.Sprintf("%d signals", signals)) }
	r, err := ingest.NewRecorder(ctx, session, i.cfg)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	stopped = r.All(ctx, i.in.items(i.cfg.Lenient)...)
	i.tally = r.Tally()
	if i.tally.OutOfOrder > 0 {
		i.leap, err = leapOf(ctx, log, i.tally.First)
	}
	return stopped, err
}

// items are the signals of each file.
func (in inputs) items(lenient bool) []iter.Seq2[recording.Item, error] {
	var list []iter.Seq2[recording.Item, error]
	for _, s := range in {
		list = append(list, func(yield func(recording.Item, error) bool) {
			file := s.in
			if file == nil {
				f, err := cli.OpenFile(s.file)
				if err != nil {
					yield(recording.Item{}, err)
					return
				}
				defer f.Close()
				file = f
			}
			ingest.JSONL(file, s.file, lenient)(yield)
		})
	}
	return list
}

func reportImport(ctx context.Context, a *cli.App, i *importing, stopped error) error {
	n := &i.tally
	result := struct {
		Session     string       `json:"session"`
		Files       []string     `json:"files"`
		Signals     int          `json:"signals"`
		Definitions int          `json:"definitions"`
		Flagged     int          `json:"flagged"`
		OutOfOrder  int          `json:"out_of_order"`
		First       eventlog.Seq `json:"first"`
		Head        cli.HeadView `json:"head"`
		Stopped     string       `json:"stopped,omitempty"`
	}{i.name, i.in.names(), n.Signals, n.Definitions, n.Flagged, n.OutOfOrder, n.First, cli.ViewHead(n.Head), ""}
	text := fmt.Sprintf("nothing was recorded in %q: the input has no signals", i.name)
	if n.Skipped > 0 {
		text = fmt.Sprintf("%q has all %s already: head %v", i.name, cli.Plural(n.Skipped, "signal", "signals"), n.Head)
	}
	if n.First > 0 {
		text = fmt.Sprintf("imported %s%s into %q: entries %d..%d, head %v",
			cli.Plural(n.Signals, "signal", "signals"), i.in.text(), i.name, n.First, n.Head.Seq, n.Head)
	}
	if len(i.in) > 1 && a.Session == "" {
		fmt.Fprintf(a.Stderr, "sajou-replay: the %d files are one session, named after the first; name it with --session, or import each file by itself\n", len(i.in))
	}
	if n.Flagged > 0 {
		fmt.Fprintf(a.Stderr, "sajou-replay: %s the schema; list them with: sajou-replay cat --where 'has(entry.problem)'\n",
			cli.Plural(n.Flagged, "recorded signal violates", "recorded signals violate"))
	}
	if n.OutOfOrder > 0 {
		fmt.Fprintf(a.Stderr, "sajou-replay: %s before the session time that earlier signals had reached%v; %s effect there\n",
			cli.Plural(n.OutOfOrder, "timestamp is", "timestamps are"), i.leap, map[bool]string{true: "its signal takes", false: "their signals take"}[n.OutOfOrder == 1])
	}
	if stopped != nil {
		result.Stopped = cli.OneLine(stopped.Error())
	}
	if stopped == nil || n.First > 0 || a.Format != "text" {
		if err := a.Output().One(text, result); err != nil {
			return err
		}
	}
	switch {
	case stopped == nil:
		return nil
	case ctx.Err() != nil:
		return cli.Fail(cli.ExitInterrupted, "interrupted; the signals before are recorded: complete the import with --continue")
	case n.First > 0 && errors.Is(stopped, eventlog.ErrReadOnly):
		return cli.Fail(cli.ExitLoss, "%w; the line above counts the durable entries: complete the import with --continue", stopped)
	case cli.IsA[*ingest.MismatchError](stopped):
		return &cli.ExitError{Code: cli.ExitNo, Cause: stopped}
	case n.First == 0:
		return fmt.Errorf("%w%s", stopped, importHint(stopped, i.cfg.Lenient))
	}
	if violatesSchema(stopped) && !i.cfg.Lenient {
		remedy := "complete the import with --continue --lenient, which records the line as it is"
		if i.more { // the session does not begin with the files, so --continue would refuse it
			remedy = "the lines before are recorded; append the rest with --append --lenient, which records the line as it is"
		}
		stopped = fmt.Errorf("%w; %s", stopped, remedy)
	}
	return &cli.ExitError{Code: cli.ExitLoss, Cause: stopped}
}

// violatesSchema reports whether an import was stopped by a JSON object that the schema of
// signals refuses. --lenient records such an object.
func violatesSchema(stopped error) bool {
	field, _ := errors.AsType[*signal.FieldError](stopped)
	return errors.Is(stopped, signal.ErrSchema) && (field == nil || field.Path != "")
}

// importHint returns the remedy for a file of which nothing was recorded, or "".
func importHint(stopped error, lenient bool) string {
	const lenientHint = "; see import --help for the members of a signal, or record it as it is with --lenient"
	wrong, ok := errors.AsType[*recording.PlaceError](stopped)
	switch {
	case !ok:
		return ""
	case wrong.Line != 1: // after blank lines, or signals that were recorded before
		if violatesSchema(stopped) && !lenient {
			return lenientHint
		}
		return ""
	}
	if wrong.File != "stdin" {
		head := beginningOf(wrong.File)
		if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
			return "; the file is UTF-16: convert it to UTF-8"
		}
		if hint := cli.Misplaced("import", wrong.File, head); hint != "" {
			return hint
		}
	}
	field, _ := errors.AsType[*signal.FieldError](stopped)
	switch {
	case errors.Is(stopped, signal.ErrSyntax), field != nil && field.Path == "":
		return "; no known format recognizes the file (see sajou-replay formats), and signals are one complete JSON object a line"
	case violatesSchema(stopped) && !lenient:
		return lenientHint
	}
	return ""
}

// beginningOf returns the first bytes of a regular file, enough to recognize its
// format.
func beginningOf(file string) []byte {
	const enough = 1 << 20
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return nil // a pipe cannot be read again
	}
	f, err := cli.OpenFile(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, enough))
	if err != nil {
		return nil
	}
	return head
}
