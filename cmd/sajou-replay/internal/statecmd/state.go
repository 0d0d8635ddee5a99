// Package statecmd has the commands about states over time: state, diff, scan and
// bisect, and about the files that agents worked on: blame and
// risks.
package statecmd

import (
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/workspace"
)

// State returns the command "state".
func State(a *cli.App) *cobra.Command {
	var digests, all bool
	var defines cli.Definitions
	cmd := &cobra.Command{
		Use:   "state [SESSION] [ADDR [PATH]]",
		Short: "Show the state at a moment",
		Long: `State shows the state of a session at a moment, by default the end, as JSON: seq,
at, and a member for each projection, such as session, performances and stage. A
PATH selects a part, with dots (stage.entities.smith.x) or as a JSON Pointer
(/stage/entities/agent.v2/x), which is needed for names that contain dots.

` + filesHelp + `
State shows its text; ` + workspace.Gap + ` stands for each part that the recording does
not show, and the exit code is then 3. The PATH workspace lists all files: the
entry of the newest call that changed the file, whether it exists (? if that is
not certain), and how well its text is known.

Of a very large state it shows the first 1000 members of each object and list,
and 200,000 values in all. It then counts the omitted ones on stderr and exits
with 3. --all shows everything.

` + cli.DefinitionsHelp + `

--digests shows the digest of each projection instead. Machines with equal digests
have equal states.`,
		Example: `  sajou-replay state
  sajou-replay state 36+50ms performances
  sajou-replay state end stage.entities.smith.x
  sajou-replay state night-shift end /session/entries -o json
  sajou-replay state end workspace
  sajou-replay state end --digests
  sajou-replay state end stage --define choreographies.json`,
		Args: cli.Between(0, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, rest, err := a.OpenSessionAndRest(args)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := a.SeeThrough(cmd.Context(), t, defines); err != nil {
				return err
			}
			if len(rest) == 0 {
				rest = []string{"end"}
			}
			if len(rest) > 2 {
				return cli.Misuse("too many arguments: %q; usage: %s", rest[2], cmd.UseLine())
			}
			if len(rest) == 2 {
				if file, ok := workspacePath(rest[1]); ok {
					s, seq, err := files(cmd, t, rest[0])
					if err != nil {
						return err
					}
					if file == "" {
						return showFiles(a, s)
					}
					return showFile(a, s, seq, file)
				}
			}
			fold, m, err := t.FoldAt(cmd.Context(), rest[0])
			if err != nil {
				return err
			}
			if digests {
				return showDigests(a, fold)
			}
			limits := answer.ShownLimits()
			if all {
				limits = answer.NoLimits()
			}
			view, left, err := answer.State(fold, m, strings.Join(rest[1:], ""), limits)
			if err != nil {
				return err
			}
			data, err := cli.Marshal(view)
			if err != nil {
				return err
			}
			text := string(cli.Indented(data))
			if s, ok := view.(string); ok {
				text = s
			}
			if err := a.Output().One(termtext.PrintableLines(text), view); err != nil {
				return err
			}
			if len(left) > 0 {
				return cli.Fail(cli.ExitLoss, "the state is shown in part: %s; name a PATH, or use --all", strings.Join(left, ", "))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&digests, "digests", false, "show the digest of each projection instead")
	cmd.Flags().BoolVar(&all, "all", false, "show everything, however large")
	defines.Flag(cmd)
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// Diff returns the command "diff".
func Diff(a *cli.App) *cobra.Command {
	var all bool
	var rec recordingsTest
	var defs definitionsTest
	cmd := &cobra.Command{
		Use:   "diff ([SESSION] ADDR ADDR [PATH] | --rec SESSION SESSION | --defs OLD NEW [SESSION] [RANGE])",
		Short: "Compare two moments, two recordings, or two sets of definitions",
		Long: `Diff compares the states at two moments and writes the changes from the first to
the second: as lines of text, or with -o json as a JSON Patch (RFC 6902). With a
PATH it compares that part alone. The members seq and at are not compared.

` + filesHelp + `
Diff writes its changes as a unified diff. The PATH workspace lists the files that
differ.

Diff shows at most 10,000 changes and counts the others on stderr. It refuses
states that have an object or list of more than 10,000 members, or more than a
million values. --all lifts both limits.

` + recordingsHelp + `

` + definitionsHelp + `

The exit code is 0 if nothing differs, 1 if something does, 2 if definitions do
not compile, and 5 if states are too large to compare.`,
		Example: `  sajou-replay diff 35 36
  sajou-replay diff 36 36+50ms performances
  sajou-replay diff night-shift 0 end -o json
  sajou-replay diff 0 end workspace
  sajou-replay diff --rec night-shift conversation --by time
  sajou-replay diff --defs - choreographies.json night-shift`,
		Args: cli.Between(2, 4),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := rec.check(cmd, args); err != nil {
				return err
			}
			if err := defs.check(cmd, args); err != nil {
				return err
			}
			if defs.on {
				return runDefinitions(cmd, a, &defs, args, all)
			}
			if rec.on {
				rec.listAll = all
				return runRecordings(cmd.Context(), a, &rec, args)
			}
			limits, most := answer.ComparedLimits(), mostDifferences
			if all {
				limits, most = answer.NoLimits(), math.MaxInt
			}
			return runDiff(a, cmd, args, limits, most)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "compare and list everything, however large")
	rec.flags(cmd)
	defs.flags(cmd)
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func runDiff(a *cli.App, cmd *cobra.Command, args []string, limits answer.StateLimits, most int) error {
	t, rest, err := a.OpenSessionAndRest(args)
	if err != nil {
		return err
	}
	defer t.Close()
	if len(rest) < 2 || len(rest) > 3 {
		return cli.Misuse("diff needs two addresses; usage: %s", cmd.UseLine())
	}
	if len(rest) == 3 {
		if file, ok := workspacePath(rest[2]); ok {
			return runFileDiff(a, cmd, t, rest, file)
		}
	}
	var views [2]any
	for i := range views {
		fold, m, err := t.FoldAt(cmd.Context(), rest[i])
		if err != nil {
			return err
		}
		var left []string
		if views[i], left, err = answer.State(fold, m, strings.Join(rest[2:], ""), limits); err != nil {
			return err
		}
		if len(left) > 0 {
			return cli.Fail(cli.ExitInconclusive, "the state at %s is too large to compare: %s; name a PATH, or use --all", rest[i], strings.Join(left, ", "))
		}
		if whole, ok := views[i].(map[string]any); ok && len(rest) == 2 {
			delete(whole, "seq")
			delete(whole, "at")
		}
	}
	patch, err := replay.Diff(views[0], views[1])
	if err != nil {
		return err
	}
	return showPatch(a, patch, most)
}

// mostDifferences bounds the differences that diff shows.
const mostDifferences = 10_000

func showDigests(a *cli.App, fold *projection.Fold) error {
	o := a.Output()
	for _, d := range fold.Digests() {
		value, err := cli.Marshal(answer.ViewDigest(d))
		if err != nil {
			return err
		}
		if err := o.Item(d.String(), value); err != nil {
			return err
		}
	}
	return o.End()
}
