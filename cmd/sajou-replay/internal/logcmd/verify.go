package logcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
)

// Verify returns the command "verify".
func Verify(a *cli.App) *cobra.Command {
	var (
		all     bool
		head    string
		workers int
		rebuild bool
	)
	cmd := &cobra.Command{
		Use:   "verify [SESSION]",
		Short: "Prove that a session was not altered, cut or reordered",
		Long: `Verify recomputes every link of a session's hash chain. It names the first entry
that is altered, missing, moved, from another session, undecodable, or followed
by garbage.

If the chain is intact, verify compares the records of idempotency keys with the
keys in the entries, and names each record that is missing, wrong or invented. A
missing record lets a repeated signal be recorded twice; an invented one lets a
new signal be taken for a repeat. --rebuild-keys rebuilds the records from the
entries.

--all checks every session of the store. It also names session records that
cannot be read, sessions without entries, session numbers that two sessions
share, and entries without a session.

A chain that was cut at its end is still intact. The store therefore notes the
head of each session in the file HEADS, and verify reports entries that the disk
lost at the end. A program that can write to the store can rewrite HEADS as well.
Against such a program, keep the head that import and ls print elsewhere, and
pass it with --head: this also detects a session that was rewritten as a whole,
and a store that was replaced by an older copy.

Of a fork, verify reports the label too: its parent with the head, and whether
all of its entries were written. It does not compare the fork with its parent.

Of a deleted session, verify reports the head that it had and when it was
deleted: nothing of it can be verified, and the exit code is 3, or 1 if --head is
not that head. With --all, deleted sessions do not change the exit code.

The exit code is 0 if everything is intact, 1 if not, and 3 if HEADS is missing
or damaged or another session of the store lost entries. To check a session
without this program, see export --raw.`,
		Example: `  sajou-replay verify
  sajou-replay verify night-shift --head 54:70b0e87e8bc8bc268643a62065a92dfedafcdddd92c961a86849c329b352dee0
  sajou-replay verify night-shift --rebuild-keys
  sajou-replay verify --all -o json`,
		Args: cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts := verify.Options{Workers: workers}
			if workers < 0 {
				return cli.Misuse("--workers %d: must be 0 or more; 0 means one for each core", workers)
			}
			if head != "" {
				expect, err := eventlog.ParseHead(head)
				if err != nil {
					return cli.Misuse("--head: %s", cli.OneLine(err.Error()))
				}
				if expect.Seq == 0 {
					return cli.Misuse("--head: a head of entry 0 proves nothing, because every session of this name contains it; pass the head of an entry, as ls prints it")
				}
				opts.Expect = expect
			}
			name, err := a.SessionArg(args)
			if err != nil {
				return err
			}
			if all && (name != "" || a.Session != "" || head != "") {
				return cli.Misuse("--all checks every session; omit the session and --head")
			}
			// Open for reading even when --rebuild-keys writes later: a missing store
			// must not be created.
			engine, err := a.OpenReading()
			if err != nil {
				return err
			}
			defer func() { _ = engine.Close() }()
			var names []string
			if all {
				if names, err = engine.Sessions(); err != nil {
					return err
				}
				names = withLost(names, engine.Log().Loss())
			} else {
				// Only the name is needed: a damaged session may not open, and it is
				// the one to check.
				if name, err = a.SessionName(engine, name); err != nil {
					return err
				}
				names = []string{name}
			}
			if rebuild {
				if err := engine.Close(); err != nil {
					return err
				}
				if engine, err = a.OpenWriting(); err != nil {
					return err
				}
			}
			err = runVerify(cmd.Context(), a, engine, names, all, rebuild, opts)
			if errors.Is(err, eventlog.ErrNoSession) && !errors.Is(err, eventlog.ErrDeleted) {
				return cli.NoSession(engine, a.Store, name)
			}
			if doubts := engine.Log().Doubts(); err == nil && len(doubts) > 0 {
				return cli.Fail(cli.ExitLoss, "lost entries at the end of a session could go unnoticed: %s; compare the heads with copies kept elsewhere; the next recording writes the file again", strings.Join(doubts, "; "))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "check every session of the store")
	cmd.Flags().StringVar(&head, "head", "", "head that the chain must contain, as `SEQ:HASH`")
	cmd.Flags().IntVar(&workers, "workers", 0, "use `N` cores; 0 means all")
	cmd.Flags().BoolVar(&rebuild, "rebuild-keys", false, "rebuild the records of idempotency keys from the entries")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// withLost adds the names of the sessions that lost all their entries.
func withLost(names []string, lost *eventlog.LossError) []string {
	if lost == nil {
		return names
	}
	for _, l := range lost.Losses {
		if !slices.Contains(names, l.Session) {
			names = append(names, l.Session)
		}
	}
	return names
}

// runVerify checks the named sessions and the store's records of them; with all,
// every record of the store. With rebuild it rebuilds the idempotency records of
// each session whose chain is intact, and checks that session again.
func runVerify(ctx context.Context, a *cli.App, engine *sajou.Engine, names []string, all, rebuild bool, opts verify.Options) error {
	m := cli.NewProgress(a.Stderr)
	o := a.Output()
	whole := true
	item := func(view answer.VerifiedView, text string) error {
		whole = whole && view.Verified
		line, err := cli.Marshal(view)
		if err != nil {
			return err
		}
		return o.Item(text, line)
	}
	for _, name := range names {
		opts.Progress = func(done, total eventlog.Seq) {
			m.Show(fmt.Sprintf("%s: %d of %d entries", termtext.Printable(name), done, total))
		}
		report, err := engine.Log().Verify(ctx, name, opts)
		m.Clear()
		if deleted, ok := errors.AsType[*eventlog.DeletedError](err); ok {
			if err := o.ItemOf(deletedReport(&deleted.Tombstone)); err != nil {
				return err
			}
			if err := o.End(); err != nil {
				return err
			}
			return deletedExit(&deleted.Tombstone, opts.Expect)
		}
		if err != nil {
			return err
		}
		rebuilt := 0
		if rebuild && report.Fault == nil && report.KeyFaults > 0 {
			before := report.KeyFaults
			if _, err := engine.RebuildKeys(ctx, name, opts); err != nil {
				return err
			}
			report, err = engine.Log().Verify(ctx, name, opts)
			m.Clear()
			if err != nil {
				return err
			}
			rebuilt = before - report.KeyFaults
		}
		view, text := verifiedReport(&report, rebuilt)
		if label, err := forkOf(ctx, engine, name); err != nil {
			return err
		} else if label != nil {
			view.Fork = answer.ViewFork(label, report.Head)
			text += fmt.Sprintf("\n%s: not a recording, but a %s; the head of %q was %v", termtext.Printable(name), cli.ForkText(label, report.Head), label.Parent, label.Head)
		}
		if err := item(view, text); err != nil {
			return err
		}
	}
	if all {
		tombs, err := engine.Tombstones()
		if err != nil {
			return err
		}
		for i := range tombs {
			if err := o.ItemOf(deletedReport(&tombs[i])); err != nil {
				return err
			}
		}
	}
	faults, err := engine.Log().Survey(ctx)
	if err != nil {
		return err
	}
	for _, f := range faults {
		if !all && f.Session != names[0] {
			continue
		}
		if f.Kind == verify.StoreEmptySession {
			continue // the check of its chain reported that entry 1 is missing
		}
		view := answer.ViewStoreFault(&f)
		if err := item(view, fmt.Sprintf("store: BROKEN: %s: %s", f.Kind, cli.OneLine(f.Detail))); err != nil {
			return err
		}
	}
	if err := o.End(); err != nil {
		return err
	}
	if !whole {
		return cli.AnswerNo
	}
	return nil
}

// forkOf returns the label of a session. It returns nil if the session is not a fork or if its
// first entry cannot be read.
func forkOf(ctx context.Context, engine *sajou.Engine, name string) (*session.Fork, error) {
	log, err := engine.Log().Session(name)
	if err == nil {
		var label *session.Fork
		if label, err = session.ReadFork(ctx, log); err == nil {
			return label, nil
		}
	}
	if errors.Is(err, eventlog.ErrCorrupt) || errors.Is(err, eventlog.ErrNoSession) {
		return nil, nil // the report names the damage
	}
	return nil, err
}

// deletedReport returns the report of a deleted session as text and as JSON.
func deletedReport(t *eventlog.Tombstone) (string, answer.VerifiedView) {
	return fmt.Sprintf("%s: deleted %s, %s, head %v", termtext.Printable(t.Session), cli.DateText(t.At), cli.Plural(int(t.Head.Seq), "entry", "entries"), t.Head),
		answer.ViewDeleted(t)
}

// deletedExit returns the exit of a check of one deleted session against a head that was
// kept, if one was.
func deletedExit(t *eventlog.Tombstone, kept eventlog.Head) error {
	switch {
	case kept.IsZero() || kept == t.Head:
		return &cli.ExitError{Code: cli.ExitLoss}
	case kept.Seq < t.Head.Seq:
		return cli.Fail(cli.ExitLoss, "the session was deleted with %s, so the head of entry %d can no longer be compared", cli.Plural(int(t.Head.Seq), "entry", "entries"), kept.Seq)
	}
	return cli.Fail(cli.ExitNo, "the tombstone of session %q has another head than %v", t.Session, kept)
}

// verifiedReport returns the report of one session as JSON and as text.
func verifiedReport(r *verify.SessionReport, rebuilt int) (answer.VerifiedView, string) {
	view := answer.ViewVerified(r)
	view.Rebuilt = rebuilt
	name := termtext.Printable(r.Session)
	var b strings.Builder
	switch f := r.Fault; {
	case f != nil:
		fmt.Fprintf(&b, "%s: BROKEN at entry %d: %s: %s (whole up to %v)", name, f.Seq, f.Kind, cli.OneLine(f.Detail), r.Head)
	case r.KeyFaults == 0:
		fmt.Fprintf(&b, "%s: verified, %s, head %v", name, cli.Plural(int(r.Head.Seq), "entry", "entries"), r.Head)
	default:
		fmt.Fprintf(&b, "%s: BROKEN idempotency records, chain whole, %s, head %v", name, cli.Plural(int(r.Head.Seq), "entry", "entries"), r.Head)
	}
	repeated := 0
	for _, f := range r.Keys {
		fmt.Fprintf(&b, "\n%s: BROKEN at entry %d, key %q: %s: %s", name, f.Seq, f.Key, f.Kind, cli.OneLine(f.Detail))
		if f.Kind == verify.KeyRepeated {
			repeated++
		}
	}
	if more := r.KeyFaults - len(r.Keys); more > 0 {
		fmt.Fprintf(&b, "\n%s: BROKEN: %s more of idempotency records", name, cli.Plural(more, "fault", "faults"))
	}
	if rebuilt > 0 {
		fmt.Fprintf(&b, "\n%s: rebuilt %s", name, cli.Plural(rebuilt, "idempotency record", "idempotency records"))
	} else if r.KeyFaults > repeated {
		fmt.Fprintf(&b, "\n%s: rebuild the records from the entries with: sajou-replay verify -s %s --rebuild-keys", name, cli.ShellWord(r.Session))
	}
	return view, b.String()
}
