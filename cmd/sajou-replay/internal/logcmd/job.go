package logcmd

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/source"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// importJob is one run of the command "import".
type importJob struct {
	app     *cli.App
	args    []string
	defines []string
	foreign *foreignFlags
	scrub   *scrubFlags

	entries bool   // classify found an export of entries
	raw     string // the file in which classify found a raw export
}

// classify reports whether the arguments are recordings of other tools: a folder, an
// archive, or a file whose beginning a foreign format recognizes. If stdin is among
// them, it is returned with its beginning unread.
func (j *importJob) classify(ctx context.Context) (stdin io.Reader, foreign bool, err error) {
	if f := j.foreign.format; f != "" {
		if _, known := formats.Named(f); !known {
			return nil, false, cli.Misuse("--format %q: unknown; the formats are %v", f, formats.Names())
		}
	}
	foreign = j.foreign.format != "" && j.foreign.format != formats.Sajou
	for _, name := range j.args {
		if name == "-" {
			in := bufio.NewReaderSize(j.app.OpenStdin(ctx), recording.SampleBytes)
			head, whole, err := peek(in)
			if err != nil {
				return nil, false, err
			}
			stdin = in
			j.recognize(name, head)
			foreign = foreign || isForeign("stdin", head, whole)
			continue
		}
		info, err := os.Stat(name)
		switch {
		case err != nil:
			return nil, false, cli.Unreadable(name, err)
		case info.IsDir():
			foreign = true
		case info.Mode().IsRegular():
			head := beginningOf(name)
			j.recognize(name, head)
			foreign = foreign || isForeign(name, head, info.Size() == int64(len(head)))
		}
	}
	return stdin, foreign, nil
}

// peek returns the beginning of a stream: enough to see whether its first line is a signal of the
// protocol, so that a stream of these is recorded while it comes, and else as much as
// detection needs.
func peek(in *bufio.Reader) (head []byte, whole bool, err error) {
	for n := 1; ; n = min(in.Buffered()+1, recording.SampleBytes) {
		head, err = in.Peek(n)
		switch {
		case errors.Is(err, io.EOF):
			return head, true, nil
		case err != nil:
			return nil, false, err
		}
		head, _ = in.Peek(in.Buffered())
		if line, _, complete := bytes.Cut(head, []byte("\n")); complete {
			if sig, err := signal.ParseLenient(line); err == nil && sig.Raw == nil {
				return head, false, nil
			}
		}
		if len(head) >= recording.SampleBytes {
			return head, false, nil
		}
	}
}

// recognize notes what export has written, by the beginning of a file.
func (j *importJob) recognize(name string, head []byte) {
	j.entries = j.entries || isEntries(head)
	if j.raw == "" && isRaw(head) {
		j.raw = name
	}
}

// isRaw reports whether a file is a raw export (export --raw): its first line has the
// name of the session and the hash with which its chain begins.
func isRaw(head []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimSpace(head), []byte("\n"))
	v, err := signal.ParseValue(line)
	return err == nil && v.Len() == 2 && v.TextOf("session") != "" && len(v.TextOf("genesis")) == hex.EncodedLen(sha256.Size)
}

// isEntries reports whether a file is an export of entries (export --all).
func isEntries(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	e, err := session.ParseEntryJSON(line)
	return err == nil && e.Seq == 1 && e.Hash != ""
}

// isForeign reports whether the beginning of a file is of a foreign format.
func isForeign(name string, head []byte, whole bool) bool {
	if source.IsPacked(head) {
		return true
	}
	return slices.ContainsFunc(formats.Detect(recording.NewSample(name, head, whole)), func(c formats.Candidate) bool {
		return c.Format.Name != formats.Sajou
	})
}

// prepare reads the definitions and the rules of what is removed.
func (j *importJob) prepare(ctx context.Context) (*foreignImport, error) {
	f := &foreignImport{app: j.app, flags: j.foreign}
	var err error
	if f.declared, err = j.app.ReadDeclared(ctx, new(language.Catalog), j.defines, "nothing was recorded"); err != nil {
		return nil, err
	}
	f.stages, f.notes, err = j.scrub.stages(ctx, j.app)
	return f, err
}

// run imports the recordings that the arguments name.
func (j *importJob) run(ctx context.Context, stdin io.Reader) error {
	f, err := j.prepare(ctx)
	if err != nil {
		return err
	}
	cfg := source.Config{Format: j.foreign.format}
	var recordings []source.Listed
	f.single = len(j.args) == 1
	for _, name := range j.args {
		list, err := j.open(ctx, name, stdin, cfg)
		if err != nil {
			return err
		}
		defer list.Close()
		f.single = f.single && !list.Folder
		for _, remark := range list.Remarks {
			fmt.Fprintf(j.app.Stderr, "sajou-replay: %s: %s\n", termtext.Printable(name), termtext.Printable(remark))
		}
		if list.Folder {
			f.others(name, list)
		}
		for _, rec := range list.Recordings {
			if !list.Folder && name != "-" {
				rec.Path = name
			}
			recordings = append(recordings, rec)
		}
	}
	if len(recordings) == 0 {
		return cli.Misuse("no recording of a known format was found; see: sajou-replay formats")
	}
	if j.app.Session != "" && len(recordings) > 1 {
		return cli.Misuse("--session names one session, and there are %d recordings", len(recordings))
	}
	failed := f.run(ctx, recordings)
	return f.report(ctx, failed)
}

func (j *importJob) open(ctx context.Context, name string, stdin io.Reader, cfg source.Config) (*source.Listing, error) {
	if name == "-" {
		if stdin == nil {
			return nil, cli.Misuse("stdin can be named once")
		}
		return source.Read(ctx, "stdin", stdin, cfg)
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, cli.Unreadable(name, err)
	}
	if info.IsDir() || info.Mode().IsRegular() {
		return source.Open(ctx, name, cfg)
	}
	pipe, err := cli.OpenInput(ctx, name)
	if err != nil {
		return nil, err
	}
	return source.Read(ctx, name, pipe, cfg)
}

// others tells which files of a folder are no recordings.
func (f *foreignImport) others(name string, list *source.Listing) {
	if n := len(list.Others); n > 0 {
		fmt.Fprintf(f.app.Stderr, "sajou-replay: %s: %s not recognized, such as %s\n", termtext.Printable(name),
			cli.Plural(n, "file is", "files are"), termtext.Printable(list.Others[0]))
	}
}

// watch follows the recordings of a folder.
func (j *importJob) watch(ctx context.Context, others bool) error {
	if len(j.args) != 1 || others || j.foreign.final || j.foreign.dryRun {
		return cli.Misuse("--watch takes one folder, and not --append, --continue, --lenient, --final or --dry-run")
	}
	if info, err := os.Stat(j.args[0]); err != nil {
		return cli.Unreadable(j.args[0], err)
	} else if !info.IsDir() {
		return cli.Misuse("--watch follows a folder, and %s is a file", j.args[0])
	}
	f, err := j.prepare(ctx)
	if err != nil {
		return err
	}
	return f.follow(ctx, j.args[0])
}
