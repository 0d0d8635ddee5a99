package agentscene_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/agentscene"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/picture"
	"github.com/sajou-dev/sajou-go/stage/toolplace"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// record records a file of signals on the scene and returns the session.
func record(t *testing.T, file string) *film.Reel {
	t.Helper()
	ctx := t.Context()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, eng.Close()) })
	ses, err := eng.Session(ctx, "a")
	require.NoError(t, err)
	in, err := os.Open(filepath.Join("testdata", file))
	require.NoError(t, err)
	defer in.Close()
	r, err := ingest.NewRecorder(ctx, ses, ingest.Config{Definitions: agentscene.Declarations()})
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.All(ctx, ingest.JSONL(in, file, false)))
	log, err := eng.Log().Session("a")
	require.NoError(t, err)
	past, err := eng.Replay("a")
	require.NoError(t, err)
	return film.Open(log, past)
}

// describe lists what is seen in a frame.
func describe(f *stage.Frame) string {
	var b strings.Builder
	for _, g := range f.Figures {
		if !g.Visible {
			continue
		}
		fmt.Fprintf(&b, "  %s (%s) at %v,%v", g.Label, g.Look.Figure, g.X, g.Y)
		if g.State != "idle" {
			fmt.Fprintf(&b, ", %s", g.State)
		}
		if g.Strength > 0 {
			fmt.Fprintf(&b, ", %s", g.Tint)
		}
		if g.Text != "" {
			fmt.Fprintf(&b, ", says %q", g.Text)
		}
		b.WriteString("\n")
	}
	for _, beam := range f.Beams {
		fmt.Fprintf(&b, "  beam from %s to %s\n", beam.From, beam.To)
	}
	return b.String()
}

// TestSmall tells a short recording, entry by entry: the stage half of the time to the next
// entry after each.
func TestSmall(t *testing.T) {
	reel := record(t, "small.jsonl")
	last := reel.Travel().Head().Seq
	whole, err := reel.Interval(t.Context(), replay.Moment{Seq: last - 15}, replay.Moment{Seq: last, Offset: 10 * time.Second})
	require.NoError(t, err)
	var instants []time.Duration
	var times []time.Duration
	for seq := whole.First.Seq; seq <= last; seq++ {
		e, err := reel.Entry(t.Context(), seq)
		require.NoError(t, err)
		times = append(times, e.At)
	}
	times = append(times, times[len(times)-1]+2*time.Second, times[len(times)-1]+20*time.Second)
	for i, at := range times[:len(times)-1] {
		instants = append(instants, at+(times[i+1]-at)/2)
	}
	var b strings.Builder
	for shot, err := range reel.At(t.Context(), whole, instants) {
		require.NoError(t, err)
		caption, err := reel.Caption(t.Context(), replay.Moment{Seq: shot.Seq})
		require.NoError(t, err)
		_, caption, _ = strings.Cut(caption, " ")
		fmt.Fprintf(&b, "%v after %s\n%s", shot.At, caption, describe(shot.Frame))
	}
	golden := filepath.Join("testdata", "small.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o666))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), b.String())
}

// TestCrowd: thirty tools and twenty subagents have places of their own, the tools share
// seven places, and in the end only the user and the first agent are there.
func TestCrowd(t *testing.T) {
	reel := record(t, "crowd.jsonl")
	last := reel.Travel().Head().Seq
	whole, err := reel.Interval(t.Context(), replay.Moment{Seq: 1}, replay.Moment{Seq: last})
	require.NoError(t, err)
	most := 0
	var end *stage.Frame
	for shot, err := range reel.At(t.Context(), whole, whole.Spread(40)) {
		require.NoError(t, err)
		subagents := 0
		at := map[[2]float64]string{}
		for _, g := range shot.Frame.Figures {
			if g.Look == agentscene.Scene().Looks["subagent"] {
				subagents++
			}
			assert.Empty(t, at[[2]float64{g.X, g.Y}], "%s stands on another at %v", g.ID, shot)
			at[[2]float64{g.X, g.Y}] = g.ID
		}
		most = max(most, subagents)
		end = shot.Frame
	}
	assert.Equal(t, 20, most)
	var left []string
	for _, g := range end.Figures {
		if g.Visible {
			left = append(left, g.ID)
		}
	}
	places := []string{"claude", "user"}
	for _, p := range toolplace.Places() {
		places = append(places, "place:"+string(p))
	}
	assert.ElementsMatch(t, places, left)
}

// TestDeclarations: the files are clean, every place of a tool has a figure that pictures can
// draw, and a rule of each pattern leads to it.
func TestDeclarations(t *testing.T) {
	text := []byte("[")
	for i, d := range agentscene.Declarations() {
		if i > 0 {
			text = append(text, ',')
		}
		text = d.Value().AppendJSON(text)
	}
	assert.Empty(t, lint.Check(lint.File{Name: "agents.json", Text: append(text, ']')}))
	sc := agentscene.Scene()
	for _, p := range toolplace.Places() {
		assert.Contains(t, picture.Figures(), sc.Looks[string(p)].Figure)
	}
	for _, tool := range []string{"Bash", "apply_patch", "mcp__x__y", "web_search"} {
		rule, ok := sc.Rule(tool)
		assert.True(t, ok)
		assert.Equal(t, "place:"+string(toolplace.Of(tool)), rule.Entity)
	}
	for _, agent := range []string{"search_agent", "web_surfer", "coder", "user"} {
		rule, _ := sc.Rule(agent)
		assert.Empty(t, rule.Entity, agent)
	}
}

// TestNothingUnresolved: the stage has nothing to report about a recording of usual signals,
// which includes optional members that are absent.
func TestNothingUnresolved(t *testing.T) {
	for _, file := range []string{"small.jsonl", "crowd.jsonl"} {
		reel := record(t, file)
		fold, err := reel.Travel().At(t.Context(), replay.Moment{Seq: reel.Travel().Head().Seq})
		require.NoError(t, err)
		view := session.StageOf(fold).View().(map[string]any)["diagnostics"].(map[string]any)
		assert.Zero(t, view["total"], "%s: %v %v", file, view["recent"], view["unresolved"])
	}
}

// TestStrangeSignals: signals without the members that the choreographies read do no harm.
func TestStrangeSignals(t *testing.T) {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer eng.Close()
	ses, err := eng.Session(t.Context(), "a")
	require.NoError(t, err)
	r, err := ingest.NewRecorder(t.Context(), ses, ingest.Config{Definitions: agentscene.Declarations(), Lenient: true})
	require.NoError(t, err)
	defer r.Close()
	for _, typ := range signal.WellKnownTypes() {
		for _, payload := range []string{`{}`, `{"agentId":"","toolName":"","from":"","to":""}`, `{"agentId":7,"toolName":[],"from":{},"to":null}`, `{"agentId":"Bash","toolName":"claude","from":"Bash","to":"Bash"}`} {
			line := `{"id":"1","type":"` + typ + `","timestamp":1,"source":"import:x","payload":` + payload + `}`
			require.NoError(t, r.All(t.Context(), ingest.JSONL(strings.NewReader(line), "a", true)))
		}
	}
	assert.Positive(t, r.Tally().Flagged)
}
