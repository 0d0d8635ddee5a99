package statecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
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
		Short: "Show what a value depends on, or its smallest cause",
		Long: `Why shows the causal slice of a value at a moment: what it depends on, and what
that depends on. PATH is one that state takes, such as stage.entities.smith.x or
director.turn; without one it is the whole stage. A ~ marks an entry that the
value may depend on; all other lines are exact.

Of a value of the stage it follows the acts that set it, the performances with the
signals that began and ended them, the guards and conditions that decided, and the
declarations in force; and of a signal that an episode has made, the event of the
director behind it.

Of a value of the world it follows the effects that set its parts, the intents
that asked for them, their generations, what the agent had been sent when it asked
(the view that the intent names), and the effects that this view shows.

Of a value of the director it follows the events that set its parts: of a beat the
verdict, the judgment and the response, the guidance that directed it, and what it
requires; the turns with their input, the choices and what caused a flag.

A slice of the stage is checked by a replay with its signals alone, which must
give the same value. If they do not suffice, further signals are added, and the
last line says so. --dot and --svg write the graph instead, to stdout or -O FILE.

--minimize finds signals of which none can be left out, so that the value at the
moment is still the same. With --where an expression must be true then instead,
and with --image the picture must differ from the PNG, or with --same be equal.
The result is one such set; there may be others. With -O FILE.jsonl it is written
as a recording of its own, and the declarations that it needs beside it; nothing
is written if the condition holds without any signal.

` + cli.DefinitionsHelp + `

The exit code is 0, 1 if the condition does not hold at the moment, or not in a
recording of its own, and 4 if there is no such moment, or the state never had
such a value.`,
		Example: `  sajou-replay why 38 stage.entities.smith.strength
  sajou-replay why 38 stage.entities.smoke --dot
  sajou-replay why end world.entities.A.last_message --session conversation
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
	case errors.Is(err, provenance.ErrNoSlice), errors.Is(err, provenance.ErrPath), errors.Is(err, provenance.ErrNever):
		return cli.Fail(cli.ExitNotFound, "%w", err)
	case errors.Is(err, provenance.ErrUnmet), errors.Is(err, provenance.ErrStandalone):
		return cli.Fail(cli.ExitNo, "%w", err)
	}
	return err
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
	value := "not there"
	if s.Has {
		value = shortValue(s.Value)
	}
	text := fmt.Sprintf("%s at %v: %s\n%s", termtext.Printable(s.Path.String()), s.Moment, value, termtext.PrintableLines(s.Text()))
	note := ", checked by a replay"
	switch s.Precision {
	case provenance.AsRecorded:
		text += fmt.Sprintf("%d of %s, as they were recorded%s\n", len(s.Entries), cli.Plural(int(s.Moment.Seq), "entry", "entries"), cutText(s))
		return a.Output().One(text, answer.ViewSlice(s))
	case provenance.WithPerformances:
		note = "; the edges alone did not suffice, so all performances of these signals count"
	case provenance.AllSignals:
		note = "; a replay with fewer gave another value, see --minimize"
	case provenance.FromEdges:
	}
	text += fmt.Sprintf("%d of %s%s%s\n", len(s.Signals), cli.Plural(s.Of, "signal", "signals"), note, cutText(s))
	return a.Output().One(text, answer.ViewSlice(s))
}

// cutText says that a graph is not complete.
func cutText(s *provenance.Slice) string {
	if s.Cut {
		return "; there are more, which are left out"
	}
	return ""
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
		p, err := answer.Compile(w.where)
		if err != nil {
			return nil, err
		}
		if err := t.FoldFor(&p.Expression); err != nil {
			return nil, err
		}
		holds, err := answer.Holding(ctx, t.Travel, m, p)
		if errors.Is(err, answer.ErrReadsPrev) {
			return nil, cli.Misuse("--where: %w", err)
		}
		return holds, err
	}
	return provenance.Same(ctx, t.Travel, path, m)
}

func (w *whyFlags) showMinimal(ctx context.Context, a *cli.App, t *cli.OpenedSession, m replay.Moment, path provenance.StatePath) error {
	holds, err := w.condition(ctx, t, m, path)
	if err != nil {
		return noSlice(err)
	}
	least, err := answer.Minimize(ctx, t.Travel, m, path, holds)
	if err != nil {
		return noSlice(err)
	}
	v := answer.ViewMinimal(&least)
	var text strings.Builder
	for _, seq := range least.Signals {
		e, err := t.Travel.Entry(ctx, seq)
		if err != nil {
			return err
		}
		text.WriteString(cli.EntryText(&e) + "\n")
	}
	if len(least.Signals) == 0 {
		fmt.Fprintf(&text, "holds without any signal, so there is no cause to write: 0 of %s (%s)\n", cli.Plural(least.Of, "signal", "signals"), cli.Plural(least.Runs, "replay", "replays"))
		return a.Output().One(text.String(), v)
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
