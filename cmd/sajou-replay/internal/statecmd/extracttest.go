package statecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
)

// ExtractTest returns the command "extract-test".
func ExtractTest(a *cli.App) *cobra.Command {
	var out string
	var through cli.Definitions
	cmd := &cobra.Command{
		Use:   "extract-test [SESSION] ADDR PATH... -O FILE",
		Short: "Make a regression test of values of the stage at a moment",
		Long: `Extract-test writes a test that stands alone: signals of which none can be left
out without a change of the given values at the moment, the declarations that
they need, and as expectations the commands and the values. The file is a
transcript in the txtar format; rehearse runs it, and so does a Go test with
testscript. If the values are wrong, edit them to those that are right; the test
then fails until its declarations are mended.

With --define the test has mended declarations already: each takes the place of
the one of its name. The signals are still those that give the recorded values,
and the commands and values are those of the mended declarations.

PATH is one that state takes, below stage, such as stage.entities.smith.strength.

The exit code is 0, 1 if the values do not come out in a recording of its own, and
4 if there is no such moment, or the state never had such a value.`,
		Example: `  sajou-replay extract-test 38 stage.entities.smith.strength -O bug.txtar
  sajou-replay extract-test 38 stage.entities.smith.strength --define choreographies.json -O bug.txtar`,
		Args: cli.Between(2, 50),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return cli.Misuse("extract-test needs -O FILE; - is stdout")
			}
			t, rest, err := a.OpenSessionAndRest(args)
			if err != nil {
				return err
			}
			defer t.Close()
			if len(rest) < 2 {
				return cli.Misuse("extract-test needs a moment and a path; usage: %s", cmd.UseLine())
			}
			m, err := t.Resolve(cmd.Context(), rest[0])
			if err != nil {
				return err
			}
			text, err := extractTest(cmd.Context(), a, t, m, rest[1:], through)
			if err != nil {
				return noSlice(err)
			}
			return a.WritePicture(out, func(w io.Writer) error {
				_, err := w.Write(text)
				return err
			})
		},
	}
	cmd.Flags().StringVarP(&out, "out", "O", "", "write the transcript to `FILE`; - is stdout")
	through.Flag(cmd)
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func extractTest(ctx context.Context, a *cli.App, t *cli.OpenedSession, m replay.Moment, texts []string, through cli.Definitions) ([]byte, error) {
	end, err := t.Travel.At(ctx, m)
	if err != nil {
		return nil, err
	}
	var values []provenance.Expected
	var conditions []provenance.Criterion
	var paths []provenance.StatePath
	for _, text := range texts {
		path, err := provenance.ParsePath(text)
		if err != nil {
			return nil, cli.Misuse("%w", err)
		}
		if path.Projection() != "stage" {
			return nil, fmt.Errorf("%w: %v; a test has values of the stage", provenance.ErrNoSlice, path)
		}
		if err := provenance.Existed(ctx, t.Travel, path, m); err != nil {
			return nil, err // a test that a misspelt value is absent could never fail
		}
		paths = append(paths, path)
		v, _ := path.In(end)
		values = append(values, provenance.Expected{Path: path.String(), Value: v})
		conditions = append(conditions, valueIs(path, v))
	}
	holds := func(ctx context.Context, f *projection.Fold) (bool, error) {
		for _, c := range conditions {
			if ok, err := c(ctx, f); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	least, err := answer.Minimize(ctx, t.Travel, m, paths[0], holds)
	if err != nil {
		return nil, err
	}
	x, err := provenance.Standalone(ctx, t.Travel, m, least.Signals, holds)
	if err != nil {
		return nil, err
	}
	if len(through) > 0 {
		if err := a.SeeThrough(ctx, t, through); err != nil {
			return nil, err
		}
		if x, values, err = x.Redeclared(ctx, t.Travel, m, paths); err != nil {
			return nil, err
		}
	}
	title := fmt.Sprintf("%s at %v of %s", strings.Join(texts, ", "), m, t.Name)
	scenario := x.Scenario(t.Name, title, values, nil)
	parsed, diagnostics := rehearsal.Parse("scenario.json", scenario)
	if err := diagnostics.Err(definition.ErrInvalid); err != nil {
		return nil, fmt.Errorf("%w: %w", provenance.ErrStandalone, err)
	}
	if wrong := rehearsal.CompareValues(parsed[0]); len(wrong) > 0 {
		return nil, fmt.Errorf("%w: %s", provenance.ErrStandalone, strings.Join(wrong, "; "))
	}
	scenario = x.Scenario(t.Name, title, values, rehearsal.Run(parsed[0]))
	return fmt.Appendf(nil, "# %s: %d of %s.\nexec sajou-replay rehearse scenario.json\n\n-- scenario.json --\n%s",
		termtext.Printable(title), len(least.Signals), cli.Plural(least.Of, "signal", "signals"), termtext.PrintableJSON(scenario)), nil
}

// valueIs returns the condition that a value is v, whatever its course is.
func valueIs(path provenance.StatePath, v any) provenance.Criterion {
	want, _ := json.Marshal(v) // plain values have a JSON form
	return func(_ context.Context, f *projection.Fold) (bool, error) {
		now, _ := path.In(f)
		got, err := json.Marshal(now)
		return err == nil && string(got) == string(want), err
	}
}
