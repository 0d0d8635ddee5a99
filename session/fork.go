package session

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// Fork is the label of a session that was never recorded: the history of another
// session, its parent, with changes. It is part of the first entry:
//
//	["opened", {"time": authority, "rules": 3, "fork": {
//	    "parent": name, "head": "SEQ:HASH", "at": seq, "entries": number,
//	    "rules": number, "fork": label}}]
//
// Rules is the number under which the parent was recorded and under which the fork is
// folded, absent if the parent recorded none. Fork is the label of a parent that is a
// fork itself.
type Fork struct {
	Parent string        // the name of the session that was forked
	Head   eventlog.Head // of the parent at that time
	At     eventlog.Seq  // the entry at which the changes begin
	// Entries is the number of entries that the fork had when it was complete. A session
	// with fewer is the rest of a fork whose making was interrupted.
	Entries eventlog.Seq
	Of      *Fork // the label of the parent, nil if it is none

	rules int
}

// String returns the label as one line: `fork of "night" at 36, head 54:1f…`.
func (f *Fork) String() string {
	text := fmt.Sprintf("fork of %q at %d, head %v", f.Parent, f.At, f.Head)
	if f.Of != nil {
		text += ", itself a " + f.Of.String()
	}
	return text
}

// Title returns the label without the head, for pictures: `fork of "night" at 36`.
func (f *Fork) Title() string { return fmt.Sprintf("fork of %q at %d", f.Parent, f.At) }

// Complete reports whether a session with that label and that head has all entries that
// the fork was made of.
func (f *Fork) Complete(head eventlog.Head) bool { return head.Seq >= f.Entries }

// maxForks bounds how many labels stand in one another.
const maxForks = 64

const memberFork = "fork"

// MetadataFork is the member of the metadata of a signal that has the label of a fork, as
// [Fork.String] writes it: of the first signal of an export of signals.
const MetadataFork = "sajou.fork"

// value encodes the label.
func (f *Fork) value() signal.Value {
	o := signal.NewObject(6).Text("parent", f.Parent).Text("head", f.Head.String()).
		Uint("at", uint64(f.At)).Uint("entries", uint64(f.Entries))
	if f.rules != 0 {
		o.Int("rules", int64(f.rules))
	}
	if f.Of != nil {
		o.Add(memberFork, f.Of.value())
	}
	return o.Value()
}

// parseFork reads a label. It returns nil for a value that is none.
func parseFork(v signal.Value, depth int) *Fork {
	head, err := eventlog.ParseHead(v.TextOf("head"))
	f := &Fork{
		Parent: v.TextOf("parent"), Head: head, At: eventlog.Seq(max(v.IntOf("at"), 0)),
		Entries: eventlog.Seq(max(v.IntOf("entries"), 0)), rules: int(v.IntOf("rules")),
	}
	if err != nil || eventlog.CheckName(f.Parent) != nil || depth > maxForks || f.rules < 0 || f.rules > math.MaxInt32 {
		return nil
	}
	if of, ok := v.Get(memberFork); ok {
		if f.Of = parseFork(of, depth+1); f.Of == nil {
			return nil
		}
	}
	return f
}

// ForkOf returns the label of a session's first entry, nil if the session is no fork. The
// texts point into the entry.
func ForkOf(first *eventlog.Entry) *Fork {
	if first.Kind != eventlog.KindSession || first.Seq != 1 {
		return nil
	}
	o, err := openedOf(first)
	if err != nil {
		return nil
	}
	return o.fork
}

// entrySource is a session that can be read, in a log or a replay.
type entrySource interface {
	Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error]
}

// ReadFork returns the label of a session, nil if it is no fork or has no entries.
func ReadFork(ctx context.Context, src entrySource) (*Fork, error) {
	for e, err := range src.Entries(ctx, 1) {
		if err != nil {
			return nil, err
		}
		return ForkOf(&e), nil
	}
	return nil, ctx.Err()
}

// WithFork returns the data of the first entry of a fork: that of first, the first entry of
// its parent, with the label. If the parent is a fork, its label becomes f.Of. The error
// wraps [eventlog.ErrInvalid].
func WithFork(first *eventlog.Entry, f Fork) ([]byte, error) {
	o, err := openedOf(first)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", eventlog.ErrInvalid, err)
	}
	_, v, err := WordOf(first)
	if err != nil {
		return nil, err
	}
	f.rules, f.Of = o.rules, o.fork
	object := signal.ObjectOf(v)
	object.Set("rules", signal.Value(signal.Int(rulesForks).Append(nil)))
	object.Set(memberFork, f.value())
	data := AppendWord(nil, wordOpened, object.Value())
	if got := ForkOf(&eventlog.Entry{Seq: 1, Kind: eventlog.KindSession, Data: data}); got == nil {
		return nil, fmt.Errorf("%w: no fork of %q can be labelled; a session is a fork of at most %d others", eventlog.ErrInvalid, f.Parent, maxForks)
	}
	return data, nil
}
