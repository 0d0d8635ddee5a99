package logcmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/replay/course"
	"github.com/sajou-dev/sajou-go/replay/export/perfetto"
)

// formatOTLP is the format of traces in JSON.
const formatOTLP = "otlp-json"

// exportFormat is a format of --format.
type exportFormat struct {
	name   string
	says   []string // lines of the help
	flags  []string // that belong to it
	binary bool
	// write writes a range that has entries; nil for the formats of lines.
	write func(ctx context.Context, w io.Writer, a *cli.App, t *cli.OpenedSession, over course.Stretch, v *viewing) error
}

// exportFormats lists the formats in the order of the help.
var exportFormats = []exportFormat{
	{name: formats.Sajou, says: []string{"the signals, as above"}},
	{name: formatOTLP, says: []string{
		"tasks, tool calls and model calls as spans of OpenTelemetry, one",
		"export a line. An import gives the same calls, results, texts,",
		"tokens and agents",
	}},
	{name: "perfetto", write: writePerfetto, says: []string{
		"trace events for ui.perfetto.dev: agents as processes, a track for",
		"each performance, signals as instants, flows from dispatch to",
		"completion and from call to result",
	}},
}

func exportFormatNames() []string {
	names := make([]string, len(exportFormats))
	for i, f := range exportFormats {
		names[i] = f.name
	}
	return names
}

// exportFormatsHelp lists the formats for the help.
func exportFormatsHelp() string {
	var b strings.Builder
	for _, f := range exportFormats {
		for i, line := range f.says {
			name := ""
			if i == 0 {
				name = f.name
			}
			fmt.Fprintf(&b, "  %-10s %s\n", name, line)
		}
	}
	return b.String()
}

// viewing holds the flags of single formats.
type viewing struct{}

func (v *viewing) flags(*pflag.FlagSet) {}

// check returns the format, and refuses flags that it does not have.
func (x *export) check(cmd *cobra.Command, a *cli.App) (*exportFormat, error) {
	i := slices.IndexFunc(exportFormats, func(f exportFormat) bool { return f.name == x.format })
	if i < 0 {
		return nil, cli.Misuse("--format %q: unknown; the formats of exports are %s", x.format, strings.Join(exportFormatNames(), ", "))
	}
	f := &exportFormats[i]
	for j := range exportFormats {
		for _, flag := range exportFormats[j].flags {
			if cmd.Flags().Changed(flag) && !slices.Contains(f.flags, flag) {
				return nil, cli.Misuse("--%s needs --format %s", flag, exportFormats[j].name)
			}
		}
	}
	switch {
	case x.format != formats.Sajou && (x.raw || x.all):
		return nil, cli.Misuse("--raw and --all are other forms of an export, and exclude --format %s", x.format)
	case f.write != nil && a.Format != "text":
		return nil, cli.Misuse("--format %s is a format of its own; omit -o %s", x.format, a.Format)
	case f.binary && x.out == "-" && cli.IsTerminal(a.Stdout):
		return nil, cli.Misuse("refusing to write %s to a terminal; use -O FILE, or a pipe", x.format)
	}
	return f, nil
}

func writePerfetto(ctx context.Context, w io.Writer, _ *cli.App, t *cli.OpenedSession, over course.Stretch, _ *viewing) error {
	return perfetto.Write(ctx, w, t.Travel, over)
}
