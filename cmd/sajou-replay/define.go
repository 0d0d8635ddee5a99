package main

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
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

func (a *app) defineCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "define",
		Short: "List, show or add choreographies and scenes of a session",
		Long: `A choreography, a sequence, an easing, a binding or a scene is in force from the
entry that defines it on. It is part of the session's log, so a session replays
without any file beside it.`,
		Example: `  sajou-replay define ls
  sajou-replay define show 2
  sajou-replay define add choreographies.json --session release-42`,
		Args: groupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.defineLs(), a.defineShow(), a.defineAdd())
	return cmd
}

func (a *app) defineLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ls [SESSION]",
		Short:   "List the choreographies and scenes of a session",
		Long:    `Ls lists what was brought into force in a session, in that order: the entry that did, and what in short it says.`,
		Example: `  sajou-replay define ls release-42`,
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.argTarget(args)
			if err != nil {
				return err
			}
			defer t.Close()
			o := a.output()
			err = t.each(cmd.Context(), 1, t.log.Head().Seq, func(e *eventlog.Entry) error {
				if e.Kind != eventlog.KindDefine {
					return nil
				}
				if o.format != "text" {
					return o.item("", sajou.AppendEntryJSON(nil, e))
				}
				d, err := sajou.DeclarationOf(e)
				if err != nil {
					return o.item(fmt.Sprintf("%6d  %s  cannot be read: %s", e.Seq, clockText(e.At), oneLine(err.Error())), nil)
				}
				return o.item(fmt.Sprintf("%6d  %s  %s", e.Seq, clockText(e.At), declarationText(d)), nil)
			})
			if err != nil {
				return err
			}
			return o.end()
		},
	}
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

// declarationText says in a few words what was declared.
func declarationText(d choreography.Declaration) string {
	switch d := d.(type) {
	case *choreography.Definition:
		text := fmt.Sprintf("on %s, %s%s", printable(d.On()), stepsText(d.Value()), remarks(d.Value()))
		if d.Name() != "" {
			text = printable(d.Name()) + ": " + text
		}
		return text
	case *scene.Scene:
		text := "scene"
		if d.Title != "" {
			text += " " + strconv.Quote(clip(d.Title, 40))
		}
		return fmt.Sprintf("%s, %gx%g, %s", text, d.Width, d.Height, plural(len(d.Entities), "entity", "entities"))
	default:
		text := d.Word() + " " + printable(d.Name())
		if _, ok := d.Value().Get("steps"); ok {
			text += ", " + stepsText(d.Value())
		}
		return text
	}
}

func stepsText(definition signal.Value) string {
	steps, _ := definition.Get("steps")
	return plural(steps.Len(), "step", "steps")
}

func remarks(definition signal.Value) string {
	text := ""
	if when, ok := definition.Get("when"); ok {
		text += ", when " + clip(printable(string(when.AppendJSON(nil))), 60)
	}
	if interrupts, _ := definition.Get("interrupts"); interrupts != nil {
		if yes, _ := interrupts.Bool(); yes {
			text += ", interrupts"
		}
	}
	return text
}

func (a *app) defineShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show [SESSION] ADDR",
		Short:   "Show one choreography or scene as it was written",
		Long:    `Show writes what the entry at an address brought into force, as JSON. The result can be given to define add.`,
		Example: `  sajou-replay define show 2 > choreography.json`,
		Args:    between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, rest, err := a.targetAndRest(args)
			if err != nil {
				return err
			}
			defer t.Close()
			if len(rest) != 1 {
				return misuse("one address is needed; usage: %s", cmd.UseLine())
			}
			m, err := t.resolve(cmd.Context(), rest[0])
			if err != nil {
				return err
			}
			if m.Seq == 0 {
				return fail(exitNotFound, "entries count from 1; list what was defined with: sajou-replay define ls")
			}
			e, err := t.log.Entry(cmd.Context(), m.Seq)
			if err != nil {
				return err
			}
			if e.Kind != eventlog.KindDefine {
				return fail(exitNotFound, "entry %d is a %v and defines nothing; list what was defined with: sajou-replay define ls", e.Seq, e.Kind)
			}
			d, err := sajou.DeclarationOf(&e)
			if err != nil {
				return err
			}
			data := d.Value().AppendJSON(nil)
			if a.format != "jsonl" {
				data = indented(data)
			}
			return a.output().text(printableLines(string(data)))
		},
	}
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

func (a *app) defineAdd() *cobra.Command {
	return &cobra.Command{
		Use:   "add FILE...",
		Short: "Bring choreographies and scenes into force",
		Long: `Add checks files and records what they declare at the end of the session that
--session names, or else of the latest. A session that does not exist is begun.
A file has one JSON object or an array of them, each of which is

  a choreography   has "on"        a binding   has "property" and "entity"
  a sequence       has "sequence"  a scene     has "sajou": "scene"
  an easing        has "curve"

What is wrong is told with file, line and column, and nothing is recorded then;
lint finds more. A scene takes the place of the one before it.`,
		Example: `  sajou-replay define add choreographies.json scene.json
  sajou-replay define add a.json b.json --session release-42`,
		Args: between(1, 1000),
		RunE: func(cmd *cobra.Command, args []string) error {
			// What is wrong with the files by themselves is told before a store
			// is looked for.
			name, missing := a.sessionToAddTo()
			catalog := new(choreography.Catalog)
			if missing == nil {
				var err error
				if catalog, err = a.inForce(cmd.Context(), name); err != nil {
					return err
				}
			}
			definitions, err := a.readDeclared(catalog, args, "nothing was recorded")
			if err != nil {
				return err
			}
			if len(definitions) == 0 {
				return fail(exitNo, "nothing is declared in these files")
			}
			if missing != nil {
				return missing
			}
			engine, err := a.openWriting()
			if err != nil {
				return err
			}
			defer engine.Close()
			a.about = name
			head, err := addDefinitions(cmd.Context(), engine, name, sajou.Record{Declarations: definitions})
			if err != nil {
				return err
			}
			return a.output().one(
				fmt.Sprintf("defined %s in %q, head %v", declarationsText(definitions), name, head),
				map[string]any{"session": name, "definitions": len(definitions), "head": viewHead(head)})
		},
	}
}

func addDefinitions(ctx context.Context, engine *sajou.Engine, name string, r sajou.Record) (eventlog.Head, error) {
	session, err := engine.Session(ctx, name)
	if err != nil {
		return eventlog.Head{}, err
	}
	out, err := session.Record(ctx, r)
	return out.Head, err
}

// sessionToAddTo is the session that --session names, which need not exist, or
// the latest, which must.
func (a *app) sessionToAddTo() (string, error) {
	if a.session != "" {
		if err := eventlog.CheckName(a.session); err != nil {
			return "", misuse("--session: %s", oneLine(err.Error()))
		}
		return a.session, nil
	}
	if _, err := os.Stat(a.store); errors.Is(err, fs.ErrNotExist) {
		return "", fail(exitNotFound, "there is no store in %s; begin a session in it with --session NAME", a.store)
	}
	t, err := a.target("")
	if err != nil {
		return "", err
	}
	defer t.Close()
	return t.name, nil
}
