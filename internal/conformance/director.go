package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/signal"
)

// played is one file of the director's suite: an episode, a script, and what is
// expected of each of its entries.
type played struct {
	ID      string       `json:"id"`
	Title   string       `json:"title"`
	Tags    []string     `json:"tags"`
	Episode signal.Value `json:"episode"`
	Initial struct {
		Flags []string `json:"flags"`
	} `json:"initial"`
	Script   []playedStep   `json:"script"`
	Expected []signal.Value `json:"expected"`
}

type playedStep struct {
	Turn       int               `json:"turn"`
	User       string            `json:"user"`
	FromChoice bool              `json:"user_from_choice"`
	Response   string            `json:"response"`
	Verdicts   map[string]bool   `json:"verdicts"`
	Raw        map[string]string `json:"verdict_text"`
	Choose     *struct {
		ChoicePoint string `json:"choice_point_id"`
		Choice      string `json:"choice_id"`
	} `json:"choose"`
}

func readPlayed(file string) ([]Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var p played
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	if len(p.Script) == 0 || len(p.Script) != len(p.Expected) {
		return nil, fmt.Errorf("%s: %d steps and %d expectations", filepath.Base(file), len(p.Script), len(p.Expected))
	}
	c := Case{Name: strings.TrimSpace(p.ID + " " + p.Title), Judge: p.judge}
	return []Case{c}, nil
}

// literal is an episode under the letter of the seed's sketch: keywords are
// found inside words too.
func literal(v signal.Value) (*director.Episode, error) {
	members := map[string]any{"policy": map[string]any{"keywords": "contains"}}
	for name, value := range v.Members() {
		members[name] = value
	}
	text, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	e, diagnostics := director.Parse("episode", text)
	return e, diagnostics.Err()
}

// stage plays a script. What is live is also replayed: a second state sees only
// the records, and must end up with the same bytes.
type playedStage struct {
	live, again director.State
	landed      map[string]any
}

func (p *played) judge() error {
	e, err := literal(p.Episode)
	if err != nil {
		return err
	}
	s := playedStage{landed: map[string]any{}}
	records, err := s.live.Start(e, director.Opening{Flags: p.Initial.Flags})
	if err := s.record(records, err); err != nil {
		return err
	}
	for i, step := range p.Script {
		got := map[string]any{}
		var err error
		if step.Choose != nil {
			err = s.choose(step, got)
		} else {
			err = s.turn(step, got)
		}
		if err == nil {
			s.observe(got)
			err = compare(p.Expected[i], got)
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	if string(s.live.AppendState(nil)) != string(s.again.AppendState(nil)) {
		return fmt.Errorf("replayed, the state differs")
	}
	return nil
}

func (s *playedStage) record(records []director.Record, err error) error {
	for _, r := range records {
		for _, state := range []*director.State{&s.live, &s.again} {
			if err == nil && r.Word == director.GuidanceIssued {
				err = state.CheckGuidance(r.Value)
			}
			if err == nil {
				err = state.Apply(r.Word, r.Value)
			}
		}
	}
	return err
}

func (s *playedStage) turn(step playedStep, got map[string]any) error {
	in := director.Input{Turn: step.Turn, Text: step.User}
	if step.FromChoice {
		if s.live.Answer() == nil {
			return fmt.Errorf("turn %d should be answered by a choice, and none was made", step.Turn)
		}
		in.Text = ""
	}
	g, records, err := s.live.Guide(in)
	if err := s.record(records, err); err != nil {
		return err
	}
	got["turn"], got["directive"], got["prompt"] = step.Turn, nil, g.Section()
	if d := g.Directive; d != nil {
		got["directive"] = map[string]any{
			"beat_id": d.Beat, "instruction": d.Instruction, "urgency": d.Urgency.String(), "label": d.Urgency.Label(), "context": d.Context,
		}
		if !strings.Contains(g.Section(), "["+d.Urgency.Label()+"]") {
			return fmt.Errorf("the label %s is not in the prompt section", d.Urgency.Label())
		}
	}
	out, records, err := s.live.Respond(director.Response{Turn: step.Turn, Text: step.Response})
	if err := s.record(records, err); err != nil {
		return err
	}
	for _, q := range out.Questions {
		raw := "NO"
		if step.Verdicts[q.Subject.ID] {
			raw = "YES"
		}
		if text, ok := step.Raw[q.Subject.ID]; ok {
			raw = text
		}
		out, records, err = s.live.Judge(director.Verdict{Turn: q.Turn, Attempt: q.Attempt, Subject: q.Subject, Raw: raw})
		if err := s.record(records, err); err != nil {
			return err
		}
	}
	if !out.Evaluated {
		return fmt.Errorf("turn %d is not evaluated", step.Turn)
	}
	detected := []any{}
	for _, l := range out.Landed {
		detected = append(detected, l.Beat)
		s.landed[l.Beat] = step.Turn
	}
	got["detected"], got["detected_at_turn"], got["choice_point"] = detected, s.landed, nil
	if o := out.Choice; o != nil {
		choices := []any{}
		for _, option := range o.Options {
			choices = append(choices, map[string]any{"id": option.ID, "label": option.Label})
		}
		got["choice_point"] = map[string]any{
			"type": "choice_point", "id": o.ID, "prompt": o.Prompt, "choices": choices, "mode": o.Mode,
			"context": map[string]any{"character_said": o.Said, "beat_id": o.Beat},
		}
	}
	return nil
}

func (s *playedStage) choose(step playedStep, got map[string]any) error {
	choice, records, err := s.live.Choose(step.Choose.ChoicePoint, step.Choose.Choice)
	if err := s.record(records, err); err != nil {
		return err
	}
	got["flag_set"] = nil
	if choice.Flag != "" {
		got["flag_set"] = choice.Flag
	}
	if m := choice.Message; m != nil {
		got["message"] = map[string]any{"role": "user", "content": m.Content, "metadata": map[string]any{
			"is_choice": true, "choice_point_id": m.ChoicePoint, "choice_id": m.Choice,
		}}
	}
	return nil
}

// observe notes what is compared after every step.
func (s *playedStage) observe(got map[string]any) {
	view, _ := s.live.View().(map[string]any)
	beats, _ := view["beats"].(map[string]any)
	statuses, pending := map[string]any{}, []any{}
	for id, b := range beats {
		beat, _ := b.(map[string]any)
		statuses[id] = beat["status"]
		if beat["choice_pending"] == true {
			pending = append(pending, id)
		}
	}
	flags := []any{}
	for name := range view["flags"].(map[string]any) {
		flags = append(flags, name)
	}
	got["statuses"], got["choice_pending"], got["flags"] = statuses, pending, flags
}

// compare judges one step as the set's README says.
func compare(expected signal.Value, got map[string]any) error {
	for name, want := range expected.Members() {
		var ok bool
		switch name {
		case "prompt_contains":
			ok = true
			for text := range want.Elements() {
				s, _ := text.Text()
				ok = ok && strings.Contains(fmt.Sprint(got["prompt"]), s)
			}
		case "detected", "choice_pending", "flags":
			ok = sameNames(want, got[name])
		case "statuses":
			ok = sameStatuses(want, got[name])
		case "choice_point":
			ok = sameEvent(want, got[name])
		default:
			ok = sameAny(want, got[name])
		}
		if !ok {
			text, err := json.Marshal(got[name])
			if name == "prompt_contains" {
				text, err = json.Marshal(got["prompt"])
			}
			if err != nil {
				return err
			}
			return fmt.Errorf("%s: want %s, got %s", name, want, text)
		}
	}
	return nil
}

// sameAny compares two values as JSON does, members in any order.
func sameAny(want signal.Value, got any) bool {
	text, err := json.Marshal(got)
	if err != nil {
		return false
	}
	v, err := signal.ParseValue(text)
	return err == nil && sameValue(want, v)
}

func sameValue(want, got signal.Value) bool {
	if want.Kind() != signal.KindObject || got.Kind() != signal.KindObject {
		return want.String() == got.String()
	}
	for name, value := range want.Members() {
		other, ok := got.Get(name)
		if !ok || !sameValue(value, other) {
			return false
		}
	}
	return want.Len() == got.Len()
}

func sameNames(want signal.Value, got any) bool {
	list, _ := got.([]any)
	var a, b []string
	for e := range want.Elements() {
		s, _ := e.Text()
		a = append(a, s)
	}
	for _, e := range list {
		b = append(b, fmt.Sprint(e))
	}
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func sameStatuses(want signal.Value, got any) bool {
	statuses, _ := got.(map[string]any)
	for id, allowed := range want.Members() {
		one, _ := allowed.Text()
		ok := statuses[id] == one
		for e := range allowed.Elements() {
			s, _ := e.Text()
			ok = ok || statuses[id] == s
		}
		if !ok {
			return false
		}
	}
	return want.Len() == len(statuses)
}

func sameEvent(want signal.Value, got any) bool {
	event, _ := got.(map[string]any)
	if want.Kind() == signal.KindNull || event == nil {
		return want.Kind() == signal.KindNull && event == nil
	}
	for name, value := range want.Members() {
		if name == "mode_not" {
			if s, _ := value.Text(); event["mode"] == s {
				return false
			}
		} else if !sameAny(value, event[name]) {
			return false
		}
	}
	return true
}
