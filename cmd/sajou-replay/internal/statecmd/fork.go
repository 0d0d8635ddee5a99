package statecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/adapter/openai"
	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/director/play"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay/fork"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Fork returns the command "fork".
func Fork(a *cli.App) *cobra.Command {
	var f forkFlags
	cmd := &cobra.Command{
		Use:   "fork [SESSION] ADDR --out NAME",
		Short: "Make a session of what would have happened",
		Long: `Fork records a new session with the history of another one, changed from an
entry on, and everything that was recorded behind it as far as it is still
possible. The other session, the parent, does not change. The first entry of the
fork is a label with the name and the head of the parent: ls, info, verify, state
and every picture show it.

  --set      an entry in the place of the one at ADDR, or of the one whose "seq"
             it has: a signal, or an entry as cat -o jsonl writes it, as JSON or
             a file
  --drop     leave out the entries of an address or a range; what stands in their
             place says so, and changes nothing
  --insert   signals of a JSONL file, behind ADDR; the entries behind them get
             higher numbers
  --define   choreographies and scenes in the place of those with the same names,
             or from the beginning; also in front of ADDR
  --until    the last entry

Entries keep their numbers, except behind inserted ones. A moment between entries
stands for the entry in front of it.

In a world of agents the requests behind a changed decision are decided again, at
their recorded times. Fork lists those that are refused now and leaves them out.
The director of an episode is played again from a changed event on, or where its
rules react otherwise, with the recorded lines and choices of the user.

The recorded answer of a model stands while it is asked the same: an agent while
its view is the same, a character while its scene and its direction are, a judge
while the question is, word for word. Otherwise the models that you name answer:
--character-url and --model the character, --judge-url and --judge-model the judge
(chat completions APIs; the keys come from ` + cli.CharacterKey + ` and
` + cli.JudgeKey + `). Without one, and for agents, the fork stops there.

If it is interrupted, the same command goes on with the incomplete fork.

The exit code is 0, 2 if the parent does not admit a change or a file of --define
has errors, and 3 if the fork stops before its parent does. To see what became
different: sajou-replay diff --rec PARENT FORK`,
		Example: `  sajou-replay fork 36 --drop 36 --out no-failure`,
		Args:    cli.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.out == "" {
				return cli.Misuse("fork needs a name for the new session; pass --out NAME")
			}
			if err := eventlog.CheckName(f.out); err != nil {
				return cli.Misuse("--out: %s", cli.OneLine(err.Error()))
			}
			if err := f.Check(); err != nil {
				return err
			}
			t, rest, err := a.OpenSessionAndRest(args)
			if err != nil {
				return err
			}
			defer func() { _ = t.Close() }()
			if len(rest) != 1 {
				return cli.Misuse("fork needs one address; usage: %s", cmd.UseLine())
			}
			cfg, err := f.read(cmd.Context(), a, t, rest[0])
			if err != nil {
				return err
			}
			parent := t.Name
			if err := t.Close(); err != nil { // a store is open once at a time
				return err
			}
			done, err := f.models(&cfg)
			if err != nil {
				return err
			}
			defer done()
			return makeFork(cmd.Context(), a, parent, f.out, cfg)
		},
	}
	cmd.Flags().StringVar(&f.out, "out", "", "`NAME` of the new session")
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "`ENTRY` to set, as JSON or a file; can be repeated")
	cmd.Flags().StringArrayVar(&f.drop, "drop", nil, "`ADDR` or range to leave out; can be repeated")
	cmd.Flags().StringVar(&f.insert, "insert", "", "`FILE` of signals to insert behind ADDR")
	cmd.Flags().StringArrayVar(&f.define, "define", nil, "`FILE` of definitions; can be repeated")
	cmd.Flags().StringVar(&f.until, "until", "", "`ADDR` of the last entry")
	f.Add(cmd.Flags())
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

type forkFlags struct {
	out, insert, until string
	set, drop, define  []string
	cli.ModelFlags
}

// models sets the models that the flags name. Done closes their connections.
func (f *forkFlags) models(cfg *fork.Config) (done func(), err error) {
	judge, err := f.Judge()
	if err != nil {
		return nil, err
	}
	character, err := f.Character()
	if err != nil {
		return nil, err
	}
	if judge != nil {
		cfg.Models.Judge = judge
	}
	if character != nil {
		actor := play.ModelActor{Complete: func(ctx context.Context, messages []generate.ChatMessage) (string, error) {
			said, err := character.Complete(ctx, openai.Request{Messages: messages, MaxTokens: cli.MaxWords})
			return said.Text, err
		}}
		cfg.Models.Answer = func(ctx context.Context, turn history.CharacterTurn) (string, error) {
			return actor.Say(ctx, play.ActorTurn{Episode: turn.Episode, Guidance: turn.Guidance, Messages: turn.Messages})
		}
	}
	return func() {
		for _, c := range []*openai.Client{judge, character} {
			if c != nil {
				c.Close()
			}
		}
	}, nil
}

// maxSet bounds an entry that is set, and a file of signals that are inserted.
const maxSet = 16 << 20

// read makes the changes that the flags ask for.
func (f *forkFlags) read(ctx context.Context, a *cli.App, t *cli.OpenedSession, address string) (cfg fork.Config, err error) {
	m, err := t.Resolve(ctx, address)
	if err != nil {
		return cfg, err
	}
	cfg.At = max(m.Seq, 1)
	if f.until != "" {
		end, err := t.Resolve(ctx, f.until)
		if err != nil {
			return cfg, err
		}
		cfg.Edits.Until = max(end.Seq, 1)
	}
	for _, text := range f.drop {
		from, to, err := t.ResolveRange(ctx, text)
		if err != nil {
			return cfg, err
		}
		for seq := from; seq <= to; seq++ {
			cfg.Edits.Drop = append(cfg.Edits.Drop, seq)
		}
	}
	if len(f.set) > 0 {
		cfg.Edits.Set = map[eventlog.Seq][]byte{}
	}
	for _, text := range f.set {
		seq, data, err := readSet(ctx, text, m.Seq)
		if err != nil {
			return cfg, err
		}
		if cfg.Edits.Set[seq] != nil {
			return cfg, cli.Misuse("--set: entry %d is set twice", seq)
		}
		cfg.Edits.Set[seq] = data
	}
	if f.insert != "" {
		drafts, err := readInserted(ctx, t, f.insert, m.Seq)
		if err != nil {
			return cfg, err
		}
		cfg.Edits.Insert = []variant.Inserted{{Before: m.Seq + 1, Drafts: drafts}}
	}
	if len(f.define) > 0 {
		last, err := t.Travel.At(ctx, cli.MomentOf(t.Log.Head().Seq))
		if err != nil {
			return cfg, err
		}
		catalog := session.PerformancesOf(last).Scheduler().Catalog()
		if cfg.Edits.Define, err = a.ReadDeclared(ctx, catalog, f.define, "nothing was recorded"); err != nil {
			if e, ok := errors.AsType[*cli.ExitError](err); ok && e.Code == cli.ExitNo {
				return cfg, cli.Misuse("--define: %w", e.Cause) // a file with errors
			}
			return cfg, err
		}
	}
	return cfg, nil
}

// readSet reads an entry to set: a signal, which takes the place of entry at, or an entry in
// JSON, which takes that of its own number.
func readSet(ctx context.Context, text string, at eventlog.Seq) (eventlog.Seq, []byte, error) {
	shown, data := "--set", []byte(text)
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		var err error
		if data, err = cli.ReadFile(ctx, text, maxSet); err != nil {
			return 0, nil, err
		}
		shown = text
	}
	data = bytes.TrimSpace(data)
	v, err := signal.ParseValue(data)
	if err != nil {
		return 0, nil, cli.Misuse("%s: %s", shown, cli.OneLine(err.Error()))
	}
	if _, whole := v.Get("kind"); whole {
		e, err := session.ParseEntryJSON(data)
		if err != nil {
			return 0, nil, cli.Misuse("%s: %s", shown, cli.OneLine(err.Error()))
		}
		return e.Seq, e.Data, nil
	}
	sig, err := signal.Parse(data)
	if err != nil {
		return 0, nil, cli.Misuse("%s: %s", shown, cli.OneLine(err.Error()))
	}
	return at, sig.Append(nil), nil
}

// readInserted reads the signals of a file, with the session times at which they take effect
// behind an entry.
func readInserted(ctx context.Context, t *cli.OpenedSession, file string, at eventlog.Seq) ([]eventlog.Draft, error) {
	text, err := cli.ReadFile(ctx, file, maxSet)
	if err != nil {
		return nil, err
	}
	f, err := t.Travel.At(ctx, cli.MomentOf(at))
	if err != nil {
		return nil, err
	}
	times, now := session.StateOf(f).Time(), f.At()
	var drafts []eventlog.Draft
	for i, line := range bytes.Split(text, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		sig, err := signal.Parse(line)
		if err == nil {
			now, err = times.At(sig, now)
		}
		if err != nil {
			return nil, cli.Misuse("%s:%d: %s", file, i+1, cli.OneLine(err.Error()))
		}
		drafts = append(drafts, eventlog.Draft{Kind: eventlog.KindSignal, At: now, Data: sig.Append(nil)})
	}
	if len(drafts) == 0 {
		return nil, cli.Misuse("%s has no signals", file)
	}
	return drafts, nil
}

// incompleteText says what is to be done about an incomplete fork.
func incompleteText(name string) string {
	return fmt.Sprintf("%q is incomplete, and its label says so; repeat the command to go on, or delete it with: sajou-replay delete %s", name, cli.ShellWord(name))
}

func makeFork(ctx context.Context, a *cli.App, parent, name string, cfg fork.Config) error {
	engine, err := a.OpenWriting()
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	made, head, err := engine.Fork(ctx, parent, name, cfg)
	switch {
	case errors.Is(err, variant.ErrChange):
		return cli.Misuse("%s; nothing was recorded", cli.OneLine(strings.TrimPrefix(err.Error(), variant.ErrChange.Error()+": ")))
	case errors.Is(err, eventlog.ErrDeleted), errors.Is(err, eventlog.ErrInvalid):
		return cli.Fail(cli.ExitNo, "--out: %s", cli.OneLine(err.Error()))
	case errors.Is(err, context.Canceled) && head.Seq > 0:
		fmt.Fprintf(a.Stderr, "sajou-replay: %s\n", incompleteText(name))
		return err
	case err != nil && head.Seq > 0:
		return fmt.Errorf("%s: %w", incompleteText(name), err)
	case err != nil:
		return err
	}
	report, label := made.Report(), made.Label()
	view := answer.ViewForked(name, head, made)
	for _, l := range report.Left {
		fmt.Fprintf(a.Stderr, "sajou-replay: left out %d, %s: %s\n", l.Parent, termtext.Printable(l.What), cli.OneLine(l.Reason))
	}
	if report.More > 0 {
		fmt.Fprintf(a.Stderr, "sajou-replay: left out %d more entries\n", report.More)
	}
	if report.Asked > 0 {
		fmt.Fprintf(a.Stderr, "sajou-replay: asked live models for %s\n", cli.Plural(report.Asked, "answer", "answers"))
	}
	text := fmt.Sprintf("forked %q at %d into %q: entries 1..%d, head %v", parent, label.At, name, report.Entries, head)
	if err := a.Output().One(text, view); err != nil {
		return err
	}
	if s := report.Stopped; s != nil {
		return cli.Fail(cli.ExitLoss, "%s", cli.OneLine(s.Error()))
	}
	return nil
}
