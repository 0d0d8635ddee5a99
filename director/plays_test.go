package director_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/explore"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/signal"
)

// member is one of a JSON object's, in the order of writing.
type member struct {
	name  string
	value any
}

// object writes members that are not nil.
func object(members ...member) string {
	var list []string
	for _, m := range members {
		switch v := m.value.(type) {
		case nil:
		case raw:
			list = append(list, fmt.Sprintf("%q: %s", m.name, string(v)))
		default:
			text, err := json.Marshal(v)
			if err != nil {
				panic(err)
			}
			list = append(list, fmt.Sprintf("%q: %s", m.name, text))
		}
	}
	return "{" + strings.Join(list, ", ") + "}"
}

type raw string

func array(elements []string) raw { return raw("[" + strings.Join(elements, ", ") + "]") }

// maybe returns a value in some of the cases.
func maybe(d *golden.Dice, n int, v any) any {
	if d.N(n) > 0 {
		return nil
	}
	return v
}

// shuffled returns numbers below n in an order of the dice.
func shuffled(d *golden.Dice, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	for i := range order {
		j := i + d.N(n-i)
		order[i], order[j] = order[j], order[i]
	}
	return order
}

var drawnFlags = []string{"f0", "f1", "f2", "f3"}

func drawnChoice(d *golden.Dice, id string, trigger any) string {
	var options []string
	for n := range 1 + d.N(3) {
		options = append(options, object(member{"id", fmt.Sprintf("o%d", n)}, member{"label", fmt.Sprintf("I take %d of %s.", n, id)},
			member{"sets_flag", maybe(d, 2, golden.Pick(d, drawnFlags...))}, member{"clears_flag", maybe(d, 3, golden.Pick(d, drawnFlags...))}))
	}
	return object(member{"id", id}, member{"prompt", maybe(d, 2, golden.Pick(d, "Well?", `{{character_said}} And you?`))},
		member{"trigger", trigger}, member{"choices", array(options)})
}

func drawnOutcome(d *golden.Dice) any {
	return maybe(d, 2, raw(object(member{"set_flag", maybe(d, 2, golden.Pick(d, drawnFlags...))}, member{"suggest_episode", maybe(d, 3, "next")})))
}

// drawnBeats draws beats, of which two versions of an episode share some.
func drawnBeats(d *golden.Dice, ids []string) []string {
	var beats []string
	if d.Once(3) { // several choices can be found in one response, so that beats are held
		for n, id := range ids {
			beats = append(beats, object(member{"id", id}, member{"description", id}, member{"character_instruction", "Do " + id + "."}, member{"target_turn", 1},
				member{"deadline_turn", 1 + d.N(3)}, member{"detection_type", "keyword"}, member{"detection_criteria", "w" + id + ", v" + id},
				member{"requires_beat", maybe(d, 4, ids[max(n-1, 0)])}, member{"max_overdue_turns", 1 + d.N(3)}, member{"on_miss", golden.Pick(d, "keep", "force", "skip", "fail")},
				member{"forced_line", "Forced is " + id + "."}, member{"choice_point", raw(drawnChoice(d, "p"+id, nil))}))
		}
		return beats
	}
	for n, id := range ids {
		target := d.N(6)
		kind := golden.Pick(d, "semantic", "keyword", "keyword", "automatic", "keyword", "psychic")
		var criteria any
		if kind == "keyword" || kind == "semantic" {
			criteria = "w" + id + golden.Pick(d, "", ", v"+id, ", apple pie")
		}
		miss := golden.Pick(d, "keep", "force", "skip", "fail")
		beat := []member{
			{"id", id},
			{"description", golden.Pick(d, "the <"+id+">", "d"+id)},
			{"character_instruction", "Do " + id + "."},
			{"target_turn", target},
			{"deadline_turn", maybe(d, 2, target+d.N(3))},
			{"detection_type", kind},
			{"detection_criteria", criteria},
			{"requires_flag", maybe(d, 5, golden.Pick(d, drawnFlags...))},
			{"max_overdue_turns", maybe(d, 2, d.N(3))},
			{"on_miss", miss},
			{"dependants", maybe(d, 2, golden.Pick(d, "drop", "release"))},
			{"forced_line", "Forced is " + id + "."},
		}
		if n > 0 && d.Once(3) {
			beat = append(beat, member{"requires_beat", ids[d.N(n)]})
		}
		if d.Once(2) {
			beat = append(beat, member{"choice_point", raw(drawnChoice(d, "p"+id, nil))})
		}
		beats = append(beats, object(beat...))
	}
	return beats
}

func drawnObjectives(d *golden.Dice) (objectives []string, ids []string) {
	for _, id := range []string{"g0", "g1", "g2"}[:d.N(4)] {
		success := golden.Pick(d, "flag:f1", "flag:f3", "keyword:win, won", "semantic:they <win>", fmt.Sprintf("turn:%d", 1+d.N(5)))
		objectives = append(objectives, object(member{"id", id}, member{"description", maybe(d, 2, "reach "+id)}, member{"success_condition", success},
			member{"failure_condition", maybe(d, 2, golden.Pick(d, "turn_budget_exceeded", "flag:f2", "turn:3"))},
			member{"on_success", drawnOutcome(d)}, member{"on_failure", drawnOutcome(d)}))
		ids = append(ids, id)
	}
	return objectives, ids
}

// drawnText draws an episode, with all that an author can write.
func drawnText(d *golden.Dice) string {
	var ids []string
	for _, i := range shuffled(d, 6)[:d.N(6)] {
		ids = append(ids, fmt.Sprintf("b%d", i))
	}
	objectives, goals := drawnObjectives(d)
	var props []string
	for n, i := range shuffled(d, 3)[:d.N(4)] {
		prop := []member{
			{"id", fmt.Sprintf("k%d", i)},
			{"name", golden.Pick(d, "silver key", "lamp", "the old map")},
			{"slug", maybe(d, 3, "night-lamp")},
			{"reveal", golden.Pick(d, "character_initiated", "automatic")},
			{"reveal_turn_hint", 1 + d.N(4)},
		}
		if n > 0 && d.Once(2) {
			first := strings.SplitN(props[0], `"`, 5)[3]
			prop = append(prop, member{"requires_prop", first})
		}
		props = append(props, object(prop...))
	}
	var points []string
	for _, i := range shuffled(d, 3)[:d.N(4)] {
		trigger := fmt.Sprintf("turn:%d", 1+d.N(4))
		if len(goals) > 0 && d.Once(2) {
			trigger = "after_objective:" + golden.Pick(d, goals...)
		}
		points = append(points, drawnChoice(d, fmt.Sprintf("l%d", i), trigger))
	}
	var signals []string
	for _, on := range []string{
		episode.EpisodeStarted, episode.EpisodeRevised, episode.TurnOpened, "directive", episode.BeatLanded, episode.BeatHeld, episode.BeatForced, episode.BeatMissed,
		episode.ChoiceOffered, episode.ChoiceSelected, episode.FlagSet, episode.SuggestionMade, episode.TurnEvaluated,
	} {
		if d.Once(2) {
			signals = append(signals, object(member{"on", on}, member{"type", "cue-" + on}, member{"payload", maybe(d, 2, raw(`{"turn": null, "mood": "warm"}`))}))
		}
	}
	for _, id := range ids[:min(len(ids), 1)] {
		signals = append(signals, object(member{"on", episode.BeatLanded}, member{"beat", id}, member{"type", "landed"}))
	}
	var contexts []string
	for _, f := range drawnFlags[:d.N(4)] {
		contexts = append(contexts, object(member{"if_flag", f}, member{"inject", "They know of " + f + "."}))
	}
	rules := []string{
		`{"on_signal": "sets", "when": {"signal.n": {"gt": 0}}, "set": "f0"}`, `{"on_effect": "sets", "set": "f2"}`,
		`{"on_signal": "sets", "set": "f1"}`, `{"on_signal": "clears", "clear": "f0"}`, `{"on_effect": "clears", "clear": "f2"}`,
	}
	if len(signals) > 0 {
		rules = rules[:3] // a signal could set what a signal clears
	}
	return object(
		member{"id", "drawn"}, member{"title", maybe(d, 2, "Drawn")}, member{"situation", maybe(d, 2, golden.Pick(d, "A kitchen.  At night. It rains.", "Is it late? Yes.", "東京。夜。", strings.Repeat("long ", 30)))},
		member{"opening_line", maybe(d, 2, "Good evening.")}, member{"genre", maybe(d, 2, golden.Pick(d, "romance", "thriller", "slice_of_life"))},
		member{"energy", maybe(d, 2, golden.Pick(d, episode.Energies()...))}, member{"turn_budget", d.N(9)},
		member{"user_objective", maybe(d, 2, "Be warm.")}, member{"success_condition", golden.Pick(d, "flag:f0", "flag:f1", "keyword:yes", "semantic:warm", "turn:4")},
		member{"failure_condition", maybe(d, 3, golden.Pick(d, "turn:5", "flag:f3"))},
		member{"on_success", drawnOutcome(d)}, member{"on_failure", drawnOutcome(d)},
		member{"objectives", array(objectives)}, member{"choice_points", array(points)}, member{"flag_context_rules", array(contexts)},
		member{"beats", array(drawnBeats(d, ids))}, member{"props", array(props)}, member{"flags", drawnFlags},
		member{"visuals", maybe(d, 2, raw(golden.Pick(d, `{"mode": "cinematic"}`, `{"mode": "cinematic", "budget": 3}`, `{"mode": "minimal"}`, `{"mode": "none"}`)))},
		member{"next_episode", maybe(d, 2, "winter")}, member{"signals", array(signals)}, member{"flag_rules", array(rules)},
		member{"policy", raw(object(
			member{"order", maybe(d, 2, golden.Pick(d, "authored", "urgent"))}, member{"spontaneous", d.Once(2)}, member{"pending_choice", maybe(d, 2, golden.Pick(d, "strict", "free"))},
			member{"keywords", maybe(d, 2, golden.Pick(d, "word", "contains"))}, member{"judge_retries", maybe(d, 2, d.N(3))},
			member{"max_overdue_turns", maybe(d, 2, 1+d.N(2))}, member{"on_miss", maybe(d, 3, golden.Pick(d, "keep", "skip", "fail"))}))},
	)
}

// drawnEpisode returns the first drawn episode without a mistake, with the remarks.
func drawnEpisode(d *golden.Dice, remarks *strings.Builder) *episode.Episode {
	for {
		text := drawnText(d)
		e, diagnostics := episode.Parse("drawn.json", []byte(text))
		fmt.Fprintf(remarks, "%s\n%v\n", text, diagnostics)
		if e != nil {
			return e
		}
	}
}

// troupe plays one episode with any calls.
type troupe struct {
	t       *testing.T
	d       *golden.Dice
	s       director.State
	records []signal.Record
	asked   []director.Question
	told    strings.Builder
}

func (p *troupe) tell(what string, v any) {
	text, err := json.Marshal(v)
	require.NoError(p.t, err)
	fmt.Fprintf(&p.told, "%s %s\n", what, text)
}

// took tells of the records of a call, and applies them.
func (p *troupe) took(call string, result any, records []signal.Record, err error) {
	p.tell(call, result)
	if err != nil {
		fmt.Fprintf(&p.told, "error %v\n", err)
	}
	for _, r := range records {
		fmt.Fprintf(&p.told, "%s %s\n", r.Word, r.Value)
		if r.Word == episode.GuidanceIssued {
			require.NoError(p.t, p.s.CheckGuidance(r.Value))
		}
		p.forge(r)
		require.NoErrorf(p.t, p.s.Apply(r.Word, r.Value), "%s %s", r.Word, r.Value)
		if p.d.Once(4) {
			p.forge(r)
		}
		for _, c := range p.s.Signals(r) {
			fmt.Fprintf(&p.told, "→ %s %s\n", c.Type, c.Payload)
		}
	}
	p.records = append(p.records, records...)
	if e := p.s.Episode(); e != nil {
		p.tell("view", p.s.View())
		p.tell("open", []any{p.s.Pending(), p.s.Open(), p.s.ChoicePending(), p.s.ChoiceLine(), p.s.Undecided(), p.s.AwaitsResponse()})
		beat, ok := p.s.Directed()
		p.tell("directed", []any{beat, ok})
		for i := range e.Beats {
			p.tell("beat", []any{p.s.BeatAt(i), p.s.Eligible(i)})
		}
		for i := range e.Choices {
			p.tell("choice", p.s.ChoiceAt(i))
		}
		for _, n := range []int{0, p.s.Turn() - 1, p.s.Turn(), p.s.Turn() + 1} {
			g, err := p.s.Guidance(n)
			p.tell("guidance", g)
			fmt.Fprintf(&p.told, "%v\n%s\n", err, g.Section())
		}
	}
	if p.s.Episode() != nil {
		h := director.Horizon{Settled: p.d.N(9), Delay: p.d.N(4) - 1, Flags: map[string]bool{"f0": true, "f2": true}}
		fmt.Fprintf(&p.told, "future %x\n", p.s.AppendFuture(nil, h))
	}
	bytes := p.s.AppendState(nil)
	fmt.Fprintf(&p.told, "%x\n", bytes)
	for range 2 {
		damaged := slices.Clone(bytes)
		i := p.d.N(len(damaged))
		damaged[i] = golden.Pick(p.d, damaged[i]+1, damaged[i]-1, 0, 0xc0)
		if s, err := director.Restore(damaged); err != nil {
			fmt.Fprintln(&p.told, i, err)
		} else {
			fmt.Fprintf(&p.told, "%d %x\n", i, s.AppendState(nil))
		}
	}
	restored, err := director.Restore(bytes)
	require.NoError(p.t, err)
	require.Equal(p.t, bytes, restored.AppendState(nil))
}

// forge tells which changed records the state takes, and what they make of it.
func (p *troupe) forge(r signal.Record) {
	if r.Value.Kind() != signal.KindObject || r.Word == episode.Word {
		return
	}
	members := func(change func(i int, name string, v signal.Value) (signal.Value, bool)) signal.Record {
		o, i := signal.NewObject(r.Value.Len()), 0
		for name, v := range r.Value.Members() {
			if v, keep := change(i, name, v); keep {
				o.Set(name, v)
			}
			i++
		}
		return signal.Record{Word: r.Word, Value: o.Value()}
	}
	which, way := p.d.N(max(r.Value.Len(), 1)), p.d.N(4)
	forged := []signal.Record{r, members(func(i int, _ string, v signal.Value) (signal.Value, bool) {
		if i != which {
			return v, true
		}
		switch n, isInt := v.Int64(); {
		case way == 0:
			return nil, false
		case isInt:
			return value(p.t, fmt.Sprint([]int64{0, n + 1, n - 1, 1<<30 + 1}[p.d.N(4)])), true
		case v.Kind() == signal.KindString:
			text, _ := v.Text()
			return signal.Text(golden.Pick(p.d, "", text+"x", "b0", "b1", "p0", "o0", "o1", "f1", "verified", "assumed", "forced", "yes", "no")), true
		case v.Kind() == signal.KindBool:
			b, _ := v.Bool()
			return value(p.t, fmt.Sprint(!b)), true
		default:
			return value(p.t, "7"), true
		}
	}), members(func(_ int, name string, v signal.Value) (signal.Value, bool) {
		return v, name != "turn" && name != "outside"
	})}
	if r.Word == episode.FlagSet || r.Word == episode.FlagCleared {
		v := members(func(_ int, _ string, v signal.Value) (signal.Value, bool) { return v, true })
		o := signal.NewObject(5)
		for name, m := range v.Value.Members() {
			o.Set(name, m)
		}
		o.Set("outside", value(p.t, fmt.Sprint(way > 1)))
		forged = append(forged, signal.Record{Word: golden.Pick(p.d, episode.FlagSet, episode.FlagCleared), Value: o.Value()})
	}
	for _, f := range forged {
		s := p.s
		err := s.Apply(f.Word, f.Value)
		fmt.Fprintf(&p.told, "forged %s %s: %v %v\n%x\n", f.Word, f.Value, err, s.CheckGuidance(f.Value), s.AppendState(nil))
	}
}

// words draws a text with words that beats, objectives and props are found by.
func (p *troupe) words() string {
	if p.d.Once(3) {
		return "Everything: wb0, vb1, wb2, vb3, wb4, wb5."
	}
	var said []string
	for range p.d.N(4) {
		said = append(said, golden.Pick(p.d, "wb0", "vb1", "WB2", "vb3", "wb4", "wb5x", "apple", "apple pie", "win", "yes", "lamp", "key", "map", "night lamp"))
	}
	return "Well, " + strings.Join(said, ", ") + "."
}

func (p *troupe) do(revision *episode.Episode) string {
	s, d := &p.s, p.d
	kinds := []string{"guide", "respond", "judge", "choose", "guide", "respond", "judge", "choose", "judge", "guide", "respond", "expire", "revise", "hear", "hear", "again", "questions", "declare"}
	call := golden.Pick(d, kinds...)
	if !d.Once(4) { // what a play does next
		switch {
		case len(s.Awaiting()) > 0:
			call = "judge"
		case s.AwaitsResponse():
			call = "respond"
		case s.ChoicePending() && !d.Once(4):
			call = "choose"
		default:
			call = "guide"
		}
	}
	switch call {
	case "guide":
		in := director.TurnInput{Turn: s.Turn() + golden.Pick(d, 1, 1, 1, 1, 1, 1, 1, 0, 2, -1, -7), Text: golden.Pick(d, "", "Hello.", "wb0", "  ")}
		if line := s.ChoiceLine(); line != nil && d.Once(2) {
			in.Text = line.Content
		}
		g, records, err := s.Guide(in)
		p.took(fmt.Sprintf("guide %+v", in), g, records, err)
		return call
	case "respond":
		before := []director.TranscriptLine{{Role: "user", Text: "a"}, {Role: "character", Text: "b <c>"}, {Role: "user", Text: "d"}, {Role: "user", Text: "e"}, {Role: "character", Text: "f"}}
		r := director.Response{Turn: s.Turn() - d.N(8)/7, Attempt: golden.Pick(d, 0, 0, 0, 1, 2, 3), Text: p.words(), Before: before[:d.N(6)]}
		out, records, err := s.Respond(r)
		p.asked = append(p.asked, out.Questions...)
		p.took(fmt.Sprintf("respond %+v", r), out, records, err)
		if d.Once(3) {
			out, records, err = s.Respond(r)
			p.took("respond again", out, records, err)
		}
		return call
	case "judge":
		v := director.Verdict{Turn: s.Turn(), Attempt: 1, Subject: episode.Subject{Kind: episode.AboutBeat, ID: fmt.Sprintf("b%d", d.N(6))}}
		if len(p.asked) > 0 {
			q := p.asked[d.N(len(p.asked))]
			if !d.Once(4) {
				q = p.asked[len(p.asked)-1-d.N(min(len(p.asked), 3))]
			}
			v = director.Verdict{Turn: q.Turn, Attempt: q.Attempt, Subject: q.Subject, Try: golden.Pick(d, 0, 0, q.Try, 2)}
		}
		if d.Once(9) {
			v.Turn, v.Attempt = v.Turn+golden.Pick(d, -1, 1), golden.Pick(d, -1, 0, 1)
		}
		v.Raw, v.Model, v.Latency = golden.Pick(d, "YES", "YES", "no.", "Perhaps", "", strings.Repeat("long ", 900)), golden.Pick(d, "", "m"), int64(d.N(3)-1)
		if d.Once(6) {
			v.Failure = "no network"
		}
		out, records, err := s.Judge(v)
		p.took(fmt.Sprintf("judge %+v", v), []any{out, director.AskedAgain(records)}, records, err)
		return call
	case "expire":
		out, records, err := s.Expire(golden.Pick(d, "", "closing"))
		p.took(call, out, records, err)
		return call
	case "choose":
		point := golden.Pick(d, "pb0", "pb1", "pb2", "l0", "l1", "l2", "nobody")
		if open := s.Open(); len(open) > 0 && !d.Once(5) {
			point = open[d.N(len(open))].ID
		}
		option := golden.Pick(d, "o0", "o1", "o2")
		out, records, err := s.Choose(point, option)
		p.took("choose "+point+" "+option, out, records, err)
		return call
	case "revise":
		records, err := s.Revise(revision)
		p.took(call, nil, records, err)
		return call
	case "declare":
		p.took(call, nil, []signal.Record{{Word: episode.Word, Value: revision.Value()}}, nil)
		return call
	case "hear":
		kind, name, payload := golden.Pick(d, episode.OfSignal, episode.OfEffect), golden.Pick(d, "sets", "clears", "rings"), golden.Pick(d, `{"n": 1}`, `{"n": 0}`, `{}`)
		records, err := s.ExternalEvent(kind, name, value(p.t, payload), golden.Pick(d, "signal:7", strings.Repeat("very ", 50)))
		p.took(fmt.Sprint("hear ", kind, name, payload), s.Listens(kind, name), records, err)
		return call
	case "again":
		e := s.Episode()
		if !d.Once(4) {
			return "rest"
		}
		records, err := s.Start(e, director.Opening{Flags: []string{"f2"}[d.N(2):], Energy: golden.Pick(d, append(episode.Energies(), "", "wild")...)})
		p.took(call, nil, records, err)
		return call
	default:
		questions, err := s.Questions(p.words(), nil)
		p.took(call, questions, nil, err)
		return call
	}
}

// The director gives the same results, records, states, guidance and signals as
// before, in plays of any episodes with any calls.
func TestRecordedPlays(t *testing.T) {
	golden.Trace(t, "testdata/plays.txt", func(step func(name, text string)) {
		for n := range uint64(36) {
			p := &troupe{t: t, d: golden.NewDice(n)}
			var remarks strings.Builder
			first, second := drawnEpisode(p.d, &remarks), drawnEpisode(p.d, &remarks)
			step(fmt.Sprintf("%d drawn", n), remarks.String())
			_, _, err := p.s.Guide(director.TurnInput{Turn: 1})
			require.ErrorIs(t, err, director.ErrTurn)
			records, err := p.s.Start(first, director.Opening{Flags: drawnFlags[:p.d.N(2)], Energy: golden.Pick(p.d, append(episode.Energies(), "", "unknown")...)})
			p.took("start", nil, records, err)
			for range 45 {
				revision := golden.Pick(p.d, first, second, second)
				call := p.do(revision)
				step(fmt.Sprintf("%d %s", n, call), p.told.String())
				p.told.Reset()
			}
			step(fmt.Sprintf("%d measured", n), measured(t, p.records))
			if n%2 == 0 {
				step(fmt.Sprintf("%d explored", n), explored(t, first, explore.Config{MaxStates: 300, MaxTurns: golden.Pick(p.d, 0, 5), Delay: p.d.N(4) - 1, MaxMoves: golden.Pick(p.d, 0, 0, 200)}))
			}
		}
	})
}

var written = regexp.MustCompile(`("[^"]*"|-?[0-9]+|true|false)[,\]}]`)

// damaged replaces values of a text by others.
func damaged(d *golden.Dice, text string, n int) string {
	for range n {
		all := written.FindAllStringSubmatchIndex(text, -1)
		at := all[d.N(len(all))]
		text = text[:at[2]] + golden.Pick(d, "7", "0", "-1", "2.5", "null", "true", `""`, `" "`, `"x"`, `"b0"`, `"f0"`, `[]`, `[7, "x"]`, `{}`, `{"id": "x"}`, `"turn:0"`, `"turn:3"`, `"flag:"`, `"semantic:"`, `"keyword:,"`,
			`"after_objective:none"`, `"after_objective:g0"`, `4000000000`, `"`+strings.Repeat("long", 60)+`"`, "3.0") + text[at[3]:]
	}
	return text
}

// Drawn episodes, whole and damaged, have the remarks, values, migrations and texts that
// they had.
func TestRecordedEpisodes(t *testing.T) {
	golden.Trace(t, "testdata/episodes.txt", func(step func(name, text string)) {
		var last *episode.Episode
		for n := range 500 {
			d := golden.NewDice(uint64(1000 + n))
			text := drawnText(d)
			if n%2 == 1 {
				var indented bytes.Buffer
				require.NoError(t, json.Indent(&indented, []byte(text), "", golden.Pick(d, " ", "\t", "    ")))
				text = indented.String()
			}
			text = damaged(d, text, n%4)
			e, diagnostics := episode.Parse("drawn.json", []byte(text))
			var out strings.Builder
			fmt.Fprintf(&out, "%s\n%v\n", text, diagnostics)
			if v, err := signal.ParseValue([]byte(text)); err == nil {
				_, err := episode.Compile(v)
				after, todos, err2 := episode.Migrate(v)
				fmt.Fprintln(&out, err, after, todos, err2)
				if err2 == nil {
					fmt.Fprintf(&out, "%s\n", episode.Rewrite([]byte(text), v, after))
					fmt.Fprintf(&out, "%s\n", episode.Rewrite([]byte(text)[:d.N(len(text))], v, after))
				}
			}
			if e != nil {
				fmt.Fprintln(&out, e.Briefing(), e.Reads(), e.Digest(), e.Doctrine.Digest(), e.Budget, e.Energy, e.Policy, e.Visuals)
				for i := range e.Beats {
					b := &e.Beats[i]
					fmt.Fprintln(&out, b.Target, b.Deadline, b.Detection, b.MaxOverdue, b.OnMiss, b.Dependants, b.RequiresBeat, b.Choice, b.Urgency(b.Target-1), b.Urgency(b.Target), b.Urgency(b.Deadline), b.Urgency(b.Deadline+1))
				}
				for i := range e.Objectives {
					fmt.Fprintf(&out, "%+v\n", e.Objectives[i])
				}
				for i := range e.Choices {
					fmt.Fprintf(&out, "%+v %s\n", e.Choices[i], e.Choices[i].PromptAfter("So."))
				}
				fmt.Fprintf(&out, "%+v\n", e.Props)
				if last != nil {
					fmt.Fprintf(&out, "%+v\n", e.Without(last))
					for i := range last.Beats {
						fmt.Fprintln(&out, e.SameBeat(last, i))
					}
					for i := range e.Choices {
						fmt.Fprintln(&out, e.KeepsChoice(i, last))
					}
				}
				last = e
			}
			step(fmt.Sprint(n), out.String())
		}
	})
}

// The last turn can be guided, and none after it. Guidance of a turn that no state has is
// refused.
func TestTurnBounds(t *testing.T) {
	e := parse(t, `{"id": "e", "turn_budget": 0}`)
	var s director.State
	issued := func(turn int) signal.Value {
		return value(t, fmt.Sprintf(`{"turn": %d, "pacing": %q, "energy": %q, "genre": %q}`, turn, episode.Pacing(turn, 0), e.Energy, e.Doctrine.ID))
	}
	require.ErrorIs(t, s.CheckGuidance(issued(1)), director.ErrRecord, "nothing plays")
	play(t, &s, must(s.Start(e, director.Opening{})))
	g, records, err := s.Guide(director.TurnInput{Turn: episode.MaxTurn})
	require.NoError(t, err)
	require.Equal(t, episode.MaxTurn, g.Turn)
	require.NoError(t, s.CheckGuidance(records[1].Value))
	require.Equal(t, records[1].Value.String(), issued(episode.MaxTurn).String())
	_, _, err = s.Guide(director.TurnInput{Turn: episode.MaxTurn + 1})
	require.ErrorIs(t, err, director.ErrTurn)
	require.ErrorIs(t, s.CheckGuidance(issued(episode.MaxTurn+1)), director.ErrRecord, "beyond the last turn")
	play(t, &s, records)
	require.ErrorIs(t, s.CheckGuidance(issued(episode.MaxTurn-1)), director.ErrRecord, "an earlier turn")
}

// A beat with a choice cannot land while another choice is pending, wherever the two are in
// the episode. It is held instead.
func TestOneChoiceAtOnce(t *testing.T) {
	for _, targets := range [][2]int{{1, 5}, {5, 1}} {
		e := parse(t, fmt.Sprintf(`{"id": "e", "policy": {"spontaneous": true}, "beats": [
			{"id": "a", "character_instruction": "a", "target_turn": %d, "detection_type": "keyword", "detection_criteria": "all", "choice_point": {"id": "p", "choices": [{"id": "x", "label": "X"}]}},
			{"id": "b", "character_instruction": "b", "target_turn": %d, "detection_type": "keyword", "detection_criteria": "all", "choice_point": {"id": "q", "choices": [{"id": "x", "label": "X"}]}}]}`, targets[0], targets[1]))
		var s director.State
		play(t, &s, must(s.Start(e, director.Opening{})))
		_, records, err := s.Guide(director.TurnInput{Turn: 1})
		play(t, &s, must(records, err))
		_, records, err = s.Respond(director.Response{Turn: 1, Text: "All."})
		require.NoError(t, err)
		at := slices.IndexFunc(records, func(r signal.Record) bool { return r.Word == episode.BeatHeld })
		require.Positive(t, at)
		play(t, &s, records[:at])
		require.True(t, s.ChoicePending())
		require.ErrorIs(t, s.Apply(episode.BeatLanded, records[at].Value), director.ErrRecord)
		play(t, &s, records[at:])
	}
}

// measured tells what the meter counts in a session and in its beginning.
func measured(t *testing.T, records []signal.Record) string {
	var m explore.Meter
	require.NoError(t, m.Session(slices.Values(records)))
	require.NoError(t, m.Session(slices.Values(records[:len(records)*2/3])))
	broken := append(slices.Clone(records[:len(records)/2]), signal.Record{Word: episode.BeatLanded, Value: value(t, `{"turn": 99}`)})
	require.ErrorIs(t, m.Session(slices.Values(broken)), director.ErrRecord)
	var out bytes.Buffer
	for _, r := range m.Reports() {
		fmt.Fprintf(&out, "%+v\n", r)
	}
	return out.String()
}

// explored tells what a search of some states finds.
func explored(t *testing.T, e *episode.Episode, c explore.Config) string {
	x := explore.New(e, c)
	for x.Step() { // to its end
	}
	states, left := x.Progress()
	coverage, err := x.Coverage()
	require.NoError(t, err)
	text, err := json.Marshal(coverage)
	require.NoError(t, err)
	out := fmt.Sprintf("%d %d %s\n", states, left, text)
	path := func(o explore.Occurrence) { out += fmt.Sprintln(o.Turn, o.Seen(), x.Path(o)) }
	for _, b := range coverage.Beats {
		for _, o := range []explore.Occurrence{b.Directed, b.Landed, b.Forced, b.Missed, b.Late} {
			path(o)
		}
	}
	for _, p := range coverage.Choices {
		path(p.Offered)
		path(p.Declined)
		for _, o := range p.Options {
			path(o.Chosen)
		}
	}
	for _, f := range coverage.Flags {
		path(f.Set)
		path(f.Cleared)
	}
	for _, o := range coverage.Objectives {
		path(o.Completed)
		path(o.Failed)
	}
	path(coverage.Failed)
	for _, u := range coverage.Unreached {
		out += fmt.Sprintln(u)
	}
	return out
}
