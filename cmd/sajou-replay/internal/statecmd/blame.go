package statecmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/workspace"
)

// Blame returns the command "blame".
func Blame(a *cli.App) *cobra.Command {
	var (
		at  string
		all bool

		defines cli.Definitions
	)
	cmd := &cobra.Command{
		Use:   "blame [SESSION] PATH [--at ADDR] | ADDR FILE[:LINE]",
		Short: "Show what last set a value, or wrote each line of a file",
		Long: `Blame has two forms.

blame PATH shows what last set a value of the state, at the end or --at a moment:
the moment and the entry, and for a value of the stage the performance with the
step and the action that set it, and the values before and after. PATH is one
that state takes, such as stage.entities.smith.x. With --all it lists all
settings up to the moment.

A setting changes a value at its instant, or the course that it takes from there
on: of a movement the start is a setting, and not the positions on the way. Of
several events at one instant blame names the one that the fold applied last. If a
value outside the stage changed while only time passed, the acts of the instant
are listed as candidates.

blame ADDR FILE[:LINE] shows the lines of a file that the agents worked on, as it
was at a moment: for each line the entry of the tool call that wrote it, the
session time, the agent and the tool. A line without an entry stood there before,
or something that is not recorded wrote it. With :LINE it shows that line alone.

A ~ before the text marks a guess: a later act may have changed the line. Gaps are
the parts that the recording does not show; lines behind a gap of unknown length
have no number.

` + filesHelp + `
Here workspace/ may be omitted.

` + cli.DefinitionsHelp + `

The exit code is 0, 1 if nothing has set the value since the beginning, 3 if a
part of the file is unknown, and 4 if there is no such value, file or line.`,
		Example: `  sajou-replay blame night-shift stage.entities.smith.strength --at 38
  sajou-replay blame night-shift stage.entities.smoke --all
  sajou-replay blame end main.go
  sajou-replay blame end main.go:3 -o json`,
		Args: cli.Between(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if name, path, ok := statePath(a, cmd, args); ok {
				if _, err := cli.ParseAddress(at); err != nil {
					return err
				}
				t, err := a.OpenSession(name)
				if err != nil {
					return err
				}
				defer t.Close()
				if err := a.SeeThrough(cmd.Context(), t, defines); err != nil {
					return err
				}
				return blameState(cmd.Context(), a, t, at, path, all)
			}
			if len(defines) > 0 {
				return cli.Misuse("--define is for a value of the state, because a file does not depend on definitions; omit it")
			}
			if all || cmd.Flags().Changed("at") {
				return cli.Misuse("--at and --all are for a value of the state; usage: %s", cmd.UseLine())
			}
			if len(args) == 1 {
				return cli.Misuse("missing argument; usage: %s", cmd.UseLine())
			}
			t, rest, err := a.OpenSessionAndRest(args)
			if err != nil {
				return err
			}
			defer t.Close()
			if len(rest) != 2 {
				return cli.Misuse("blame needs a moment and a file, or a path of the state; usage: %s", cmd.UseLine())
			}
			return blameFile(cmd, a, t, rest[0], rest[1])
		},
	}
	cmd.Flags().StringVar(&at, "at", "end", "the moment `ADDR` of the value")
	cmd.Flags().BoolVar(&all, "all", false, "list all settings of the value up to the moment")
	defines.Flag(cmd)
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// statePath returns the session and the path of the arguments if they are those of the
// form for values of the state, which has no address among its arguments.
func statePath(a *cli.App, cmd *cobra.Command, args []string) (name, path string, ok bool) {
	last := args[len(args)-1]
	switch {
	case len(args) == 1 && (stateLike(last) || cmd.Flags().Changed("at")):
		return "", last, true
	case len(args) != 2 || a.Session != "":
		return "", "", false
	}
	if _, rest, err := a.SplitArgs(args); err != nil || len(rest) != 1 {
		return "", "", false
	}
	return args[0], last, stateLike(last) || cmd.Flags().Changed("at")
}

// stateLike reports whether a path begins with the name of a projection that has no
// files.
func stateLike(path string) bool {
	first := strings.TrimPrefix(path, "/")
	if i := strings.IndexAny(first, "./"); i >= 0 {
		first = first[:i]
	}
	switch first {
	case session.ProjectionSession, session.ProjectionPerformances, session.ProjectionStage, session.ProjectionWorld, session.ProjectionDirector:
		return true
	}
	return false
}

func blameFile(cmd *cobra.Command, a *cli.App, t *cli.OpenedSession, address, name string) error {
	s, seq, err := files(cmd, t, address)
	if err != nil {
		return err
	}
	path := strings.TrimPrefix(name, workspace.Name+"/")
	f, err := s.File(path)
	line := 0
	if err != nil {
		// Only a path that is none as a whole has a line behind it.
		if i := strings.LastIndexByte(path, ':'); i > 0 {
			if n, bad := strconv.Atoi(path[i+1:]); bad == nil {
				path, line = path[:i], n
			}
		}
		if f, err = lookup(s, path); err != nil {
			if stateLike(name) {
				return cli.Misuse("to blame a value of the state, use: sajou-replay blame %s --at %s", cli.ShellWord(name), cli.ShellWord(address))
			}
			return err
		}
	}
	return showBlame(cmd.Context(), a, t, f, seq, line)
}

func showBlame(ctx context.Context, a *cli.App, t *cli.OpenedSession, f *workspace.TrackedFile, seq eventlog.Seq, line int) error {
	o := a.Output()
	for l, err := range answer.BlameLines(ctx, t.Travel, f, line) {
		if err != nil {
			return err
		}
		if err := o.ItemOf(blameText(&l), l.View); err != nil {
			return err
		}
	}
	if err := o.End(); err != nil {
		return err
	}
	name := termtext.Printable(f.Path())
	if line > 0 && o.Items == 0 {
		return cli.Fail(cli.ExitNotFound, "%s has no line %d at entry %d", name, line, seq)
	}
	if line == 0 && !f.Complete() {
		return cli.Fail(cli.ExitLoss, "%s is known in part at entry %d", name, seq)
	}
	return nil
}

func blameText(l *answer.BlamedLine) string {
	number := "?"
	if l.Number > 0 {
		number = strconv.Itoa(l.Number)
	}
	if l.Certainty == workspace.Unknown {
		what := "unknown lines"
		if l.Lines >= 0 {
			what = cli.Plural(l.Lines, "unknown line", "unknown lines")
		}
		return fmt.Sprintf("%6s  %-9s  %-10s  %-12s  %5s   … %s", "", "", "", "", number, what)
	}
	mark := " "
	if l.Certainty == workspace.Guessed {
		mark = "~"
	}
	head := fmt.Sprintf("%6s  %-9s  %-10s  %-12s", "-", "", "", "")
	if w := l.View.Call; w != nil {
		head = fmt.Sprintf("%6d  %s  %-10s  %-12s", w.Seq, cli.ClockText(l.At),
			termtext.Clip(termtext.Printable(w.Agent), 10), termtext.Clip(termtext.Printable(w.Tool), 12))
	}
	text := l.Text
	if l.Partial {
		text = "…" + text + "…"
	}
	return fmt.Sprintf("%s  %5s %s %s", head, number, mark, printableText(text))
}
