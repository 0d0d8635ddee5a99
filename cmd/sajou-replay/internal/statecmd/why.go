package statecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
)

// whyFlags holds the flags of why.
type whyFlags struct {
	minimize, dot, svg bool
	where              string
	look               imageTest
	out                string
	defines            cli.Definitions
}

// Why returns the command "why".
func Why(a *cli.App) *cobra.Command {
	var w whyFlags
	cmd := &cobra.Command{
		Use:   "why [SESSION] ADDR [PATH]",
		Short: "Show what a value of the stage depends on, or its smallest cause",
		Long: `Why shows the causal slice of a value of the stage at a moment: the acts that
set it, the performances with the signals that began and ended them, the guards
and conditions that decided, and the declarations in force. PATH is one that state
takes, such as stage.entities.smith.x; without one it is the whole stage. A ~
marks an entry that the value may depend on; all other lines are exact.

The result is checked by a replay with the signals of the slice alone, which must
give the same value. If they do not suffice, further signals are added, and the
last line says so. --dot and --svg write the graph instead, to stdout or -O FILE.

--minimize finds signals of which none can be left out, so that the value at the
moment is still the same. With --where an expression must be true then instead,
and with --image the picture must differ from the PNG, or with --same be equal.
The result is one such set; there may be others. With -O FILE.jsonl it is written
as a recording of its own, and the declarations that it needs beside it.

` + cli.DefinitionsHelp + `

The exit code is 0, 1 if the condition does not hold at the moment, or not in a
recording of its own, and 4 if there is no such moment or value.`,
		Example: `  sajou-replay why 38 stage.entities.smith.strength
  sajou-replay why 38 stage.entities.smoke --dot
  sajou-replay why 38 stage.entities.smith.strength --minimize -O cause.jsonl
  sajou-replay why 38 --minimize --where 'state.stage.entities.smoke.visible'`,
		Args: cli.Between(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check(cmd); err != nil {
				return err
			}
			t, rest, err := a.OpenSessionAndRest(args)
			if err != nil {
				return err
			}
			defer t.Close()
			if len(rest) < 1 || len(rest) > 2 {
				return cli.Misuse("why needs a moment; usage: %s", cmd.UseLine())
			}
			if err := a.SeeThrough(cmd.Context(), t, w.defines); err != nil {
				return err
			}
			m, err := t.Resolve(cmd.Context(), rest[0])
			if err != nil {
				return err
			}
			text := "stage.entities"
			if len(rest) == 2 {
				text = rest[1]
			}
			path, err := provenance.ParsePath(text)
			if err != nil {
				return cli.Misuse("%w", err)
			}
			if w.minimize {
				return w.showMinimal(cmd.Context(), a, t, m, path)
			}
			s, err := provenance.Why(cmd.Context(), t.Travel, path, m)
			if err != nil {
				return noSlice(err)
			}
			return w.showSlice(a, s)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&w.minimize, "minimize", false, "find signals of which none can be left out")
	f.StringVar(&w.where, "where", "", "with --minimize, keep `EXPR` true")
	w.look.flags(cmd, "with --minimize, keep the picture equal to the PNG")
	f.BoolVar(&w.dot, "dot", false, "write the graph in the language of Graphviz")
	f.BoolVar(&w.svg, "svg", false, "write the graph as a drawing")
	w.defines.Flag(cmd)
	f.StringVarP(&w.out, "out", "O", "", "write the graph or the recording to `FILE`")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func (w *whyFlags) check(cmd *cobra.Command) error {
	switch {
	case w.dot && w.svg:
		return cli.Misuse("--dot and --svg exclude each other")
	case w.minimize && (w.dot || w.svg):
		return cli.Misuse("--minimize finds signals, not a graph; omit --dot and --svg")
	case !w.minimize && (w.where != "" || w.look.image != ""):
		return cli.Misuse("--where and --image need --minimize")
	case w.where != "" && w.look.image != "":
		return cli.Misuse("--where and --image exclude each other")
	case w.out != "" && !w.minimize && !w.dot && !w.svg:
		return cli.Misuse("-O needs --minimize, --dot or --svg")
	}
	return w.look.check(cmd)
}

// noSlice gives the errors of package provenance their exit codes.
func noSlice(err error) error {
	switch {
	case errors.Is(err, provenance.ErrNoSlice), errors.Is(err, provenance.ErrPath):
		return cli.Fail(cli.ExitNotFound, "%w", err)
	case errors.Is(err, provenance.ErrUnmet), errors.Is(err, provenance.ErrStandalone):
		return cli.Fail(cli.ExitNo, "%w", err)
	}
	return err
}

type nodeView struct {
	Kind   string     `json:"kind"`
	Text   string     `json:"text"`
	Seq    uint64     `json:"seq,omitempty"`
	Moment momentView `json:"moment"`
}

type edgeView struct {
	From   int    `json:"from"`
	To     int    `json:"to"`
	Reason string `json:"reason"`
	Exact  bool   `json:"exact"`
}

func (w *whyFlags) showSlice(a *cli.App, s *provenance.Slice) error {
	if w.dot || w.svg {
		text := s.DOT()
		if w.svg {
			text = s.SVG()
		}
		name := w.out
		if name == "" {
			name = "-"
		}
		return a.WritePicture(name, func(out io.Writer) error {
			_, err := io.WriteString(out, termtext.PrintableLines(text))
			return err
		})
	}
	v := struct {
		Path      string         `json:"path"`
		Moment    momentView     `json:"moment"`
		Value     any            `json:"value"`
		Exists    bool           `json:"exists"`
		Nodes     []nodeView     `json:"nodes"`
		Edges     []edgeView     `json:"edges"`
		Signals   []eventlog.Seq `json:"signals"`
		Of        int            `json:"of"`
		Precision string         `json:"precision"`
	}{s.Path.String(), viewMoment(s.Moment), s.Value, s.Has, []nodeView{}, []edgeView{}, s.Signals, s.Of, s.Precision.String()}
	if v.Signals == nil {
		v.Signals = []eventlog.Seq{}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		v.Nodes = append(v.Nodes, nodeView{n.Kind, n.Text, uint64(n.Seq), viewMoment(n.Moment)})
	}
	for _, e := range s.Edges {
		v.Edges = append(v.Edges, edgeView(e))
	}
	value := "not there"
	if s.Has {
		value = shortValue(s.Value)
	}
	text := fmt.Sprintf("%s at %v: %s\n%s", termtext.Printable(s.Path.String()), s.Moment, value, termtext.PrintableLines(s.Text()))
	note := ", checked by a replay"
	switch s.Precision {
	case provenance.WithPerformances:
		note = "; the edges alone did not suffice, so all performances of these signals count"
	case provenance.AllSignals:
		note = "; a replay with fewer gave another value, see --minimize"
	case provenance.FromEdges:
	}
	text += fmt.Sprintf("%d of %s%s\n", len(s.Signals), cli.Plural(s.Of, "signal", "signals"), note)
	return a.Output().One(text, v)
}

// condition returns what --minimize keeps.
func (w *whyFlags) condition(ctx context.Context, t *cli.OpenedSession, m replay.Moment, path provenance.StatePath) (provenance.Criterion, error) {
	switch {
	case w.look.image != "":
		c, err := w.look.load(ctx)
		if err != nil {
			return nil, err
		}
		return func(_ context.Context, f *projection.Fold) (bool, error) {
			measured, err := c.measure(f)
			return err == nil && c.Wrong(measured), err
		}, nil
	case w.where != "":
		p, err := cli.Compile(w.where)
		if err != nil {
			return nil, err
		}
		if p.NeedsPrev() {
			return nil, cli.Misuse("--where must not read prev, because one moment is kept and not the one before")
		}
		if err := t.FoldFor(&p.Expression); err != nil {
			return nil, err
		}
		e, err := t.Travel.Entry(ctx, max(m.Seq, 1))
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, f *projection.Fold) (bool, error) {
			return p.Match(ctx, cli.InputOf(&replay.ScanStep{Entry: &e, Fold: f}))
		}, nil
	}
	return provenance.Same(ctx, t.Travel, path, m)
}

// minimal finds the minimal signals; the slice of the path is the first guess.
func minimal(ctx context.Context, t *cli.OpenedSession, m replay.Moment, path provenance.StatePath, holds provenance.Criterion) (provenance.Minimal, error) {
	var guess []eventlog.Seq
	s, err := provenance.Why(ctx, t.Travel, path, m)
	switch {
	case err == nil:
		guess = s.Signals
	case !errors.Is(err, provenance.ErrNoSlice):
		return provenance.Minimal{}, err
	}
	return provenance.Minimize(ctx, t.Travel, m, holds, guess)
}

func (w *whyFlags) showMinimal(ctx context.Context, a *cli.App, t *cli.OpenedSession, m replay.Moment, path provenance.StatePath) error {
	holds, err := w.condition(ctx, t, m, path)
	if err != nil {
		return noSlice(err)
	}
	least, err := minimal(ctx, t, m, path, holds)
	if err != nil {
		return noSlice(err)
	}
	v := struct {
		Moment  momentView     `json:"moment"`
		Signals []eventlog.Seq `json:"signals"`
		Of      int            `json:"of"`
		Runs    int            `json:"replays"`
		Files   []string       `json:"files,omitempty"`
	}{viewMoment(m), slices.Clone(least.Signals), least.Of, least.Runs, nil}
	if v.Signals == nil {
		v.Signals = []eventlog.Seq{}
	}
	var text strings.Builder
	for _, seq := range least.Signals {
		e, err := t.Travel.Entry(ctx, seq)
		if err != nil {
			return err
		}
		text.WriteString(cli.EntryText(&e) + "\n")
	}
	fmt.Fprintf(&text, "%d of %s; none of them can be left out (%s)\n", len(least.Signals), cli.Plural(least.Of, "signal", "signals"), cli.Plural(least.Runs, "replay", "replays"))
	if w.out != "" {
		x, err := provenance.Standalone(ctx, t.Travel, m, least.Signals, holds)
		if err != nil {
			return noSlice(err)
		}
		files, err := writeExtract(w.out, x)
		if err != nil {
			return err
		}
		v.Files = files
		text.WriteString("import it with: sajou-replay import " + cli.ShellWord(files[0]))
		for _, name := range files[1:] {
			text.WriteString(" --define " + cli.ShellWord(name))
		}
		text.WriteByte('\n')
	}
	return a.Output().One(text.String(), v)
}

// writeExtract writes the signals to a file, and the declarations beside it. It returns
// the names of the files.
func writeExtract(name string, x *provenance.Extract) ([]string, error) {
	if err := cli.HasDirectory(name); err != nil {
		return nil, err
	}
	names, texts := []string{name}, [][]byte{x.JSONL()}
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	if x.Scene != nil {
		names, texts = append(names, stem+".scene.json"), append(texts, x.Scene.Value().AppendJSON(nil))
	}
	if len(x.Declarations) > 0 {
		names, texts = append(names, stem+".define.json"), append(texts, x.DeclarationsJSON())
	}
	for i := range names {
		err := cli.WriteFile(names[i], func(out io.Writer) error {
			_, err := out.Write(texts[i])
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}
