package variant_test

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// tape is a session in memory.
type tape struct {
	entries []eventlog.Entry
	reads   int // entries yielded
}

func (s *tape) Name() string           { return "tape" }
func (s *tape) Genesis() eventlog.Hash { return chain.Genesis("tape") }
func (s *tape) Head() eventlog.Head {
	if len(s.entries) == 0 {
		return eventlog.Head{Hash: s.Genesis()}
	}
	return s.entries[len(s.entries)-1].Head()
}

func (s *tape) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for i := max(int(from), 1) - 1; i < len(s.entries); i++ {
			if err := ctx.Err(); err != nil {
				yield(eventlog.Entry{}, err)
				return
			}
			s.reads++
			if !yield(s.entries[i], nil) {
				return
			}
		}
	}
}

// add appends an entry as a log does.
func (s *tape) add(d eventlog.Draft) {
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
	s.entries = append(s.entries, e)
}

// taped returns the session with the entries that build makes.
func taped(build func(d *session.Drafts)) *tape {
	var d session.Drafts
	build(&d)
	s := &tape{}
	for _, draft := range d.List() {
		s.add(draft)
	}
	return s
}

// parse returns declarations from their JSON text.
func parse(t require.TestingT, text string) []language.Declaration {
	list, problems := language.Parse("test.json", []byte(text))
	require.Empty(t, problems)
	return list
}

const ms = time.Millisecond

func sig(typ string, n int) *signal.Signal {
	payload, err := signal.Marshal(map[string]any{"agentId": "smith", "n": n})
	if err != nil {
		panic(err)
	}
	return &signal.Signal{ID: fmt.Sprintf("%s-%d", typ, n), Type: typ, Source: "test", Timestamp: signal.Int(int64(n)), Payload: payload}
}

func data(typ string, n int) []byte { return sig(typ, n).Append(nil) }

// declared is what the sessions of these tests declare: a walk that refers to a
// sequence, which refers to nothing.
const declared = `[
	{"sequence": "shine", "steps": [{"action": "flash", "target": "signal.agentId", "color": "gold", "duration": 250}]},
	{"id": "walk", "on": "go", "steps": [{"action": "move", "entity": "signal.agentId", "to": "center", "duration": 400}, {"action": "include", "sequence": "shine"}]},
	{"on": "stop", "interrupts": true, "steps": [{"action": "pulse", "target": "signal.agentId", "duration": 90}]},
	{"on": "stop", "steps": [{"action": "playSound", "sound": "bell"}]}
]`

// song is a session of declarations and signals, one every 100 ms.
func song(t require.TestingT, signals ...string) *tape {
	return taped(func(d *session.Drafts) {
		d.Opened(0, session.TimeManual)
		for _, one := range parse(t, declared) {
			d.Declaration(0, one)
		}
		for i, typ := range signals {
			d.Signal(time.Duration(i+1)*100*ms, sig(typ, i+1))
		}
	})
}

// all returns the entries of a source from a Seq on.
func all(t require.TestingT, src replay.Source, from eventlog.Seq) (list []eventlog.Entry) {
	for e, err := range src.Entries(context.Background(), from) {
		require.NoError(t, err)
		list = append(list, e)
	}
	return list
}

// digestsAt are the digests of the states at the end of a source.
func digestsAt(t require.TestingT, src replay.Source) map[string]uint64 {
	r := session.NewReplay(src, session.Projections(session.ProjectionConfig{}), nil)
	f, err := r.At(context.Background(), replay.Moment{Seq: src.Head().Seq, Offset: 130 * ms})
	require.NoError(t, err)
	digests := map[string]uint64{}
	for _, d := range f.Digests() {
		digests[d.Name] = d.Sum
	}
	return digests
}
