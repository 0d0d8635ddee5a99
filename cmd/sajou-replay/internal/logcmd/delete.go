package logcmd

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/internal/answer"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// Delete returns the command "delete".
func Delete(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete SESSION",
		Short: "Delete a session; its name and final head stay",
		Long: `Delete removes a session: its entries, the records of its idempotency keys and
its snapshots. This cannot be undone. A tombstone stays, with the name, the head
that the session had and the time; ls --deleted lists it. The name cannot be used
again. Deleting a deleted session changes nothing, and removes what an interrupted
deletion left.

When delete returns, no file of the store has the bytes of the session. Backups
and exports still have them, and so may the free space of the disk.

The session must be named: the latest is not the default.`,
		Example: `  sajou-replay delete night-shift
  sajou-replay ls --deleted`,
		Args: cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.SessionArg(args)
			if err != nil {
				return err
			}
			if name == "" {
				name = a.Session
			}
			if name == "" {
				return cli.Misuse("name the session to delete")
			}
			engine, err := openExisting(a)
			if err != nil {
				return err
			}
			t, err := engine.Delete(cmd.Context(), name)
			if errors.Is(err, eventlog.ErrNoSession) {
				return errors.Join(cli.NoSession(engine, a.Store, name), engine.Close())
			}
			if err := errors.Join(err, engine.Close()); err != nil {
				if t.Number != 0 {
					return cli.Fail(cli.ExitLoss, "%q is deleted, and some of its bytes may be left; delete it again: %w", name, err)
				}
				return err
			}
			text := fmt.Sprintf("deleted %s: %s, head %v\n", termtext.Printable(t.Session), cli.Plural(int(t.Head.Seq), "entry", "entries"), t.Head)
			return a.Output().One(text, answer.ViewTombstone(&t))
		},
	}
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// openExisting opens the store for writing, and creates none.
func openExisting(a *cli.App) (*sajou.Engine, error) {
	engine, err := a.OpenReading()
	if err != nil {
		return nil, err
	}
	if err := engine.Close(); err != nil {
		return nil, err
	}
	return a.OpenWriting()
}

// Prune returns the command "prune".
func Prune(a *cli.App) *cobra.Command {
	var (
		age  ageFlag
		size string
		dry  bool
	)
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete old sessions, by age and by size",
		Long: `Prune deletes the sessions whose last entry is older than --older-than, and then
those with the oldest last entry until the others together take at most
--max-size; see delete. The age is that of the timestamps in the session. A
session whose time is not that of the wall clock, as sim and episode play record
it, has no age: only --max-size deletes it, after all others. The size is the one
that ls -o json tells, an estimate of the bytes in tables.

Prune prints a line for each deleted session. --dry-run prints the same and
deletes nothing.`,
		Example: `  sajou-replay prune --older-than 30d --dry-run
  sajou-replay prune --older-than 2w --max-size 2GB
  sajou-replay prune --max-size 500MB --dry-run -o jsonl`,
		Args: cli.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.WholeStore(cmd, "delete one with: sajou-replay delete SESSION"); err != nil {
				return err
			}
			r := sajou.Retention{MaxAge: time.Duration(age), DryRun: dry}
			if age < 0 || age == 0 && cmd.Flags().Changed("older-than") {
				return cli.Misuse("--older-than %v: must be more than 0", time.Duration(age))
			}
			if cmd.Flags().Changed("max-size") {
				var err error
				if r.MaxBytes, err = cli.ParseBytes("max-size", size); err != nil {
					return err
				}
			}
			if r.MaxAge == 0 && r.MaxBytes == 0 {
				return cli.Misuse("nothing to prune by; give --older-than, --max-size or both")
			}
			open := openExisting
			if dry {
				open = (*cli.App).OpenReading
			}
			engine, err := open(a)
			if err != nil {
				return err
			}
			report, err := engine.Retain(cmd.Context(), r)
			err = errors.Join(err, engine.Close())
			return errors.Join(reportPruned(a, &report, dry), err)
		},
	}
	cmd.Flags().Var(&age, "older-than", "delete sessions whose last entry is older than `AGE`, such as 30d, 2w or 36h")
	cmd.Flags().StringVar(&size, "max-size", "", "delete the oldest sessions beyond `SIZE`, such as 500MB or 2GiB")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "delete nothing")
	return cmd
}

// ageFlag is a duration that may be a number of days or weeks too: 30d, 2w.
type ageFlag time.Duration

func (a *ageFlag) Type() string { return "age" }

// String returns "" for no age, so that the help shows no default.
func (a *ageFlag) String() string {
	if *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}

// Set reads an age. A day has 24 hours.
func (a *ageFlag) Set(text string) error {
	const day = 24 * time.Hour
	unit := day
	number, ok := strings.CutSuffix(text, "d")
	if !ok {
		unit = 7 * day
		number, ok = strings.CutSuffix(text, "w")
	}
	if !ok {
		d, err := time.ParseDuration(text)
		*a = ageFlag(d)
		return err
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err == nil && (n < 0 || n > int64(math.MaxInt64/unit)) {
		err = strconv.ErrRange
	}
	*a = ageFlag(time.Duration(n) * unit)
	return err
}

// prunedView is a pruned session as JSON.
type prunedView struct {
	Session string       `json:"session"`
	Last    *time.Time   `json:"last,omitempty"` // of the wall clock
	Entries uint64       `json:"entries"`
	Bytes   uint64       `json:"bytes"`
	Head    cli.HeadView `json:"head"`
	DryRun  bool         `json:"dry_run,omitempty"`
}

func reportPruned(a *cli.App, r *sajou.RetentionReport, dry bool) error {
	done := "deleted"
	if dry {
		done = "would delete"
	}
	o := a.Output()
	for i := range r.Deleted {
		s := &r.Deleted[i]
		view := prunedView{s.Session, nil, uint64(s.Head.Seq), s.Bytes, cli.ViewHead(s.Head), dry}
		last := "without a date"
		if !s.Last.IsZero() {
			view.Last, last = &s.Last, "until "+cli.DateText(s.Last)
		}
		text := fmt.Sprintf("%s %s: %s, %s, %d bytes, head %v", done, termtext.Printable(s.Session),
			cli.Plural(int(s.Head.Seq), "entry", "entries"), last, s.Bytes, s.Head)
		if err := o.ItemOf(text, view); err != nil {
			return err
		}
	}
	if !o.JSON() {
		kept := r.Kept + len(r.InUse)
		if _, err := fmt.Fprintf(o, "%s %s, %d bytes\n", map[bool]string{false: "kept", true: "would keep"}[dry], cli.Plural(kept, "session", "sessions"), r.Bytes); err != nil {
			return err
		}
	}
	return o.End()
}
