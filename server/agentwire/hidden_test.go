package agentwire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/session"
)

// pipe is a transport without a socket.
type pipe struct {
	in   chan []byte
	out  chan []byte
	done chan struct{}
	once sync.Once
}

func newPipe() *pipe {
	return &pipe{in: make(chan []byte), out: make(chan []byte, 1<<12), done: make(chan struct{})}
}

func (p *pipe) Read() ([]byte, error) {
	select {
	case frame := <-p.in:
		return frame, nil
	case <-p.done:
		return nil, io.EOF
	}
}

func (p *pipe) Write(frame []byte) error {
	select {
	case p.out <- frame:
		return nil
	default:
		return errors.New("nobody reads")
	}
}

func (p *pipe) Ping(context.Context) error { return nil }

func (p *pipe) Close(how closing) {
	p.once.Do(func() {
		close(p.done)
		p.out <- fmt.Appendf(nil, `{"type":"close","code":%d,"reason":%q}`, how.code, how.reason)
	})
}

// twin is one of two worlds that look the same to alice. In one of them others, whom she
// does not see, are there and act.
type twin struct {
	engine  *sajou.Engine
	world   *agentslive.Agents
	pipe    *pipe
	conn    *connection
	haunted bool
	now     time.Duration
	seen    map[string][]string // all that alice got, by type
	latest  uint64              // view_seq of the newest observation that she got
	ended   chan struct{}
}

func newTwin(haunted bool) (*twin, error) {
	engine, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	ses, err := engine.Begin(ctx, "play", session.TimeManual)
	w := &twin{engine: engine, haunted: haunted, seen: map[string][]string{}, ended: make(chan struct{}), pipe: newPipe()}
	if err == nil {
		w.world = ses.Agents()
		err = w.world.Configure(ctx, parsed(`{"cooldowns":"off","quota_intents_per_minute":-1,"quota_tokens_per_minute":-1,"staleness_threshold":1,"rules":{"max_interact_distance":5}}`))
	}
	entities, places := `"alice":{"type":"agent"},"bob":{"type":"agent"}`, `"alice":[0,0,0],"bob":[1,0,0]`
	if haunted {
		entities, places = entities+`,"ghost":{"type":"agent"}`, places+`,"ghost":[900,0,0]`
	}
	if err == nil {
		err = w.world.Begin(ctx, parsed(`{"entities":{`+entities+`},"relationships":{},"spatial_index":{`+places+`}}`))
	}
	if err == nil {
		_, err = w.world.Register(ctx, "alice", parsed(`{"distance_limit":50}`))
	}
	if err == nil && haunted {
		_, err = w.world.Register(ctx, "ghost", parsed(`{"distance_limit":5}`))
	}
	if err != nil {
		return nil, err
	}
	room := New(engine, Config{
		Now: func() time.Time { return time.Unix(1000, 0) }, Logger: slog.New(slog.DiscardHandler),
		AfterFunc: func(time.Duration, func()) func() bool { return func() bool { return true } },
	})
	if w.conn, err = room.connect(ctx, place{"play", "alice"}, nil, w.pipe, 0); err != nil {
		return nil, err
	}
	go func() {
		defer close(w.ended)
		w.conn.run(nil, nil)
	}()
	return w, w.until("observation")
}

// take notes a message that alice got.
func (w *twin) take(frame []byte) (typ string) {
	var m struct {
		Type    string
		ViewSeq uint64 `json:"view_seq"`
	}
	if err := unmarshal(frame, &m); err != nil {
		panic(err)
	}
	if m.Type == "observation" {
		w.latest = m.ViewSeq
	}
	w.seen[m.Type] = append(w.seen[m.Type], string(frame))
	return m.Type
}

// until takes messages up to one of these types.
func (w *twin) until(types ...string) error {
	for {
		select {
		case frame := <-w.pipe.out:
			if slices.Contains(types, w.take(frame)) {
				return nil
			}
		case <-w.ended:
			return errors.New("the connection ended")
		}
	}
}

// settle takes everything that was sent to alice by now.
func (w *twin) settle() error {
	if err := w.world.Settle(context.Background()); err != nil {
		return err
	}
	for latest, _ := w.world.LatestViewSeq("alice"); w.latest < latest; {
		if err := w.until("observation"); err != nil {
			return err
		}
	}
	return nil
}

// haunt lets others act whom alice does not see.
func (w *twin) haunt(n int) error {
	if !w.haunted {
		return nil
	}
	ctx := context.Background()
	draft := agents.EffectDraft{Kind: agentworld.KindSpeak, SourceID: "ghost", Payload: parsed(fmt.Sprintf(`{"text":"boo %d"}`, n))}
	switch n % 3 {
	case 1:
		draft = agents.EffectDraft{Kind: agentworld.KindMove, SourceID: "ghost", Payload: parsed(fmt.Sprintf(`{"to":[%d,5,0]}`, 900+n))}
	case 2:
		draft = agents.EffectDraft{Kind: agentworld.KindEntityCreated, SourceID: "ghost", Payload: parsed(fmt.Sprintf(`{"entity_id":"bones %d","entity_data":{"type":"prop"},"position":[901,0,0]}`, n))}
	}
	_, err := w.world.Broadcast(ctx, draft)
	return err
}

// end closes the connection and returns everything that alice got.
func (w *twin) end() (map[string][]string, error) {
	w.conn.end(closeNormal)
	<-w.ended
	for len(w.pipe.out) > 0 {
		w.take(<-w.pipe.out)
	}
	slices.Sort(w.seen["stop"]) // several generations are stopped at once, in no order
	return w.seen, w.engine.Close()
}

// TestHiddenIsAbsent: all bytes that an agent gets over the wire are the same whether
// others whom it does not see act, or are not there, whatever it sends.
func TestHiddenIsAbsent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		twins := [2]*twin{}
		for i := range twins {
			var err error
			twins[i], err = newTwin(i == 0)
			require.NoError(t, err)
		}
		targets := []string{"bob", "ghost", "nobody", "bones 2"}
		ids := rapid.SampledFrom([]string{"r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"})
		for n := range rapid.IntRange(1, 12).Draw(t, "steps") {
			noise := rapid.IntRange(0, 3).Draw(t, "noise")
			id, target := ids.Draw(t, "req_id"), rapid.SampledFrom(targets).Draw(t, "target")
			context := rapid.IntRange(0, 3).Draw(t, "behind")
			var message string
			var answers []string
			switch rapid.IntRange(0, 8).Draw(t, "act") {
			case 0:
				message, answers = `"type":"intent","kind":"Interact","payload":{"target_id":"`+target+`","type":"examine"}`, []string{"outcome"}
			case 1:
				message, answers = `"type":"intent","kind":"Speak","payload":{"text":"hi","channel":"private","target_id":"`+target+`"}`, []string{"outcome"}
			case 2:
				message, answers = fmt.Sprintf(`"type":"intent","kind":"Move","payload":{"to":[%d,2]}`, n), []string{"outcome"}
			case 3:
				message, answers = `"type":"begin","reads":["/entities/`+target+`"]`, []string{"begun", "outcome", "error"}
			case 4:
				message, answers = `"type":"cancel"`, []string{"cancelled"}
			case 5:
				message, answers = `"type":"tokens","text":"x"`, nil
			case 6:
				message, answers = `"type":"intent","kind":"`+target+`"`, []string{"outcome"}
			case 7:
				message, answers = `"type":"ack","view_seq":9999`, []string{"error"}
			default:
				message = ""
			}
			for _, w := range twins {
				for i := range noise {
					require.NoError(t, w.haunt(n*4+i))
				}
				if message == "" {
					_, err := w.world.Broadcast(t.Context(), agents.EffectDraft{Kind: agentworld.KindSpeak, SourceID: "bob", Payload: parsed(`{"text":"hm"}`)})
					require.NoError(t, err)
					w.now += 40 * time.Millisecond
					require.NoError(t, w.world.Advance(t.Context(), w.now))
				} else {
					seq := w.latest - min(w.latest, uint64(context))
					frame := `{` + message + `,"req_id":"` + id + `"`
					if strings.Contains(message, "intent") || strings.Contains(message, "begin") {
						frame += fmt.Sprintf(`,"context_seq":%d`, seq)
					}
					w.pipe.in <- []byte(frame + `}`)
					// The answer to a cancel comes after those to the messages before it.
					if answers != nil {
						require.NoError(t, w.until(answers...))
					}
					w.pipe.in <- []byte(`{"type":"cancel","req_id":"barrier"}`)
					require.NoError(t, w.until("cancelled"))
				}
				require.NoError(t, w.settle())
			}
		}
		haunted, err := twins[0].end()
		require.NoError(t, err)
		plain, err := twins[1].end()
		require.NoError(t, err)
		require.Equal(t, plain, haunted)
	})
}
