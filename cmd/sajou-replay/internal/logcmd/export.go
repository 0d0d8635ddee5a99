package logcmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/internal/traces"
	"github.com/sajou-dev/sajou-go/replay/course"
	"github.com/sajou-dev/sajou-go/session"
)

// Export returns the command "export".
func Export(a *cli.App) *cobra.Command {
	var x export
	cmd := &cobra.Command{
		Use:   "export [SESSION] [RANGE]",
		Short: "Write a session as JSONL, or for the viewers of other tools",
		Long: `Export writes the signals of a session to stdout, one JSON object a line.
Importing them gives the same values: 64-bit integers, floats and the order of
payload members are kept. Other entries are left out. With -o json the lines are
the elements of one array.

--all writes every entry, in the form of cat -o jsonl. Importing them under the
same name makes the session again, with the same head.

--raw writes for every entry the bytes that its hash covers, in base64, so that
another program can recompute the chain; docs/verify_chain.py is such a program.
The first line has the name of the session and its genesis hash. import --raw
makes the session again, with the same head.

--format writes for other programs:

` + exportFormatsHelp() + `
-O FILE writes into a file, which appears when it is complete. A binary format is
not written to a terminal.`,
		Example: `  sajou-replay export > copy.jsonl
  sajou-replay export night-shift 30..40
  sajou-replay export --format otlp-json > traces.jsonl
  sajou-replay export --format perfetto -O trace.json
  sajou-replay export --format html -O session.html
  sajou-replay export --format asciicast -O stage.cast
  sajou-replay export --raw night-shift | python3 docs/verify_chain.py -`,
		Args: cli.Between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return x.run(cmd, a, args) },
	}
	f := cmd.Flags()
	f.BoolVar(&x.raw, "raw", false, "write the bytes that the hashes cover, in base64")
	f.BoolVar(&x.all, "all", false, "write every entry, not signals alone")
	f.StringVar(&x.format, "format", formats.Sajou, "write `FORMAT`")
	f.StringVarP(&x.out, "out", "O", "-", "write to `FILE`; - is stdout")
	x.flags(f)
	_ = cmd.MarkFlagFilename("out")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(exportFormatNames(), cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// export holds the flags of the command.
type export struct {
	raw, all bool
	format   string
	out      string
	viewing
}

func (x *export) run(cmd *cobra.Command, a *cli.App, args []string) error {
	if x.raw && x.all {
		return cli.Misuse("--raw writes every entry already; omit --all")
	}
	format, err := x.check(cmd, a)
	if err != nil {
		return err
	}
	name, over, err := a.SplitRange(cmd, args)
	if err != nil {
		return err
	}
	t, err := a.OpenSession(name)
	if err != nil {
		return err
	}
	defer t.Close()
	from, to, err := t.ResolveRange(cmd.Context(), over)
	if err != nil {
		return err
	}
	if x.raw && from > 1 {
		return cli.Misuse("a raw export must begin at entry 1, because the first link of the chain is checked from there; name a range such as 1..%d", to)
	}
	_, note, err := t.Fork(cmd.Context())
	if err != nil {
		return err
	}
	if note != "" {
		fmt.Fprintf(a.Stderr, "sajou-replay: this is %s; the export says so\n", note)
	}
	write := func(w io.Writer) error { return x.lines(cmd.Context(), a, w, t, from, to) }
	if format.write != nil {
		if from > to {
			return cli.Fail(cli.ExitNotFound, "the range %s of %s has no entry", over, t.Name)
		}
		write = func(w io.Writer) error {
			return format.write(cmd.Context(), w, a, t, course.Passage{From: from, To: to}, &x.viewing)
		}
	}
	return a.WritePicture(x.out, write)
}

// lines writes the formats of lines.
func (x *export) lines(ctx context.Context, a *cli.App, w io.Writer, t *cli.OpenedSession, from, to eventlog.Seq) error {
	o := a.Output()
	o.Reset(w)
	if o.Format == "text" {
		o.Format = "jsonl"
	}
	entries := session.ExportSignals
	switch {
	case x.all:
		entries = session.ExportEntries
	case x.raw:
		entries = session.ExportRaw
	}
	if from > to {
		return o.End()
	}
	lines := session.ExportLines(ctx, t.Log, entries, from, to)
	if x.format == formatOTLP {
		lines = traces.Lines(ctx, t.Log, from, to)
	}
	for line, err := range lines {
		if err != nil {
			return err
		}
		if err := o.Item("", line); err != nil {
			return err
		}
	}
	return o.End()
}
