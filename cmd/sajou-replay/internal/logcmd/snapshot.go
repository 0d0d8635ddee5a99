package logcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// Snapshot returns the command "snapshot".
func Snapshot(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "List, check, build or delete saved states",
		Long: `A snapshot is a saved state, from which a command can reach a later moment of a
long session without computing from the first entry. The engine takes snapshots
while it records, and keeps fewer of the older ones. A snapshot holds only data
that the log determines, so deleting snapshots is always safe.

Of a session with many entries, commands keep an index beside the snapshots: at
which entries a correlation id, a beat or a turn occurs, what each entry did on
the stage, and which entities it showed to agents. The first question that needs
it builds it, and it may be deleted.

A program that can write to the snapshot file can store a state that the session
never had, and commands would continue from it. The command snapshot verify
finds such states; the flag --no-snapshots makes any command compute from the
first entry, without an index.`,
		Example: `  sajou-replay snapshot ls
  sajou-replay snapshot verify night-shift
  sajou-replay snapshot build night-shift
  sajou-replay snapshot drop night-shift
  sajou-replay snapshot digests night-shift --check`,
		Args: cli.GroupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(snapshotLsCommand(a), snapshotVerifyCommand(a), snapshotBuildCommand(a), snapshotDropCommand(a), snapshotDigestsCommand(a))
	return cmd
}

func snapshotLsCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls [SESSION]",
		Short: "List the snapshots of a session",
		Long: `Ls lists the snapshots of a session. A line has the entry of the snapshot, its
size in the file, and its size before compression.`,
		Example: `  sajou-replay snapshot ls night-shift`,
		Args:    cli.Between(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return readSnapshots(a, args, func(t *cli.OpenedSession) error { return listSnapshots(a, t) })
		},
	}
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func listSnapshots(a *cli.App, t *cli.OpenedSession) error {
	var list []snapshot.ImageInfo
	if store := t.Engine.Snapshots(); store != nil {
		var err error
		if list, err = store.List(t.Name); err != nil {
			return err
		}
	}
	o := a.Output()
	for _, info := range list {
		value, err := cli.Marshal(struct {
			Seq    eventlog.Seq `json:"seq"`
			Bytes  int64        `json:"bytes"`
			Length int64        `json:"length"`
		}{info.Seq, info.Bytes, info.Length})
		if err != nil {
			return err
		}
		if err := o.Item(fmt.Sprintf("%8d  %8d bytes, %d uncompressed", info.Seq, info.Bytes, info.Length), value); err != nil {
			return err
		}
	}
	return o.End()
}

func snapshotVerifyCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [SESSION]",
		Short: "Compare the snapshots of a session with its log",
		Long: `Verify computes the states of a session from its first entry, compares each
snapshot with the state at its entry, and names the snapshots that differ or are
damaged. Snapshots of other versions of the projections are never used, and are
skipped. The log itself is checked by sajou-replay verify.

The exit code is 0 if every snapshot is right and 1 if not.`,
		Example: `  sajou-replay snapshot verify night-shift`,
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return readSnapshots(a, args, func(t *cli.OpenedSession) error { return verifySnapshots(cmd.Context(), a, t) })
		},
	}
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func verifySnapshots(ctx context.Context, a *cli.App, t *cli.OpenedSession) error {
	bad, checked, err := t.Engine.VerifySnapshots(ctx, t.Name)
	if err != nil {
		return err
	}
	o := a.Output()
	for _, f := range bad {
		value, err := cli.Marshal(map[string]any{"session": t.Name, "seq": f.Seq, "verified": false, "detail": f.Detail})
		if err != nil {
			return err
		}
		if err := o.Item(fmt.Sprintf("%s: snapshot at entry %d BROKEN: %s", termtext.Printable(t.Name), f.Seq, cli.OneLine(f.Detail)), value); err != nil {
			return err
		}
	}
	value, err := cli.Marshal(map[string]any{"session": t.Name, "verified": len(bad) == 0, "snapshots": checked, "broken": len(bad)})
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s: %s verified", termtext.Printable(t.Name), cli.Plural(checked, "snapshot", "snapshots"))
	if len(bad) > 0 {
		text = fmt.Sprintf("%s: %d of %s broken; delete them with: sajou-replay snapshot drop -s %s", termtext.Printable(t.Name), len(bad), cli.Plural(checked, "snapshot", "snapshots"), cli.ShellWord(t.Name))
	}
	if err := o.Item(text, value); err != nil {
		return err
	}
	if err := o.End(); err != nil {
		return err
	}
	if len(bad) > 0 {
		return cli.AnswerNo
	}
	return nil
}

func snapshotBuildCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "build [SESSION]",
		Short: "Build the snapshots of a session",
		Long: `Build computes the states of a session from its first entry and saves one at
each interval. It deletes older snapshots until the others take no more than
their share of the size of the log. On the way it keeps the digests of the states;
see snapshot digests.`,
		Example: `  sajou-replay snapshot build night-shift`,
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSnapshots(a, args, func(t *cli.OpenedSession) error {
				m := cli.NewProgress(a.Stderr)
				taken, err := t.Engine.BuildSnapshots(cmd.Context(), t.Name, func(folded, entries eventlog.Seq) {
					m.Show(fmt.Sprintf("%d of %d entries", folded, entries))
				})
				m.Clear()
				if err != nil {
					return err
				}
				list, err := t.Engine.Snapshots().List(t.Name)
				if err != nil {
					return err
				}
				return a.Output().One(
					fmt.Sprintf("took %s of %q and kept %d", cli.Plural(taken, "snapshot", "snapshots"), t.Name, len(list)),
					map[string]any{"session": t.Name, "taken": taken, "kept": len(list)})
			})
		},
	}
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func snapshotDropCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drop [SESSION]",
		Short: "Delete the snapshots and the index of a session",
		Long: `Drop deletes all snapshots of a session, and its index. The states of the session
and all answers stay the same; computing them takes longer. The digests that were
kept stay.`,
		Example: `  sajou-replay snapshot drop night-shift`,
		Args:    cli.Between(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return withSnapshots(a, args, func(t *cli.OpenedSession) error {
				n, err := t.Engine.DropSnapshots(t.Name)
				if err == nil {
					err = t.Engine.DropIndexes(t.Name)
				}
				if err != nil {
					return err
				}
				return a.Output().One(fmt.Sprintf("dropped %s of %q", cli.Plural(n, "snapshot", "snapshots"), t.Name),
					map[string]any{"session": t.Name, "dropped": n})
			})
		},
	}
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// readSnapshots opens a session for reading, for a command about its snapshots.
func readSnapshots(a *cli.App, args []string, do func(*cli.OpenedSession) error) error {
	if err := wantSnapshots(a); err != nil {
		return err
	}
	t, err := a.OpenArgSession(args)
	if err != nil {
		return err
	}
	defer t.Close()
	return do(t)
}

// wantSnapshots refuses --no-snapshots for a command about snapshots.
func wantSnapshots(a *cli.App) error {
	if a.NoSnapshots {
		return cli.Misuse("--no-snapshots disables snapshots, which this command needs; omit it")
	}
	return nil
}

// withSnapshots opens a session of an existing store for writing snapshots.
func withSnapshots(a *cli.App, args []string, do func(*cli.OpenedSession) error) error {
	if err := wantSnapshots(a); err != nil {
		return err
	}
	name, err := a.SessionArg(args)
	if err != nil {
		return err
	}
	t, err := targetForWriting(a, name)
	if err != nil {
		return err
	}
	defer t.Close()
	if t.Engine.Snapshots() == nil {
		return cli.Fail(cli.ExitLocked, "the snapshots in %s cannot be opened; delete %s there and try again", a.Store, sajou.SnapshotFile)
	}
	return do(t)
}

// targetForWriting is [cli.App.OpenSession] with the store open for writing. It
// opens the store for reading first, so that a missing store is not created.
func targetForWriting(a *cli.App, name string) (*cli.OpenedSession, error) {
	t, err := a.OpenSession(name)
	if err != nil {
		return nil, err
	}
	name = t.Name
	if err := t.Close(); err != nil {
		return nil, err
	}
	engine, err := a.OpenWriting()
	if err != nil {
		return nil, err
	}
	if t, err = a.OpenSessionIn(engine, name); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return t, nil
}
