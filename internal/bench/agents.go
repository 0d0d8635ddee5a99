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
	"github.com/sajou-dev/sajou-go/signal"
)

// agents measures the world that agents share: what each of them waits for at
// the document's pace, how much one world takes, and what an effect costs in worlds
// of more and more agents.
func (b *bench) agents() error {
	for _, part := range []struct {
		name string
		run  func() error
	}{{"agents at their pace", b.pace}, {"agents as fast as they can", b.throughput}, {"agents in larger worlds", b.worlds}, {"generations that stall", b.halts}} {
		fmt.Fprintln(b.notes, part.name)
		if err := part.run(); err != nil {
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
func watch(list []*agentslive.Agent, told func(o agentslive.Observation)) *sync.WaitGroup {
	var readers sync.WaitGroup
	for _, g := range list {
		readers.Go(func() {
			for o, err := range g.Observations(context.Background()) {
				if err != nil {
					return // closed
				}
				told(o)
			}
		})
	}
	return &readers
}

func speak(reqID string) agents.Intent {
	return agents.Intent{Kind: agentworld.KindSpeak, Payload: spoken, ReqID: reqID}
}

// pace has a hundred agents ask for something a hundred times a second each,
// and each reads its observations. It measures from the call of Submit, once until
// it returns the durable outcome, and once until each of ten observers has its delta.
func (b *bench) pace() error {
	alone, err := b.lonelySync()
	if err != nil {
		return err
	}
	eng, world, list, err := b.people(paceAgents)
	if err != nil {
		return err
	}
	total := paceAgents * b.scale.paced
	// Nothing is allocated while it is measured: what the notes take must not
	// be what is noted.
	type seen struct {
		seq uint64
		at  time.Duration
	}
	start := time.Now()
	began := make([]atomic.Int64, total+4*paceAgents) // from start, by global_seq; 0 for how the world began
	all := make([]seen, (total+4*paceAgents)*(rowLength+1))
	var noted atomic.Int64
	readers := watch(list, func(o agentslive.Observation) {
		at := time.Since(start)
		if n := noted.Add(1); int(n) <= len(all) {
			all[n-1] = seen{o.ViewSeq, at}
		}
	})
	durable := make([]float64, total)
	begun := time.Since(start)
	err = spread(paceAgents, paceAgents, func(i int) error {
		for k := range b.scale.paced {
			due := begun + time.Duration(k)*pacePeriod + time.Duration(i)*pacePeriod/paceAgents
			<-time.After(due - time.Since(start))
			from := time.Since(start)
			o, err := list[i].Submit(b.ctx, speak(fmt.Sprint(k)))
			if err != nil {
				return err
			}
			durable[i*b.scale.paced+k] = milliseconds(time.Since(start) - from)
			began[o.GlobalSeq].Store(int64(from))
		}
		return nil
	})
	lasted := time.Since(start) - begun
	if err == nil {
		err = world.Settle(b.ctx)
	}
	err = errors.Join(err, eng.Close())
	readers.Wait()
	if err != nil {
		return err
	}
	var delivered []float64
	for _, s := range all[:min(int(noted.Load()), len(all))] {
		if from := began[s.seq].Load(); from > 0 {
			delivered = append(delivered, milliseconds(s.at-time.Duration(from)))
		}
	}
	if len(delivered) < total*rowLength*9/10 {
		return fmt.Errorf("%d observations of %d intents", len(delivered), total)
	}
	rate, pace, most := float64(total)/lasted.Seconds(), float64(paceAgents)*float64(time.Second/pacePeriod), 5.0
	kept := 0.99 * pace
	b.results = append(b.results,
		result{Name: "100 agents, 100 intents/s each: rate", Value: rate, Unit: "intents/s", Goal: &kept, onUnit: true}.judge(),
		result{Name: "  a lone sync of raw Pebble, p99", Value: percentile(alone, 0.99), Unit: "ms"})
	for _, row := range []struct {
		name  string
		times []float64
	}{{"intent to durable outcome", durable}, {"intent to observation", delivered}} {
		beyond := percentile(row.times, 0.99) - percentile(alone, 0.99)
		b.results = append(b.results,
			result{Name: "  " + row.name + ", p50", Value: percentile(row.times, 0.5), Unit: "ms"},
			result{Name: "  " + row.name + ", p99", Value: percentile(row.times, 0.99), Unit: "ms", Goal: ptr(20.0), lower: true, onUnit: true}.judge(),
			result{Name: "  " + row.name + ", p99 beyond a sync", Value: beyond, Unit: "ms", Goal: &most, lower: true, onUnit: true}.judge())
	}
	return nil
}

func ptr(f float64) *float64 { return &f }

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// percentile sorts times and returns that of them.
func percentile(times []float64, p float64) float64 {
	slices.Sort(times)
	return times[min(int(float64(len(times))*p), len(times)-1)]
}

// lonelySync returns what single writes of raw Pebble with a sync take.
func (b *bench) lonelySync() ([]float64, error) {
	raw, err := openRaw(b.path("raw-sync-", b.fresh()))
	if err != nil {
		return nil, err
	}
	body := make([]byte, 300)
	times := make([]float64, b.scale.appends)
	for i := range times {
		from := time.Now()
		if err := raw.put(uint64(i), [][]byte{body}); err != nil {
			return nil, errors.Join(err, raw.close())
		}
		times[i] = milliseconds(time.Since(from))
	}
	return times, raw.close()
}

// throughput measures how many intents one world of a hundred agents takes
// when all ask at once, each its next when it has the outcome of its last, and when
// they come in atomic batches of a hundred. Every agent is sent its observations.
func (b *bench) throughput() error {
	goal := 10_000.0
	for _, c := range []struct {
		name string
		run  func(world *agentslive.Agents, list []*agentslive.Agent) error
	}{
		{"100 agents at once, each waiting for its outcome", func(_ *agentslive.Agents, list []*agentslive.Agent) error {
			var next atomic.Int64
			return spread(len(list), len(list), func(i int) error {
				for n := next.Add(1); n <= int64(b.scale.intents); n = next.Add(1) {
					if _, err := list[i].Submit(b.ctx, speak(fmt.Sprint(n))); err != nil {
						return err
					}
				}
				return nil
			})
		}},
		{"100 agents, in batches of 100", func(world *agentslive.Agents, list []*agentslive.Agent) error {
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
		}},
	} {
		var rates series
		for range b.scale.rounds {
			eng, world, list, err := b.people(paceAgents)
			if err != nil {
				return err
			}
			var told atomic.Int64
			readers := watch(list, func(agentslive.Observation) { told.Add(1) })
			rate, err := timed(b.scale.intents, func() error {
				err := c.run(world, list)
				return errors.Join(err, world.Settle(b.ctx))
			})
			err = errors.Join(err, eng.Close())
			readers.Wait()
			if err != nil {
				return err
			}
			rates = append(rates, rate)
		}
		b.results = append(b.results, result{
			Name: c.name, Value: rates.best(), Unit: "intents/s", spread: rates.spread(), Goal: &goal, onUnit: true,
		}.judge())
	}
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
		var rates series
		req := 0
		for range b.scale.rounds {
			rate, err := timed(b.scale.intents/4, func() error {
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
			})
			if err != nil {
				return errors.Join(err, eng.Close())
			}
			rates = append(rates, rate)
		}
		if err := eng.Close(); err != nil {
			return err
		}
		b.results = append(b.results, result{
			Name: fmt.Sprintf("effects seen by 10 of %d agents", n), Value: rates.best(), Unit: "effects/s", spread: rates.spread(),
		})
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
	times := make([]float64, b.scale.halts)
	err = spread(8, b.scale.halts, func(i int) error {
		g, reqID := list[i%len(list)], fmt.Sprint("halt-", i)
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
	if err = errors.Join(err, eng.Close()); err != nil {
		return err
	}
	b.results = append(b.results,
		result{Name: "cancel to halt of a stalled stream, p50", Value: percentile(times, 0.5), Unit: "ms"},
		result{Name: "cancel to halt of a stalled stream, p99", Value: percentile(times, 0.99), Unit: "ms", Goal: ptr(100.0), lower: true, onUnit: true}.judge())
	return nil
}
