package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/signal"
)

func judgeBreaker(s *agentScenario) error {
	b := flow.Breaker{Config: flow.BreakerConfig{
		Failures:   int(s.input.get("failure_threshold").integer()),
		Recovery:   s.input.get("recovery_timeout", "recovery_timeout_s").seconds(),
		Probes:     int(s.input.get("half_open_max_calls", "half_open_limit").integer()),
		Cumulative: s.literal(),
	}}
	want := slices.Collect(s.expected.get("calls").elements())
	i := 0
	for call := range s.input.get("calls").elements() {
		if i >= len(want) {
			return fmt.Errorf("%d calls expected, there are more", len(want))
		}
		now := call.get("t", "at").seconds()
		executed := b.Allow(now)
		if ok := call.get("ok", "success").truth(); executed {
			b.Done(now, ok)
		}
		what := fmt.Sprintf("calls/%d", i)
		s.sameTruth(what+"/executed", executed, want[i].get("executed"))
		if state := want[i].get("state"); state.given() {
			ok := slices.ContainsFunc(state.texts(), func(word string) bool { return canon(word) == string(b.State()) })
			s.compare("/"+what+"/state", ok, b.State(), state)
		}
		s.sameCount(what+"/failure_count", int64(b.Failures()), want[i].get("failure_count"))
		i++
	}
	if i < len(want) {
		return fmt.Errorf("%d calls expected, there are %d", len(want), i)
	}
	return nil
}

// queueItem is what a scenario puts into a timed queue.
type queueItem struct {
	name    string
	put, at time.Duration
}

// judgeTimedQueue runs a consumer that always waits: an item that is put later but
// due earlier is delivered earlier.
func judgeTimedQueue(s *agentScenario) error {
	var puts []queueItem
	for p := range s.input.get("puts").elements() {
		put := p.get("at_ms", "put_at_ms").millis()
		at := p.get("deliver_at_ms").millis()
		if delay := p.get("delay_ms"); delay.given() {
			at = put + delay.millis()
		}
		puts = append(puts, queueItem{p.get("item").String(), put, at})
		p.get("item").all()
	}
	slices.SortStableFunc(puts, func(a, b queueItem) int { return cmp.Compare(a.put, b.put) })
	var q flow.Queue[queueItem]
	var order []string
	var times []time.Duration
	early := false
	take := func(until time.Duration) {
		for next, ok := q.Next(); ok && next <= until; next, ok = q.Next() {
			if item, tooSoon := q.Get(next - 1); tooSoon {
				early = true
				order, times = append(order, item.name), append(times, next-1)
				continue
			}
			item, _ := q.Get(next)
			now := max(next, item.put) // one that is due already comes at once
			early = early || now < item.at
			order, times = append(order, item.name), append(times, now)
		}
	}
	for _, p := range puts {
		take(p.put - 1)
		q.Put(p.at, p)
	}
	take(1<<63 - 1)
	if want := s.expected.get("order"); want.given() {
		var names []string
		for e := range want.elements() {
			names = append(names, e.String())
			e.all()
		}
		s.sameList("order", order, names)
	}
	s.sameTruth("never_before_delivery_time", !early, s.expected.get("never_before_delivery_time"))
	if want := s.expected.get("early_not_held_until_ms"); want.given() {
		until := want.millis()
		for i, name := range order {
			at := slices.IndexFunc(puts, func(p queueItem) bool { return p.name == name })
			if puts[at].at < until {
				s.compare("/early_not_held_until_ms", times[i] < until, times[i], want)
			}
		}
	}
	if want := s.expected.get("delivered_at_ms", "times_ms", "delivery_times_ms"); want.given() {
		s.sameTimes(order, times, want)
	}
	return nil
}

// sameTimes compares when items came, in their order or by their names.
func (s *agentScenario) sameTimes(order []string, times []time.Duration, want *node) {
	if want.kind() == signal.KindObject {
		for name, at := range want.members() {
			i := slices.Index(order, made(name).String())
			ok := i >= 0 && times[i] == at.millis()
			s.compare("/delivered_at_ms/"+name, ok, times, at)
		}
		return
	}
	var all []time.Duration
	for e := range want.elements() {
		all = append(all, e.millis())
	}
	s.compare("/delivered_at_ms", slices.Equal(all, times), times, want)
}

// judgeBackpressure fills a queue whose consumer is paused.
func judgeBackpressure(s *agentScenario) error {
	policy := canon(s.input.get("policy", "backpressure_policy").text())
	pressure, ok := map[string]flow.Backpressure{
		"DEFER": flow.PressureDefer, "SHED_OLDEST": flow.PressureShed, "DROP_NEWEST": flow.PressureDrop,
	}[policy]
	if !ok {
		return inapplicable("no policy of backpressure %q", policy)
	}
	if p := s.input.get("processing"); p.given() && p.text() != "paused" {
		return inapplicable("processing %v", p)
	}
	q := flow.Queue[string]{Depth: int(s.input.get("max_queue_depth", "queue_depth", "capacity").integer()), Pressure: pressure}
	var verdict flow.PutVerdict
	lost := []string{}
	for e := range s.input.get("enqueue", "items").elements() {
		item := e.text()
		var shed string
		switch verdict, shed, _ = q.Put(0, item); verdict {
		case flow.Shed:
			lost = append(lost, shed)
		case flow.Dropped, flow.Deferred:
			lost = append(lost, item)
		default:
		}
	}
	got := []string{}
	for item, ok := q.Get(0); ok; item, ok = q.Get(0) {
		got = append(got, item)
	}
	if want := s.expected.get("queue"); want.given() {
		s.sameList("queue", got, want.texts())
	}
	if want := s.expected.get("dropped", "shed", "lost"); want.given() {
		s.sameList("dropped", lost, want.texts())
	}
	want := s.expected.get("fourth", "last")
	if !want.given() {
		return nil
	}
	words := want.texts()
	meant, known := false, false
	for _, word := range words {
		verdicts := verdictsOf(word)
		known = known || verdicts != nil
		meant = meant || slices.Contains(verdicts, verdict)
	}
	if !known {
		return inapplicable("no verdict %v", want)
	}
	s.compare("/fourth", meant, verdict, want)
	return nil
}

type verdictWord struct {
	words    []string
	verdicts []flow.PutVerdict
}

// verdictWords are the outcomes of a put into a full queue, in order of precedence.
var verdictWords = []verdictWord{
	{[]string{"deferred", "defer"}, []flow.PutVerdict{flow.Deferred}},
	{[]string{"accepted", "queued", "enqueued", "kept", "shed", "oldest"}, []flow.PutVerdict{flow.Shed, flow.Queued}},
	{[]string{"dropped", "drop", "discarded", "ignored"}, []flow.PutVerdict{flow.Dropped}},
	{[]string{"rejected", "refused", "error"}, []flow.PutVerdict{flow.Dropped, flow.Deferred}},
	{[]string{"with", "without", "silently", "newest", "item", "and", "is", "no", "an", "the"}, nil},
}

// verdictsOf returns what a scenario's words, like deferred_with_error, may
// mean; nil if one of them is not known.
func verdictsOf(text string) []flow.PutVerdict {
	least := len(verdictWords)
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r == '_' || r == ' ' || r == '-' }) {
		i := slices.IndexFunc(verdictWords, func(v verdictWord) bool { return slices.Contains(v.words, word) })
		if i < 0 {
			return nil
		}
		least = min(least, i)
	}
	if least == len(verdictWords) {
		return nil
	}
	return verdictWords[least].verdicts
}

// codeWords are other names of codes.
var codeWords = map[string]agents.Code{
	"OPERATION_TIMEOUT": agents.ErrTimeout, "BACKPRESSURE": agents.ErrQueueFull, "VALIDATION": agents.ErrInvalid,
	"VALIDATION_FAILED": agents.ErrInvalid, "STALENESS_DETECTED": agents.ErrStaleContext,
}

func judgeRecovery(s *agentScenario) error {
	allowed := s.expected.get("allowed")
	for _, name := range s.input.get("errors").texts() {
		code := agents.Code(canon(name))
		if other, ok := codeWords[string(code)]; ok {
			code = other
		}
		f, ok := code.Failure()
		if !ok {
			return inapplicable("the engine has no code %q", name)
		}
		want := allowed.get(name)
		ok = slices.ContainsFunc(want.texts(), func(word string) bool { return strings.EqualFold(word, string(f.Recovery)) })
		s.compare("/allowed/"+name, ok, f.Recovery, want)
	}
	return nil
}
