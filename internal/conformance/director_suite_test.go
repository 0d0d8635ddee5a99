package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// played is one file of the director's suite: an episode, a script, and what is
// expected of each of its entries.
type played struct {
	episode  *episode.Episode
	flags    []string
	script   []playedStep
	expected []signal.Value
}

// playedStep is a turn, or a choice if choicePoint is not empty.
type playedStep struct {
	turn                int
	user                string
	fromChoice          bool
	response            string
	verdicts            map[string]string // raw answers, by what they are about
	choicePoint, choice string
}

// The members that the harness supports. A file with another member is listed as
// not applicable. Remarks may stand anywhere; null means absent.
var (
	playedMembers   = []string{"id", "kind", "tags", "episode", "initial", "script", "expected"}
	stepMembers     = []string{"turn", "user", "user_from_choice", "response", "verdicts", "verdict_text", "choose"}
	expectedMembers = []string{
		"turn", "directive", "prompt_contains", "prompt_not_contains", "detected", "detected_at_turn", "delivered_at_turn", "choice_point",
		"choice_pending", "flags", "statuses", "flag_set", "message", "error", "pacing", "genre", "energy_level", "physical_anchor",
	}
	remarks = []string{"title", "description", "basis", "note", "comment"}
)

// readPlayed reads a file with one scenario about the director. A file that
// cannot be read as one fails alone, and its neighbours are judged.
func readPlayed(file string) ([]Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return []Case{playedCase(strings.TrimSuffix(filepath.Base(file), ".json"), data)}, nil
}

// playedCase makes a case of the text of a file.
func playedCase(name string, data []byte) Case {
	c := Case{Name: name}
	v, err := signal.ParseValue(data)
	if err != nil {
		c.Judge = func() error { return err }
		return c
	}
	if name := strings.TrimSpace(textAt(v, "id") + " " + textAt(v, "title")); name != "" {
		c.Name = name
	}
	p, err := playedOf(v)
	c.Judge = func() error {
		if err != nil {
			return err
		}
		return p.judge()
	}
	return c
}

// playedOf reads a scenario. An error wraps [ErrInapplicable], or is the engine's
// refusal of the episode.
func playedOf(v signal.Value) (*played, error) {
	if err := known(v, "the file", playedMembers...); err != nil {
		return nil, err
	}
	if kind, ok := given(v, "kind").Text(); ok && kind != "director" {
		return nil, inapplicable("no harness for the kind %q", kind)
	}
	p := new(played)
	if initial := given(v, "initial"); initial != nil {
		if err := known(initial, "initial", "flags"); err != nil {
			return nil, err
		}
		var ok bool
		if p.flags, ok = nameSet(given(initial, "flags")); !ok {
			return nil, inapplicable("initial.flags is not a list of names: %s", given(initial, "flags"))
		}
	}
	for e := range given(v, "script").Elements() {
		step, err := playedStepOf(e)
		if err != nil {
			return nil, fmt.Errorf("script[%d]: %w", len(p.script), err)
		}
		p.script = append(p.script, step)
	}
	for e := range given(v, "expected").Elements() {
		if err := known(e, fmt.Sprintf("expected[%d]", len(p.expected)), expectedMembers...); err != nil {
			return nil, err
		}
		p.expected = append(p.expected, e)
	}
	if len(p.script) == 0 || len(p.script) != len(p.expected) {
		return nil, inapplicable("%d steps and %d expectations", len(p.script), len(p.expected))
	}
	var err error
	p.episode, err = literal(given(v, "episode"))
	return p, err
}

func playedStepOf(v signal.Value) (s playedStep, err error) {
	if err := known(v, "a step", stepMembers...); err != nil {
		return s, err
	}
	turn, choose := given(v, "turn"), given(v, "choose")
	switch {
	case turn == nil && choose == nil || turn != nil && choose != nil:
		return s, inapplicable("it is neither a turn nor a choice")
	case choose != nil:
		if err := known(choose, "choose", "choice_point_id", "choice_id"); err != nil {
			return s, err
		}
		s.choicePoint, s.choice = textAt(choose, "choice_point_id"), textAt(choose, "choice_id")
		if s.choicePoint == "" || s.choice == "" {
			return s, inapplicable("it does not say what is chosen: %s", choose)
		}
		return s, nil
	}
	n, ok := turn.Float64()
	if s.turn = int(n); !ok || n != math.Trunc(n) || math.Abs(n) > math.MaxInt32 {
		return s, inapplicable("the turn is not a whole number: %s", turn)
	}
	for name, to := range map[string]*string{"user": &s.user, "response": &s.response} {
		if m := given(v, name); m != nil {
			if *to, ok = m.Text(); !ok {
				return s, inapplicable("%s is not a string: %s", name, m)
			}
		}
	}
	if m := given(v, "user_from_choice"); m != nil {
		if s.fromChoice, ok = m.Bool(); !ok {
			return s, inapplicable("user_from_choice is neither true nor false: %s", m)
		}
	}
	s.verdicts = map[string]string{}
	for _, name := range []string{"verdicts", "verdict_text"} {
		m := given(v, name)
		if m != nil && m.Kind() != signal.KindObject {
			return s, inapplicable("%s is not an object: %s", name, m)
		}
		for subject, answer := range m.Members() {
			switch answer.Kind() {
			case signal.KindNull: // no answer
			case signal.KindBool:
				s.verdicts[subject] = "NO"
				if yes, _ := answer.Bool(); yes {
					s.verdicts[subject] = "YES"
				}
			case signal.KindString:
				s.verdicts[subject], _ = answer.Text()
			default:
				return s, inapplicable("%s.%s is not an answer: %s", name, subject, answer)
			}
		}
	}
	return s, nil
}

// given returns a member that says something, nil for one that is null.
func given(v signal.Value, name string) signal.Value {
	m, _ := v.Get(name)
	if m.Kind() == signal.KindNull {
		return nil
	}
	return m
}

func textAt(v signal.Value, name string) string {
	s, _ := given(v, name).Text()
	return s
}

// known returns an error for a member that the harness does not support.
func known(v signal.Value, what string, members ...string) error {
	if v.Kind() != signal.KindObject {
		return inapplicable("%s is not an object", what)
	}
	for name, m := range v.Members() {
		if m.Kind() != signal.KindNull && !slices.Contains(members, name) && !slices.Contains(remarks, name) {
			return inapplicable("%s has a member %q, which the harness does not know", what, name)
		}
	}
	return nil
}

// nameSet reads a set of names: a list of them, or an object in which those are
// true that belong to it, as flags stand in director_state. It is sorted.
func nameSet(v signal.Value) ([]string, bool) {
	var set []string
	ok := true
	switch v.Kind() {
	case signal.KindAbsent, signal.KindNull:
	case signal.KindArray:
		for e := range v.Elements() {
			name, isText := e.Text()
			set, ok = append(set, name), ok && isText
		}
	case signal.KindObject:
		for name, e := range v.Members() {
			isIn, isBool := e.Bool()
			if ok = ok && isBool; isIn {
				set = append(set, name)
			}
		}
	default:
		return nil, false
	}
	slices.Sort(set)
	return slices.Compact(set), ok
}

// literal is an episode under the letter of the seed's sketch, unless it says
// otherwise: keywords are found inside words too. A member that would have no
// effect makes the file not applicable.
func literal(v signal.Value) (*episode.Episode, error) {
	if v.Kind() != signal.KindObject {
		return nil, inapplicable("the episode is not an object")
	}
	members, policy := map[string]any{}, map[string]any{"keywords": "contains"}
	for name, value := range v.Members() {
		members[name] = value
	}
	for name, value := range given(v, "policy").Members() {
		policy[name] = value
	}
	members["policy"] = policy
	text, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	e, diagnostics := episode.Parse("episode", text)
	if err := diagnostics.Err(episode.ErrEpisode); err != nil {
		return nil, err
	}
	for _, d := range diagnostics {
		at := d.Pointer[strings.LastIndexByte(d.Pointer, '/')+1:]
		if strings.Contains(d.Message, "has no member") && !slices.Contains(remarks, at) {
			return nil, inapplicable("the episode: %s (%s)", d.Message, d.Pointer)
		}
	}
	return e, nil
}

// playedStage plays a script. Each step is also replayed: a second state applies
// only the records, and must end with the same bytes.
type playedStage struct {
	live, again director.State
	landed      map[string]any
	// said is the label of a legacy choice that was just made.
	said string
}

func (p *played) judge() (err error) {
	defer func() { // a panic fails this file only
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	s := playedStage{landed: map[string]any{}}
	records, err := s.live.Start(p.episode, director.Opening{Flags: p.flags})
	if err := s.record(records, err); err != nil {
		return err
	}
	for i, step := range p.script {
		got := map[string]any{}
		var err error
		if step.choicePoint != "" {
			err = s.choose(step, got)
		} else {
			err = s.turn(step, got)
		}
		if name, ok := refusal(err); ok && given(p.expected[i], "error") != nil {
			got["error"], err = name, nil
		}
		if err == nil {
			s.observe(got)
			err = compare(p.expected[i], got)
		}
		if err != nil {
			return fmt.Errorf("expected[%d]: %w", i, err)
		}
	}
	if string(s.live.AppendState(nil)) != string(s.again.AppendState(nil)) {
		return fmt.Errorf("replayed, the state differs")
	}
	return nil
}

// refusal names the decision not to do something, as expectations do.
func refusal(err error) (string, bool) {
	for name, is := range map[string]error{
		"NOT_FOUND": director.ErrNotFound, "NOT_OPEN": director.ErrNotOpen, "CONFLICT": director.ErrConflict,
		"CHOICE_PENDING": director.ErrChoicePending, "AWAITING": director.ErrAwaiting, "TURN": director.ErrTurn,
	} {
		if errors.Is(err, is) {
			return name, true
		}
	}
	return "", false
}

func (s *playedStage) record(records []signal.Record, err error) error {
	for _, r := range records {
		for _, state := range []*director.State{&s.live, &s.again} {
			if err == nil && r.Word == episode.GuidanceIssued {
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
	in := director.TurnInput{Turn: step.turn, Text: step.user}
	if step.fromChoice {
		if s.live.ChoiceLine() == nil && s.said == "" {
			return fmt.Errorf("turn %d should be answered by a choice, and none was made", step.turn)
		}
		in.Text = s.said
	}
	s.said = ""
	g, records, err := s.live.Guide(in)
	if err := s.record(records, err); err != nil {
		return err
	}
	got["turn"], got["directive"], got["prompt"] = step.turn, nil, g.Section()
	got["pacing"], got["genre"], got["energy_level"], got["physical_anchor"] = g.Pacing, g.Genre, g.Energy, g.Anchor
	if d := g.Directive; d != nil {
		got["directive"] = map[string]any{
			"beat_id": d.Beat, "instruction": d.Instruction, "urgency": d.Urgency.String(), "label": d.Urgency.Label(), "context": d.Context,
		}
		if !strings.Contains(g.Section(), "["+d.Urgency.Label()+"]") {
			return fmt.Errorf("the label %s is not in the prompt section", d.Urgency.Label())
		}
	}
	out, records, err := s.live.Respond(director.Response{Turn: step.turn, Text: step.response})
	if err := s.record(records, err); err != nil {
		return err
	}
	for _, q := range out.Questions {
		raw, ok := step.verdicts[q.Subject.ID]
		if !ok {
			raw = "NO"
		}
		out, records, err = s.live.Judge(director.Verdict{Turn: q.Turn, Attempt: q.Attempt, Subject: q.Subject, Raw: raw})
		if err := s.record(records, err); err != nil {
			return err
		}
	}
	if !out.Evaluated {
		return fmt.Errorf("turn %d is not evaluated", step.turn)
	}
	detected := []any{}
	for _, l := range out.Landed {
		detected = append(detected, l.Beat)
		s.landed[l.Beat] = step.turn
	}
	got["detected"], got["choice_point"] = detected, nil
	if out.Choice != nil {
		got["choice_point"] = eventOf(out.Choice)
	}
	return nil
}

// eventOf makes the event that the documents send to the user's side. One of a
// legacy choice has no context there.
func eventOf(o *director.Offer) map[string]any {
	choices := []any{}
	for _, option := range o.Options {
		choice := map[string]any{"id": option.ID, "label": option.Label}
		if option.SetsFlag != "" {
			choice["sets_flag"] = option.SetsFlag
		}
		choices = append(choices, choice)
	}
	event := map[string]any{"type": "choice_point", "id": o.ID, "prompt": o.Prompt, "choices": choices, "mode": o.Mode}
	if o.Beat != "" {
		event["context"] = map[string]any{"character_said": o.Said, "beat_id": o.Beat}
	}
	return event
}

func (s *playedStage) choose(step playedStep, got map[string]any) error {
	choice, records, err := s.live.Choose(step.choicePoint, step.choice)
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
		return nil
	}
	// The user types after a legacy choice, or says what was chosen.
	got["message"] = unlooked
	e := s.live.Episode()
	i, _ := e.ChoiceIndex(choice.ChoicePoint)
	for _, o := range e.Choices[i].Options {
		if o.ID == choice.Choice {
			s.said = o.Label
		}
	}
	return nil
}

// observe notes what is compared after every step.
func (s *playedStage) observe(got map[string]any) {
	view, _ := s.live.View().(map[string]any)
	beats, _ := view["beats"].(map[string]any)
	statuses, delivered, pending := map[string]any{}, map[string]any{}, []any{}
	for id, b := range beats {
		beat, _ := b.(map[string]any)
		statuses[id] = beat["status"]
		if at := beat["delivered_at_turn"]; at != nil {
			delivered[id] = at
		}
		if beat["choice_pending"] == true {
			pending = append(pending, id)
		}
	}
	flags := []any{}
	set, _ := view["flags"].(map[string]any)
	for name := range set {
		flags = append(flags, name)
	}
	got["statuses"], got["choice_pending"], got["flags"] = statuses, pending, flags
	got["delivered_at_turn"], got["detected_at_turn"] = delivered, s.landed
}
