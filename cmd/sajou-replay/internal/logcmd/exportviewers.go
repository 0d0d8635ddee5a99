package logcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/otlpexport"
	"github.com/sajou-dev/sajou-go/internal/traces"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bookmark"
	"github.com/sajou-dev/sajou-go/replay/course"
	"github.com/sajou-dev/sajou-go/replay/export/asciicast"
	"github.com/sajou-dev/sajou-go/replay/export/mcap"
	"github.com/sajou-dev/sajou-go/replay/export/perfetto"
	"github.com/sajou-dev/sajou-go/replay/export/webpage"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
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
	write func(ctx context.Context, w io.Writer, a *cli.App, t *cli.OpenedSession, over course.Passage, v *viewing) error
}

// exportFormats lists the formats in the order of the help.
var exportFormats = []exportFormat{
	{name: formats.Sajou, says: []string{"the signals, as above"}},
	{name: formatOTLP, says: []string{
		"tasks, tool calls and model calls as spans of OpenTelemetry, one",
		"export a line. An import gives the same calls, results, texts,",
		"tokens and agents",
	}},
	{name: "otlp", write: writeTraces, binary: true, says: []string{"the same in protobuf, as one message; binary"}},
	{name: "perfetto", write: writePerfetto, says: []string{
		"trace events for ui.perfetto.dev: agents as processes, a track for",
		"each performance, signals as instants, flows from dispatch to",
		"completion and from call to result",
	}},
	{name: "asciicast", write: writeCast, flags: []string{"cols", "rows", "rate", "idle", "fps"}, says: []string{
		"the stage as text over time, for asciinema; --cols, --rows, --rate",
		"and --idle, the longest wait",
	}},
	{name: "html", write: writePage, flags: []string{"max-frames", "width", "theme", "fps"}, says: []string{
		"one page with a picture of each moment at which something begins",
		"or ends, the bookmarks, a scrubber and keys; loads nothing.",
		"--max-frames bounds it",
	}},
	{name: "mcap", write: writeMCAP, binary: true, says: []string{
		"entries, commands and the stage as channels of JSON, for Foxglove;",
		"binary",
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
type viewing struct {
	cols, rows int
	rate, fps  float64
	idle       time.Duration
	most       int
	width      int
	theme      string
}

func (v *viewing) flags(f *pflag.FlagSet) {
	f.IntVar(&v.cols, "cols", 100, "columns of the terminal (asciicast)")
	f.IntVar(&v.rows, "rows", 30, "rows of the terminal (asciicast)")
	f.Float64Var(&v.rate, "rate", 1, "session time that passes in a second (asciicast)")
	f.DurationVar(&v.idle, "idle", 2*time.Second, "the longest wait; 0 for no limit (asciicast)")
	f.Float64Var(&v.fps, "fps", 0, "also frames between, N a second: 10 unless given (asciicast), none (html)")
	f.IntVar(&v.most, "max-frames", webpage.DefaultMost, "at most `N` moments, evenly chosen of all (html)")
	f.IntVar(&v.width, "width", 0, "width of the pictures in pixels (html)")
	f.StringVar(&v.theme, "theme", "", "light or dark pictures (html)")
}

// check refuses values out of their bounds.
func (v *viewing) check(given func(string) bool) error {
	switch {
	case v.cols < asciicast.MinCols || v.cols > asciicast.MaxCols:
		return cli.Misuse("--cols %d: must be from %d to %d", v.cols, asciicast.MinCols, asciicast.MaxCols)
	case v.rows < asciicast.MinRows || v.rows > asciicast.MaxRows:
		return cli.Misuse("--rows %d: must be from %d to %d", v.rows, asciicast.MinRows, asciicast.MaxRows)
	case !(v.rate >= 0.001) || v.rate > 1e6:
		return cli.Misuse("--rate %v: must be from 0.001 to 1000000", v.rate)
	case v.idle < 0:
		return cli.Misuse("--idle %v: must not be negative", v.idle)
	case given("fps") && (!(v.fps > 0) || v.fps > 100):
		return cli.Misuse("--fps %v: must be above 0 and at most 100", v.fps)
	case v.most < 1 || v.most > maxMoments:
		return cli.Misuse("--max-frames %d: must be from 1 to %d", v.most, maxMoments)
	case given("width") && (v.width < film.MinWidth || v.width > film.MaxWidth):
		return cli.Misuse("--width %d: must be from %d to %d", v.width, film.MinWidth, film.MaxWidth)
	case given("theme") && !slices.Contains(picture.Themes(), picture.Theme(v.theme)):
		return cli.Misuse("--theme %q: the themes are light and dark", v.theme)
	}
	return nil
}

// maxMoments bounds the moments of a page, which a browser keeps in memory.
const maxMoments = 20_000

// every returns the time between two frames.
func (v *viewing) every() time.Duration {
	if v.fps == 0 {
		return 0
	}
	return film.Step(v.fps, 1)
}

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
	if err := x.viewing.check(cmd.Flags().Changed); err != nil {
		return nil, err
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

func writePerfetto(ctx context.Context, w io.Writer, _ *cli.App, t *cli.OpenedSession, over course.Passage, _ *viewing) error {
	return perfetto.Write(ctx, w, t.Travel, over)
}

// ends returns the moments at which the pictures of a range begin and end. The zero Moment
// is the end of the session, with what follows its last entry.
func ends(t *cli.OpenedSession, over course.Passage) (from, to replay.Moment) {
	from, to = cli.MomentOf(over.From), cli.MomentOf(over.To)
	if over.To >= t.Log.Head().Seq {
		to = replay.Moment{}
	}
	return from, to
}

func writeCast(ctx context.Context, w io.Writer, _ *cli.App, t *cli.OpenedSession, over course.Passage, v *viewing) error {
	from, to := ends(t, over)
	_, err := asciicast.Write(ctx, w, t.Reel(nil), from, to, asciicast.Options{Cols: v.cols, Rows: v.rows, Rate: v.rate, Idle: v.idle, Frame: v.every()})
	return err
}

func writePage(ctx context.Context, w io.Writer, a *cli.App, t *cli.OpenedSession, over course.Passage, v *viewing) error {
	marks, err := pageMarks(ctx, a, t, over)
	if err != nil {
		return err
	}
	o := webpage.Options{Most: v.most, Every: v.every(), Style: film.Style{Width: v.width, Theme: picture.Theme(v.theme)}, Bookmarks: marks}
	sum, err := webpage.Write(ctx, w, t.Reel(nil), cli.MomentOf(over.From), cli.MomentOf(over.To), o)
	if err == nil && sum.LeftOut > 0 {
		fmt.Fprintf(a.Stderr, "sajou-replay: the page shows %d moments and leaves out %d; --max-frames shows more\n", sum.Moments, sum.LeftOut)
	}
	return err
}

// pageMarks returns the bookmarks of a session in a range, in the order of their moments. A
// bookmark of another history is left out, with a remark.
func pageMarks(ctx context.Context, a *cli.App, t *cli.OpenedSession, over course.Passage) (marks []bookmark.Bookmark, err error) {
	book, err := a.Bookmarks()
	if err != nil {
		return nil, err
	}
	for b := range book.All(t.Name) {
		if b.Head.Seq < over.From || b.Head.Seq > over.To {
			continue
		}
		switch err := t.Travel.CheckAnchor(ctx, b.Anchor); {
		case errors.Is(err, replay.ErrNotThere):
			fmt.Fprintf(a.Stderr, "sajou-replay: the page leaves out @%s: %s\n", b.Name, cli.OneLine(err.Error()))
		case err != nil:
			return nil, err
		default:
			marks = append(marks, b)
		}
	}
	return marks, nil
}

func writeMCAP(ctx context.Context, w io.Writer, _ *cli.App, t *cli.OpenedSession, over course.Passage, _ *viewing) error {
	return mcap.Write(ctx, w, t.Travel, over.From, over.To)
}

func writeTraces(ctx context.Context, w io.Writer, _ *cli.App, t *cli.OpenedSession, over course.Passage, _ *viewing) error {
	for part, err := range otlpexport.Protobuf(traces.Lines(ctx, t.Log, over.From, over.To)) {
		if err != nil {
			return err
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
