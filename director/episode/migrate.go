package episode

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// Todo is an open question about a migrated episode, for its author.
type Todo struct {
	Pointer string // into the migrated episode
	Message string
}

// String returns "pointer: message".
func (t Todo) String() string { return t.Pointer + ": " + t.Message }

// Migrate converts the legacy choice points of an episode to beats (beat contract,
// "Migration from ADR-008"): a choice point with the trigger "turn:N" becomes a beat
// with target N and deadline N+2 that has the choice. A card holds neither an
// instruction for the character nor detection criteria; Migrate drafts both from the
// prompt and returns a [Todo] for each. Choice points that an objective triggers stay
// as they are. The other members and their order do not change.
func Migrate(v signal.Value) (signal.Value, []Todo, error) {
	e, err := Compile(v)
	if err != nil {
		return nil, nil, err
	}
	var beats, stay []signal.Value
	if list, ok := v.Get("beats"); ok {
		for b := range list.Elements() {
			beats = append(beats, b)
		}
	}
	names := make(map[string]bool, len(e.beats))
	for id := range e.beats {
		names[id] = true
	}
	var todo []Todo
	legacy, _ := v.Get("choice_points")
	for point := range legacy.Elements() {
		id := point.TextOf("id")
		trigger := point.TextOf("trigger")
		turn, ok := turnOf(trigger)
		if !ok {
			todo = append(todo, Todo{fmt.Sprintf("/choice_points/%d", len(stay)), "it follows an objective: say in which turns its moment is wanted, or keep it"})
			stay = append(stay, point)
			continue
		}
		name := strings.ToValidUTF8(id[:min(len(id), MaxID/2)], "") + "_beat"
		for names[name] {
			name += "_"
		}
		names[name] = true
		at := fmt.Sprintf("/beats/%d", len(beats))
		beat, err := migrated(name, turn, point, &todo, at)
		if err != nil {
			return nil, nil, err
		}
		if e.Budget > 0 && turn+defaultWindow > e.Budget {
			todo = append(todo, Todo{at + "/deadline_turn", fmt.Sprintf("turn %d is beyond the budget of %d turns", turn+defaultWindow, e.Budget)})
		}
		beats = append(beats, beat)
	}
	if len(beats) > MaxItems {
		return nil, nil, fmt.Errorf("%w: more than %d beats", ErrEpisode, MaxItems)
	}
	out := withMembers(v, beats, stay)
	_, err = Compile(out)
	return out, todo, err
}

func migrated(name string, turn int, point signal.Value, todo *[]Todo, at string) (signal.Value, error) {
	prompt := point.TextOf("prompt")
	moment, ask := split(prompt)
	if ask == "" {
		ask = "How do you respond?"
		*todo = append(*todo, Todo{at + "/choice_point/prompt", "the card had one sentence: is this how the user should be asked?"})
	}
	if moment == "" {
		moment = "The moment of " + name + " comes"
	}
	*todo = append(*todo,
		Todo{at + "/character_instruction", "tell the character what to do, in its own terms"},
		Todo{at + "/detection_criteria", "a judge is asked; if some words are enough, say keyword and name them"})
	options := []json.RawMessage{}
	list, _ := point.Get("choices")
	for o := range list.Elements() {
		options = append(options, o.AppendJSON(nil))
	}
	id := point.TextOf("id")
	type choicePoint struct {
		ID      string            `json:"id"`
		Prompt  string            `json:"prompt"`
		Choices []json.RawMessage `json:"choices"`
	}
	return valueOf(struct {
		ID          string      `json:"id"`
		Description string      `json:"description"`
		Instruction string      `json:"character_instruction"`
		Target      int         `json:"target_turn"`
		Deadline    int         `json:"deadline_turn"`
		Detection   string      `json:"detection_type"`
		Criteria    string      `json:"detection_criteria"`
		Choice      choicePoint `json:"choice_point"`
	}{
		name, moment, "Work towards this moment: " + moment + ".", turn, turn + defaultWindow, Semantic.String(), moment,
		choicePoint{id, ask, options},
	})
}

// valueOf returns a value that encodes to JSON.
func valueOf(v any) (signal.Value, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return signal.ParseValue(text)
}

// split splits a card's prompt into the moment that it describes and its question.
func split(prompt string) (moment, ask string) {
	prompt = strings.TrimSpace(prompt)
	i := strings.Index(prompt, ". ")
	if i < 0 {
		if strings.HasSuffix(prompt, "?") {
			return "", prompt
		}
		return strings.TrimSuffix(prompt, "."), ""
	}
	return prompt[:i], strings.TrimSpace(prompt[i+2:])
}

// withMembers returns an episode with other beats and choice points, which keep their
// places among the members.
func withMembers(v signal.Value, beats, stay []signal.Value) signal.Value {
	o := signal.ObjectOf(v)
	o.Set("beats", signal.Array(beats...))
	if len(stay) > 0 {
		o.Set("choice_points", signal.Array(stay...))
	} else {
		o.Remove("choice_points")
	}
	return o.Value()
}
