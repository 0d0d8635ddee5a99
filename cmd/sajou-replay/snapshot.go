package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/snapshot"
)

func (a *app) snapshotCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "List, build or drop saved states",
		Long: `Snapshots are states that were saved so that a jump into a long session need not
begin at its beginning. They are taken while a session is recorded and thinned
with age; they hold nothing that cannot be computed again, so dropping them is
always safe.`,
		Example: `  sajou-replay snapshot ls
  sajou-replay snapshot build release-42
  sajou-replay snapshot drop release-42`,
		Args: groupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.snapshotLs(), a.snapshotBuild(), a.snapshotDrop())
	return cmd
}

func (a *app) snapshotLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ls [SESSION]",
		Short:   "List a session's snapshots",
		Long:    `Ls lists a session's snapshots: the entry each was taken at, its size in the file, and its size before compression.`,
		Example: `  sajou-replay snapshot ls release-42`,
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.argTarget(args)
			if err != nil {
				return err
			}
			defer t.Close()
			var list []snapshot.Info
			if store := t.engine.Snapshots(); store != nil {
				if list, err = store.List(t.name); err != nil {
					return err
				}
			}
			o := a.output()
			for _, info := range list {
				value, err := marshal(struct {
					Seq    eventlog.Seq `json:"seq"`
					Bytes  int64        `json:"bytes"`
					Length int64        `json:"length"`
				}{info.Seq, info.Bytes, info.Length})
				if err != nil {
					return err
				}
				if err := o.item(fmt.Sprintf("%8d  %8d bytes, %d uncompressed", info.Seq, info.Bytes, info.Length), value); err != nil {
					return err
				}
			}
			return o.end()
		},
	}
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

func (a *app) snapshotBuild() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "build [SESSION]",
		Short:   "Take a session's snapshots anew",
		Long:    `Build computes the session from its beginning and saves its state at every interval, thinned to their part of the log's size.`,
		Example: `  sajou-replay snapshot build release-42`,
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSnapshots(args, func(t *target, store *snapshot.Store) error {
				taken, err := a.buildSnapshots(cmd.Context(), t, store)
				if err != nil {
					return err
				}
				list, err := store.List(t.name)
				if err != nil {
					return err
				}
				return a.output().one(
					fmt.Sprintf("took %s of %q and kept %d", plural(taken, "snapshot", "snapshots"), t.name, len(list)),
					map[string]any{"session": t.name, "taken": taken, "kept": len(list)})
			})
		},
	}
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

func (a *app) buildSnapshots(ctx context.Context, t *target, store *snapshot.Store) (taken int, err error) {
	size, err := t.engine.Log().DiskSize(ctx, t.name)
	if err != nil {
		return 0, err
	}
	m := newMeter(a.stderr)
	defer m.clear()
	fold := projection.NewFold(sajou.Projections(), t.log.Genesis())
	end, last := t.log.Head().Seq, eventlog.Seq(0)
	err = t.each(ctx, 1, end, func(e *eventlog.Entry) error {
		if err := fold.Apply(e); err != nil {
			return err
		}
		if !store.Due(last, e.Seq) {
			return nil
		}
		m.show(fmt.Sprintf("%d of %d entries", e.Seq, end))
		if err := store.Put(t.name, fold.Image()); err != nil {
			return err
		}
		last = e.Seq
		taken++
		// Thinned as it goes, so that the file never holds them all.
		_, err := store.Thin(t.name, size)
		return err
	})
	return taken, err
}

func (a *app) snapshotDrop() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "drop [SESSION]",
		Short:   "Delete a session's snapshots",
		Long:    `Drop deletes all snapshots of a session. States are the same without them; only jumps take longer.`,
		Example: `  sajou-replay snapshot drop release-42`,
		Args:    between(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.withSnapshots(args, func(t *target, store *snapshot.Store) error {
				n, err := store.DropAll(t.name)
				if err != nil {
					return err
				}
				return a.output().one(fmt.Sprintf("dropped %s of %q", plural(n, "snapshot", "snapshots"), t.name),
					map[string]any{"session": t.name, "dropped": n})
			})
		},
	}
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

// withSnapshots opens a session of a store that exists, for writing snapshots.
func (a *app) withSnapshots(args []string, do func(*target, *snapshot.Store) error) error {
	name, err := a.sessionArg(args)
	if err != nil {
		return err
	}
	t, err := a.targetForWriting(name)
	if err != nil {
		return err
	}
	defer t.Close()
	store := t.engine.Snapshots()
	if store == nil {
		return fail(exitLocked, "the snapshots in %s cannot be opened; delete %s there and try again", a.store, sajou.SnapshotFile)
	}
	return do(t, store)
}

// targetForWriting is target with the store open for writing. A store that
// does not exist is not made.
func (a *app) targetForWriting(name string) (*target, error) {
	t, err := a.target(name)
	if err != nil {
		return nil, err
	}
	name = t.name
	if err := t.Close(); err != nil {
		return nil, err
	}
	engine, err := a.openWriting()
	if err != nil {
		return nil, err
	}
	if t, err = a.targetIn(engine, name); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return t, nil
}
