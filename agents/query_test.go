package agents_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/signal"
)

// drawLog draws what happened in a world: every kind of record, at any time.
func drawLog(t *rapid.T) []kept {
	r := newRun(t)
	r.must(r.core.Configure(parse(t, rapid.SampledFrom(coreConfigs).Draw(t, "config"))))
	register := func(id string) {
		r.must(r.core.Register(agents.Registration{AgentID: id, Policy: parse(t, rapid.SampledFrom(lenses).Draw(t, "lens"))}))
	}
	for _, id := range ids[:3] {
		register(id)
	}
	for range rapid.IntRange(5, 40).Draw(t, "steps") {
		id := rapid.SampledFrom(ids[:3]).Draw(t, "agent")
		req := fmt.Sprint("r", rapid.IntRange(0, 3).Draw(t, "req"))
		var records []signal.Record
		switch rapid.IntRange(0, 12).Draw(t, "step") {
		case 0, 1, 2, 3, 4:
			e := drawEffect(t, 1)
			_, records = r.core.Broadcast(r.now, agents.EffectDraft{Kind: e.Kind, Payload: e.Payload, SourceID: e.SourceID})
		case 5, 6:
			ask := agents.TokenRequest{AgentID: id, ReqID: req, Deadline: time.Duration(rapid.IntRange(0, 900).Draw(t, "deadline")) * time.Millisecond}
			ask.Current = rapid.IntRange(0, 3).Draw(t, "current") > 0
			switch rapid.IntRange(0, 2).Draw(t, "goes by") {
			case 1:
				ask.Reads = []string{"/entities/" + rapid.SampledFrom([]string{"a", "b", "e/hp"}).Draw(t, "read")}
			case 2:
				ask.Classes = []string{"Move", "Speak"}
			}
			_, records, _ = r.core.Issue(r.now, ask)
		case 7:
			in := drawIntent(t, r.core)
			in.AgentID, in.ReqID = id, req
			_, records = r.core.Submit(r.now, in)
		case 8:
			if records = r.core.Expire(r.now); len(records) == 0 {
				records, _ = r.core.Cancel(id, req, rapid.SampledFrom([]string{"", "given up"}).Draw(t, "reason"))
			}
		case 9:
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				records, _ = r.core.Leave(id)
			case 1:
				records, _ = r.core.Configure(parse(t, rapid.SampledFrom(coreConfigs).Draw(t, "config")))
			default:
				register(id)
			}
		default:
			r.advance(time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond)
		}
		r.keep(records)
	}
	return r.log
}

// made is a delivery as it came out of a core, with the entry that made it.
type made struct {
	entry int
	agents.Delivery
}

// history is a log folded in the plain way, as the tests' own witness.
type history struct {
	log  []kept
	made map[string][]made
	from map[string][]int // entries by which an agent was registered when it was not
	left map[string][]int // entries by which it left
	gone map[[2]string][]agents.Cancellation
}

func fold(t *rapid.T, log []kept) *history {
	h := &history{
		log: log, made: map[string][]made{}, from: map[string][]int{}, left: map[string][]int{},
		gone: map[[2]string][]agents.Cancellation{},
	}
	c, err := agents.NewCore(options)
	require.NoError(t, err)
	for i, k := range log {
		before := slices.Collect(c.Agents())
		out := c.Apply(k.at, k.record)
		after := slices.Collect(c.Agents())
		for _, id := range ids {
			switch was, is := slices.Contains(before, id), slices.Contains(after, id); {
			case is && !was:
				h.from[id] = append(h.from[id], i)
			case was && !is:
				h.left[id] = append(h.left[id], i)
			}
		}
		for _, d := range out.Deliveries {
			h.made[d.Agent] = append(h.made[d.Agent], made{i, d})
		}
		for _, g := range out.Cancellations {
			key := [2]string{g.Agent, g.ReqID}
			h.gone[key] = append(h.gone[key], g)
		}
	}
	return h
}

// knows returns the view that the deltas lead to which reached an agent by an
// instant, of those that the entries up to one made.
func (h *history) knows(t *rapid.T, agent string, entry int, instant time.Duration) (view signal.Value, delivered []made) {
	since := -1
	for _, i := range h.from[agent] {
		if i <= entry {
			since = i
		}
	}
	for _, i := range h.left[agent] {
		if i <= entry && i > since {
			instant = min(instant, h.log[i].at)
		}
	}
	view = parse(t, `{"visible_entities":{},"visible_relationships":{}}`)
	for _, d := range h.made[agent] {
		if d.entry < since || d.entry > entry || d.At > instant {
			continue
		}
		var err error
		if view, err = jsondoc.ApplyPatch(view, d.Delta.Patches); err != nil {
			t.Fatal(err)
		}
		delivered = append(delivered, d)
	}
	return view, delivered
}

func documentOf(v view.View) string {
	return `{"visible_entities":` + canonical(v.VisibleEntities) + `,"visible_relationships":` + canonical(v.VisibleRelationships) + `}`
}

// TestWitnesses shows that the witnesses report the same facts as a plain fold of the
// same log.
func TestWitnesses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := fold(t, drawLog(t))
		agent := rapid.SampledFrom(ids[:3]).Draw(t, "asked about")
		path := rapid.SampledFrom([]string{
			"/visible_entities/a", "/visible_entities/b/hp", "/visible_entities/e/bag/a~1b", "/visible_entities/f/last_message",
			"/visible_relationships/a/0", "/visible_entities/c~0~1d/position/0", "/visible_entities", "/context_digest",
		}).Draw(t, "path")
		told, watch := query.NewDeliveredView(agent), watchOf(t, agent, path, nil)
		leaks, secret := query.NewLeakWatch(agent, query.LeakQuery{Path: pointer(t, path)}), query.NewLeakWatch(agent, query.LeakQuery{Text: "群"})
		requests := map[string]*query.RequestWatch{}
		for i := range 4 {
			requests[fmt.Sprint("r", i)] = query.NewRequestWatch(agent, fmt.Sprint("r", i))
		}
		c, err := agents.NewCore(options)
		require.NoError(t, err)
		var sightings []query.PathChange
		leaked, secrets := 0, 0
		for i, k := range h.log {
			s := query.Fold(c, uint64(i), k.at, k.record)
			require.NoError(t, told.Apply(&s))
			sightings = append(sightings, watch.Apply(c, &s)...)
			leaked += inViews(leaks.Apply(c, &s))
			secrets += inViews(secret.Apply(c, &s))
			for _, w := range requests {
				w.Apply(c, &s)
			}
			h.checkTold(t, told, c, agent, i)
		}
		h.checkSightings(t, agent, path, sightings, watch.Coming())
		h.checkLeaks(t, agent, path, leaked, leaks.Stats)
		if spoken := strings.Contains(fmt.Sprint(h.patches(agent)), "群"); spoken != (secrets > 0) {
			t.Fatalf("the text stands in a patch: %v, and was found %d times", spoken, secrets)
		}
		for req, w := range requests {
			h.checkRequest(t, w.Report(), h.gone[[2]string{agent, req}])
		}
	})
}

// inViews returns how many of the leaks were in deltas.
func inViews(list []query.Leak) (n int) {
	for _, l := range list {
		if l.Route == query.RouteView {
			n++
		}
	}
	return n
}

func pointer(t rapid.TB, s string) jsondoc.Pointer {
	t.Helper()
	p, err := jsondoc.ParsePointer(s)
	if err != nil {
		t.Fatal(err)
	}
	if p.String() != s {
		t.Fatalf("%q is written %q", s, p)
	}
	return p
}

func watchOf(t rapid.TB, agent, path string, is signal.Value) *query.PathWatch {
	t.Helper()
	return query.NewPathWatch(agent, pointer(t, path), is)
}

func (h *history) checkTold(t *rapid.T, told *query.DeliveredView, c *agents.Core, agent string, i int) {
	want, delivered := h.knows(t, agent, i, h.log[i].at)
	got := told.View()
	if diff := cmp.Diff(canonical(want), documentOf(got)); diff != "" {
		t.Fatalf("entry %d: what %q knows (-deltas +told)\n%s", i, agent, diff)
	}
	if len(delivered) > 0 {
		last := delivered[len(delivered)-1].Delta
		if got.ViewSeq != last.ViewSeq || got.ContextDigest != last.ContextDigest() || got.Digest() != last.ContextDigest() {
			t.Fatalf("entry %d: %d %s, the last delta says %d %s", i, got.ViewSeq, got.ContextDigest, last.ViewSeq, last.ContextDigest())
		}
	}
	// With nothing in flight, the delivered view is the view of the core.
	by, all, ok := query.DeliveredBy(c, agent)
	if ok != slices.Contains(slices.Collect(c.Agents()), agent) {
		t.Fatalf("entry %d: known: %v", i, ok)
	}
	if ok {
		if want, _ := h.knows(t, agent, i, all); canonical(want) != documentOf(by.View()) {
			t.Fatalf("entry %d: by %v it was sent %s, want %s", i, all, documentOf(by.View()), canonical(want))
		}
		if arrived := len(told.Pending()) == 0; arrived != (all <= h.log[i].at) {
			t.Fatalf("entry %d: nothing on its way: %v; the last arrives at %v of %v", i, arrived, all, h.log[i].at)
		}
	}
}

// checkSightings goes through the deltas one by one and looks where the path
// changes.
func (h *history) checkSightings(t *rapid.T, agent, path string, told, coming []query.PathChange) {
	end := len(h.log) - 1
	var want []string
	had := ""
	since := -1
	for _, d := range h.made[agent] {
		if slices.Contains(h.from[agent], d.entry) {
			had, since = "", d.entry
		}
		arrived := true
		for _, i := range h.left[agent] {
			// It left before, or the agent is gone and nothing comes any more.
			if i > since && i > d.entry && d.At > h.log[i].at && since <= d.entry {
				arrived = false
			}
		}
		doc, _ := h.knows(t, agent, d.entry, 1<<62)
		view := view.View{AgentID: agent, ViewSeq: d.Delta.ViewSeq, ContextDigest: d.Delta.ContextDigest()}
		view.VisibleEntities, _ = doc.Get("visible_entities")
		view.VisibleRelationships, _ = doc.Get("visible_relationships")
		value, ok := pointer(t, path).In(view.Value())
		is := ""
		if ok {
			is = canonical(value)
		}
		if is != had && arrived {
			want = append(want, fmt.Sprint(d.entry, d.At, d.Number, is))
		}
		had = is
	}
	var got []string
	for _, s := range slices.Concat(told, coming) {
		text := ""
		if s.Value != nil {
			text = canonical(s.Value)
		}
		got = append(got, fmt.Sprint(s.Entry, s.Delivery.At, s.Delivery.Number, text))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s of %q (-deltas +watch)\n%s", path, agent, diff)
	}
	for _, s := range coming {
		if s.Delivery.At <= h.log[end].at {
			t.Fatalf("%d is on its way for %v, and it is %v", s.Delivery.Number, s.Delivery.At, h.log[end].at)
		}
	}
}

func (h *history) patches(agent string) (list []signal.Value) {
	for _, d := range h.made[agent] {
		list = append(list, jsondoc.PatchValue(d.Delta.Patches))
	}
	return list
}

// checkLeaks: what is in no view that was ever made was never told.
func (h *history) checkLeaks(t *rapid.T, agent, path string, leaks int, looked query.SearchStats) {
	if path == "/visible_entities" || path == "/context_digest" {
		return // every delta touches the one; the other is in no patch
	}
	had, ops := false, 0
	for _, d := range h.made[agent] {
		doc, _ := h.knows(t, agent, d.entry, 1<<62)
		_, ok := pointer(t, path).In(doc)
		had = had || ok
		ops += len(d.Delta.Patches)
	}
	// A delta replaces a list as a whole, an entity at or below its path.
	if had != (leaks > 0) {
		t.Fatalf("%s was in a view of %q: %v, and leaked %d times", path, agent, had, leaks)
	}
	if int(looked.Deltas) != len(h.made[agent]) || int(looked.Operations) != ops {
		t.Fatalf("%+v, there were %d deltas of %d operations", looked, len(h.made[agent]), ops)
	}
}

// checkRequest checks that the report has all cancellations in order, with their
// reasons, and for a stale one the effects that made it stale.
func (h *history) checkRequest(t *rapid.T, r query.RequestReport, gone []agents.Cancellation) {
	var want, got []string
	for _, g := range gone {
		want = append(want, fmt.Sprint(g.At, g.Reason))
	}
	for i, g := range r.Generations {
		if g.End == query.EndNone && i < len(r.Generations)-1 {
			t.Fatalf("generation %d of %d runs for ever", i, len(r.Generations))
		}
		if g.End != query.EndStale && g.End != query.EndNone && slices.ContainsFunc(g.Later, func(n query.LaterDelivery) bool { return n.Decisive }) {
			t.Fatalf("entry %d: %s, and a delta is said to have decided it", g.EndEntry, g.End)
		}
		if g.End == query.EndAccepted && slices.ContainsFunc(g.Later, func(n query.LaterDelivery) bool { return n.Entry == g.EndEntry }) {
			t.Fatalf("entry %d: its own effect is newer than what it is based on", g.EndEntry)
		}
		if !g.End.Cancelled() {
			continue
		}
		got = append(got, fmt.Sprint(g.EndAt, g.Reason))
		if strings.HasPrefix(g.Reason, agents.ReasonStale) != (g.End == query.EndStale) {
			t.Fatalf("entry %d: %s, by %s", g.EndEntry, g.End, g.Reason)
		}
		if g.End != query.EndStale {
			continue
		}
		latest, gap, decisive := g.Token.ContextSeq, 0, 0
		for _, n := range g.Later {
			if seq := n.Delivery.Delta.ViewSeq; seq > latest {
				latest, gap = seq, gap+1
			}
			if n.Decisive {
				decisive++
			}
		}
		if gap := fmt.Sprintf("_seq_gap_%d_threshold_%d", gap, g.Settings.Staleness); !strings.HasSuffix(g.Reason, gap) {
			t.Fatalf("%s, and the news says %s", g.Reason, gap)
		}
		switch word := h.log[g.EndEntry].record.Word; {
		case decisive == 1:
		case decisive == 0 && word == agents.WordConfig: // another threshold
		default:
			t.Fatalf("entry %d, %s: %d news decided that %s", g.EndEntry, word, decisive, g.Reason)
		}
		if g.PutOff != (g.StaleAt < g.EndAt) && h.log[g.EndEntry].record.Word != agents.WordConfig {
			t.Fatalf("stale since %v, cancelled at %v, put off: %v", g.StaleAt, g.EndAt, g.PutOff)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%q of %q (-cancelled +reported)\n%s", r.ReqID, r.AgentID, diff)
	}
}
