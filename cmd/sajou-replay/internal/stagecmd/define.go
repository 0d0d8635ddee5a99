package stagecmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// Define returns the command "define".
func Define(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "define",
		Short: "List, show or add choreographies and scenes",
		Long: `A declaration is a choreography, a sequence, an easing, a binding or a scene. It
is recorded as an entry of the session and is in force from that entry on, so a
session replays without any other file.`,
		Example: `  sajou-replay define ls
  sajou-replay define show 2
  sajou-replay define add choreographies.json --session release-42`,
		Args: cli.GroupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(defineLsCommand(a), defineShowCommand(a), defineAddCommand(a))
	return cmd
}

func defineLsCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls [SESSION]",
		Short: "List the declarations of a session",
		Long: `Ls lists the declarations of a session in the order of their entries, each with
a summary. It names declarations that the budget kept out of force on stderr.`,
		Example: `  sajou-replay define ls night-shift`,
		Args:    cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.OpenArgSession(args)
			if err != nil {
				return err
			}
			defer t.Close()
			o := a.Output()
			// This folds the log a second time, but only if the budget kept a
			// definition out of force.
			refused, err := refusedDefinitions(cmd.Context(), t)
			if err != nil {
				return err
			}
			err = t.Each(cmd.Context(), 1, t.Log.Head().Seq, func(e *eventlog.Entry) error {
				if e.Kind != eventlog.KindDefine {
					return nil
				}
				if reason := refused[e.Seq]; reason != "" {
					defer fmt.Fprintf(a.Stderr, "sajou-replay: entry %d is not in force: %s\n", e.Seq, cli.OneLine(reason))
				}
				if o.Format != "text" {
					return o.Item("", session.AppendEntryJSON(nil, e))
				}
				d, err := session.DeclarationOf(e)
				if err != nil {
					return o.Item(fmt.Sprintf("%6d  %s  cannot be read: %s", e.Seq, cli.ClockText(e.At), cli.OneLine(err.Error())), nil)
				}
				return o.Item(fmt.Sprintf("%6d  %s  %s", e.Seq, cli.ClockText(e.At), declarationText(d)), nil)
			})
			if err != nil {
				return err
			}
			return o.End()
		},
	}
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// refusedDefinitions returns why the budget kept definitions of the log out of
// force, by their entries.
func refusedDefinitions(ctx context.Context, t *cli.OpenedSession) (map[eventlog.Seq]string, error) {
	last, err := t.Travel.At(ctx, cli.MomentOf(t.Log.Head().Seq))
	if err != nil {
		return nil, err
	}
	schedulerOf := func(f *projection.Fold) *choreography.Scheduler {
		p, ok := f.State(session.ProjectionPerformances).(cli.Scheduling)
		if !ok {
			return choreography.NewScheduler()
		}
		return p.Scheduler()
	}
	left, _ := schedulerOf(last).Refused()
	if left == 0 {
		return nil, nil
	}
	fold, err := t.Travel.At(ctx, cli.MomentOf(0))
	if err != nil {
		return nil, err
	}
	reasons := map[eventlog.Seq]string{}
	err = t.Each(ctx, 1, t.Log.Head().Seq, func(e *eventlog.Entry) error {
		before, _ := schedulerOf(fold).Refused()
		var reason error
		d, err := session.DeclarationOf(e)
		switch {
		case e.Kind != eventlog.KindDefine:
		case err != nil:
			reason = err
		default:
			_, reason = schedulerOf(fold).Catalog().With(d)
		}
		if err := fold.Apply(e); err != nil {
			return err
		}
		if after, _ := schedulerOf(fold).Refused(); after > before {
			reasons[e.Seq] = "the budget of what is in force, or replaced and performed still, is used up"
			if reason != nil {
				reasons[e.Seq] = reason.Error()
			}
		}
		return nil
	})
	return reasons, err
}

// declarationText summarizes a declaration.
func declarationText(d language.Declaration) string {
	switch d := d.(type) {
	case *definition.Definition:
		text := fmt.Sprintf("on %s, %s%s", termtext.Printable(d.On()), stepsText(d.Value()), remarks(d.Value()))
		if d.Name() != "" {
			text = termtext.Printable(d.Name()) + ": " + text
		}
		return text
	case *scene.Scene:
		text := "scene"
		if d.Title != "" {
			text += " " + strconv.Quote(termtext.Clip(d.Title, 40))
		}
		return fmt.Sprintf("%s, %gx%g, %s", text, d.Width, d.Height, cli.Plural(len(d.Entities), "entity", "entities"))
	default:
		text := d.Word() + " " + termtext.Printable(d.Name())
		if _, ok := d.Value().Get("steps"); ok {
			text += ", " + stepsText(d.Value())
		}
		return text
	}
}

func stepsText(definition signal.Value) string {
	steps, _ := definition.Get("steps")
	return cli.Plural(steps.Len(), "step", "steps")
}

func remarks(definition signal.Value) string {
	text := ""
	if when, ok := definition.Get("when"); ok {
		text += ", when " + termtext.Clip(termtext.Printable(string(when.AppendJSON(nil))), 60)
	}
	if interrupts, _ := definition.Get("interrupts"); interrupts != nil {
		if yes, _ := interrupts.Bool(); yes {
			text += ", interrupts"
		}
	}
	return text
}

func defineShowCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [SESSION] ADDR",
		Short: "Show one declaration as it was written",
		Long: `Show writes the declaration of the entry at an address, as JSON. The commands
"define add" and "lint" read the result.`,
		Example: `  sajou-replay define show 2 > declaration.json`,
		Args:    cli.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, rest, err := a.OpenSessionAndRest(args)
			if err != nil {
				return err
			}
			defer t.Close()
			if len(rest) != 1 {
				return cli.Misuse("define show needs one address; usage: %s", cmd.UseLine())
			}
			m, err := t.Resolve(cmd.Context(), rest[0])
			if err != nil {
				return err
			}
			if m.Seq == 0 {
				return cli.Fail(cli.ExitNotFound, "entries are numbered from 1; list the declarations with: sajou-replay define ls")
			}
			e, err := t.Log.Entry(cmd.Context(), m.Seq)
			if err != nil {
				return err
			}
			if e.Kind != eventlog.KindDefine {
				return cli.Fail(cli.ExitNotFound, "entry %d is a %v, not a declaration; list the declarations with: sajou-replay define ls", e.Seq, e.Kind)
			}
			d, err := session.DeclarationOf(&e)
			if err != nil {
				return err
			}
			data := d.Value().AppendJSON(nil)
			if a.Format != "jsonl" {
				data = cli.Indented(data)
			}
			return a.Output().Text(termtext.PrintableLines(string(data)))
		},
	}
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func defineAddCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "add FILE...",
		Short: "Bring declarations into force",
		Long: `Add checks the declarations of files and records them at the end of the session
that --session names, by default the one that was begun last. If the named
session does not exist, it is begun. A file has one JSON object or an array of
objects, or YAML if its name ends in .yaml or .yml. A member of the object
determines its kind:

  "on"                      a choreography
  "sequence"                a sequence
  "curve"                   an easing
  "property" and "entity"   a binding
  "sajou": "scene"          a scene, which replaces the scene before it

Exports of the scene builder (.zip) are scenes as well.

A declaration that is in force already is not recorded again, unless something
that it refers to, such as a sequence, has changed since: a choreography is bound
to what is in force when it is recorded.

If a file has an error, add reports it with line and column and records nothing.
To find mistakes beyond errors, use lint.

The declarations in force share a budget of 100,000 steps, sequences expanded,
and 64 MiB. A declaration that exceeds the budget is refused. One that replaces
another first gives back the share of the other.`,
		Example: `  sajou-replay define add choreographies.json scene.json
  sajou-replay define add choreographies.json --session release-42`,
		Args: cli.Between(1, 1000),
		RunE: func(cmd *cobra.Command, args []string) error {
			// Errors in the files are reported before a missing store.
			name, missing := sessionToAddTo(a)
			inForce := cli.InForce{Scheduler: choreography.NewScheduler()}
			if missing == nil {
				var err error
				if inForce, err = a.InForce(cmd.Context(), name); err != nil {
					return err
				}
			}
			all, err := a.ReadDeclared(cmd.Context(), inForce.Catalog(), args, "nothing was recorded")
			if err != nil {
				return err
			}
			if len(all) == 0 {
				return cli.Fail(cli.ExitNo, "the files have no declaration; nothing was recorded")
			}
			if missing != nil {
				return missing
			}
			definitions := inForce.Changed(all)
			result := answer.DefinedView{Session: name, Definitions: len(definitions), Unchanged: len(all) - len(definitions), Head: cli.ViewHead(inForce.Head)}
			if len(definitions) == 0 {
				return a.Output().One(fmt.Sprintf("nothing was recorded in %q: %s in force already, head %v",
					name, cli.Plural(len(all), "declaration is", "declarations are"), inForce.Head), result)
			}
			engine, err := a.OpenWriting()
			if err != nil {
				return err
			}
			defer engine.Close()
			a.Opened = name
			if err := a.RemarkNew(engine, name); err != nil {
				return err
			}
			head, err := addDefinitions(cmd.Context(), engine, name, sajou.Addition{Declarations: definitions})
			if err != nil {
				return err
			}
			result.Head = cli.ViewHead(head)
			text := fmt.Sprintf("defined %s in %q", cli.DeclarationsText(definitions), name)
			if result.Unchanged > 0 {
				text += fmt.Sprintf(", %d unchanged", result.Unchanged)
			}
			return a.Output().One(fmt.Sprintf("%s, head %v", text, head), result)
		},
	}
}

func addDefinitions(ctx context.Context, engine *sajou.Engine, name string, r sajou.Addition) (eventlog.Head, error) {
	session, err := engine.Session(ctx, name)
	if err != nil {
		return eventlog.Head{}, err
	}
	out, err := session.Record(ctx, r)
	return out.Head, err
}

// sessionToAddTo returns the session that --session names, which need not exist,
// or else the latest, which must.
func sessionToAddTo(a *cli.App) (string, error) {
	if a.Session != "" {
		if err := eventlog.CheckName(a.Session); err != nil {
			return "", cli.Misuse("--session: %s", cli.OneLine(err.Error()))
		}
		return a.Session, nil
	}
	if _, err := os.Stat(a.Store); errors.Is(err, fs.ErrNotExist) {
		return "", cli.Fail(cli.ExitNotFound, "there is no store in %s; begin a session with --session NAME, or name another store with -C", a.Store)
	}
	t, err := a.OpenSession("")
	if err != nil {
		return "", err
	}
	defer t.Close()
	return t.Name, nil
}
