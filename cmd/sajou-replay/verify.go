package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/eventlog"
)

func (a *app) verifyCommand() *cobra.Command {
	var (
		all     bool
		head    string
		workers int
	)
	cmd := &cobra.Command{
		Use:   "verify [SESSION]",
		Short: "Check that nothing was altered, cut or reordered",
		Long: `Verify recomputes every link of a session's chain and names the first entry that
is altered, missing, reordered, from another session, or followed by garbage.
With --all it checks every session of the store.

A chain that was cut at its end is whole in itself. Only a head that was kept
elsewhere shows the cut: --head SEQ:HASH, as ls and import print it. The same
shows a session that was rewritten as a whole.

The exit code is 0 when everything is as it was recorded, and 1 when not. It
needs no trust in this program: see export --raw.`,
		Example: `  sajou-replay verify
  sajou-replay verify release-42 --head 812:9f3ab2c1...
  sajou-replay verify --all -o json`,
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts := eventlog.VerifyOptions{Workers: workers}
			if workers < 0 {
				return misuse("--workers %d: it is 0, one a core, or more", workers)
			}
			if head != "" {
				expect, err := eventlog.ParseHead(head)
				if err != nil {
					return misuse("--head: %s", oneLine(err.Error()))
				}
				opts.Expect = expect
			}
			name, err := a.sessionArg(args)
			if err != nil {
				return err
			}
			if all && (name != "" || a.session != "" || head != "") {
				return misuse("--all checks every session; leave the session and --head out")
			}
			engine, err := a.openReading()
			if err != nil {
				return err
			}
			defer engine.Close()
			var names []string
			if all {
				if names, err = engine.Sessions(); err != nil {
					return err
				}
			} else {
				// Only the name: a session that is damaged may not open, and
				// just then its fault is asked for.
				if name, err = a.choose(engine, name); err != nil {
					return err
				}
				names = []string{name}
			}
			err = a.verify(cmd.Context(), engine.Log(), names, opts)
			if errors.Is(err, eventlog.ErrNoSession) {
				return noSession(engine, a.store, name)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "check every session of the store")
	cmd.Flags().StringVar(&head, "head", "", "SEQ:HASH that the chain must contain")
	cmd.Flags().IntVar(&workers, "workers", 0, "how many cores to use; 0 for all")
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

type faultView struct {
	Seq    eventlog.Seq       `json:"seq"`
	Kind   eventlog.FaultKind `json:"kind"`
	Detail string             `json:"detail"`
}

func (a *app) verify(ctx context.Context, log *eventlog.Log, names []string, opts eventlog.VerifyOptions) error {
	m := newMeter(a.stderr)
	o := a.output()
	whole := true
	for _, name := range names {
		opts.Progress = func(done, total eventlog.Seq) {
			m.show(fmt.Sprintf("%s: %d of %d entries", printable(name), done, total))
		}
		report, err := log.Verify(ctx, name, opts)
		m.clear()
		if err != nil {
			return err
		}
		view := struct {
			Session  string     `json:"session"`
			Verified bool       `json:"verified"`
			Head     headView   `json:"head"`
			Fault    *faultView `json:"fault,omitempty"`
		}{Session: name, Verified: report.Fault == nil, Head: viewHead(report.Head)}
		text := fmt.Sprintf("%s: verified, %s, head %v", printable(name), plural(int(report.Head.Seq), "entry", "entries"), report.Head)
		if f := report.Fault; f != nil {
			whole = false
			view.Fault = &faultView{f.Seq, f.Kind, oneLine(f.Detail)}
			text = fmt.Sprintf("%s: BROKEN at entry %d: %s: %s (whole up to %v)", printable(name), f.Seq, f.Kind, oneLine(f.Detail), report.Head)
		}
		line, err := marshal(view)
		if err != nil {
			return err
		}
		if err := o.item(text, line); err != nil {
			return err
		}
	}
	if err := o.end(); err != nil {
		return err
	}
	if !whole {
		return answerNo
	}
	return nil
}
