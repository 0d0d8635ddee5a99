package agents_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/signal"
)

// The core answers drawn requests as it did: with the same outcomes, records, deliveries,
// views and states. What is drawn depends on the version of rapid too: with another one
// the trace is written again.
func TestRecordedCores(t *testing.T) {
	golden.Trace(t, "testdata/trace.txt", func(step func(name, text string)) {
		for n := range 90 {
			for i, text := range rapid.Custom(recordedCore).Example(n) {
				step(fmt.Sprintf("%d %d", n, i), text)
			}
		}
	})
}

func recordedCore(t *rapid.T) (steps []string) {
	r := newRun(t)
	r.must(r.core.Configure(parse(t, rapid.SampledFrom(coreConfigs).Draw(t, "config"))))
	for _, id := range ids[:4] {
		r.must(r.core.Register(agents.Registration{AgentID: id, Policy: parse(t, rapid.SampledFrom(lenses).Draw(t, "lens"))}))
	}
	agent := func() string { return rapid.SampledFrom(ids[:5]).Draw(t, "agent") }
	number := func(n int) int { return rapid.IntRange(0, n).Draw(t, "number") }
	for range rapid.IntRange(20, 40).Draw(t, "steps") {
		var out strings.Builder
		say := func(values ...any) { fmt.Fprintln(&out, values...) }
		var records []signal.Record
		switch rapid.IntRange(0, 12).Draw(t, "step") {
		case 0, 1, 2:
			in := drawIntent(t, r.core)
			o, rs := r.core.Submit(r.now, in)
			say("submit", in.Value(), o.Value(), o.Err())
			records = rs
		case 3:
			e := drawEffect(t, 1)
			o, rs := r.core.Broadcast(r.now, agents.EffectDraft{Kind: e.Kind, Payload: e.Payload, SourceID: e.SourceID})
			say("broadcast", o.Value())
			records = rs
		case 4, 5:
			records = r.quantum(t)
		case 6:
			d := r.core.DecideBatch(r.now, []agents.Intent{drawIntent(t, r.core), drawIntent(t, r.core)})
			for _, o := range d.Outcomes {
				say("batch", o.Value())
			}
			records = d.Records
		case 7, 8:
			req := agents.TokenRequest{AgentID: agent(), ReqID: fmt.Sprint("r", number(12)), Current: number(3) > 0, ContextSeq: uint64(number(9)), Deadline: time.Duration(number(300)) * time.Millisecond, Budget: int64(number(3) * 8), Prompted: number(1) == 0}
			if number(1) == 0 {
				req.Reads = []string{"/entities/" + agent()}
			}
			if number(3) == 0 {
				req.Classes = []string{"Speak", "Move"}
			}
			token, rs, err := r.core.Issue(r.now, req)
			say("issue", token.Value(), err)
			records = rs
		case 9:
			switch number(4) {
			case 0:
				rs, ok := r.core.Cancel(agent(), fmt.Sprint("r", number(12)), []string{"", "because"}[number(1)])
				say("cancel", ok)
				records = rs
			case 1:
				records = r.core.Withdraw(agent(), fmt.Sprint("r", number(12)))
			case 2:
				rs, err := r.core.Generated(agent(), fmt.Sprint("r", number(12)), parse(t, `{"text":"hi"}`))
				say("generated", err)
				records = rs
			default:
				records = r.core.Expire(r.now)
			}
		case 10:
			id := agent()
			var err error
			switch number(6) {
			case 0:
				records, err = r.core.Leave(id)
			case 1:
				records, err = r.core.Configure(parse(t, rapid.SampledFrom(coreConfigs).Draw(t, "config")))
			default:
				records, err = r.core.Register(agents.Registration{AgentID: id, Policy: parse(t, rapid.SampledFrom(lenses).Draw(t, "lens"))})
			}
			say("change", id, err)
		default:
			r.pass(time.Duration([]int{0, 1, 20, 50, 400, 1000, 20_000, 60_000}[number(7)]) * time.Millisecond)
		}
		gone := len(r.gone)
		r.keep(records)
		for _, record := range records {
			say(record.Word, record.Value)
		}
		say(r.gone[gone:])
		at, due := r.core.Next()
		boundary, more := r.core.NextBoundary()
		say(r.now, at, due, boundary, more, r.core.Due(r.now), r.core.Seq(), r.core.Now())
		for _, id := range ids[:5] {
			settings, ok := r.core.Settings(id)
			say(id, fmt.Sprintf("%+v %v %+v", settings, ok, r.core.AdmissionStatus(r.now, id)), r.core.LatestViewSeq(r.now, id), r.core.ContextSeq(r.now, id, 2), r.core.Number(id, r.core.Seq()), r.core.ViewSeqOf(id, 3), r.core.Reached(id, r.now))
			for _, token := range r.core.Tokens(id) {
				say(token.Value())
			}
			if complete, ok := r.core.Complete(id); ok {
				say("complete", complete)
			}
			if v, ok := r.core.View(id); ok {
				say(v.Value())
			}
			if d, ok := r.core.FullView(id); ok {
				say(d.Number, d.At, d.Delta.Value())
			}
			say(r.core.Receives(id, world.Effect{Kind: "Speak", SourceID: ids[0], Payload: parse(t, `{"text": "hi"}`)}))
			if o, ok := r.core.Answered(id, "r1"); ok {
				say(o.Value())
			}
		}
		state := r.core.AppendState(nil)
		say(fmt.Sprintf("%x", state))
		for range 2 {
			broken := append([]byte(nil), state...)
			i := number(len(broken) - 1)
			broken[i] = []byte{broken[i] + 1, broken[i] - 1, 0, 0xc0}[number(3)]
			if c, err := agents.RestoreCore(broken, options); err != nil {
				say(i, err)
			} else {
				say(fmt.Sprintf("%d %x", i, c.AppendState(nil)))
			}
		}
		if number(5) == 0 {
			c, err := agents.RestoreCore(state, options)
			if err != nil {
				t.Fatal(err)
			}
			c.Bind("w", r)
			r.core = c
		}
		steps = append(steps, out.String())
	}
	return steps
}
