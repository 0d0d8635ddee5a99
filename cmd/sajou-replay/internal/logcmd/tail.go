package logcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/session"
)

// Tail returns the command "tail".
func Tail(a *cli.App) *cobra.Command {
	var (
		filter   entryFilter
		follow   bool
		lines    uint64
		interval time.Duration
	)
	cmd := &cobra.Command{
		Use:   "tail [SESSION]",
		Short: "Show the newest entries of a session",
		Long: `Tail shows the newest entries of a session. With -f it also shows the entries
that follow, until it is interrupted.

While a server records into the store, or with --server, the new entries come as
they are recorded. If the connection ends, tail connects again every --interval,
and loses and repeats nothing. A store without a server is opened every
--interval and closed again; while another program keeps it open, tail waits and
shows the new entries afterwards.

The selecting flags are those of cat. They apply to the -n newest entries.`,
		Example: `  sajou-replay tail -n 5
  sajou-replay tail -f night-shift --type error`,
		Args: cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.SessionArg(args)
			if err != nil {
				return err
			}
			if interval <= 0 {
				return cli.Misuse("--interval %v: must be above 0", interval)
			}
			keep, err := filter.compile()
			if err != nil {
				return err
			}
			f := &follower{app: a, keep: keep, expression: filter.expression, o: a.Output(), name: name, last: lines}
			if !follow {
				if err := f.look(cmd.Context()); err != nil {
					return err
				}
				return f.o.End()
			}
			if a.Format == "json" {
				return cli.Misuse("-f never ends, so -o json could not close its array; use -o jsonl")
			}
			return f.follow(cmd.Context(), interval)
		},
	}
	filter.flags(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "show entries that follow, until interrupted")
	cmd.Flags().Uint64VarP(&lines, "lines", "n", 10, "begin `N` entries before the end")
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "time between two looks with -f")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// follower shows the entries of a session from next on.
type follower struct {
	app  *cli.App
	keep replay.EntryPredicate
	o    *cli.Output
	name string
	last uint64 // number of entries to begin with
	next eventlog.Seq
	seen eventlog.Head // the last entry before next

	expression *where.Expression // of keep; nil without one
}

// look opens the store, shows the new entries, and closes it.
func (f *follower) look(ctx context.Context) error {
	t, err := f.app.OpenSession(f.name)
	if err != nil {
		return err
	}
	defer t.Close()
	return f.show(ctx, t)
}

// show shows the new entries.
func (f *follower) show(ctx context.Context, t *cli.OpenedSession) error {
	if err := t.FoldFor(f.expression); err != nil {
		return err
	}
	f.name = t.Name // a session that begins later does not take its place
	end := t.Travel.Head().Seq
	if f.seen.Seq > 0 {
		if e, err := t.Log.Entry(ctx, f.seen.Seq); err != nil || e.Head() != f.seen {
			return cli.Fail(cli.ExitNo, "%s no longer has the entry %v, which was shown: it is another recording", t.Name, f.seen)
		}
	}
	if f.next == 0 {
		f.next = 1
		if uint64(end) > f.last {
			f.next = end - eventlog.Seq(f.last) + 1
		}
	}
	if f.next > end {
		return nil
	}
	late := session.NewLateness(t.Log.Entries)
	for hit, err := range t.Travel.Scan(ctx, f.next, end, f.keep, replay.All) {
		if err != nil {
			return err
		}
		if err := f.o.MarkedItem(ctx, late, &hit.Entry); err != nil {
			return err
		}
	}
	f.next, f.seen = end+1, t.Travel.Head()
	return f.o.Flush()
}

func (f *follower) follow(ctx context.Context, interval time.Duration) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	busy, began := false, false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		followed, err := f.app.Follow(ctx, f.name, func(t *cli.OpenedSession) error {
			began = true
			return f.show(ctx, t)
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !followed && err == nil:
			err = f.look(ctx)
		case began && cli.IsUnavailable(err):
			// A server that starts again goes on where the connection ended.
			if !busy {
				fmt.Fprintln(f.app.Stderr, "sajou-replay: the server does not answer; trying again")
			}
			timer.Reset(interval)
			busy = true
			continue
		}
		if e, ok := errors.AsType[*cli.ExitError](err); ok && e.Code == cli.ExitLocked && !strings.Contains(err.Error(), "permission") {
			if !busy {
				fmt.Fprintln(f.app.Stderr, "sajou-replay: the store is in use by another process; waiting for it")
			}
			busy, err = true, nil
		} else if err == nil {
			busy = false
		}
		if err != nil {
			return err
		}
		if err := f.o.Flush(); err != nil {
			return err
		}
		timer.Reset(interval)
	}
}
