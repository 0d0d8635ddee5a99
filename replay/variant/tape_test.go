package variant_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// tape is a session in memory.
type tape = enginetest.Tape

// taped returns the session with the entries that build makes.
func taped(build func(d *session.Drafts)) *tape { return enginetest.Taped(build) }

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
