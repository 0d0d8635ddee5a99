package session

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/statecodec"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

func sessionProjection() projection.Projection {
	return projection.Projection{
		Name:    ProjectionSession,
		Version: sessionVersion,
		New:     func() projection.State { return &State{} },
		Restore: restoreState,
	}
}

// State is the state of [ProjectionSession]: what is known of the session
// itself.
type State struct {
	time    Time
	rules   int // that the first entry records; 0: none
	counts  [eventlog.KindSession + 1]uint64
	flagged uint64 // signals recorded although the schema refuses them
	fork    *Fork  // the label of a fork; nil: it is none
}

// StateOf returns the state of [ProjectionSession] where a fold stands, nil if the
// fold does not have it. It belongs to the fold and changes with it.
func StateOf(f *projection.Fold) *State {
	s, _ := f.State(ProjectionSession).(*State)
	return s
}

// Time returns how the session's time runs.
func (s *State) Time() Time { return s.time }

// Rules returns the number of the rules that the session has recorded, 0 if it
// has recorded none; see [Rules].
func (s *State) Rules() int { return s.rules }

// Fork returns the label of the session, nil if it is no fork. It must not be changed.
func (s *State) Fork() *Fork { return s.fork }

// Advance implements [projection.State]: time alone changes nothing here.
func (s *State) Advance(time.Duration) {}

// Apply implements [projection.State].
func (s *State) Apply(e *eventlog.Entry) {
	if e.Kind.Valid() {
		s.counts[e.Kind]++
	}
	switch e.Kind {
	case eventlog.KindSession:
		if o, err := openedOf(e); err == nil && s.time.Authority == "" {
			s.time.Authority, s.rules, s.fork = o.time, o.rules, o.fork
		} else if origin, ok := clockOf(e); ok && s.time.WantsOrigin() {
			s.time.Origin, s.time.HasOrigin = origin, true
		}
	case eventlog.KindSignal:
		if regular, err := signalArity(e.Data); err != nil || !regular {
			s.flagged++
		}
		if s.time.WantsOrigin() {
			if sig, err := signal.DecodeSound(e.Data); err == nil {
				s.time.Note(&sig, e.At)
			}
		}
	default:
	}
}

// signalArity reports whether a signal's data has the form of one that the
// schema accepted; see package signal.
func signalArity(data []byte) (regular bool, err error) {
	n, _, err := msgp.ReadArrayHeaderBytes(data)
	return n == 7, err
}

// Append implements [projection.State].
func (s *State) Append(dst []byte) []byte {
	n := 4 + uint32(len(s.counts))
	if s.rules != 0 || s.fork != nil { // without a number the bytes are those from before there was one
		n++
	}
	if s.fork != nil {
		n++
	}
	dst = msgp.AppendArrayHeader(dst, n)
	dst = msgp.AppendString(dst, string(s.time.Authority))
	dst = msgp.AppendBool(dst, s.time.HasOrigin)
	dst = msgp.AppendInt64(dst, s.time.Origin)
	dst = msgp.AppendUint64(dst, s.flagged)
	for _, n := range s.counts {
		dst = msgp.AppendUint64(dst, n)
	}
	if s.rules != 0 || s.fork != nil {
		dst = msgp.AppendInt(dst, s.rules)
	}
	if s.fork != nil {
		dst = append(dst, s.fork.value()...)
	}
	return dst
}

// errState is wrapped by the errors about bytes that are not a session state.
var errState = errors.New("sajou: corrupt session state")

// restoreState reads what [State.Append] has written. A state that no entries
// could have led to is refused.
func restoreState(data []byte) (projection.State, error) {
	s := &State{}
	fields := 4 + len(s.counts)
	n, _, err := msgp.ReadArrayHeaderBytes(data)
	forked := err == nil && int(n) == fields+2             // with the label of a fork
	recorded := forked || err == nil && int(n) == fields+1 // with the number of rules
	if recorded {
		fields = int(n)
	}
	r := statecodec.Reader{Rest: data}
	r.Fields(fields, "a session")
	s.time.Authority = TimeAuthority(r.Text())
	s.time.HasOrigin = r.Bool()
	s.time.Origin = r.Int()
	s.flagged = r.Uint()
	for i := range s.counts {
		s.counts[i] = uint64(r.Between(0, math.MaxInt64, "a number of entries"))
	}
	switch {
	case forked:
		s.rules = int(r.Between(0, math.MaxInt32, "a number of rules"))
		if label, rest, err := signal.CheckValue(r.Rest); r.Err == nil && err == nil {
			s.fork, r.Rest = parseFork(label, 1), rest
		}
	case recorded:
		s.rules = int(r.Between(1, math.MaxInt32, "a number of rules"))
	}
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("%w: %w", errState, err)
	}
	opened := s.time.Authority != ""
	switch {
	case opened && !s.time.Authority.Valid():
		return nil, fmt.Errorf("%w: no time authority %q", errState, s.time.Authority)
	case forked && (s.fork == nil || s.fork.rules != s.rules):
		return nil, fmt.Errorf("%w: a label that is none of a fork", errState)
	case !opened && (s.rules != 0 || forked):
		return nil, fmt.Errorf("%w: rules that no entry records", errState)
	case opened && s.counts[eventlog.KindSession] == 0, s.counts[0] != 0, s.flagged > s.counts[eventlog.KindSignal]:
		return nil, fmt.Errorf("%w: numbers that do not fit", errState)
	case s.time.HasOrigin && s.time.Authority != TimeWall, !s.time.HasOrigin && s.time.Origin != 0:
		return nil, fmt.Errorf("%w: an origin that no clock gave", errState)
	}
	if err := statecodec.Canonical(data, s.Append); err != nil {
		return nil, fmt.Errorf("%w: %w", errState, err)
	}
	return s, nil
}

// View shows entries (the number of each kind), flagged, fork (of a fork: parent, head and
// at), origin (in milliseconds of Unix time, if there is one), rules and time.
func (s *State) View() any {
	entries := make(map[string]any, len(s.counts))
	for k := eventlog.KindSignal; k.Valid(); k++ {
		entries[k.String()] = int64(s.counts[k])
	}
	view := map[string]any{
		"time":    string(s.time.Authority),
		"entries": entries,
		"flagged": int64(s.flagged),
		"rules":   int64(s.rules),
	}
	if s.time.HasOrigin {
		// In two parts, since nanoseconds of Unix time are too many for a
		// float64, and milliseconds are not.
		const ms = int64(time.Millisecond)
		view["origin"] = float64(s.time.Origin/ms) + float64(s.time.Origin%ms)/float64(ms)
	}
	if s.fork != nil {
		view["fork"] = map[string]any{"parent": s.fork.Parent, "head": s.fork.Head.String(), "at": int64(s.fork.At)}
	}
	return view
}

// Vocabulary returns the names of all members that the view can have. It
// implements Closed of package replay/where, which refuses an expression that
// asks for another one.
func (s *State) Vocabulary() []string { return stateMembers }

var stateMembers = []string{"entries", "flagged", "fork", "origin", "rules", "time"}
