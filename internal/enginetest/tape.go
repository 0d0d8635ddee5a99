package enginetest

import (
	"context"
	"iter"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// Tape is a recorded session in memory, without an engine.
type Tape struct {
	List  []eventlog.Entry
	Reads int // entries that were yielded
}

var _ replay.Source = (*Tape)(nil)

// Name implements [replay.Source].
func (s *Tape) Name() string { return "tape" }

// Genesis implements [replay.Source].
func (s *Tape) Genesis() eventlog.Hash { return chain.Genesis("tape") }

// Head implements [replay.Source].
func (s *Tape) Head() eventlog.Head {
	if len(s.List) == 0 {
		return eventlog.Head{Hash: s.Genesis()}
	}
	return s.List[len(s.List)-1].Head()
}

// Entries implements [replay.Source].
func (s *Tape) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for i := max(int(from), 1) - 1; i < len(s.List); i++ {
			if err := ctx.Err(); err != nil {
				yield(eventlog.Entry{}, err)
				return
			}
			s.Reads++
			if !yield(s.List[i], nil) {
				return
			}
		}
	}
}

// Add appends an entry as a log does. It panics if the draft has no valid form.
func (s *Tape) Add(d eventlog.Draft) {
	sealed, _ := chain.AppendBatch(nil, s.Head(), []eventlog.Draft{d}, "")
	batch, err := chain.OpenBatch(sealed)
	if err != nil {
		panic(err)
	}
	_, body, hash, err := batch.Next()
	if err != nil {
		panic(err)
	}
	e := eventlog.Entry{Seq: batch.First, Hash: *hash, Batch: 1}
	if err := chain.DecodeBody(&e, body); err != nil {
		panic(err)
	}
	s.List = append(s.List, e)
}

// Taped returns the session with the entries that build makes.
func Taped(build func(d *session.Drafts)) *Tape {
	var d session.Drafts
	build(&d)
	s := &Tape{}
	for _, draft := range d.List() {
		s.Add(draft)
	}
	return s
}
