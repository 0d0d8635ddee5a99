package explore_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/explore"
	"github.com/sajou-dev/sajou-go/signal"
)

func parse(t testing.TB, text string) *episode.Episode {
	t.Helper()
	e, diagnostics := episode.Parse("episode.json", []byte(text))
	require.NoError(t, diagnostics.Err(episode.ErrEpisode))
	return e
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// explored explores an episode to its end.
func explored(t testing.TB, e *episode.Episode, c explore.Config) explore.Coverage {
	t.Helper()
	x := explore.New(e, c)
	for x.Step() {
	}
	coverage, err := x.Coverage()
	require.NoError(t, err)
	return coverage
}

// The exploration of the interview is complete: every part can happen, in the turns
// that were worked out by hand.
func TestExploreInterview(t *testing.T) {
	e := parse(t, read(t, "../script/interview.json"))
	c := explored(t, e, explore.Config{})
	if !c.Complete || len(c.Unreached) > 0 {
		t.Errorf("complete %v (%s), gaps %v", c.Complete, c.Bound, c.Unreached)
	}
	var got strings.Builder
	for _, b := range c.Beats {
		fmt.Fprintf(&got, "%s: directed %d, lands %d to %d open %v, forced %d, missed %d, late %d\n",
			b.Beat, b.Directed.Turn, b.Landed.Turn, b.Last, b.Open, b.Forced.Turn, b.Missed.Turn, b.Late.Turn)
	}
	for _, o := range c.Objectives {
		fmt.Fprintf(&got, "%s: completed %d, failed %d\n", o.Objective, o.Completed.Turn, o.Failed.Turn)
	}
	const want = `ask_salary: directed 3, lands 3 to 0 open true, forced 0, missed 0, late 6
name_range: directed 4, lands 4 to 0 open true, forced 0, missed 0, late 7
the_offer: directed 7, lands 7 to 0 open true, forced 10, missed 0, late 9
primary: completed 8, failed 11
`
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
	// With a delay of 2 no beat lands more than two turns after it was first directed.
	c = explored(t, e, explore.Config{Delay: 2})
	if b := c.Beats[0]; !c.Complete || b.Landed.Turn != 3 || b.Last != 5 || b.Open || !b.Late.Seen() {
		t.Errorf("%+v", b)
	}
}

// An exploration reports the parts that no play reaches.
func TestExploreGaps(t *testing.T) {
	e := parse(t, `{"id": "gaps", "turn_budget": 6, "success_condition": "flag:won", "user_objective": "win", "beats": [
		{"id": "greet", "character_instruction": "x", "target_turn": 1, "detection_type": "automatic", "choice_point": {"id": "hello", "choices": [
			{"id": "nice", "label": "Nice.", "sets_flag": "nice"}, {"id": "rude", "label": "Rude.", "sets_flag": "rude"}]}},
		{"id": "both", "character_instruction": "x", "target_turn": 2, "detection_type": "automatic", "requires_beat": "tea", "requires_flag": "rude",
			"choice_point": {"id": "end", "choices": [{"id": "win", "label": "Win.", "sets_flag": "won"}]}},
		{"id": "tea", "character_instruction": "x", "target_turn": 2, "detection_type": "automatic", "requires_flag": "nice"},
		{"id": "late", "character_instruction": "x", "target_turn": 1, "deadline_turn": 2, "detection_type": "automatic", "requires_beat": "tea"}]}`)
	c := explored(t, e, explore.Config{})
	var got []string
	for _, g := range c.Unreached {
		got = append(got, g.String())
	}
	want := []string{
		`beat "both" is never directed and never lands`,
		`beat "late" lands in turn 3 at the earliest, after its deadline, turn 2`,
		`choice_point "end" is never offered`,
		`flag "won" is never set`,
		`objective "primary" is never completed`,
	}
	if !slices.Equal(got, want) || !c.Complete {
		t.Errorf("complete %v, got %q", c.Complete, got)
	}
}

// A response that accomplishes one beat has, of its keywords, one in which no other
// beat is found.
func TestPlayAvoidsOtherKeywords(t *testing.T) {
	e := parse(t, `{"policy": {"spontaneous": true}, "beats": [
		{"id": "season", "character_instruction": "x", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "salt, pepper"},
		{"id": "salt", "character_instruction": "x", "target_turn": 1, "detection_type": "keyword", "detection_criteria": "salt"}]}`)
	var s director.State
	for _, m := range []explore.Move{explore.Start(e), {Kind: explore.MoveOpen, Turn: 1}} {
		_, err := explore.Play(&s, m)
		require.NoError(t, err)
	}
	records, err := explore.Play(&s, explore.Move{Kind: explore.MoveRespond, Turn: 1, Yes: []episode.Subject{{Kind: episode.AboutBeat, ID: "season"}}})
	require.NoError(t, err)
	var landed []string
	for _, r := range records {
		if r.Word == episode.BeatLanded {
			landed = append(landed, r.Value.TextOf("beat"))
		}
	}
	require.Equal(t, []string{"season"}, landed)
}

// An exploration that a bound ends is incomplete and names the bound.
func TestExploreBounds(t *testing.T) {
	e := parse(t, read(t, "../script/interview.json"))
	for bound, config := range map[string]explore.Config{
		"turns": {MaxTurns: 5}, "states": {MaxStates: 20}, "moves": {MaxMoves: 30},
	} {
		if c := explored(t, e, config); c.Complete || c.Bound != bound {
			t.Errorf("complete %v, bound %q, want %q", c.Complete, c.Bound, bound)
		}
	}
	x := explore.New(e, explore.Config{})
	x.Step()
	if c, err := x.Coverage(); err != nil || c.Complete || c.Bound != "stopped" {
		t.Errorf("%v, complete %v, bound %q", err, c.Complete, c.Bound)
	}
	// A target turn beyond the bound ends the exploration.
	far := parse(t, `{"turn_budget": 0, "beats": [{"id": "far", "character_instruction": "x", "target_turn": 1000000000, "detection_type": "automatic"}]}`)
	if c := explored(t, far, explore.Config{}); c.Bound != "turns" || c.States > 1100 {
		t.Errorf("%d states, bound %q", c.States, c.Bound)
	}
}

// scripts draws small episodes that use every feature.
func scripts(t *rapid.T) string {
	flags := []string{"", "f", "g", "h"}
	words := []string{"salt", "pepper, salt", "sugar", "salt, sugar"}
	turn := rapid.IntRange(1, 5)
	flag := rapid.SampledFrom(flags)
	options := func(id string) map[string]any {
		var list []any
		for i := range rapid.IntRange(1, 2).Draw(t, "options") {
			o := map[string]any{"id": string(rune('x' + i)), "label": "say " + string(rune('x'+i))}
			if f := flag.Draw(t, "sets"); f != "" {
				o["sets_flag"] = f
			}
			if f := flag.Draw(t, "clears"); f != "" && rapid.IntRange(0, 3).Draw(t, "clear") == 0 {
				o["clears_flag"] = f
			}
			list = append(list, o)
		}
		return map[string]any{"id": id, "choices": list}
	}
	var beats []any
	for i := range rapid.IntRange(1, 4).Draw(t, "beats") {
		b := map[string]any{
			"id": fmt.Sprint("b", i), "description": "d", "character_instruction": "i", "target_turn": turn.Draw(t, "target"),
			"detection_type": rapid.SampledFrom([]string{"automatic", "keyword", "semantic", "psychic"}).Draw(t, "type"),
		}
		b["deadline_turn"] = b["target_turn"].(int) + rapid.IntRange(0, 2).Draw(t, "window")
		if b["detection_type"] == "keyword" {
			b["detection_criteria"] = rapid.SampledFrom(words).Draw(t, "words")
		}
		if j := rapid.IntRange(-1, i-1).Draw(t, "requires"); j >= 0 {
			b["requires_beat"] = fmt.Sprint("b", j)
		}
		if f := flag.Draw(t, "flag"); f != "" {
			b["requires_flag"] = f
		}
		if rapid.Bool().Draw(t, "choice") {
			b["choice_point"] = options(fmt.Sprint("c", i))
		}
		if miss := rapid.SampledFrom([]string{"keep", "force", "skip", "fail"}).Draw(t, "miss"); miss != "keep" {
			b["on_miss"], b["max_overdue_turns"], b["forced_line"] = miss, rapid.IntRange(1, 2).Draw(t, "overdue"), "So be it."
			b["dependants"] = rapid.SampledFrom([]string{"drop", "release"}).Draw(t, "dependants")
		}
		beats = append(beats, b)
	}
	e := map[string]any{"id": "drawn", "turn_budget": rapid.IntRange(0, 5).Draw(t, "budget"), "beats": beats, "policy": map[string]any{
		"order":       rapid.SampledFrom([]string{"authored", "urgent"}).Draw(t, "order"),
		"spontaneous": rapid.Bool().Draw(t, "spontaneous"), "keywords": rapid.SampledFrom([]string{"word", "contains"}).Draw(t, "mode"),
		"pending_choice": rapid.SampledFrom([]string{"strict", "free"}).Draw(t, "pending"),
	}}
	if rapid.Bool().Draw(t, "objective") {
		e["user_objective"] = "o"
		e["success_condition"] = rapid.SampledFrom([]string{"semantic:s", "keyword:salt", "turn:4", "flag:f", "flag:g"}).Draw(t, "success")
		e["on_success"] = map[string]any{"set_flag": rapid.SampledFrom([]string{"g", "h"}).Draw(t, "on success")}
		if rapid.Bool().Draw(t, "failure") {
			e["failure_condition"] = rapid.SampledFrom([]string{"turn:3", "flag:h"}).Draw(t, "failure condition")
		}
	}
	if rapid.Bool().Draw(t, "legacy") {
		c := options("old")
		c["trigger"] = fmt.Sprint("turn:", turn.Draw(t, "trigger"))
		if e["user_objective"] != nil && rapid.Bool().Draw(t, "after") {
			c["trigger"] = "after_objective:primary"
		}
		e["choice_points"] = []any{c}
	}
	var rules []any
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		r := map[string]any{"on_signal": rapid.SampledFrom([]string{"bell", "knock"}).Draw(t, "on"), "set": rapid.SampledFrom(flags[1:]).Draw(t, "rule sets")}
		if rapid.Bool().Draw(t, "rule clears") {
			r["clear"] = r["set"]
			delete(r, "set")
		}
		if rapid.Bool().Draw(t, "when") {
			r["when"] = map[string]any{"signal.loud": map[string]any{"equals": true}}
		}
		rules = append(rules, r)
	}
	if rules != nil {
		e["flag_rules"] = rules
	}
	if rapid.IntRange(0, 2).Draw(t, "given") == 0 {
		e["flags"] = []any{"f"}
	}
	text, err := json.Marshal(e)
	require.NoError(t, err)
	return string(text)
}

// sighted holds the events that coverage reports, with the member that names the
// subject of each.
var sighted = map[string]string{
	episode.BeatLanded: "beat", episode.BeatForced: "beat", episode.BeatMissed: "beat", episode.DeadlineMissed: "beat",
	episode.ChoiceOffered: "choice_point", episode.ChoiceSelected: "choice_point", episode.ChoiceDeclined: "choice_point",
	episode.FlagSet: "flag", episode.FlagCleared: "flag",
	episode.ObjectiveCompleted: "objective", episode.ObjectiveFailed: "objective", episode.EpisodeFailed: "",
}

func nameOf(r signal.Record) (name string, turn int) {
	text := func(member string) string {
		v, _ := r.Value.Get(member)
		s, _ := v.Text()
		return s
	}
	name = r.Word + " " + text(sighted[r.Word])
	if r.Word == episode.ChoiceSelected {
		name += " " + text("choice")
	}
	if r.Word == episode.EpisodeFailed {
		name = r.Word
	}
	v, _ := r.Value.Get("turn")
	i, _ := v.Int64()
	return name, int(i)
}

// sightingsOf returns all sightings of a coverage, by the names of nameOf.
func sightingsOf(c explore.Coverage) map[string]explore.Occurrence {
	all := map[string]explore.Occurrence{episode.EpisodeFailed: c.Failed}
	for _, b := range c.Beats {
		all[episode.BeatLanded+" "+b.Beat], all[episode.BeatForced+" "+b.Beat] = b.Landed, b.Forced
		all[episode.BeatMissed+" "+b.Beat], all[episode.DeadlineMissed+" "+b.Beat] = b.Missed, b.Late
	}
	for _, p := range c.Choices {
		all[episode.ChoiceOffered+" "+p.ChoicePoint], all[episode.ChoiceDeclined+" "+p.ChoicePoint] = p.Offered, p.Declined
		for _, o := range p.Options {
			all[episode.ChoiceSelected+" "+p.ChoicePoint+" "+o.Option] = o.Chosen
		}
	}
	for _, f := range c.Flags {
		all[episode.FlagSet+" "+f.Flag], all[episode.FlagCleared+" "+f.Flag] = f.Set, f.Cleared
	}
	for _, o := range c.Objectives {
		all[episode.ObjectiveCompleted+" "+o.Objective], all[episode.ObjectiveFailed+" "+o.Objective] = o.Completed, o.Failed
	}
	return all
}

// randomly plays some turns independently of the exploration: any text, any verdict,
// any choice at any time.
func randomly(t *rapid.T, r *rand.Rand, e *episode.Episode, turns int) []signal.Record {
	var s director.State
	var all []signal.Record
	take := func(records []signal.Record, err error) {
		if err != nil {
			return // it was refused; the play continues with another input
		}
		for _, record := range records {
			require.NoError(t, s.Apply(record.Word, record.Value))
		}
		all = append(all, records...)
	}
	choose := func() {
		for _, o := range s.Open() {
			if r.Intn(2) == 0 {
				_, records, err := s.Choose(o.ID, o.Options[r.Intn(len(o.Options))].ID)
				take(records, err)
			}
		}
	}
	hear := func() {
		if r.Intn(3) > 0 {
			return
		}
		payload, err := signal.ParseValue(fmt.Appendf(nil, `{"loud": %v}`, r.Intn(2) == 0))
		require.NoError(t, err)
		records, err := s.ExternalEvent(episode.OfSignal, []string{"bell", "knock"}[r.Intn(2)], payload, "signal:1")
		take(records, err)
	}
	var opening director.Opening
	if r.Intn(2) == 0 {
		opening.Flags = e.Flags
	}
	take(s.Start(e, opening))
	for range turns {
		hear()
		choose()
		hear()
		input := director.TurnInput{Turn: s.Turn() + 1, Text: []string{"", "words"}[r.Intn(2)]}
		if s.ChoiceLine() != nil {
			input.Text = ""
		}
		_, records, err := s.Guide(input)
		take(records, err)
		hear()
		choose()
		var text []string
		for _, word := range []string{"salt", "pepper", "sugar"} {
			if r.Intn(3) == 0 {
				text = append(text, word)
			}
		}
		_, records, err = s.Respond(director.Response{Turn: s.Turn(), Attempt: 1, Text: strings.Join(text, ", ")})
		take(records, err)
		for _, subject := range s.Awaiting() {
			_, records, err := s.Judge(director.Verdict{Turn: s.Turn(), Attempt: 1, Subject: subject, Raw: []string{"YES", "NO", "YES", "NO", "Hard to say."}[r.Intn(5)]})
			take(records, err)
		}
	}
	return all
}

// Every event of a random play was seen by the exploration, within the turns that it
// reports, and every sighting happens in the play that the exploration names.
func TestExploreIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := scripts(t)
		v, err := signal.ParseValue([]byte(text))
		require.NoError(t, err)
		e, err := episode.Compile(v)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		x := explore.New(e, explore.Config{MaxStates: 4000, MaxMoves: 40000})
		for x.Step() {
		}
		c, err := x.Coverage()
		require.NoError(t, err)
		all := sightingsOf(c)
		for name, s := range all {
			if !s.Seen() {
				continue
			}
			var state director.State
			var last []signal.Record
			for _, m := range x.Path(s) {
				if last, err = explore.Play(&state, m); err != nil {
					t.Fatalf("%s: %v: %v\n%s", name, m, err, text)
				}
			}
			if !slices.ContainsFunc(last, func(r signal.Record) bool {
				if got, turn := nameOf(r); got == name && turn == s.Turn {
					return true
				}
				return r.Word == episode.EpisodeStarted && strings.HasPrefix(name, episode.FlagSet) && s.Turn == 0
			}) {
				t.Fatalf("%s is not in turn %d of its own play\n%s", name, s.Turn, text)
			}
		}
		_, diagnostics := episode.Parse("x", []byte(text))
		for _, d := range diagnostics {
			for _, b := range c.Beats {
				if d.Message == fmt.Sprintf("beat %q can never become eligible", b.Beat) && (b.Landed.Seen() || b.Directed.Seen()) {
					t.Fatalf("%s is told, and it does\n%s", d.Message, text)
				}
			}
		}
		if !c.Complete {
			return
		}
		r := rand.New(rand.NewSource(int64(rapid.IntRange(0, 1<<30).Draw(t, "seed"))))
		for range 20 {
			for _, record := range randomly(t, r, e, 10) {
				if _, ok := sighted[record.Word]; !ok {
					continue
				}
				name, turn := nameOf(record)
				s, ok := all[name]
				if !ok || !s.Seen() || turn < s.Turn {
					t.Fatalf("%s happened in turn %d, and is said to happen in %d (%v)\n%s", name, turn, s.Turn, s.Seen(), text)
				}
				if record.Word != episode.BeatLanded {
					continue
				}
				i := slices.IndexFunc(c.Beats, func(b explore.BeatCoverage) bool { return episode.BeatLanded+" "+b.Beat == name })
				if b := c.Beats[i]; !b.Open && turn > b.Last {
					t.Fatalf("%s happened in turn %d, and is said to happen in %d at the latest\n%s", name, turn, b.Last, text)
				}
			}
		}
	})
}

// forking returns an episode with many plays: a chain of beats, each with a choice that
// the next one may depend on.
func forking(beats int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"id": "forking", "turn_budget": %d, "user_objective": "arrive", "success_condition": "flag:left_%d", "beats": [`, beats+2, beats-1)
	for i := range beats {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, `{"id": "fork_%d", "description": "a fork", "character_instruction": "Lead them to a fork.", "target_turn": %d, `, i, i+1)
		if i > 0 {
			fmt.Fprintf(&b, `"requires_beat": "fork_%d", `, i-1)
		}
		fmt.Fprintf(&b, `"choice_point": {"id": "way_%d", "choices": [{"id": "left", "label": "Left.", "sets_flag": "left_%d"}, {"id": "right", "label": "Right."}]}}`, i, i)
	}
	b.WriteString("]}")
	return b.String()
}

// Of more than six things that can happen together, none, all, each and each pair are tried.
func TestExploreTogether(t *testing.T) {
	for n, want := range map[int]uint64{6: 1 << 6, 7: 2 + 7 + 21, 9: 2 + 9 + 36} {
		var b strings.Builder
		b.WriteString(`{"policy": {"spontaneous": true}, "beats": [`)
		for i := range n {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, `{"id": "b%d", "description": "d", "character_instruction": "x", "target_turn": 1, "detection_type": "semantic", "detection_criteria": "w"}`, i)
		}
		b.WriteString("]}")
		c := explored(t, parse(t, b.String()), explore.Config{MaxTurns: 1})
		if c.Paths != want {
			t.Errorf("%d things: %d plays of one turn, want %d; %+v", n, c.Paths, want, c.Untried)
		}
	}
}

func TestMoveString(t *testing.T) {
	subjects := []episode.Subject{{Kind: episode.AboutBeat, ID: "toast"}, {Kind: episode.AboutObjective, ID: "primary"}}
	for want, m := range map[string]explore.Move{
		"start":                                 {Kind: explore.MoveStart},
		"start with a, b":                       {Kind: explore.MoveStart, Flags: []string{"a", "b"}},
		"turn 2: choose drink/yes":              {Kind: explore.MoveChoose, Turn: 2, ChoicePoint: "drink", Option: "yes"},
		"turn 3: nothing":                       {Kind: explore.MoveRespond, Turn: 3},
		"turn 3: toast, objective primary":      {Kind: explore.MoveRespond, Turn: 3, Yes: subjects},
		"turn 4: hear signal:knock":             {Kind: explore.MoveHear, Turn: 4, Event: "signal:knock"},
		"turn 5 begins, the choice is declined": {Kind: explore.MoveDecline, Turn: 5},
	} {
		require.Equal(t, want, m.String())
	}
}

// More than a hundred thousand plays are explored through few states.
func TestExploreMany(t *testing.T) {
	c := explored(t, parse(t, forking(12)), explore.Config{})
	if !c.Complete || c.Paths < 100_000 || c.States > 2000 || len(c.Unreached) > 0 {
		t.Errorf("complete %v (%s): %d plays, %d states, gaps %v", c.Complete, c.Bound, c.Paths, c.States, c.Unreached)
	}
}

// The steps of the exploration of an expensive episode are small, so that it can be
// stopped.
func TestExploreHostile(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"turn_budget": 0, "policy": {"spontaneous": true, "max_overdue_turns": 1073741824, "on_miss": "skip"}, "flags": ["f0"`)
	for i := range 500 {
		fmt.Fprintf(&b, `, "f%d"`, i+1)
	}
	b.WriteString(`], "beats": [`)
	for i := range 500 {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"id": "b%d", "character_instruction": "x", "target_turn": %d, "detection_type": "keyword", "detection_criteria": "w%d, w", "requires_flag": "f%d"}`, i, i%9, i, i)
	}
	b.WriteString("]}")
	x := explore.New(parse(t, b.String()), explore.Config{MaxStates: 50, MaxMoves: 60})
	n := 0
	for x.Step() {
		n++
	}
	c, err := x.Coverage()
	if err != nil || c.Complete || n != 60 || c.States > 60 {
		t.Errorf("%v: complete %v after %d steps and %d states, bound %q", err, c.Complete, n, c.States, c.Bound)
	}
}

// BenchmarkExplore explores more than 100,000 plays to their end.
func BenchmarkExplore(b *testing.B) {
	e := parse(b, forking(12))
	b.ReportAllocs()
	var c explore.Coverage
	for b.Loop() {
		c = explored(b, e, explore.Config{})
	}
	b.ReportMetric(float64(c.Paths), "plays/op")
	b.ReportMetric(float64(c.States), "states/op")
}
