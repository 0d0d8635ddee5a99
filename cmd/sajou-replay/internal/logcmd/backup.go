package logcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// oneCopy is how one session is copied.
const oneCopy = "copy one with: sajou-replay export SESSION --raw, and import --raw"

// Backup returns the command "backup".
func Backup(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "backup NEWDIR",
		Short: "Copy the store and verify the copy",
		Long: `Backup copies the store to NEWDIR, which must be absent, and verifies each
session of the copy before it appears there. An interrupted backup leaves no
store. The snapshots are copied too. It prints the head of each session: keep
the heads outside of the copy.

The copy is a store: every command reads it with -C, and restore copies it back.
A store that a server holds is backed up while the server goes on. A store that
another program writes to is in use; that program can back it up itself
(Engine.Backup). A damaged store is refused; repair copies its readable entries.`,
		Example: `  sajou-replay backup night-backup
  sajou-replay verify -C night-backup`,
		Args: cli.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.WholeStore(cmd, oneCopy); err != nil {
				return err
			}
			engine, err := a.OpenReading()
			if err != nil {
				return err
			}
			defer engine.Close()
			reports, err := engine.Backup(cmd.Context(), args[0])
			return reportCopy(cmd.Context(), a, args[0], "backed up", reports, err)
		},
	}
}

// Restore returns the command "restore".
func Restore(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "restore BACKUP",
		Short: "Make a store from a backup",
		Long: `Restore copies the store in BACKUP, which backup made, to the directory that -C
names, which must be absent, and verifies each session there before the store
appears. BACKUP stays as it is. An interrupted restore leaves no store.

Compare the heads that restore prints with those that backup printed.`,
		Example: `  sajou-replay backup night-backup
  sajou-replay restore night-backup -C restored`,
		Args: cli.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.WholeStore(cmd, oneCopy); err != nil {
				return err
			}
			from := *a
			from.Store = args[0]
			defer from.GiveBack()
			engine, err := from.OpenReading()
			if exit, ok := errors.AsType[*cli.ExitError](err); ok && exit.Code == cli.ExitNotFound {
				return cli.Fail(cli.ExitNotFound, "there is no backup in %s; name the directory that backup made", args[0])
			}
			if err != nil {
				return err
			}
			defer engine.Close()
			if a.Store == "" {
				return cli.Misuse("--store is empty; name a directory")
			}
			reports, err := engine.Backup(cmd.Context(), a.Store)
			return reportCopy(cmd.Context(), a, a.Store, "restored", reports, err)
		},
	}
}

// copyView is what backup and restore report in JSON.
type copyView struct {
	To       string     `json:"to"`
	Sessions []copyHead `json:"sessions"`
}

type copyHead struct {
	Session string       `json:"session"`
	Head    cli.HeadView `json:"head"`
}

func reportCopy(ctx context.Context, a *cli.App, to, done string, reports []verify.SessionReport, err error) error {
	about, _ := errors.AsType[*eventlog.DirectoryError](err)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return cli.Fail(cli.ExitInterrupted, "interrupted; %s was not made", to)
	case about != nil:
		return cli.Fail(cli.ExitNo, "%s: %s; %s", about.Dir, cli.OneLine(about.Found), about.Do)
	case errors.Is(err, eventlog.ErrInvalid):
		return cli.Misuse("%w", err)
	case errors.Is(err, eventlog.ErrCorrupt):
		return cli.Fail(cli.ExitNo, "%w; %s was not made; copy the readable entries with: sajou-replay repair --to NEWDIR", err, to)
	default:
		return fmt.Errorf("%w; %s was not made", err, to)
	}
	view := copyView{To: to, Sessions: []copyHead{}}
	var text strings.Builder
	for _, r := range reports {
		view.Sessions = append(view.Sessions, copyHead{r.Session, cli.ViewHead(r.Head)})
		fmt.Fprintf(&text, "%s: verified, %s, head %v\n", termtext.Printable(r.Session), cli.Plural(int(r.Head.Seq), "entry", "entries"), r.Head)
	}
	fmt.Fprintf(&text, "%s to %s\n", done, termtext.Printable(to))
	return a.Output().One(text.String(), view)
}
