package explore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director/explore"
	"github.com/sajou-dev/sajou-go/internal/golden"
)

// TestCoverage shows the whole coverage of the episodes in testdata/coverage, to the last
// number: explored to the end, within each bound, and stopped on the way.
func TestCoverage(t *testing.T) {
	golden.Tell(t, "testdata/coverage/*.txtar", func(t *testing.T, files map[string]string) string {
		e := parse(t, files["episode.json"])
		var out strings.Builder
		for _, tt := range []struct {
			name   string
			config explore.Config
			steps  int // 0: to the end
		}{
			{"to the end", explore.Config{}, 0},
			{"delay 1", explore.Config{Delay: 1}, 0},
			{"20 moves", explore.Config{MaxMoves: 20}, 0},
			{"6 states", explore.Config{MaxStates: 6}, 0},
			{"2 turns", explore.Config{MaxTurns: 2}, 0},
			{"1 turn", explore.Config{MaxTurns: 1}, 0},
			{"stopped after 1 step", explore.Config{}, 1},
			{"stopped after 9 steps", explore.Config{}, 9},
		} {
			x := explore.New(e, tt.config)
			for n := 0; (tt.steps == 0 || n < tt.steps) && x.Step(); {
				n++
			}
			c, err := x.Coverage()
			require.NoError(t, err)
			fmt.Fprintf(&out, "%s: complete %v %s; %d states, %d moves, %d turns, %d plays; untried %+v\n", tt.name, c.Complete, c.Bound, c.States, c.Moves, c.Turns, c.Paths, c.Untried)
			at := func(s explore.Occurrence) string {
				if !s.Seen() {
					return "never"
				}
				return fmt.Sprint(s.Turn)
			}
			for _, b := range c.Beats {
				fmt.Fprintf(&out, "\tbeat %s directed %s, landed %s to %d open %v, forced %s, missed %s, late %s\n", b.Beat, at(b.Directed), at(b.Landed), b.Last, b.Open, at(b.Forced), at(b.Missed), at(b.Late))
			}
			for _, p := range c.Choices {
				fmt.Fprintf(&out, "\tchoice %s offered %s, declined %s, chosen", p.ChoicePoint, at(p.Offered), at(p.Declined))
				for _, o := range p.Options {
					fmt.Fprintf(&out, " %s %s", o.Option, at(o.Chosen))
				}
				fmt.Fprintln(&out)
			}
			for _, f := range c.Flags {
				fmt.Fprintf(&out, "\tflag %s set %s, cleared %s, sets %v, read %v\n", f.Flag, at(f.Set), at(f.Cleared), f.Sets, f.Read)
			}
			for _, o := range c.Objectives {
				fmt.Fprintf(&out, "\tobjective %s completed %s, failed %s\n", o.Objective, at(o.Completed), at(o.Failed))
			}
			fmt.Fprintf(&out, "\tfailed %s\n", at(c.Failed))
			for _, u := range c.Unreached {
				fmt.Fprintf(&out, "\tunreached: %s\n", u)
			}
		}
		return out.String()
	})
}
