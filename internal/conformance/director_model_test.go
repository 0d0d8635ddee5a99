package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sketch is the beat contract's own code, as short as it stands there: a model
// that shares nothing with the engine.
type sketch struct {
	beats  []object
	cards  []object
	landed map[string]int
	open   string // the beat whose choice is pending
	shown  map[string]bool
	flags  []string
}

func (s *sketch) directive(turn int) object {
	for _, b := range s.beats {
		id, required, flag := b["id"].(string), b["requires_beat"], b["requires_flag"]
		if s.landed[id] > 0 || s.open != "" || required != nil && s.landed[required.(string)] == 0 || flag != nil && !slices.Contains(s.flags, flag.(string)) {
			continue
		}
		directive := object{"beat_id": id, "instruction": b["character_instruction"]}
		switch target, deadline := b["target_turn"].(int), b["deadline_turn"].(int); {
		case turn >= deadline:
			directive["urgency"], directive["label"] = "overdue", "MUST HAPPEN NOW"
			directive["context"] = fmt.Sprintf("This must happen now (deadline was turn %d)", deadline)
		case turn >= target:
			directive["urgency"], directive["label"], directive["context"] = "required", "THIS TURN", "This is the right moment for this beat"
		case turn >= target-1:
			directive["urgency"], directive["label"], directive["context"] = "suggested", "OPPORTUNITY", "Look for a natural opening for this"
		default:
			continue
		}
		return directive
	}
	return nil
}

func (s *sketch) lands(b object, response string, verdict bool) bool {
	switch b["detection_type"] {
	case "automatic":
		return true
	case "keyword":
		return slices.ContainsFunc(strings.Split(b["detection_criteria"].(string), ","), func(word string) bool {
			return strings.Contains(strings.ToLower(response), strings.ToLower(strings.TrimSpace(word)))
		})
	case "semantic":
		return verdict
	default:
		return false
	}
}

// turn plays a turn and returns the expected result.
func (s *sketch) turn(n int, response string, verdicts map[string]bool) object {
	directive := s.directive(n)
	detected, event := []string{}, any(nil)
	if directive != nil {
		i := slices.IndexFunc(s.beats, func(b object) bool { return b["id"] == directive["beat_id"] })
		if b, id := s.beats[i], directive["beat_id"].(string); s.lands(b, response, verdicts[id]) {
			s.landed[id], detected = n, []string{id}
			if point, ok := b["choice_point"].(object); ok {
				s.open = id
				said := []rune(response)
				event = object{
					"type": "choice_point", "id": point["id"], "prompt": point["prompt"], "choices": shownChoices(point), "mode": "message_replacement",
					"context": object{"character_said": string(said[max(0, len(said)-200):]), "beat_id": id},
				}
			}
		}
	}
	for _, card := range s.cards {
		if id := card["id"].(string); event == nil && !s.shown[id] && n >= card["at"].(int) {
			s.shown[id] = true
			event = object{"type": "choice_point", "id": id, "choices": shownChoices(card), "mode_not": "message_replacement"}
		}
	}
	expected := s.seen()
	expected["turn"], expected["detected"], expected["choice_point"], expected["directive"] = n, detected, event, nil
	if directive != nil {
		expected["directive"] = directive
		expected["prompt_contains"] = []any{fmt.Sprintf("BEAT [%s]: %s", directive["label"], directive["instruction"]), directive["context"]}
	}
	at := object{}
	for id, turn := range s.landed {
		at[id] = turn
	}
	expected["detected_at_turn"] = at
	return expected
}

func shownChoices(point object) []object {
	var list []object
	for _, c := range point["choices"].([]object) {
		list = append(list, object{"id": c["id"], "label": c["label"]})
	}
	return list
}

// choose makes a choice of a beat's, or of a card.
func (s *sketch) choose(point, choice object, ofBeat bool) object {
	flag := choice["sets_flag"]
	if flag != nil {
		s.flags = append(s.flags, flag.(string))
	}
	var message any
	if ofBeat {
		s.open = ""
		message = object{"role": "user", "content": choice["label"], "metadata": object{
			"is_choice": true, "choice_point_id": point["id"], "choice_id": choice["id"],
		}}
	}
	expected := s.seen()
	expected["flag_set"], expected["message"] = flag, message
	return expected
}

func (s *sketch) seen() object {
	statuses, pending := object{}, []string{}
	for _, b := range s.beats {
		switch id := b["id"].(string); {
		case s.landed[id] == 0:
			statuses[id] = "pending"
		case s.open == id:
			statuses[id], pending = "detected", []string{id}
		default:
			statuses[id] = []string{"detected", "completed"}
		}
	}
	return object{"statuses": statuses, "choice_pending": pending, "flags": slices.Clone(s.flags)}
}

// Any episode of the set's format, played in any way that the contract settles,
// goes as its sketch has it.
func TestDirectorAgreesWithSketch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := rapid.SampledFrom([]string{"f", "g", "h"})
		choices := func(id string) object {
			return object{"id": id, "prompt": "?", "choices": []object{
				{"id": "x", "label": "X.", "sets_flag": flag.Draw(t, "flag")}, {"id": "y", "label": "Y."},
			}}
		}
		s := sketch{landed: map[string]int{}, shown: map[string]bool{}, flags: rapid.SliceOfN(flag, 0, 2).Draw(t, "flags")}
		initial := slices.Clone(s.flags)
		for i := range rapid.IntRange(0, 6).Draw(t, "beats") {
			target := rapid.IntRange(0, 8).Draw(t, "target")
			b := object{
				"id": fmt.Sprintf("b%d", i), "description": "d", "character_instruction": fmt.Sprintf("Say w%d.", i),
				"target_turn": target, "deadline_turn": target + rapid.IntRange(0, 3).Draw(t, "window"),
				"detection_type":     rapid.SampledFrom([]string{"keyword", "keyword", "semantic", "automatic", "unheard"}).Draw(t, "type"),
				"detection_criteria": fmt.Sprintf(" W%d, Ä%d", i, i),
			}
			if rapid.Bool().Draw(t, "choice") {
				b["choice_point"] = choices(fmt.Sprintf("p%d", i))
			}
			if i > 0 && rapid.IntRange(0, 2).Draw(t, "requires") == 0 {
				b["requires_beat"] = fmt.Sprintf("b%d", rapid.IntRange(0, i-1).Draw(t, "required"))
			}
			if rapid.IntRange(0, 3).Draw(t, "flagged") == 0 {
				b["requires_flag"] = flag.Draw(t, "needed")
			}
			s.beats = append(s.beats, b)
		}
		// A beat may be listed before the one that it waits for.
		s.beats = rapid.Permutation(s.beats).Draw(t, "order")
		cards := []object{}
		for i := range rapid.IntRange(0, 2).Draw(t, "cards") {
			c := choices(fmt.Sprintf("c%d", i))
			c["at"] = rapid.IntRange(1, 9).Draw(t, "at")
			s.cards = append(s.cards, c)
			cards = append(cards, object{"id": c["id"], "prompt": "?", "choices": c["choices"], "trigger": fmt.Sprintf("turn:%d", c["at"])})
		}
		script, expected := []object{}, []object{}
		answered := false
		for n := range rapid.IntRange(1, 14).Draw(t, "turns") {
			response := rapid.StringMatching(`([wäWÄ][0-6]x? ){0,4}`).Draw(t, "response")
			step := object{"turn": n + 1, "response": response}
			if answered {
				step["user_from_choice"] = true
			} else {
				step["user"] = "w0 w1 w2 w3 w4 w5 w6"
			}
			answered = false
			verdicts := map[string]bool{}
			if d := s.directive(n + 1); d != nil && rapid.Bool().Draw(t, "judged") {
				id := d["beat_id"].(string)
				verdicts[id] = rapid.Bool().Draw(t, "verdict")
				step["verdicts"] = verdicts
			}
			script, expected = append(script, step), append(expected, s.turn(n+1, response, verdicts))
			event, _ := expected[len(expected)-1]["choice_point"].(object)
			ofBeat := s.open != ""
			if event == nil || !ofBeat && rapid.Bool().Draw(t, "left alone") {
				continue
			}
			var point object
			for _, b := range s.beats {
				if p, ok := b["choice_point"].(object); ok && p["id"] == event["id"] {
					point = p
				}
			}
			for _, c := range s.cards {
				if c["id"] == event["id"] {
					point = c
				}
			}
			choice := rapid.SampledFrom(point["choices"].([]object)).Draw(t, "chosen")
			script = append(script, object{"choose": object{"choice_point_id": point["id"], "choice_id": choice["id"]}})
			expected, answered = append(expected, s.choose(point, choice, ofBeat)), ofBeat
		}
		text, err := json.MarshalIndent(object{
			"id": "drawn", "episode": object{"beats": s.beats, "choice_points": cards}, "initial": object{"flags": initial},
			"script": script, "expected": expected,
		}, "", " ")
		require.NoError(t, err)
		if got := verdict(string(text)); got != "pass" {
			t.Fatalf("%s\n%s", got, text)
		}
	})
}
