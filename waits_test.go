package sajou_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/signal"
)

// held is a session whose disk does not answer.
type held struct {
	ses   *sajou.Session
	world *agentslive.Agents
	agent *agentslive.Agent
	play  *episode.Episode
	disk  *enginetest.Disk
}

// Every call that waits for the disk ends with its context, and at the latest a
// moment later, although the disk does not answer. What it recorded is there when
// the disk answers again, and the engine closes.
func TestWaitsEndWithTheirContext(t *testing.T) {
	const patience, moment = time.Hour, 3 * time.Second
	for name, call := range map[string]func(ctx context.Context, h *held) error{
		"Record": func(ctx context.Context, h *held) error {
			_, err := h.ses.Record(ctx, sajou.Addition{Signals: []*signal.Signal{enginetest.TaskSignal(0, 0)}})
			return err
		},
		"Signal": func(ctx context.Context, h *held) error {
			_, err := h.ses.Signal(ctx, enginetest.TaskSignal(0, 0))
			return err
		},
		"Define": func(ctx context.Context, h *held) error {
			_, err := h.ses.Define(ctx, enginetest.Definitions(t, enginetest.Dispatch)...)
			return err
		},
		"Pending.Wait": func(ctx context.Context, h *held) error {
			p, err := h.ses.RecordAsync(ctx, sajou.Addition{Signals: []*signal.Signal{enginetest.TaskSignal(0, 0)}})
			if err == nil {
				_, err = p.Wait(ctx)
			}
			return err
		},
		"State":  func(ctx context.Context, h *held) error { _, err := h.ses.State(ctx); return err },
		"Settle": func(ctx context.Context, h *held) error { return h.world.Settle(ctx) },
		"View":   func(ctx context.Context, h *held) error { _, err := h.world.View(ctx, "A"); return err },
		"Configure": func(ctx context.Context, h *held) error {
			return h.world.Configure(ctx, enginetest.Value(t, `{"max_quantum": 5}`))
		},
		"Register":  func(ctx context.Context, h *held) error { _, err := h.world.Register(ctx, "A", nil); return err },
		"Agent":     func(ctx context.Context, h *held) error { _, err := h.world.Agent(ctx, "A"); return err },
		"Resume":    func(ctx context.Context, h *held) error { _, err := h.world.Resume(ctx, "A", 1); return err },
		"Leave":     func(ctx context.Context, h *held) error { return h.agent.Leave(ctx) },
		"Submit":    func(ctx context.Context, h *held) error { _, err := h.agent.Submit(ctx, utter()); return err },
		"Broadcast": func(ctx context.Context, h *held) error { _, err := h.world.Broadcast(ctx, created("B")); return err },
		"Submitted": submitted,
		"SubmitBatch": func(ctx context.Context, h *held) error {
			_, err := h.world.SubmitBatch(ctx, []agents.Intent{of("A", utter())})
			return err
		},
		"Quantum": quantum,
		"Tick": func(ctx context.Context, h *held) error {
			_, err := h.world.Tick(ctx, agentslive.Tick{SimTime: 1})
			return err
		},
		"Begin": func(ctx context.Context, h *held) error {
			_, err := h.agent.Begin(ctx, agents.TokenRequest{ReqID: "g"})
			return err
		},
		"Generate": func(ctx context.Context, h *held) error {
			_, err := generate.Run(ctx, h.agent, enginetest.Saying("a"), enginetest.Request("g"))
			return err
		},
		"stalled": func(ctx context.Context, h *held) error {
			_, err := generate.Run(ctx, h.agent, enginetest.Stalling(true, nil, "a"), enginetest.Request("g"))
			return err
		},
		"Start": func(ctx context.Context, h *held) error {
			return h.ses.Director().Start(ctx, h.play, director.Opening{})
		},
		"Subscribe": subscribes,
		"Observations": func(ctx context.Context, h *held) error {
			for _, err := range h.agent.Observations(ctx) {
				if err != nil {
					return err
				}
			}
			return ctx.Err()
		},
		"Events": func(ctx context.Context, h *held) error {
			for _, err := range h.ses.Director().Events(ctx, 1) {
				if err != nil {
					return err
				}
			}
			return ctx.Err()
		},
		"WaitUntil": func(ctx context.Context, h *held) error { return h.world.WaitUntil(ctx, 2e6*time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &held{disk: enginetest.NewDisk(), play: enginetest.Authored(t, enginetest.Tea)}
				eng, err := sajou.Open("store", sajou.Config{FS: h.disk, JudgeTimeout: patience, MaxSkew: -1})
				require.NoError(t, err)
				if h.ses, err = eng.Session(t.Context(), "world"); err != nil {
					t.Fatal(err)
				}
				h.world = h.ses.Agents()
				h.agent = enginetest.Register(t, h.world, "A", nil)
				release := h.disk.Hold()
				// Something is on its way to the disk, whatever the call does.
				p, err := h.ses.RecordAsync(t.Context(), sajou.Addition{Signals: []*signal.Signal{enginetest.TaskSignal(1, 1)}})
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- call(ctx, h) }()
				synctest.Wait()
				select {
				case err := <-done:
					t.Errorf("it does not wait: %v", err)
				default:
					cancel()
					began := time.Now()
					if err := <-done; !errors.Is(err, context.Canceled) && !errors.Is(err, agents.ErrCancelled) {
						t.Errorf("it ended with %v", err)
					}
					if took := time.Since(began); took > moment {
						t.Errorf("it ended %v after its context", took)
					}
				}
				cancel()
				release()
				if _, err := p.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				assert.NoError(t, eng.Close())
				synctest.Wait()
			})
		})
	}
}

func utter() agents.Intent {
	d := enginetest.Draft("Speak", "", `{"message":"Hello."}`)
	return agents.Intent{Kind: d.Kind, Payload: d.Payload, ReqID: "s", ContextSeq: 100}
}

func of(agent string, in agents.Intent) agents.Intent {
	in.AgentID = agent
	return in
}

func created(id string) agents.EffectDraft {
	return enginetest.Draft("EntityCreated", "world", `{"entity_id":"`+id+`","entity_data":{"type":"agent"}}`)
}

func submitted(ctx context.Context, h *held) error {
	in := of("A", utter())
	p, err := h.world.SubmitAsync(ctx, agents.Submission{Intent: &in})
	if err == nil {
		_, err = p.Wait(ctx)
	}
	return err
}

func quantum(ctx context.Context, h *held) error {
	in := of("A", utter())
	_, err := h.world.Quantum(ctx, agents.Submission{Intent: &in})
	return err
}

func subscribes(ctx context.Context, h *held) error {
	var err error
	for _, failed := range h.ses.Subscribe(ctx, 1) {
		err = failed
	}
	return err
}

// Respond ends with its context while a judge thinks. The turn is evaluated all
// the same, and the next guidance waits for that.
func TestRespondEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan string)
		judge := enginetest.JudgeFunc(func(ctx context.Context, _ director.Question) (string, error) {
			select {
			case text := <-answer:
				return text, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
		eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Judge: judge, JudgeTimeout: time.Hour})
		require.NoError(t, err)
		ses, err := eng.Session(t.Context(), "play")
		require.NoError(t, err)
		d := ses.Director()
		require.NoError(t, d.Start(t.Context(), enginetest.Authored(t, enginetest.Tea), director.Opening{}))
		if _, err := d.Guide(t.Context(), director.TurnInput{Turn: 1, Text: "Hello."}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := d.Respond(ctx, director.Response{Turn: 1, Text: "Come in."})
			done <- err
		}()
		synctest.Wait()
		began := time.Now()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		guided := make(chan error, 1)
		go func() {
			_, err := d.Guide(t.Context(), director.TurnInput{Turn: 2, Text: "Thanks."})
			guided <- err
		}()
		synctest.Wait()
		if len(guided) > 0 {
			t.Error("the next turn does not wait for the verdicts of the last")
		}
		close(answer)
		assert.NoError(t, <-guided)
		assert.NoError(t, eng.Close())
	})
}
