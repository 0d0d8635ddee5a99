package episodecmd

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/explore"
	"github.com/sajou-dev/sajou-go/internal/termtext"
)

func simulateCommand(a *cli.App) *cobra.Command {
	var c explore.Config
	var delay string
	var paths bool
	var most time.Duration
	cmd := &cobra.Command{
		Use:   "simulate FILE",
		Short: "Play an episode in all ways",
		Long: `Simulate plays an episode in all ways, with the same director that plays it
live. Each beat that is searched for lands or not, in each turn; each objective
is completed or not; each option of each choice is selected, at once, later or
never; each event of the flag rules happens, at any time. No model is asked.
Plays that reach the same state continue as one, so millions of plays take
moments. The result shows the parts that no play reaches: beats that cannot
land, choices that are never offered, flags that are never set, objectives that
cannot be completed, beats that land only after their deadline.

For each beat it shows the first and the last turn in which it can land, or "or
later" if the character can postpone it without end. With --delay 2 the
character plays a beat within two turns after it was first directed, or never;
parts that are unreachable are then unreachable for such a character.

Simulate ends after the time of --for, or at a bound, and counts what it did not
try. Without the time limit the result is the same on every machine.

The exit code is 0 when everything can be reached, 1 when something cannot, and
5 when a bound left that open. Ctrl-C shows the result so far.`,
		Example: `  sajou-replay episode simulate interview.json
  sajou-replay episode simulate --delay 2 interview.yaml
  sajou-replay episode simulate --paths -o json interview.json`,
		Args: cli.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch n, err := parseDelay(delay); {
			case err != nil:
				return err
			case c.MaxTurns < 1 || c.MaxStates < 1 || c.MaxMoves < 1:
				return cli.Misuse("--turns, --states and --moves must be at least 1")
			case most <= 0:
				return cli.Misuse("--for %v: must be longer than 0, as in 30s", most)
			default:
				c.Delay = n
			}
			e, _, err := loadEpisode(cmd.Context(), a, args[0], "nothing was played")
			if err != nil {
				return err
			}
			return runSimulate(cmd.Context(), a, e, c, paths, most)
		},
	}
	cmd.Flags().StringVar(&delay, "delay", "any", "turns within which the character plays a directed beat, or any")
	cmd.Flags().BoolVar(&paths, "paths", false, "show a play for each event that can happen")
	cmd.Flags().IntVar(&c.MaxTurns, "turns", 500, "bound of the turns of a play")
	cmd.Flags().IntVar(&c.MaxStates, "states", 50_000, "bound of the different states")
	cmd.Flags().IntVar(&c.MaxMoves, "moves", 1_000_000, "bound of the moves")
	cmd.Flags().DurationVar(&most, "for", time.Minute, "time limit")
	return cmd
}

// parseDelay reads a number of turns as [explore.Config.Delay] has it.
func parseDelay(s string) (int, error) {
	if s == "any" {
		return 0, nil
	}
	var n int
	if _, err := fmt.Sscanf(s, "%d", &n); err != nil || n < 0 || fmt.Sprint(n) != s || n > 1000 {
		return 0, cli.Misuse("--delay %q: must be any, or a number of turns from 0 to 1000", s)
	}
	return cmp.Or(n, -1), nil
}

func runSimulate(ctx context.Context, a *cli.App, e *episode.Episode, c explore.Config, paths bool, most time.Duration) error {
	// The outer context tells an interruption from the end of the time.
	timed, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	x := explore.New(e, c)
	m := cli.NewProgress(a.Stderr)
	for x.Step() {
		if timed.Err() != nil {
			break
		}
		states, left := x.Progress()
		m.Show(fmt.Sprintf("%s, %d left", cli.Plural(states, "state", "states"), left))
	}
	m.Clear()
	coverage, err := x.Coverage()
	if err != nil {
		return err
	}
	interrupted := ctx.Err() != nil
	if coverage.Bound == "stopped" && !interrupted {
		coverage.Bound = "time"
	}
	view := coverageView(x, coverage, paths)
	if err := a.Output().One(view.text(), view); err != nil {
		return err
	}
	switch {
	case interrupted:
		return cli.Fail(cli.ExitInterrupted, "interrupted; this is the result so far")
	case len(coverage.Unreached) == 0:
		return nil
	case !coverage.Complete:
		return cli.Fail(cli.ExitInconclusive, "the bound of %s was hit: unreached parts may be reachable", coverage.Bound)
	}
	return cli.AnswerNo
}

// simulated is an [explore.Coverage] as JSON.
type simulated struct {
	Episode    string               `json:"episode"`
	Digest     string               `json:"digest"`
	Complete   bool                 `json:"complete"`
	Bound      string               `json:"bound,omitempty"`
	Plays      uint64               `json:"plays"`
	States     int                  `json:"states"`
	Moves      int                  `json:"moves"`
	Turns      int                  `json:"turns"`
	Beats      []simulatedBeat      `json:"beats"`
	Choices    []simulatedChoice    `json:"choice_points"`
	Flags      []simulatedFlag      `json:"flags"`
	Objectives []simulatedObjective `json:"objectives"`
	Failed     *sighting            `json:"episode_failed"`
	Gaps       []simulatedGap       `json:"gaps"`
	Untried    *untried             `json:"untried,omitempty"`
	Untold     int                  `json:"plays_not_told,omitempty"`
}

// untried is an [explore.Untried] as JSON.
type untried struct {
	States       int    `json:"states"`
	Moves        int    `json:"moves"`
	Dropped      int    `json:"dropped"`
	Long         int    `json:"long"`
	Combinations uint64 `json:"combinations"`
}

// text returns it as a line.
func (u *untried) text() string {
	var parts []string
	count := func(n uint64, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n == math.MaxUint64:
			parts = append(parts, "countless "+many)
		case n > 0:
			parts = append(parts, fmt.Sprint(n)+" "+many)
		}
	}
	count(uint64(u.States), "state was not played on from", "states were not played on from")
	count(uint64(u.Moves), "move was not made", "moves were not made")
	count(uint64(u.Dropped), "move led to a state beyond --states", "moves led to states beyond --states")
	count(uint64(u.Long), "state would have gone on beyond --turns", "states would have gone on beyond --turns")
	count(u.Combinations, "combination was left out", "combinations were left out")
	return strings.Join(parts, ", ")
}

// maxToldMoves bounds the moves of all plays that --paths shows.
const maxToldMoves = 200_000

// sighting is the first occurrence of an event; null if there is none.
type sighting struct {
	Turn int      `json:"turn"`
	Path []string `json:"path,omitempty"`
}

type simulatedBeat struct {
	ID       string    `json:"id"`
	Directed *sighting `json:"directed"`
	Landed   *sighting `json:"landed"`
	Last     int       `json:"last_turn,omitempty"` // 0: it can be postponed without end
	Forced   *sighting `json:"forced"`
	Missed   *sighting `json:"missed"`
	Late     *sighting `json:"deadline_missed"`
	open     bool
}

type simulatedChoice struct {
	ID       string            `json:"id"`
	Offered  *sighting         `json:"offered"`
	Declined *sighting         `json:"declined"`
	Options  []simulatedOption `json:"choices"`
}

type simulatedOption struct {
	ID     string    `json:"id"`
	Chosen *sighting `json:"chosen"`
}

type simulatedFlag struct {
	Name    string    `json:"name"`
	Set     *sighting `json:"set"`
	Cleared *sighting `json:"cleared"`
	Read    bool      `json:"read"`
}

type simulatedObjective struct {
	ID        string    `json:"id"`
	Completed *sighting `json:"completed"`
	Failed    *sighting `json:"failed"`
}

type simulatedGap struct {
	Kind    string `json:"kind"`
	ID      string `json:"id"`
	Message string `json:"message"`
}

func coverageView(x *explore.Exploration, c explore.Coverage, paths bool) simulated {
	told, untold := 0, 0
	at := func(s explore.Occurrence) *sighting {
		if !s.Seen() {
			return nil
		}
		to := &sighting{Turn: s.Turn}
		switch {
		case !paths:
		case told > maxToldMoves:
			untold++
		default:
			for _, m := range x.Path(s) {
				told++
				if m.Kind != explore.MoveOpen {
					to.Path = append(to.Path, m.String())
				}
			}
		}
		return to
	}
	v := simulated{
		Episode: c.Episode, Digest: c.Digest.String(), Complete: c.Complete, Bound: c.Bound, Plays: c.Paths, States: c.States, Moves: c.Moves, Turns: c.Turns,
		Beats: []simulatedBeat{}, Choices: []simulatedChoice{}, Flags: []simulatedFlag{}, Objectives: []simulatedObjective{}, Gaps: []simulatedGap{},
		Failed: at(c.Failed),
	}
	for _, b := range c.Beats {
		v.Beats = append(v.Beats, simulatedBeat{b.Beat, at(b.Directed), at(b.Landed), b.Last, at(b.Forced), at(b.Missed), at(b.Late), b.Open})
	}
	for _, p := range c.Choices {
		choice := simulatedChoice{ID: p.ChoicePoint, Offered: at(p.Offered), Declined: at(p.Declined), Options: []simulatedOption{}}
		for _, o := range p.Options {
			choice.Options = append(choice.Options, simulatedOption{o.Option, at(o.Chosen)})
		}
		v.Choices = append(v.Choices, choice)
	}
	for _, f := range c.Flags {
		v.Flags = append(v.Flags, simulatedFlag{f.Flag, at(f.Set), at(f.Cleared), f.Read})
	}
	for _, o := range c.Objectives {
		v.Objectives = append(v.Objectives, simulatedObjective{o.Objective, at(o.Completed), at(o.Failed)})
	}
	for _, g := range c.Unreached {
		v.Gaps = append(v.Gaps, simulatedGap{g.Kind, g.ID, g.Message})
	}
	if u := c.Untried; !c.Complete {
		v.Untried = &untried{u.States, u.Moves, u.Dropped, u.Long, u.Combinations}
	}
	v.Untold = untold
	return v
}

// text returns it for people: a line for each part, and below it, with --paths, a play
// in which it happens.
func (v *simulated) text() string {
	var b strings.Builder
	plays := fmt.Sprint(v.Plays)
	if v.Plays == math.MaxUint64 {
		plays = "countless"
	}
	what := "all"
	if !v.Complete {
		what = "not all"
	}
	fmt.Fprintf(&b, "%s: %s plays, %s; %s that differ, up to turn %d\n", termtext.Printable(cmp.Or(v.Episode, "episode")), what, plays, cli.Plural(v.States, "state", "states"), v.Turns)
	line := func(indent int, name string, parts ...string) {
		kept := parts[:0]
		for _, p := range parts {
			if p != "" {
				kept = append(kept, p)
			}
		}
		fmt.Fprintf(&b, "%s%-*s  %s\n", strings.Repeat("  ", indent), 30-2*indent, termtext.Clip(termtext.Printable(name), 30-2*indent), strings.Join(kept, ", "))
	}
	told := func(word string, s *sighting) string {
		switch {
		case s == nil:
			return ""
		case s.Turn == 0:
			return word + " at the start"
		}
		return fmt.Sprintf("%s from turn %d", word, s.Turn)
	}
	path := func(word string, s *sighting) {
		if s != nil && len(s.Path) > 0 {
			fmt.Fprintf(&b, "    %s: %s\n", word, termtext.Printable(strings.Join(s.Path, "; ")))
		}
	}
	part := func(name string, n int) {
		if n > 0 {
			b.WriteString("\n" + name + "\n")
		}
	}
	part("beats", len(v.Beats))
	for _, beat := range v.Beats {
		lands := "never lands"
		switch {
		case beat.Landed == nil:
		case beat.open:
			lands = fmt.Sprintf("lands in turn %d or later", beat.Landed.Turn)
		case beat.Landed.Turn == beat.Last:
			lands = fmt.Sprintf("lands in turn %d", beat.Last)
		default:
			lands = fmt.Sprintf("lands in turns %d to %d", beat.Landed.Turn, beat.Last)
		}
		line(1, beat.ID, lands, told("forced", beat.Forced), told("given up", beat.Missed), told("late", beat.Late))
		path("lands", beat.Landed)
		path("forced", beat.Forced)
		path("given up", beat.Missed)
		path("late", beat.Late)
	}
	part("choices", len(v.Choices))
	for _, p := range v.Choices {
		line(1, p.ID, cmp.Or(told("offered", p.Offered), "never offered"), told("declined", p.Declined))
		path("offered", p.Offered)
		for _, o := range p.Options {
			line(2, o.ID, cmp.Or(told("chosen", o.Chosen), "never chosen"))
			path("chosen", o.Chosen)
		}
	}
	part("flags", len(v.Flags))
	for _, f := range v.Flags {
		read := ""
		if !f.Read {
			read = "read by nothing here"
		}
		line(1, f.Name, cmp.Or(told("set", f.Set), "never set"), told("cleared", f.Cleared), read)
		path("set", f.Set)
		path("cleared", f.Cleared)
	}
	part("objectives", len(v.Objectives))
	for _, o := range v.Objectives {
		line(1, o.ID, cmp.Or(told("completed", o.Completed), "never completed"), cmp.Or(told("failed", o.Failed), "never failed"))
		path("completed", o.Completed)
		path("failed", o.Failed)
	}
	if v.Failed != nil {
		b.WriteString("\n" + told("the episode fails", v.Failed) + "\n")
		path("fails", v.Failed)
	}
	part("not reached", len(v.Gaps))
	for _, g := range v.Gaps {
		fmt.Fprintf(&b, "  %s %q %s\n", strings.ReplaceAll(g.Kind, "_", " "), g.ID, termtext.Printable(g.Message))
	}
	if v.Untried != nil {
		fmt.Fprintf(&b, "\nnot tried, because of the bound of %s: %s\n", v.Bound, cmp.Or(v.Untried.text(), "nothing that is known"))
	}
	if v.Untold > 0 {
		fmt.Fprintf(&b, "\n%s not told: --paths tells %d moves at most\n", cli.Plural(v.Untold, "play is", "plays are"), maxToldMoves)
	}
	return b.String()
}
