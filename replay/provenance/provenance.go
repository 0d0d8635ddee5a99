// Package provenance says where a value of a session's state comes from: which entry,
// performance and step last set it, and which entries it depends on.
//
// # Blame
//
// [Blame] finds the last setting of a value before a moment, [History] all of them. A
// setting is an event that changes the value at its instant, or the course that the
// value takes from there on: the start of a movement is a setting, and the positions
// that the figure passes are not. The events are the entries, and the starts,
// executions, completions and interruptions of acts.
//
// Of a value below stage the package compares the state before and after each single
// event, so the cause that it names is the event that the fold applied, also if
// several change one value at one instant. The course of a member of an entity is
// compared at ten instants of the next ten seconds. Of a value of another projection
// the entry is named; if only time passed, all acts of that instant are candidates.
//
// # Slices
//
// [Why] follows a value of the stage back to the acts that set it, their performances,
// the signals that began and ended these, the guards that held them up, the values that
// conditions, places and movements read, and the declarations in force. It follows
// what happened, and a replay with the signals of the slice alone checks the result: a
// signal that kept something from happening may have no edge. If the value differs, the
// slice grows until it does not; see [Precision].
//
// Of a value of the world, Why follows the effects that set its parts, the intents that
// asked for them, their generations, the views that the intents name as their context, and
// the entries whose outcome these views show. Of a value of the director it follows the
// events: turns, guidances, responses, judgments, verdicts, choices, and the beats and flags
// that a beat requires. A signal that an episode made of an event is followed to that event,
// and a flag that a signal or an effect has set to that entry. These edges are what the
// entries record. That an agent used what its view showed, and a character its guidance, no
// entry says: such edges are not exact, and neither is the state that an effect met.
//
// [Minimize] leaves out signals as long as a condition holds. [Standalone] makes a
// recording of its own of the rest, and a scenario for package choreography/rehearsal.
//
// # Cost
//
// Blame goes back from the moment over stretches of growing length, each folded from
// an image. So it costs a few times the fold from the setting to the moment, however
// long the session is before that. History folds the session once. Why goes back as Blame
// does, and its check and Minimize hold the entries up to the moment in memory and fold them
// once for each try.
//
// docs/glossary.md has the nouns of all packages.
package provenance

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
)

var (
	// ErrPath says that a text is not the path of a value.
	ErrPath = errors.New("provenance: not a path of the state")

	// ErrNever says that no entry has set a value.
	ErrNever = errors.New("provenance: never set")
)

// StatePath names a value of the state: a projection, and the members below it.
type StatePath struct{ names []string }

// ParsePath parses a path with dots (stage.entities.smith.x) or as a JSON Pointer
// (/stage/entities/agent.v2/x). The error is [ErrPath] for an empty path, and for seq
// and at, which are positions and not values.
func ParsePath(text string) (StatePath, error) {
	p := StatePath{}
	if strings.HasPrefix(text, "/") {
		p.names = jsonpointer.Split(text)
	} else {
		p.names = strings.Split(text, ".")
	}
	switch {
	case text == "" || p.names[0] == "":
		return StatePath{}, fmt.Errorf("%w: it is empty; name a value as in stage.entities.smith.x", ErrPath)
	case p.names[0] == "seq" || p.names[0] == "at":
		return StatePath{}, fmt.Errorf("%w: %q is the position of a state, which every entry sets", ErrPath, p.names[0])
	}
	return p, nil
}

// String returns the path with dots, or as a JSON Pointer if a name contains a dot.
func (p StatePath) String() string {
	for _, name := range p.names {
		if strings.Contains(name, ".") {
			return jsonpointer.Join(p.names)
		}
	}
	return strings.Join(p.names, ".")
}

// Projection returns the name of the projection.
func (p StatePath) Projection() string { return p.names[0] }

// In returns the value where a fold stands, as plain values: map[string]any, []any,
// string, bool, int64, float64 and nil. It is false if there is none.
func (p StatePath) In(f *projection.Fold) (any, bool) {
	state := f.State(p.names[0])
	if state == nil {
		return nil, false
	}
	var view any = state
	if _, ok := view.(members); !ok {
		view = state.View()
	}
	for _, name := range p.names[1:] {
		next, ok := jsonpointer.Member(view, name)
		if !ok {
			return nil, false
		}
		view = next
	}
	return plain(view), true
}

// members is a view that is read member by member.
type members interface {
	Names() []string
	Member(name string) (any, bool)
}

// plain copies a view into plain values.
func plain(view any) any {
	switch v := view.(type) {
	case members:
		m := map[string]any{}
		for _, name := range v.Names() {
			if member, ok := v.Member(name); ok {
				m[name] = plain(member)
			}
		}
		return m
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, member := range v {
			m[name] = plain(member)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	}
	return view
}

// entity returns the id of the entity of the stage and the member that p names; the
// member is "" for the whole entity. It is false for any other path.
func (p StatePath) entity() (id, member string, ok bool) {
	if len(p.names) < 3 || p.names[0] != session.ProjectionStage || p.names[1] != "entities" {
		return "", "", false
	}
	if len(p.names) > 3 {
		member = p.names[3]
	}
	return p.names[2], member, true
}

// text returns bytes of a value of a view that are equal for equal values, nil if it does
// not exist.
func text(v any, ok bool) []byte {
	if !ok {
		return nil
	}
	// Most values are numbers, which are compared at every event of a session. A whole
	// number has the form of an integer, as in JSON.
	if f, is := v.(float64); is {
		if i := int64(f); float64(i) == f && -1<<53 < i && i < 1<<53 && (i != 0 || !math.Signbit(f)) {
			return strconv.AppendInt(make([]byte, 0, 20), i, 10)
		}
		return binary.BigEndian.AppendUint64([]byte{'f'}, math.Float64bits(f))
	}
	data, err := json.Marshal(v)
	if err != nil { // a view has only values that have a JSON form
		return fmt.Appendf(nil, "%v", v)
	}
	return data
}
