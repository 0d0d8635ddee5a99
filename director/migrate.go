package director

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// Todo is something about a migrated episode that a person must decide.
type Todo struct {
	Pointer string // into the migrated episode
	Message string
}

// String returns "pointer: message".
func (t Todo) String() string { return t.Pointer + ": " + t.Message }

// Migrate makes beats of the legacy choice points of an episode: "turn:N"
// becomes a beat with target N and deadline N+2 that has the choice. What the
// character is told and how the beat is found cannot be known from a card; it is
// drafted from the prompt and listed for a person to decide. Choice points that
// follow an objective stay as they are. The rest of the episode is kept, in its
// order, with its version.
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
		id, _ := textOf(point, "id")
		trigger, _ := textOf(point, "trigger")
		turn, ok := turnOf(trigger)
		if !ok {
			todo = append(todo, Todo{fmt.Sprintf("/choice_points/%d", len(stay)), "it follows an objective: say in which turns its moment is wanted, or keep it"})
			stay = append(stay, point)
			continue
		}
		name := strings.ToValidUTF8(id[:min(len(id), maxID/2)], "") + "_beat"
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
	if len(beats) > maxItems {
		return nil, nil, fmt.Errorf("%w: more than %d beats", ErrEpisode, maxItems)
	}
	out, err := withMembers(v, beats, stay)
	if err == nil {
		_, err = Compile(out)
	}
	return out, todo, err
}

func migrated(name string, turn int, point signal.Value, todo *[]Todo, at string) (signal.Value, error) {
	prompt, _ := textOf(point, "prompt")
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
	id, _ := textOf(point, "id")
	type choicePoint struct {
		ID      string            `json:"id"`
		Prompt  string            `json:"prompt"`
		Choices []json.RawMessage `json:"choices"`
	}
	r, err := recordOf("", struct {
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
	return r.Value, err
}

// split parts a card's prompt into what it says has happened and what it asks.
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

// withMembers returns an episode with other beats and choice points.
func withMembers(v signal.Value, beats, stay []signal.Value) (signal.Value, error) {
	text := []byte{'{'}
	member := func(name string, value []byte) {
		if len(text) > 1 {
			text = append(text, ',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			key = []byte(`""`)
		}
		text = append(append(append(text, key...), ':'), value...)
	}
	list := func(values []signal.Value) []byte {
		out := []byte{'['}
		for i, e := range values {
			if i > 0 {
				out = append(out, ',')
			}
			out = e.AppendJSON(out)
		}
		return append(out, ']')
	}
	done := false
	for name, value := range v.Members() {
		switch name {
		case "beats":
			member(name, list(beats))
			done = true
		case "choice_points":
			if len(stay) > 0 {
				member(name, list(stay))
			}
		default:
			member(name, value.AppendJSON(nil))
		}
	}
	if !done {
		member("beats", list(beats))
	}
	out, err := signal.ParseValue(append(text, '}'))
	if err != nil {
		return nil, errors.Join(ErrEpisode, err)
	}
	return out, nil
}
