package logcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// Repair returns the command "repair".
func Repair(a *cli.App) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "repair --to NEWDIR",
		Short: "Copy the readable entries of a damaged store",
		Long: `Repair copies the readable entries of a damaged store to a new store in NEWDIR
and verifies the chain of each session there. It reads every table and every
write-ahead log, even if the files that connect them (SAJOU, FILES, the MANIFEST
and its markers) are missing or damaged. NEWDIR must be absent or empty. The
damaged store is not changed. Snapshots are not copied; the engine takes new ones.

Repair leaves out damaged blocks of tables alone. It reports why the store cannot
be opened, or which tables cannot be read as a whole, which files it rebuilt, each
sign that entries may be lost, and the head of each session. Compare the heads
with copies that were kept outside of the store.

The exit code is 0 if the copy is proven complete, 3 if entries may be lost, and
1 if nothing could be saved.`,
		Example: `  sajou-replay repair -C damaged --to saved
  sajou-replay verify -C saved --all`,
		Args: cli.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.WholeStore(cmd, "omit it"); err != nil {
				return err
			}
			if to == "" {
				return cli.Misuse("--to is missing; name the directory of the copy with --to NEWDIR")
			}
			return runRepair(cmd.Context(), a, to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`DIR` to copy to; absent or empty")
	_ = cmd.MarkFlagDirname("to")
	return cmd
}

// repairedView is what repair reports in JSON.
type repairedView struct {
	From     string                `json:"from"`
	To       string                `json:"to"`
	Whole    bool                  `json:"whole"`
	Found    string                `json:"found,omitempty"`
	Rebuilt  []string              `json:"rebuilt,omitempty"`
	Doubts   []string              `json:"doubts,omitempty"`
	Sessions []repairedSessionRow  `json:"sessions"`
	Deleted  []answer.VerifiedView `json:"deleted,omitempty"`
}

type repairedSessionRow struct {
	Session string            `json:"session"`
	Head    cli.HeadView      `json:"head"`
	Fault   *answer.FaultView `json:"fault,omitempty"`
}

func runRepair(ctx context.Context, a *cli.App, to string) error {
	r, err := eventlog.Repair(ctx, a.Store, to, eventlog.Config{LockWait: a.Wait})
	if about, ok := errors.AsType[*eventlog.DirectoryError](err); ok && errors.Is(err, eventlog.ErrForeign) {
		return cli.Fail(cli.ExitNo, "%s: %s; %s", about.Dir, cli.OneLine(about.Found), about.Do)
	}
	if errors.Is(err, eventlog.ErrInvalid) {
		return cli.Misuse("%w", err)
	}
	if err != nil {
		return a.OpenError(err, true)
	}
	view := repairedView{From: a.Store, To: to, Whole: r.Whole(), Rebuilt: r.Rebuilt, Sessions: []repairedSessionRow{}}
	var text strings.Builder
	if r.Found == nil {
		fmt.Fprintf(&text, "found: nothing wrong; the store opens\n")
	} else {
		view.Found = cli.OneLine(r.Found.Error())
		if about, ok := errors.AsType[*eventlog.DirectoryError](r.Found); ok {
			view.Found = cli.OneLine(about.Found)
		}
		fmt.Fprintf(&text, "found: %s\n", view.Found)
	}
	for _, name := range r.Rebuilt {
		fmt.Fprintf(&text, "rebuilt: %s\n", termtext.Printable(name))
	}
	for _, doubt := range r.Doubts {
		doubt = cli.OneLine(doubt)
		view.Doubts = append(view.Doubts, doubt)
		fmt.Fprintf(&text, "doubt: %s\n", doubt)
	}
	for _, s := range r.Sessions {
		row := repairedSessionRow{Session: s.Session, Head: cli.ViewHead(s.Head)}
		line := fmt.Sprintf("%s: verified, %s, head %v", termtext.Printable(s.Session), cli.Plural(int(s.Head.Seq), "entry", "entries"), s.Head)
		if f := s.Fault; f != nil {
			row.Fault = answer.ViewFault(f)
			line = fmt.Sprintf("%s: BROKEN at entry %d: %s: %s (whole up to %v)", termtext.Printable(s.Session), f.Seq, f.Kind, cli.OneLine(f.Detail), s.Head)
		}
		view.Sessions = append(view.Sessions, row)
		fmt.Fprintln(&text, line)
	}
	for i := range r.Tombstones {
		line, deleted := deletedReport(&r.Tombstones[i])
		view.Deleted = append(view.Deleted, deleted)
		fmt.Fprintln(&text, line)
	}
	nothing := len(r.Sessions) == 0 && len(r.Tombstones) == 0 && r.Found != nil
	switch {
	case nothing:
		fmt.Fprintf(&text, "nothing could be saved; %s was not created\n", termtext.Printable(to))
	case view.Whole:
		fmt.Fprintf(&text, "saved to %s, whole\n", termtext.Printable(to))
	default:
		fmt.Fprintf(&text, "saved to %s; entries may be lost: compare the heads with copies that were kept elsewhere\n", termtext.Printable(to))
	}
	if err := a.Output().One(text.String(), view); err != nil {
		return err
	}
	switch {
	case nothing:
		return cli.AnswerNo
	case !view.Whole:
		return &cli.ExitError{Code: cli.ExitLoss}
	}
	return nil
}
