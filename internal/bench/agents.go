package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/adapter/openai"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/view"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// agents measures the world that agents share: what each of them waits for at
// the document's pace, how much one world takes, and what an effect costs in worlds
// of more and more agents.
func (b *bench) agents() error {
	for _, run := range []func() error{b.pace, b.throughput, b.worlds, b.halts} {
		if err := run(); err != nil {
			return err
		}
	}
	return nil
}

// The agents of these worlds stand in rows of ten, each row out of sight of the
// next: what one of them does ten see.
const (
	rowLength  = 10
	paceAgents = 100
	pacePeriod = 10 * time.Millisecond // from one intent of an agent to its next
	worldRules = `{"cooldowns":"off","quota_intents_per_minute":-1,"quota_tokens_per_minute":-1,"staleness_threshold":1000000000,"max_queue_depth":100000}`
	agentRules = `{"distance_limit":20}`
)

var spoken = jsonValue(`{"text":"I see a door, and it is locked."}`)

func agentID(i int) string { return fmt.Sprintf("agent-%05d", i) }

func jsonValue(json string) signal.Value {
	v, err := signal.ParseValue([]byte(json))
	if err != nil {
		panic(err) // the texts are ours
	}
	return v
}

// people makes a world of n agents in a fresh store on the disk.
func (b *bench) people(n int) (*sajou.Engine, *agentslive.Agents, []*agentslive.Agent, error) {
	eng, err := sajou.Open(b.path("world-", b.fresh()), sajou.Config{})
	if err != nil {
		return nil, nil, nil, err
	}
	ses, err := eng.Session(b.ctx, "bench")
	if err != nil {
		return nil, nil, nil, errors.Join(err, eng.Close())
	}
	world := ses.Agents()
	if err := world.Configure(b.ctx, jsonValue(worldRules)); err != nil {
		return nil, nil, nil, errors.Join(err, eng.Close())
	}
	list := make([]*agentslive.Agent, n)
	err = spread(64, n, func(i int) error {
		payload := fmt.Sprintf(`{"entity_id":%q,"entity_data":{"type":"agent"},"position":[%d,%d]}`, agentID(i), i/rowLength*100, i%rowLength)
		_, err := world.Broadcast(b.ctx, agents.EffectDraft{Kind: agentworld.KindEntityCreated, SourceID: "world", Payload: jsonValue(payload)})
		if err == nil {
			list[i], err = world.Register(b.ctx, agentID(i), jsonValue(agentRules))
		}
		return err
	})
	if err == nil {
		err = world.Settle(b.ctx)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, eng.Close())
	}
	return eng, world, list, nil
}

// watch makes every agent read its observations until the engine closes.
func watch(list []*agentslive.Agent, told func(agent int, o agentslive.Observation)) *sync.WaitGroup {
	var readers sync.WaitGroup
	for i, g := range list {
		readers.Go(func() {
			for o, err := range g.Observations(context.Background()) {
				if err != nil {
					return // closed
				}
				told(i, o)
			}
		})
	}
	return &readers
}

func speak(reqID string) agents.Intent {
	return agents.Intent{Kind: agentworld.KindSpeak, Payload: spoken, ReqID: reqID}
}

// pace has a hundred agents ask for something a hundred times a second each, and each
// reads its observations. It measures from the call of Submit, once until it returns the
// durable outcome, and once until each of ten observers has its delta. The peer is the
// log itself, to which a hundred writers append at the same pace.
func (b *bench) pace() error {
	signals, err := makeSignals(paceAgents)
	if err != nil {
		return err
	}
	all, err := b.interleave("agents at their pace",
		side{"log alone", func() (measurement, error) {
			return b.onLog(func(ses *eventlog.Session) (measurement, error) {
				return b.paced(func(i, _ int) error {
					_, err := ses.Append(b.ctx, eventlog.Batch{Drafts: drafts(signals[i : i+1])})
					return err
				})
			})
		}},
		side{"agents", b.pacedAgents})
	if err != nil {
		return err
	}
	log, asked := all[0], all[1]
	b.rateAlone("100 agents, 100 intents/s each: rate", "intents", asked, 0.99*paceAgents*float64(time.Second/pacePeriod))
	b.percentileBeside("  intent to durable outcome", 0.5, asked, log, 0)
	b.percentileBeside("  intent to durable outcome", 0.99, asked, log, 3)
	b.percentileBeside("  intent to observation", 0.5, asked.observations(), log, 0)
	b.percentileBeside("  intent to observation", 0.99, asked.observations(), log, 3)
	return nil
}

// paced calls f for each of a hundred actors and each of its turns, at their pace, and
// takes the time of each call.
func (b *bench) paced(f func(actor, turn int) error) (measurement, error) {
	return pacedBy(paceAgents, b.scale.paced, pacePeriod, f)
}

// pacedAgents measures one round of the agents at their pace.
func (b *bench) pacedAgents() (measurement, error) {
	eng, world, list, err := b.people(paceAgents)
	if err != nil {
		return measurement{}, err
	}
	// Agents number effects by what they see, each from its own base on. The ten of a row see
	// the same effects in the same order, so that these have the same place behind each base.
	base := make([]uint64, len(list))
	for i := range list {
		v, err := world.Known(b.ctx, agentID(i))
		if err != nil {
			return measurement{}, errors.Join(err, eng.Close())
		}
		base[i] = v.ViewSeq
	}
	perRow := rowLength * b.scale.paced
	place := func(i int, number uint64) int { return i/rowLength*perRow + int(number-base[i]) - 1 }
	// All is allocated before it is measured, so that taking the times costs none.
	type seen struct {
		place int
		at    time.Duration
	}
	start := time.Now()
	began := make([]time.Duration, len(list)/rowLength*perRow) // from start, by place
	all := make([]seen, len(began)*rowLength)
	var noted atomic.Int64
	readers := watch(list, func(i int, o agentslive.Observation) {
		at := time.Since(start)
		if o.ViewSeq <= base[i] {
			return // how the world began
		}
		if n := noted.Add(1); int(n) <= len(all) {
			all[n-1] = seen{place(i, o.ViewSeq), at}
		}
	})
	m, err := b.paced(func(i, k int) error {
		from := time.Since(start)
		o, err := list[i].Submit(b.ctx, speak(fmt.Sprint(k)))
		if err == nil {
			began[place(i, o.GlobalSeq)] = from
		}
		return err
	})
	if err == nil {
		err = world.Settle(b.ctx)
	}
	err = errors.Join(err, eng.Close())
	readers.Wait()
	if err != nil {
		return m, err
	}
	if n := int(noted.Load()); n != len(all) {
		return m, fmt.Errorf("%d observations of %d intents, want %d", n, len(began), len(all))
	}
	for _, s := range all {
		m.observed = append(m.observed, milliseconds(s.at-began[s.place]))
	}
	slices.Sort(m.observed)
	return m, nil
}

// throughput measures how many intents one world of agents takes when all ask at once,
// each its next when it has the outcome of its last; when they come in atomic batches of
// a hundred; and from an agent that is alone. Every agent is sent its observations. The
// peer is the log itself with as many writers.
func (b *bench) throughput() error {
	signals, err := makeSignals(paceAgents)
	if err != nil {
		return err
	}
	logged := func(writers int) side {
		return side{"log alone", func() (measurement, error) {
			return b.onLog(func(ses *eventlog.Session) (measurement, error) {
				return timed(b.scale.intents, func() error {
					return spread(writers, b.scale.intents, func(i int) error {
						i %= len(signals)
						_, err := ses.Append(b.ctx, eventlog.Batch{Drafts: drafts(signals[i : i+1])})
						return err
					})
				}, nil)
			})
		}}
	}
	asked := func(count int, ask func(world *agentslive.Agents, list []*agentslive.Agent) error) side {
		return side{"agents", func() (measurement, error) {
			eng, world, list, err := b.people(count)
			if err != nil {
				return measurement{}, err
			}
			readers := watch(list, func(int, agentslive.Observation) {})
			m, err := timed(b.scale.intents, func() error {
				err := ask(world, list)
				return errors.Join(err, world.Settle(b.ctx))
			}, nil)
			err = errors.Join(err, eng.Close())
			readers.Wait()
			return m, err
		}}
	}
	each := func(_ *agentslive.Agents, list []*agentslive.Agent) error {
		var next atomic.Int64
		return spread(len(list), len(list), func(i int) error {
			for n := next.Add(1); n <= int64(b.scale.intents); n = next.Add(1) {
				if _, err := list[i].Submit(b.ctx, speak(fmt.Sprint(n))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	batches := func(world *agentslive.Agents, list []*agentslive.Agent) error {
		for n := 0; n < b.scale.intents; n += len(list) {
			batch := make([]agents.Intent, len(list))
			for i := range batch {
				batch[i] = speak(fmt.Sprint(n))
				batch[i].AgentID = agentID(i)
			}
			if _, err := world.SubmitBatch(b.ctx, batch); err != nil {
				return err
			}
		}
		return nil
	}
	all, err := b.interleave("agents as fast as they can", logged(paceAgents), asked(paceAgents, each), asked(paceAgents, batches))
	if err != nil {
		return err
	}
	b.beside("100 agents at once, each waiting for its outcome", "intents", all[1], "log alone, 100 writers", all[0], 0.25)
	b.workBeside("  processor time", all[1], "log alone, 100 writers", all[0], 0)
	b.beside("100 agents, in batches of 100", "intents", all[2], "log alone, 100 writers", all[0], 0)
	if all, err = b.interleave("one agent alone", logged(1), asked(1, each)); err != nil {
		return err
	}
	b.beside("one agent alone", "intents", all[1], "log alone, 1 writer", all[0], 0.6)
	b.workBeside("  processor time", all[1], "log alone, 1 writer", all[0], 0)
	return nil
}

// worlds measures effects in worlds of more and more agents, ten of whom see
// each: what an effect costs should follow these and not the world. They come in quanta
// of a hundred, so that the disk does not count.
func (b *bench) worlds() error {
	for _, n := range b.scale.worlds {
		eng, world, _, err := b.people(n)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("effects seen by 10 of %d agents", n)
		req := 0
		rounds, err := b.alone(name, func() (measurement, error) {
			return timed(b.scale.intents/4, func() error {
				for done := 0; done < b.scale.intents/4; done += 100 {
					subs := make([]agents.Submission, 100)
					for i := range subs {
						in := speak(fmt.Sprint(req))
						in.AgentID = agentID(req * 7919 % n)
						subs[i].Intent = &in
						req++
					}
					outcomes, err := world.Quantum(b.ctx, subs...)
					if err != nil {
						return err
					}
					for _, o := range outcomes {
						if !o.OK() {
							return o.Err()
						}
					}
				}
				return world.Settle(b.ctx)
			}, nil)
		})
		if err := errors.Join(err, eng.Close()); err != nil {
			return err
		}
		b.rateAlone(name, "effects", rounds, 0)
	}
	return nil
}

// halts measures how long after a cancel a generation stands still whose stream
// has stalled: an agent generates through the HTTP client from a server on this
// machine that sends one word and then nothing, until the request is cancelled.
func (b *bench) halts() error {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Well\"}}]}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	client, err := openai.New(openai.Config{BaseURL: server.URL, Model: "stalled"})
	if err != nil {
		return err
	}
	defer client.Close()
	eng, _, list, err := b.people(paceAgents)
	if err != nil {
		return err
	}
	name := "cancel to halt of a stalled stream"
	fmt.Fprintln(b.notes, name)
	attempt := 0
	m, err := quiet(func() (measurement, error) {
		attempt++
		times := make([]float64, b.scale.halts)
		m, err := timed(b.scale.halts, func() error { return b.halt(list, client, attempt, times) }, nil)
		slices.Sort(times)
		m.times = times
		return m, err
	})
	if err = errors.Join(err, eng.Close()); err != nil {
		return err
	}
	b.add(result{Name: name + ", p50", Value: percentile(m.times, 0.5), Unit: "ms"}, series{m})
	b.add(result{Name: name + ", p99", Value: percentile(m.times, 0.99), Unit: "ms", Goal: ptr(100), lower: true, onUnit: true}, series{m})
	return nil
}

// halt cancels generations and takes the time until each has ended.
func (b *bench) halt(list []*agentslive.Agent, client generate.Generator, attempt int, times []float64) error {
	return spread(8, len(times), func(i int) error {
		g, reqID := list[i%len(list)], fmt.Sprint("halt-", attempt, "-", i)
		begun, ended := make(chan struct{}), make(chan time.Time, 1)
		go func() {
			_, _ = generate.Run(b.ctx, g, client, generate.Request{
				ReqID: reqID, Deadline: time.Minute,
				Prompt: func(view.View) generate.Prompt {
					return generate.Prompt{Messages: []generate.ChatMessage{{Role: "user", Content: "What do you see?"}}}
				},
				Token: func(int, string) { close(begun) },
			})
			ended <- time.Now()
		}()
		<-begun
		from := time.Now()
		if found, err := g.Cancel(b.ctx, reqID); err != nil || !found {
			return fmt.Errorf("generation %s is not found: %w", reqID, err)
		}
		times[i] = milliseconds((<-ended).Sub(from))
		return nil
	})
}
