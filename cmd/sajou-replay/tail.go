package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

func (a *app) tailCommand() *cobra.Command {
	var (
		filter   entryFilter
		follow   bool
		lines    uint64
		interval time.Duration
	)
	cmd := &cobra.Command{
		Use:   "tail [SESSION]",
		Short: "Show the newest entries, and those that come",
		Long: `Tail shows the last entries of a session; with -f also those that come, until it
is interrupted.

One process holds a store at a time, so -f looks again and again: it opens the
store, shows what is new, and closes it, every --interval. While another
process writes without a pause, what is new is shown when that one lets go.`,
		Example: `  sajou-replay tail -n 5
  sajou-replay tail -f live --type error`,
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.sessionArg(args)
			if err != nil {
				return err
			}
			if interval <= 0 {
				return misuse("--interval must be more than 0")
			}
			keep, err := filter.compile()
			if err != nil {
				return err
			}
			f := &follower{app: a, keep: keep, o: a.output(), name: name, last: lines}
			if !follow {
				if err := f.look(cmd.Context()); err != nil {
					return err
				}
				return f.o.end()
			}
			if a.format == "json" {
				return misuse("-f has no end, so it cannot write one JSON array; use -o jsonl")
			}
			return f.follow(cmd.Context(), interval)
		},
	}
	filter.flags(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with entries that come")
	cmd.Flags().Uint64VarP(&lines, "lines", "n", 10, "how many of the newest entries to look at first")
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "how often to look with -f")
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

// follower shows what a session has beyond the place it has reached.
type follower struct {
	app  *app
	keep replay.Predicate
	o    *output
	name string
	last uint64 // entries to begin with
	next eventlog.Seq
}

// look shows what is new.
func (f *follower) look(ctx context.Context) error {
	t, err := f.app.target(f.name)
	if err != nil {
		return err
	}
	defer t.Close()
	f.name = t.name // the latest stays the one it was
	end := t.travel.Head().Seq
	if f.next == 0 {
		f.next = 1
		if uint64(end) > f.last {
			f.next = end - eventlog.Seq(f.last) + 1
		}
	}
	if f.next > end {
		return nil
	}
	for hit, err := range t.travel.Scan(ctx, f.next, end, f.keep, replay.All) {
		if err != nil {
			return err
		}
		if err := f.o.entryItem(&hit.Entry); err != nil {
			return err
		}
	}
	f.next = end + 1
	return nil
}

func (f *follower) follow(ctx context.Context, interval time.Duration) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	busy := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		err := f.look(ctx)
		if e, ok := errors.AsType[*exit](err); ok && e.code == exitLocked && !strings.Contains(err.Error(), "permission") {
			if !busy {
				fmt.Fprintln(f.app.stderr, "sajou-replay: the store is in use by another process; waiting for it")
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
