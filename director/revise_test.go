package director_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

func value(t testing.TB, text string) signal.Value {
	t.Helper()
	v, err := signal.ParseValue([]byte(text))
	require.NoError(t, err)
	return v
}

// An episode begins only if it is the newest declared one. Start records the
// declaration first.
func TestDeclare(t *testing.T) {
	first, second := parse(t, `{"id": "first"}`), parse(t, `{"id": "second"}`)
	var s director.State
	records := must(s.Start(first, director.Opening{}))
	if len(records) != 2 || !director.Declares(records[0]) || director.Declares(records[1]) {
		t.Fatalf("%v", records)
	}
	assert.ErrorIs(t, s.Apply(records[1].Word, records[1].Value), director.ErrRecord, "undeclared")
	for _, e := range []*episode.Episode{first, second} {
		if err := s.Declare(e.Value()); err != nil || s.Declared().ID != e.ID {
			t.Fatalf("declared: %v, %v", s.Declared(), err)
		}
	}
	assert.ErrorIs(t, s.Apply(records[1].Word, records[1].Value), director.ErrRecord, "another one is declared")
	if err := s.Declare(value(t, `{"beats": 7}`)); !errors.Is(err, episode.ErrEpisode) || s.Declared().ID != "second" {
		t.Errorf("declaring nonsense: %v, %v", err, s.Declared())
	}
	assert.ErrorIs(t, s.Declare(value(t, `{"version": 9}`)), episode.ErrVersion, "declaring what is newer")
	restored, err := director.Restore(s.AppendState(nil))
	if err != nil || restored.Declared().Digest() != second.Digest() {
		t.Errorf("restored: %v, %v", restored, err)
	}
	// Start does not repeat a declaration.
	if records := must(s.Start(second, director.Opening{})); len(records) != 1 {
		t.Errorf("%d records", len(records))
	}
	play(t, &s, must(s.Start(first, director.Opening{})))
	if s.Declared() != nil || s.Episode().ID != "first" {
		t.Errorf("playing %s, declared %v", s.Episode().ID, s.Declared())
	}
	// The caller may overwrite the memory of the declaration.
	v := slices.Clone(second.Value())
	require.NoError(t, s.Declare(v))
	clear(v)
	if s.Declared().ID != "second" {
		t.Error("the state holds on to what it was given")
	}
}

// edited draws a revision of an episode: lists in another order, with fewer elements,
// and deadlines moved. With only, the lists are shuffled and complete.
func edited(t *rapid.T, e *episode.Episode, only bool) *episode.Episode {
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(e.Value().String()), &m))
	list := func(name string) []any { l, _ := m[name].([]any); return l }
	kept := map[string]bool{}
	for _, name := range []string{"beats", "objectives", "choice_points", "props"} {
		all := list(name)
		if len(all) == 0 {
			continue
		}
		all = rapid.Permutation(all).Draw(t, name)
		if !only {
			all = slices.DeleteFunc(all, func(any) bool { return rapid.IntRange(0, 3).Draw(t, "gone") == 0 })
		}
		m[name] = all
	}
	for _, b := range list("beats") {
		kept[b.(map[string]any)["id"].(string)] = true
	}
	for _, b := range list("beats") {
		beat := b.(map[string]any)
		if name, ok := beat["requires_beat"].(string); ok && !kept[name] {
			delete(beat, "requires_beat")
		}
		if !only && rapid.IntRange(0, 5).Draw(t, "choice goes") == 0 {
			delete(beat, "choice_point")
		}
		if !only && rapid.IntRange(0, 5).Draw(t, "later") == 0 {
			beat["deadline_turn"] = beat["deadline_turn"].(float64) + 3
		}
	}
	text, err := json.Marshal(m)
	require.NoError(t, err)
	revised, diagnostics := episode.Parse("e.json", text)
	if err := diagnostics.Err(episode.ErrEpisode); err != nil {
		t.Fatal(err, string(text))
	}
	return revised
}

// happened lists the facts of a view by id, also those of removed parts, and the
// choices by the selected option.
func happened(view map[string]any) map[string]any {
	all := map[string]any{}
	removed := view["removed"].(map[string]any)
	for id, b := range view["beats"].(map[string]any) {
		all["beat "+id] = b.(map[string]any)["status"]
	}
	for id, b := range removed["beats"].(map[string]any) {
		all["beat "+id] = b.(map[string]any)["status"]
	}
	for _, from := range []map[string]any{view, removed} {
		for id, o := range from["objectives"].(map[string]any) {
			all["objective "+id] = o.(map[string]any)["status"]
		}
		for id, turn := range from["props"].(map[string]any) {
			all["prop "+id] = turn
		}
	}
	for _, c := range view["choices_made"].([]any) {
		all["choice "+c.(map[string]any)["choice_point_id"].(string)] = c.(map[string]any)["selected"]
	}
	for flag, cause := range view["flag_causes"].(map[string]any) {
		all["flag "+flag] = cause
	}
	return all
}

// The episode may be revised at any moment of any play, and external events may come.
// No past event is forgotten, statuses belong to ids, the order of lists does not
// matter, and the play continues and can be replayed.
func TestRevisedPlay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := authored(t)
		var live, again director.State
		apply := func(records []signal.Record, err error) {
			if errors.Is(err, director.ErrRecord) || errors.Is(err, episode.ErrEpisode) {
				t.Fatalf("a decision that cannot be applied: %v", err)
			}
			for _, r := range records {
				if r.Word == episode.GuidanceIssued {
					require.NoError(t, again.CheckGuidance(r.Value))
				}
				for _, s := range []*director.State{&live, &again} {
					require.NoErrorf(t, s.Apply(r.Word, r.Value), "%s %s", r.Word, r.Value)
				}
				for _, cue := range live.Signals(r) {
					if sig := (&signal.Signal{Type: cue.Type, Timestamp: signal.Int(0), Payload: cue.Payload}); sig.Validate() != nil {
						t.Fatalf("%s %s: %v", cue.Type, cue.Payload, sig.Validate())
					}
				}
				restored, err := director.Restore(again.AppendState(nil))
				require.NoErrorf(t, err, "after %s", r.Word)
				again = *restored
			}
			if string(live.AppendState(nil)) != string(again.AppendState(nil)) {
				t.Fatal("replayed, the state differs")
			}
		}
		view := func() map[string]any { return live.View().(map[string]any) }
		apply(live.Start(e, director.Opening{}))
		t.Repeat(map[string]func(*rapid.T){
			"turn": func(t *rapid.T) {
				if o := live.Pending(); o != nil {
					_, records, err := live.Choose(o.ID, rapid.SampledFrom(o.Options).Draw(t, "option").ID)
					apply(records, err)
				}
				_, records, err := live.Guide(director.TurnInput{Turn: live.Turn() + 1})
				apply(records, err)
			},
			"respond": func(t *rapid.T) {
				_, records, err := live.Respond(director.Response{Turn: live.Turn(), Text: rapid.StringMatching(`(w[0-6] ){0,4}`).Draw(t, "said")})
				apply(records, err)
			},
			"judge": func(t *rapid.T) {
				for _, subject := range live.Awaiting() {
					raw := rapid.SampledFrom([]string{"YES", "NO"}).Draw(t, "raw")
					attempt := view()["attempt"].(int64)
					_, records, err := live.Judge(director.Verdict{Turn: live.Turn(), Attempt: int(attempt), Subject: subject, Raw: raw})
					apply(records, err)
				}
			},
			"hear": func(t *rapid.T) {
				kind := rapid.SampledFrom([]episode.EventKind{episode.OfSignal, episode.OfEffect}).Draw(t, "kind")
				name := rapid.SampledFrom([]string{"sets", "clears", "nothing"}).Draw(t, "name")
				payload := value(&testing.T{}, fmt.Sprintf(`{"n": %d}`, rapid.IntRange(0, 2).Draw(t, "n")))
				before, listens := view(), live.Listens(kind, name)
				records, err := live.ExternalEvent(kind, name, payload, kind.String()+":1")
				if err != nil || !listens && len(records) > 0 {
					t.Fatalf("%d records, %v", len(records), err)
				}
				apply(records, err)
				after := view()
				if again, err := live.ExternalEvent(kind, name, payload, "signal:2"); err != nil || len(again) > 0 {
					t.Fatalf("heard twice: %v, %v", again, err)
				}
				before["flags"], before["flag_causes"], before["beats"] = after["flags"], after["flag_causes"], after["beats"]
				if !reflect.DeepEqual(before, after) {
					t.Fatal("what was heard has changed more than flags")
				}
			},
			"dropped": func(t *rapid.T) {
				// External events since the response stay when it is dropped.
				records, err := live.ExternalEvent(episode.OfEffect, "sets", nil, "effect:3")
				apply(records, err)
				before := view()["flags"].(map[string]any)
				_, records, err = live.Respond(director.Response{Turn: live.Turn(), Text: "Anew."})
				apply(records, err)
				if after := view()["flags"].(map[string]any); live.Listens(episode.OfEffect, "sets") && before["f2"] != after["f2"] {
					t.Fatalf("%v, then %v", before, after)
				}
			},
			"revise to itself": func(t *rapid.T) {
				if records, err := live.Revise(live.Episode()); len(records) > 0 || err != nil && !errors.Is(err, director.ErrAwaiting) {
					t.Fatalf("%d records, %v", len(records), err)
				}
			},
			"reorder": func(t *rapid.T) {
				before, now := view(), live.Episode()
				records, err := live.Revise(edited(t, now, true))
				apply(records, err)
				after := view()
				for _, list := range []string{"choices_made", "triggered_choices", "open_choices"} {
					if len(before[list].([]any)) != len(after[list].([]any)) {
						t.Fatalf("%s: %v, then %v", list, before[list], after[list])
					}
					before[list] = after[list]
				}
				before["digest"], before["directive"] = after["digest"], after["directive"]
				if !reflect.DeepEqual(before, after) {
					t.Fatalf("%v\nthen\n%v", before, after)
				}
			},
			"revise": func(t *rapid.T) {
				target := e
				if rapid.Bool().Draw(t, "edited") {
					target = edited(t, e, false)
				}
				before := happened(view())
				awaiting := len(live.Awaiting()) > 0
				answer := live.ChoiceLine()
				records, err := live.Revise(target)
				if awaiting != errors.Is(err, director.ErrAwaiting) {
					t.Fatalf("awaiting %v: %v", awaiting, err)
				}
				apply(records, err)
				if err != nil {
					return
				}
				after := happened(view())
				for id, was := range before {
					is, ok := after[id]
					switch {
					case reflect.DeepEqual(was, is):
					case was == "detected" && is == "completed": // its choice is declined
					case !ok && (was == "pending" || was == "in_progress"): // it had not happened
					default:
						t.Fatalf("%s was %v and is %v", id, was, is)
					}
				}
				for id, is := range after {
					if _, ok := before[id]; !ok && is != "pending" && is != "in_progress" {
						t.Fatalf("%s was not there and is %v", id, is)
					}
				}
				if !reflect.DeepEqual(answer, live.ChoiceLine()) {
					t.Fatalf("the answer was %v and is %v", answer, live.ChoiceLine())
				}
			},
		})
		// After a revision to the first version, all past events apply again.
		if records, err := live.Revise(e); err == nil {
			apply(records, err)
			removed := view()["removed"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(removed)) {
				if left := removed[name].(map[string]any); len(left) > 0 {
					t.Fatalf("%s are still gone: %v", name, left)
				}
			}
		}
	})
}

// An answered choice point keeps its answer by id, also in another beat: it is not
// offered a second time. An open one is declined.
func TestChoiceMoves(t *testing.T) {
	point := `"choice_point": {"id": "p", "choices": [{"id": "x", "label": "X"}]}`
	beat := `{"id": %q, "character_instruction": "c", "target_turn": 1, "detection_type": "keyword", "detection_criteria": %[1]q, %s}`
	first := parse(t, `{"id": "e", "beats": [`+fmt.Sprintf(beat, "a", point)+`]}`)
	second := parse(t, `{"id": "e", "beats": [`+fmt.Sprintf(beat, "b", point)+`]}`)
	for _, chosen := range []bool{true, false} {
		var s director.State
		play(t, &s, must(s.Start(first, director.Opening{})))
		turn := func(n int, said string) director.ResponseResult {
			_, records, err := s.Guide(director.TurnInput{Turn: n})
			play(t, &s, must(records, err))
			out, records, err := s.Respond(director.Response{Turn: n, Text: said})
			play(t, &s, must(records, err))
			return out
		}
		turn(1, "a")
		if chosen {
			_, records, err := s.Choose("p", "x")
			play(t, &s, must(records, err))
		}
		records := must(s.Revise(second))
		play(t, &s, records)
		if declined := strings.Contains(fmt.Sprint(records), episode.ChoiceDeclined); declined == chosen {
			t.Errorf("chosen %v, declined %v", chosen, declined)
		}
		out := turn(2, "b")
		if out.Choice != nil || len(out.Landed) != 1 || s.Pending() != nil {
			t.Errorf("chosen %v: %+v", chosen, out)
		}
	}
}

// An episode of another id is refused as a revision, and a revision that is not declared
// cannot be applied.
func TestReviseRefuses(t *testing.T) {
	var s director.State
	play(t, &s, must(s.Start(parse(t, `{"id": "e"}`), director.Opening{})))
	if _, err := s.Revise(parse(t, `{"id": "other"}`)); !errors.Is(err, director.ErrRevision) {
		t.Errorf("another id: %v", err)
	}
	records := must(s.Revise(parse(t, `{"id": "e", "title": "E"}`)))
	if len(records) != 2 || !director.Declares(records[0]) || records[1].Word != episode.EpisodeRevised {
		t.Fatalf("%v", records)
	}
	assert.ErrorIs(t, s.Apply(records[1].Word, records[1].Value), director.ErrRecord, "undeclared")
	play(t, &s, records)
	require.NoError(t, s.Declare(records[0].Value))
	assert.ErrorIs(t, s.Apply(records[1].Word, records[1].Value), director.ErrRecord, "revised twice")
}
