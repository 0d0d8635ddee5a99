package session

import (
	"fmt"
	"math"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// The words of define, beat and session entries that this package defines. The
// words of declarations are those of package choreography and package episode, the
// words of effects those of package agents, the words of events those of
// [signal.Record].
const (
	WordScene   = "scene"   // ["scene", the scene as it was written]
	wordOpened  = "opened"  // ["opened", {"time": authority, "rules": number}]
	wordClock   = "clock"   // ["clock", {"origin": Unix time at session time zero, ns}]
	wordTick    = "tick"    // ["tick", {}]: session time has come this far
	WordDropped = "dropped" // ["dropped", {}]: the entry in whose place it stands was left out
	WordMessage = "message" // ["message", {"turn", "attempt", "role", "text"}]
)

// CueSource is the source of cue signals, which come from the director's events.
const CueSource = "director"

// CueID returns the id of a cue signal, given the number of its entry.
func CueID(seq eventlog.Seq) string { return fmt.Sprintf("cue-%d", seq) }

// WorldRecordOf returns the record of the agents' world that an effect entry holds.
// It points into the entry.
func WorldRecordOf(e *eventlog.Entry) (signal.Record, error) {
	if e.Kind != eventlog.KindEffect {
		return signal.Record{}, fmt.Errorf("sajou: entry %d is a %v, not an effect", e.Seq, e.Kind)
	}
	word, v, err := WordOf(e)
	return signal.Record{Word: word, Value: v}, err
}

// WordOf splits the data of a define, effect, beat or session entry into its word
// and its value, which points into the entry. The error wraps [eventlog.ErrCorrupt].
func WordOf(e *eventlog.Entry) (word string, v signal.Value, err error) {
	if word, v, err = SplitWord(e.Data); err != nil {
		return "", nil, fmt.Errorf("sajou: entry %d: %w", e.Seq, err)
	}
	return word, v, nil
}

// SplitWord is [WordOf] for the data of a draft.
func SplitWord(data []byte) (word string, v signal.Value, err error) {
	n, b, err := msgp.ReadArrayHeaderBytes(data)
	if err != nil || n != 2 {
		return "", nil, fmt.Errorf("%w: its data is not an array of two", eventlog.ErrCorrupt)
	}
	text, b, err := msgp.ReadStringZC(b)
	if err != nil {
		return "", nil, fmt.Errorf("%w: its data does not begin with a word", eventlog.ErrCorrupt)
	}
	v, rest, err := signal.CheckValue(b)
	if err != nil || len(rest) != 0 {
		return "", nil, fmt.Errorf("%w: its data is not a JSON value", eventlog.ErrCorrupt)
	}
	return string(text), v, nil
}

// opened is the content of a session's first entry.
type opened struct {
	time  TimeAuthority
	rules int   // by which the session is folded; 0: it records none
	fork  *Fork // nil: it is no fork
}

func openedOf(e *eventlog.Entry) (opened, error) {
	word, v, err := WordOf(e)
	if err != nil {
		return opened{}, err
	}
	bad := fmt.Errorf("sajou: entry %d does not open a session", e.Seq)
	member, _ := v.Get("time")
	authority, _ := member.Text()
	if word != wordOpened || !TimeAuthority(authority).Valid() {
		return opened{}, bad
	}
	o := opened{time: TimeAuthority(authority)}
	if member, ok := v.Get("rules"); ok {
		n, ok := member.Int64()
		if !ok || n < 1 || n > math.MaxInt32 {
			return opened{}, bad
		}
		o.rules = int(n)
	}
	if label, ok := v.Get(memberFork); ok && o.rules == rulesForks {
		if o.fork = parseFork(label, 1); o.fork == nil {
			return opened{}, bad
		}
		o.rules = o.fork.rules
	}
	return o, nil
}

// clockOf returns the Unix time at session time zero that a session entry
// records, in nanoseconds.
func clockOf(e *eventlog.Entry) (origin int64, ok bool) {
	word, v, err := WordOf(e)
	if err != nil || word != wordClock {
		return 0, false
	}
	member, _ := v.Get("origin")
	return member.Int64()
}

// SignalOf returns the signal that an entry records. It points into the entry.
func SignalOf(e *eventlog.Entry) (signal.Signal, error) {
	if e.Kind != eventlog.KindSignal {
		return signal.Signal{}, fmt.Errorf("sajou: entry %d is a %v, not a signal", e.Seq, e.Kind)
	}
	sig, err := signal.Decode(e.Data)
	if err != nil {
		return signal.Signal{}, fmt.Errorf("sajou: entry %d: %w", e.Seq, err)
	}
	return sig, nil
}
