// Package logcmd has the commands about a session's log: import, export, ls,
// info, cat, tail, show, verify, backup, restore, repair, delete, prune and snapshot.
package logcmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// Ls returns the command "ls".
func Ls(a *cli.App) *cobra.Command {
	var deleted bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the sessions of the store",
		Long: `Ls lists the sessions of the store in the order in which they were begun. A line
has the name of the session, the number of its entries, the session time that
they span, its head, of a fork its label, and the format of the recording from
which it was imported, unless that is Sajou's own. Keep a copy of the head outside
of the store: verify --head can then prove that no entry was removed from the end.
The last line is the space that the store takes on the disk. With -o json and -o
jsonl there is no such line, and each session has its bytes in the tables of the
store; info has both.

Ls lists a session whose newest entries cannot be read as damaged, and exits
with 1. After the sessions it lists damage of the store: session records that
cannot be read, that have no entries or those of another session, and entries
without a session record. It then exits with 3.

--deleted lists the deleted sessions instead: the time of the deletion and the
number of entries and the head that each had.`,
		Example: `  sajou-replay ls
  sajou-replay ls --deleted
  sajou-replay ls -o jsonl`,
		Args: cli.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			engine, err := a.OpenReading()
			if err != nil {
				return err
			}
			defer engine.Close()
			if deleted {
				return listDeleted(a, engine)
			}
			names, err := engine.Sessions()
			if err != nil {
				return err
			}
			faults, err := engine.Log().Survey(cmd.Context())
			if err != nil {
				return err
			}
			named := map[string]bool{} // session records that the survey names
			for _, f := range faults {
				named[f.Session] = true
			}
			width := 7
			for _, name := range names {
				width = max(width, len([]rune(name)))
			}
			o := a.Output()
			var damaged error
			for _, name := range names {
				log, err := engine.Log().Session(name)
				if named[name] && (errors.Is(err, eventlog.ErrCorrupt) || err == nil && !log.Exists()) {
					continue // listed below
				}
				if errors.Is(err, eventlog.ErrCorrupt) {
					// The other sessions are listed all the same.
					a.Opened, damaged = name, err
					text := fmt.Sprintf("%-*s  damaged", min(width, 40), termtext.Printable(name))
					value, err := cli.Marshal(answer.DamagedView{Session: name, Damaged: true})
					if err != nil {
						return err
					}
					if err := o.Item(text, value); err != nil {
						return err
					}
					continue
				}
				if err != nil {
					return err
				}
				bytes, err := engine.Log().DiskSize(cmd.Context(), name)
				if err != nil {
					return err
				}
				view, fork, err := answer.ViewListed(cmd.Context(), log, bytes)
				if err != nil {
					return err
				}
				value, err := answer.Marshal(view)
				if err != nil {
					return err
				}
				head := log.Head()
				text := fmt.Sprintf("%-*s  %8d entries  %12s  %v", min(width, 40), termtext.Printable(name), head.Seq, cli.ClockText(log.At()), head)
				if fork != nil {
					text += "  " + cli.ForkText(fork, head)
				}
				if view.Format != "" {
					text += "  " + termtext.Clip(termtext.Printable(view.Format), 40)
				}
				if err := o.Item(text, value); err != nil {
					return err
				}
			}
			for _, f := range faults {
				value, err := cli.Marshal(answer.ViewDamaged(&f))
				if err != nil {
					return err
				}
				if err := o.Item(fmt.Sprintf("damaged: %s: %s", f.Kind, cli.OneLine(f.Detail)), value); err != nil {
					return err
				}
			}
			if !o.JSON() && len(names) > 0 {
				usage, err := engine.Log().DiskUsage()
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(o, "store: %v\n", answer.ViewUsage(usage)); err != nil {
					return err
				}
			}
			if err := o.End(); err != nil {
				return err
			}
			if damaged == nil && len(faults) > 0 {
				return &cli.ExitError{Code: cli.ExitLoss}
			}
			return damaged
		},
	}
	cmd.Flags().BoolVar(&deleted, "deleted", false, "list the deleted sessions instead")
	return cmd
}

// listDeleted lists the deleted sessions.
func listDeleted(a *cli.App, engine *sajou.Engine) error {
	tombs, err := engine.Tombstones()
	if err != nil {
		return err
	}
	o := a.Output()
	for i := range tombs {
		t := &tombs[i]
		text := fmt.Sprintf("%s  deleted %s  %8d entries  %v", termtext.Printable(t.Session), cli.DateText(t.At), t.Head.Seq, t.Head)
		if err := o.ItemOf(text, answer.ViewTombstone(t)); err != nil {
			return err
		}
	}
	return o.End()
}
