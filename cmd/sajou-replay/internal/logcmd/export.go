package logcmd

import (
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/otlpexport"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Export returns the command "export".
func Export(a *cli.App) *cobra.Command {
	var raw, all bool
	var format string
	cmd := &cobra.Command{
		Use:   "export [SESSION] [RANGE]",
		Short: "Write a session as JSONL",
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

--format otlp-json writes the tasks, tool calls and model calls as spans of
OpenTelemetry, one export a line, for the tools that read traces. Importing them
gives the same calls, results, texts, tokens and agents.`,
		Example: `  sajou-replay export > copy.jsonl
  sajou-replay export night-shift 30..40
  sajou-replay export --format otlp-json > traces.jsonl
  sajou-replay export --raw night-shift | python3 docs/verify_chain.py -`,
		Args: cli.Between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if raw && all {
				return cli.Misuse("--raw writes every entry already; omit --all")
			}
			traces := format == formatOTLP
			switch {
			case format != formatOTLP && format != formats.Sajou:
				return cli.Misuse("--format %q: unknown; the formats of exports are %s and %s", format, formats.Sajou, formatOTLP)
			case traces && (raw || all):
				return cli.Misuse("--format %s writes signals alone; omit --raw and --all", formatOTLP)
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
			if label, err := session.ReadFork(cmd.Context(), t.Log); err == nil && label != nil && !raw && !all {
				fmt.Fprintf(a.Stderr, "sajou-replay: this is not a recording, but a %s; signals alone do not say so, --all and --raw keep the label\n", cli.ForkText(label, t.Log.Head()))
			}
			o := a.Output()
			if o.Format == "text" {
				o.Format = "jsonl"
			}
			entries := session.ExportSignals
			switch {
			case all:
				entries = session.ExportEntries
			case raw:
				entries = session.ExportRaw
			}
			if raw && from > 1 {
				return cli.Misuse("a raw export must begin at entry 1, because the first link of the chain is checked from there; name a range such as 1..%d", to)
			}
			if from > to {
				return o.End()
			}
			lines := session.ExportLines(cmd.Context(), t.Log, entries, from, to)
			if traces {
				lines = otlpexport.Lines(t.Log.Name(), parsed(lines))
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
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "write the bytes that the hashes cover, in base64")
	cmd.Flags().BoolVar(&all, "all", false, "write every entry, not signals alone")
	cmd.Flags().StringVar(&format, "format", formats.Sajou, "write "+formats.Sajou+" or "+formatOTLP)
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// formatOTLP is the format of traces that --format writes.
const formatOTLP = "otlp-json"

// parsed yields the signals of lines.
func parsed(lines iter.Seq2[[]byte, error]) iter.Seq2[*signal.Signal, error] {
	return func(yield func(*signal.Signal, error) bool) {
		for line, err := range lines {
			var sig *signal.Signal
			if err == nil {
				sig, err = signal.ParseLenient(line)
			}
			if !yield(sig, err) || err != nil {
				return
			}
		}
	}
}
