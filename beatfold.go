package sajou

import (
	"fmt"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

// ProjectionDirector is the director: the episode that is played and how far it
// has come.
const ProjectionDirector = "director"

// directorVersion is the version of the projection.
const directorVersion = 1

// wordMessage is the word of a beat entry that is no event of the director's:
// what was said, {turn, attempt, role, text}. Events have its digest.
const wordMessage = "message"

func directorProjection() projection.Projection {
	return projection.Projection{
		Name:    ProjectionDirector,
		Version: directorVersion,
		New:     func() projection.State { return &directorState{state: &director.State{}} },
		Restore: func(data []byte) (projection.State, error) {
			s, err := director.Restore(data)
			if err != nil {
				return nil, err
			}
			return &directorState{s}, nil
		},
	}
}

// directorState is the director as a state. An entry of kind beat holds one of
// its events; one of kind define may hold an episode.
type directorState struct{ state *director.State }

func (s *directorState) Advance(time.Duration)    {}
func (s *directorState) Append(dst []byte) []byte { return s.state.AppendState(dst) }
func (s *directorState) View() any                { return s.state.View() }

func (s *directorState) Apply(e *eventlog.Entry) {
	if e.Kind != eventlog.KindBeat && e.Kind != eventlog.KindDefine {
		return
	}
	word, v, err := wordOf(e)
	if err == nil && word != wordMessage && (word == director.Word) == (e.Kind == eventlog.KindDefine) {
		// What does not follow, in the log of another program, changes nothing.
		_ = s.state.Apply(word, v)
	}
}

// DirectorOf returns the director where a fold stands, nil if it has none. It
// belongs to the fold and changes with it.
func DirectorOf(f *projection.Fold) *director.State {
	if s, ok := f.State(ProjectionDirector).(*directorState); ok {
		return s.state
	}
	return nil
}

// BeatOf returns the event that a beat entry records. It points into the entry.
func BeatOf(e *eventlog.Entry) (director.Record, error) {
	if e.Kind != eventlog.KindBeat {
		return director.Record{}, fmt.Errorf("sajou: entry %d is no beat but a %v", e.Seq, e.Kind)
	}
	word, v, err := wordOf(e)
	return director.Record{Word: word, Value: v}, err
}

// Said is a message of the scene as the log has it.
type Said struct {
	Turn    int
	Attempt int    // of a response; 0 for what the user said
	Role    string // "user" or "character"
	Text    string
}

// SaidBy returns the message that a beat entry records; false if it is none.
func SaidBy(r director.Record) (m Said, ok bool) {
	if r.Word != wordMessage {
		return m, false
	}
	number := func(name string) int {
		v, _ := r.Value.Get(name)
		i, _ := v.Int64()
		return int(i)
	}
	text := func(name string) string {
		v, _ := r.Value.Get(name)
		s, _ := v.Text()
		return s
	}
	return Said{number("turn"), number("attempt"), text("role"), text("text")}, true
}

// record returns the message as a record.
func (m Said) record() director.Record {
	v := msgp.AppendMapHeader(nil, 4)
	v = msgp.AppendInt(msgp.AppendString(v, "turn"), m.Turn)
	v = msgp.AppendInt(msgp.AppendString(v, "attempt"), m.Attempt)
	v = msgp.AppendString(msgp.AppendString(v, "role"), m.Role)
	v = msgp.AppendString(msgp.AppendString(v, "text"), m.Text)
	return director.Record{Word: wordMessage, Value: v}
}
