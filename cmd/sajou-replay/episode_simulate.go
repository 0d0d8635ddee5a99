package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/director"
)

func (a *app) episodeSimulate() *cobra.Command {
	var c director.ExploreConfig
	var delay string
	var paths bool
	cmd := &cobra.Command{
		Use:   "simulate FILE",
		Short: "Play an episode in all ways",
		Long: `Simulate plays an episode in all ways, with the director that plays it live: each
beat that is looked for lands or does not, in each turn; each objective is reached
or is not; each option of each choice is made, at once or later or never; what flag
rules listen for is heard, at any time. No model is asked. Plays that come to the same state are played on as one, so that millions
of them take moments, and what no play reaches is known: beats that cannot land,
choices that are never offered, flags that are never set, objectives that cannot
be completed, beats that can only land after their deadline.

Of each beat it tells the first turn in which it can land, and the last; "or
later" stands where the character can put it off for ever. With --delay 2 the
character never takes longer than two turns after it was first told, or never does
what it was told: the last turns are then those of a character that plays along.
What is called unreachable is unreachable for such a character.

The exit code is 0 when all can be reached, 1 when something cannot, and 5 when a
bound was hit before that was known. Ctrl-C ends it with what was found so far.`,
		Example: `  sajou-replay episode simulate interview.json
  sajou-replay episode simulate --delay 2 interview.yaml
  sajou-replay episode simulate --paths -o json interview.json`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch n, err := parseDelay(delay); {
			case err != nil:
				return err
			case c.MaxTurns < 1 || c.MaxStates < 1 || c.MaxMoves < 1:
				return misuse("a bound must be 1 at least")
			default:
				c.Delay = n
			}
			e, _, err := a.episode(cmd.Context(), args[0], "nothing was played")
			if err != nil {
				return err
			}
			return a.explore(cmd.Context(), e, c, paths)
		},
	}
	cmd.Flags().StringVar(&delay, "delay", "any", "how many turns after it was first told the character does it, or never")
	cmd.Flags().BoolVar(&paths, "paths", false, "tell a play for each thing that can happen")
	cmd.Flags().IntVar(&c.MaxTurns, "turns", 500, "the most turns of a play")
	cmd.Flags().IntVar(&c.MaxStates, "states", 50_000, "the most states to tell apart")
	cmd.Flags().IntVar(&c.MaxMoves, "moves", 1_000_000, "the most moves to try")
	return cmd
}

// parseDelay reads a number of turns as [director.ExploreConfig] has it.
func parseDelay(s string) (int, error) {
	if s == "any" {
		return 0, nil
	}
	var n int
	if _, err := fmt.Sscanf(s, "%d", &n); err != nil || n < 0 || fmt.Sprint(n) != s || n > 1000 {
		return 0, misuse("--delay %q: want any, or a number of turns from 0 to 1000", s)
	}
	return cmp.Or(n, -1), nil
}

func (a *app) explore(ctx context.Context, e *director.Episode, c director.ExploreConfig, paths bool) error {
	x := director.Explore(e, c)
	m := newMeter(a.stderr)
	interrupted := false
	for x.Step() {
		if ctx.Err() != nil {
			interrupted = true
			break
		}
		states, left := x.Progress()
		m.show(fmt.Sprintf("%s, %d left", plural(states, "state", "states"), left))
	}
	m.clear()
	coverage, err := x.Coverage()
	if err != nil {
		return err
	}
	view := coverageView(x, coverage, paths)
	if err := a.output().one(view.text(), view); err != nil {
		return err
	}
	switch {
	case interrupted:
		return fail(exitInterrupted, "interrupted; this is what was found so far")
	case len(coverage.Gaps) == 0:
		return nil
	case !coverage.Complete:
		return fail(exitInconclusive, "the bound of %s was hit: what was not reached may be reachable", coverage.Bound)
	}
	return answerNo
}

// simulated is what [director.Coverage] says, as JSON.
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
}

// sighting says when a thing happens first; null if never.
type sighting struct {
	Turn int      `json:"turn"`
	Path []string `json:"path,omitempty"`
}

type simulatedBeat struct {
	ID       string    `json:"id"`
	Directed *sighting `json:"directed"`
	Landed   *sighting `json:"landed"`
	Last     int       `json:"last_turn,omitempty"` // 0: it can be put off for ever
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

func coverageView(x *director.Exploration, c director.Coverage, paths bool) simulated {
	at := func(s director.Sighting) *sighting {
		if !s.Seen() {
			return nil
		}
		to := &sighting{Turn: s.Turn}
		if paths {
			for _, m := range x.Path(s) {
				if m.Kind != director.MoveOpen {
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
	for _, g := range c.Gaps {
		v.Gaps = append(v.Gaps, simulatedGap{g.Kind, g.ID, g.Message})
	}
	return v
}

// text writes it for people: a line for each thing, and below it, if they are
// asked for, the plays in which it happens.
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
	fmt.Fprintf(&b, "%s: %s plays, %s; %s that differ, up to turn %d\n", printable(cmp.Or(v.Episode, "episode")), what, plays, plural(v.States, "state", "states"), v.Turns)
	line := func(indent int, name string, parts ...string) {
		kept := parts[:0]
		for _, p := range parts {
			if p != "" {
				kept = append(kept, p)
			}
		}
		fmt.Fprintf(&b, "%s%-*s  %s\n", strings.Repeat("  ", indent), 30-2*indent, clip(printable(name), 30-2*indent), strings.Join(kept, ", "))
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
			fmt.Fprintf(&b, "    %s: %s\n", word, printable(strings.Join(s.Path, "; ")))
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
		fmt.Fprintf(&b, "  %s %q %s\n", strings.ReplaceAll(g.Kind, "_", " "), g.ID, printable(g.Message))
	}
	return b.String()
}
