package logcmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay/sentinel"
)

func snapshotDigestsCommand(a *cli.App) *cobra.Command {
	var check bool
	var file string
	cmd := &cobra.Command{
		Use:   "digests [SESSION]",
		Short: "Show or compare the digests that were kept of a session",
		Long: `Digests shows the digests of the projections that snapshot build kept of a
session, as a document of JSON: at each entry, or of a long session at 1000 of
them. They are in the file ` + sajou.DigestFile + ` beside the snapshots, which can
be deleted at any time.

--check computes the states from the first entry, with this version of the program
on this machine, and compares. It names the first entry at which the digests
differ, or the entries between which it is, and whether the code or the data
differs: if the chain hash of the entry is the same, the code does. --with
compares with the document in a file, from another machine.

The exit code is 0 if the digests are the same, 1 if not, and 5 if none are kept.`,
		Example: `  sajou-replay snapshot digests night-shift
  sajou-replay snapshot digests night-shift --check`,
		Args: cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var document *sentinel.DigestDocument
			if file != "" {
				text, err := cli.ReadFile(cmd.Context(), file, sentinel.MaxDocument)
				if err == nil {
					document, err = sentinel.Parse(text)
				}
				if err != nil {
					return cli.Misuse("%s: %w", file, err)
				}
			}
			t, err := a.OpenArgSession(args)
			if err != nil {
				return err
			}
			defer t.Close()
			kept, err := keptDigests(t, document, file)
			if err != nil {
				return err
			}
			if check || file != "" {
				return checkDigests(cmd.Context(), a, t, kept)
			}
			document = &sentinel.DigestDocument{Sessions: []sentinel.KeptDigests{*kept}}
			_, err = a.Stdout.Write(termtext.PrintableJSON(document.Text()))
			return err
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "compare the digests with the states as they are now")
	cmd.Flags().StringVar(&file, "with", "", "compare with the digests in `FILE`")
	_ = cmd.MarkFlagFilename("with")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// keptDigests returns the digests of a session in a document, or if it is nil, in the
// store.
func keptDigests(t *cli.OpenedSession, document *sentinel.DigestDocument, file string) (*sentinel.KeptDigests, error) {
	if document != nil {
		if kept := document.Of(t.Name); kept != nil {
			return kept, nil
		}
		return nil, cli.Fail(cli.ExitInconclusive, "%s has no digests of session %q", file, t.Name)
	}
	kept, err := t.Engine.KeptDigests(t.Name)
	if err == nil && kept == nil {
		return nil, cli.Fail(cli.ExitInconclusive, "no digests of %q are kept; keep them with: sajou-replay snapshot build -s %s", t.Name, cli.ShellWord(t.Name))
	}
	return kept, err
}

// checkedDigestsView is the outcome of a comparison as JSON.
type checkedDigestsView struct {
	Session     string                   `json:"session"`
	Same        bool                     `json:"same"`
	Points      int                      `json:"points"` // that are the same
	First       eventlog.Seq             `json:"first,omitempty"`
	Last        eventlog.Seq             `json:"last,omitempty"`
	Cause       sentinel.DivergenceCause `json:"cause,omitempty"`
	Projections []string                 `json:"projections,omitempty"`
	Detail      string                   `json:"detail,omitempty"`
}

func checkDigests(ctx context.Context, a *cli.App, t *cli.OpenedSession, kept *sentinel.KeptDigests) error {
	c, err := sentinel.Check(ctx, t.Log, t.Engine.Projections(), kept)
	if err != nil {
		return err
	}
	view := checkedDigestsView{Session: t.Name, Same: c.Diverge == nil, Points: c.Points}
	text := fmt.Sprintf("%s: the digests are as they were, at %s up to entry %d", termtext.Printable(t.Name), cli.Plural(c.Points, "entry", "entries"), c.Folded)
	if d := c.Diverge; d != nil {
		view.First, view.Last, view.Cause, view.Projections, view.Detail = d.After+1, d.At, d.Cause, d.Projections, d.Detail
		text = fmt.Sprintf("%s: DIFFERS at %s", termtext.Printable(t.Name), termtext.Printable(d.String()))
	}
	if err := a.Output().One(text, view); err != nil {
		return err
	}
	if c.Diverge != nil {
		return cli.AnswerNo
	}
	return nil
}
