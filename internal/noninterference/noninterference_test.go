package noninterference

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/agents/view"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/attack"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// separation is the minimum distance of a move's target from every other entity.
const separation = 1.0

// config lifts the limits that would end most runs early, and enables the checks whose
// answers could reveal hidden facts. The kinds that change entities are kinds of
// intent, as an operator may configure it.
const config = `{"quota_intents_per_minute":-1,"quota_tokens_per_minute":-1,"cooldowns":"off",
	"rules":{"min_separation":1,"max_interact_distance":5,"max_move_distance":60},
	"intent_kinds":["EntityUpdated","EntityRemoved","EntityCreated","RelationshipAdded"]}`

// liberal is a configuration in which each kind that changes entities may write the
// fields that it names.
const liberal = `{"quota_intents_per_minute":40,"quota_tokens_per_minute":3000,"cooldowns":{"Speak":60},
	"rules":{"min_separation":1,"max_interact_distance":5,"max_move_distance":60},
	"intent_kinds":[{"kind":"EntityUpdated","own":["mood","facing"],"others":["mood"]},{"kind":"EntityRemoved","remove":["others"]},
		{"kind":"EntityCreated","create":["made/"]},{"kind":"RelationshipAdded","relate":true},{"kind":"RelationshipRemoved","relate":true}]}`

// side is one of the two worlds, on the engine.
type side struct {
	name  string
	fs    vfs.FS
	eng   *sajou.Engine
	world *agentslive.Agents
	agent *agentslive.Agent
	gens  []*agentslive.Generation

	sim bool          // ticks have authority over time
	now time.Duration // of the last tick

	got []string // everything that me received, in order
}

// decide submits an intent. If ticks have authority over time, it sends one.
func (s *side) decide(sub agents.Submission) (agents.Outcome, error) {
	ctx := context.Background()
	asked, err := s.world.SubmitAsync(ctx, sub)
	if err != nil {
		return agents.Outcome{}, err
	}
	if s.sim {
		if _, err := s.world.Tick(ctx, agentslive.Tick{SimTime: s.now.Seconds(), SourceID: "clock"}); err != nil {
			return agents.Outcome{}, err
		}
	}
	return asked.Wait(ctx)
}

// pass lets time pass.
func (s *side) pass(now time.Duration) error {
	s.now = now
	if !s.sim {
		return s.world.Advance(context.Background(), now)
	}
	_, err := s.world.Tick(context.Background(), agentslive.Tick{SimTime: now.Seconds(), SourceID: "clock"})
	return err
}

func (s *side) receive(format string, args ...any) {
	s.got = append(s.got, fmt.Sprintf(format, args...))
}

func value(s string) signal.Value {
	v, err := signal.ParseValue([]byte(s))
	if err != nil {
		panic(err)
	}
	return v
}

// tolerable ends the run on an error that is not an answer of the engine to me, and so
// not a finding.
func tolerable(t *rapid.T, err error) {
	t.Helper()
	require.NoError(t, err)
}

func open(t *rapid.T, name string, w *world, p *policy, r *run) *side {
	s := &side{name: name, fs: vfs.NewMem(), sim: r.sim}
	ctx := context.Background()
	s.open(t)
	settings := config
	if r.liberal {
		settings = liberal
	}
	if s.sim {
		settings = `{"authority":"sim",` + settings[1:]
	}
	tolerable(t, s.world.Configure(ctx, value(settings)))
	tolerable(t, s.world.Begin(ctx, value(w.json())))
	for range rapid.IntRange(0, 3).Draw(t, "noise before "+name) { // before me is there
		_, err := s.decide(agents.Submission{Draft: &agents.EffectDraft{Kind: "Noise", SourceID: "nobody", Payload: value("{}")}})
		tolerable(t, err)
	}
	s.register(t, p, r)
	return s
}

// register registers me, with the settings of the run.
func (s *side) register(t *rapid.T, p *policy, r *run) {
	full := maps.Clone(p.config)
	maps.Copy(full, r.settings)
	if s.agent != nil {
		s.agent.Close()
	}
	var err error
	s.agent, err = s.world.Register(context.Background(), me, value(text(full)))
	tolerable(t, err)
}

func (s *side) open(t *rapid.T) {
	eng, err := sajou.Open("store", sajou.Config{FS: s.fs})
	tolerable(t, err)
	ses, err := eng.Begin(context.Background(), "world", map[bool]session.TimeAuthority{false: session.TimeManual, true: session.TimeSim}[s.sim])
	tolerable(t, err)
	s.eng, s.world = eng, ses.Agents()
}

// collect takes everything that me has been sent so far.
func (s *side) collect(t *rapid.T) {
	ctx := context.Background()
	tolerable(t, s.world.Settle(ctx))
	for {
		o, ok, err := s.agent.Poll(ctx)
		if err != nil {
			s.receive("poll: %v", err)
			return
		}
		if !ok {
			break
		}
		s.receive("observation %d at %v: %s", o.Number, o.At, jsondoc.AppendCanonical(nil, o.Delta.Value()))
	}
	at, ok := s.agent.NextAt()
	s.receive("next %v %v, view_seq %d", at, ok, s.agent.ViewSeq())
	for i, g := range s.gens {
		if err := g.Context().Err(); err != nil {
			s.receive("generation %d ended: %v", i, context.Cause(g.Context()))
		}
	}
	s.gens = slices.DeleteFunc(s.gens, func(g *agentslive.Generation) bool { return g.Context().Err() != nil })
}

// answer records the answer to a request of me.
func (s *side) answer(o agents.Outcome, err error) {
	line := fmt.Sprintf("outcome %v %d %s", o.Status, o.GlobalSeq, o.UUID)
	if o.Effect != nil {
		line += " " + string(jsondoc.AppendCanonical(nil, o.Effect.Value()))
	}
	if o.Rejection != nil {
		line += fmt.Sprintf(" %+v | %v", *o.Rejection, o.Rejection)
	}
	s.receive("%s | %v", line, err)
}

// accepted reports whether the outcome is an acceptance.
func accepted(o agents.Outcome) bool { return o.Rejection == nil && o.Status == agents.Accepted }

// run is one random history of two worlds.
type run struct {
	*rapid.T
	pair
	sides [2]*side
	req   int

	sim      bool           // ticks have authority over time
	liberal  bool           // the configuration liberal is in use
	settings map[string]any // of me, beside its policy
}

// drawSettings draws the settings for deliveries and interruptions of me.
func (r *run) drawSettings() {
	r.liberal = rapid.Bool().Draw(r.T, "liberal")
	r.sim = rapid.IntRange(0, 2).Draw(r.T, "sim") == 0
	r.settings = map[string]any{
		"staleness_threshold": rapid.SampledFrom([]int{0, 0, 1, 2, 300}).Draw(r.T, "staleness"),
		"interrupt":           rapid.SampledFrom([]string{"always", "only_conflict"}).Draw(r.T, "interrupt"),
		"debounce_ms":         rapid.SampledFrom([]int{0, 60, 200}).Draw(r.T, "debounce"),
	}
	switch rapid.IntRange(0, 4).Draw(r.T, "latency") {
	case 0:
		r.settings["latency_model"] = 70
	case 1:
		r.settings["latency_model"] = map[string]any{"model": "distance", "per_unit_ms": 7}
	case 2:
		r.settings["latency_model"] = map[string]any{"model": "jitter", "spread_ms": 180, "seed": 5}
	case 3:
		r.settings["latency_model"] = map[string]any{"model": "distance", "per_unit_ms": 3, "spread_ms": 90}
	}
}

func (r *run) models() [2]*world { return [2]*world{r.a, r.b} }

var (
	shownIDs  = []string{"a1", "a2", "a3"}
	hiddenIDs = []string{"h1", "h2", "h3"}
	absentIDs = []string{"x1", "h9"}
)

func (r *run) pick(label string, ids ...[]string) string {
	return rapid.SampledFrom(slices.Concat(ids...)).Draw(r.T, label)
}

func (r *run) point(label string) [2]float64 {
	return [2]float64{
		float64(rapid.IntRange(-30, 30).Draw(r.T, label+" x")),
		float64(rapid.IntRange(-30, 30).Draw(r.T, label+" y")),
	}
}

func (r *run) thing(label string) *thing {
	t := &thing{fields: map[string]any{
		"type": rapid.SampledFrom([]string{"agent", "door"}).Draw(r.T, label+" type"),
		"mood": rapid.IntRange(0, 3).Draw(r.T, label+" mood"),
	}}
	if team := rapid.SampledFrom([]string{"", "red", "blue"}).Draw(r.T, label+" team"); team != "" {
		t.fields["team"] = team
	}
	if rapid.IntRange(0, 5).Draw(r.T, label+" placed") > 0 {
		at := r.point(label)
		t.at = &at
	}
	return t
}

// begin draws two worlds that agree on the part that me may see. It returns false if
// the drawn worlds do not agree.
func (r *run) begin() bool {
	list := policies()
	r.policy = &list[rapid.IntRange(0, len(list)-1).Draw(r.T, "policy")]
	r.a, r.differ = newWorld(), map[string]bool{}
	for _, id := range slices.Concat([]string{me}, shownIDs) {
		r.a.things[id] = r.thing(id)
	}
	for range rapid.IntRange(0, 4).Draw(r.T, "ties") {
		r.a.tie(r.pick("from", []string{me}, shownIDs), r.pick("to", shownIDs))
	}
	r.b = r.a.clone()
	if r.policy.config["typed_relationships"] == nil {
		for _, w := range r.models() { // types are not shown
			for from, to := range w.ties {
				for id := range to {
					w.types[[2]string{from, id}] = rapid.SampledFrom([]string{"", "friend", "foe"}).Draw(r.T, from+id+" type")
				}
			}
		}
	}
	for _, id := range hiddenIDs {
		for i, w := range r.models() {
			if rapid.IntRange(0, 3).Draw(r.T, id+" exists") == 0 {
				continue
			}
			w.things[id] = r.thing(fmt.Sprint(id, i))
			for range rapid.IntRange(0, 2).Draw(r.T, id+" ties") {
				w.tie(id, r.pick("to", shownIDs, []string{me}))
				if rapid.Bool().Draw(r.T, "back") {
					w.tie(r.pick("from", shownIDs), id)
				}
			}
		}
		r.differ[id] = true
	}
	for _, field := range r.policy.hidden {
		for _, w := range r.models() {
			for _, id := range shownIDs {
				w.things[id].fields[field] = rapid.IntRange(0, 99).Draw(r.T, id+" "+field)
			}
		}
	}
	if r.policy.hiddenPlaces {
		for _, id := range shownIDs {
			if r.b.things[id].at != nil {
				at := r.point(id + " elsewhere")
				r.b.things[id].at = &at
			}
		}
	}
	// The engine refuses ties to missing entities at the beginning, so they are left
	// out.
	for _, w := range r.models() {
		for from, to := range w.ties {
			maps.DeleteFunc(to, func(id string, _ bool) bool { return w.things[id] == nil || id == from })
			if w.things[from] == nil {
				delete(w.ties, from)
			}
		}
	}
	return r.agree()
}

// both gives me the same input in both worlds, and requires the same answer.
func (r *run) both(what string, f func(s *side)) {
	for _, s := range r.sides {
		s.receive("> %s", what)
		f(s)
	}
}

// compare requires that me has received the same in both worlds.
func (r *run) compare() {
	a, b := r.sides[0].got, r.sides[1].got
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			r.Fatalf("%v\nbefore:\n  %s\nin world A me received\n  %s\nin world B\n  %s", &r.pair, strings.Join(a[max(0, i-6):min(i, len(a))], "\n  "), x, y)
		}
	}
}

func (r *run) reqID() string {
	if r.req > 0 && rapid.IntRange(0, 9).Draw(r.T, "repeat") == 0 {
		return fmt.Sprint("r", rapid.IntRange(1, r.req).Draw(r.T, "which"))
	}
	r.req++
	return fmt.Sprint("r", r.req)
}

// submit submits an intent of me in both worlds. It returns false if the histories may
// differ from then on, because the answer was declassified.
func (r *run) submit(kind string, payload map[string]any, apply func(w *world)) (goOn bool) {
	in := agents.Intent{
		Kind: kind, Payload: value(text(payload)), ReqID: r.reqID(),
	}
	behind := rapid.SampledFrom([]uint64{0, 0, 0, 0, 1}).Draw(r.T, "behind")
	declassified := false
	if to, ok := payload["to"].([]float64); ok && kind == agentworld.KindMove {
		declassified = r.blocked([2]float64{to[0], to[1]}, separation)
	}
	var out [2]agents.Outcome
	marks := [2]int{len(r.sides[0].got), len(r.sides[1].got)}
	r.both(fmt.Sprintf("submit %s %s %s %d behind", in.ReqID, kind, text(payload), behind), func(s *side) {
		in.ContextSeq = s.agent.ViewSeq() - min(behind, s.agent.ViewSeq())
		in.AgentID = me
		asked := in
		o, err := s.decide(agents.Submission{Intent: &asked})
		var rejection *agents.Rejection
		if err != nil && !errors.As(err, &rejection) {
			r.Fatal(err)
		}
		s.answer(o, err)
		out[slices.Index(r.sides[:], s)] = o
	})
	if declassified && out[0].Rejection != nil != (out[1].Rejection != nil) {
		// This answer alone may differ: something hidden is in the way.
		for i, o := range out {
			if o.Rejection != nil {
				r.requireDeclassified(o.Rejection)
			}
			r.sides[i].got = r.sides[i].got[:marks[i]]
		}
		return false
	}
	for i, w := range r.models() {
		if accepted(out[i]) {
			apply(w)
		}
	}
	return true
}

// requireDeclassified requires that a refusal says no more than that something
// is in the way.
func (r *run) requireDeclassified(j *agents.Rejection) {
	said := fmt.Sprintf("%+v %v", *j, j)
	for _, id := range slices.Concat(hiddenIDs, shownIDs) {
		if strings.Contains(said, `"`+id+`"`) {
			r.Fatalf("a refusal for a hidden obstacle names an entity: %s", said)
		}
	}
}

// input is one input of me. It returns false if the run is over.
func (r *run) input() bool {
	target := func() string { return r.pick("target", shownIDs, hiddenIDs, absentIDs, []string{me}) }
	switch rapid.SampledFrom([]string{"speak", "move", "move", "interact", "interact", "update", "remove", "create", "relate", "begin", "cancel", "view", "batch", "resume", "custom", "generate", "register", "known", "unrelate", "quantum", "leave"}).Draw(r.T, "input") {
	case "speak":
		payload := map[string]any{"text": "hello"}
		if channel := rapid.SampledFrom([]string{"", "public", "team", "private"}).Draw(r.T, "channel"); channel != "" {
			payload["channel"] = channel
		}
		if rapid.Bool().Draw(r.T, "to somebody") {
			payload["target_id"] = target()
		}
		return r.submit(agentworld.KindSpeak, payload, func(*world) {})
	case "move":
		to := r.point("to")
		return r.submit(agentworld.KindMove, map[string]any{"to": []float64{to[0], to[1]}}, func(w *world) { w.things[me].at = &to })
	case "interact":
		id := target()
		return r.submit(agentworld.KindInteract, map[string]any{"target_id": id, "type": "use"}, func(w *world) {
			if w.things[id] == nil || r.differ[id] {
				r.Fatalf("an interaction with %q was accepted, which me does not see\n%v", id, &r.pair)
			}
			w.tie(me, id)
			w.tie(id, me)
		})
	case "update":
		id := target()
		return r.forbidden(agentworld.KindEntityUpdated, map[string]any{"entity_id": id, "fields": map[string]any{"team": "red", "mood": 9}})
	case "remove":
		return r.forbidden(agentworld.KindEntityRemoved, map[string]any{"entity_id": target()})
	case "create":
		return r.forbidden(agentworld.KindEntityCreated, map[string]any{"entity_id": target(), "entity_data": map[string]any{}})
	case "relate":
		return r.forbidden(agentworld.KindRelationshipAdded, map[string]any{"from": me, "to": target(), "mutual": true})
	case "custom":
		return r.submit(agents.KindCustom, map[string]any{"entity_id": target()}, func(*world) {})
	case "begin":
		// With distinct ids: a request that is generated again during its generation ends
		// for one of two causes, and the wall clock decides which.
		req := agents.TokenRequest{ReqID: "g" + r.reqID(), Current: rapid.Bool().Draw(r.T, "current")}
		switch rapid.IntRange(0, 3).Draw(r.T, "goes by") {
		case 0:
			req.Reads = []string{"/entities/" + target()}
		case 1:
			req.Classes = []string{rapid.SampledFrom([]string{agentworld.KindSpeak, agentworld.KindMove, agentworld.KindInteract}).Draw(r.T, "class")}
		}
		r.both("begin a generation", func(s *side) {
			req.ContextSeq = s.agent.ViewSeq()
			g, err := s.agent.Begin(context.Background(), req)
			if err != nil {
				s.receive("begin: %v", err)
				return
			}
			s.receive("token %s", jsondoc.AppendCanonical(nil, g.Token().Value()))
			s.gens = append(s.gens, g)
		})
	case "register":
		list := policies()
		next := &list[rapid.IntRange(0, len(list)-1).Draw(r.T, "next policy")]
		was := r.policy
		if len(was.hidden) > len(next.hidden) || was.hiddenPlaces && !next.hiddenPlaces || next.config["typed_relationships"] != was.config["typed_relationships"] {
			return true // the answer would show the difference
		}
		if r.policy = next; !r.agree() {
			r.policy = was
			return true
		}
		r.both("register "+text(next.config), func(s *side) { s.register(r.T, next, r) })
	case "leave":
		r.both("leave", func(s *side) {
			tolerable(r.T, s.agent.Leave(context.Background()))
			s.collect(r.T)
			s.register(r.T, r.policy, r)
		})
	case "known":
		r.both("known", func(s *side) {
			v, err := s.world.Known(context.Background(), me)
			tolerable(r.T, err)
			n, ok := s.world.LatestViewSeq(me)
			s.receive("known %s, latest %d %v", jsondoc.AppendCanonical(nil, v.Value()), n, ok)
		})
	case "unrelate":
		payload := map[string]any{"from": me, "to": target(), "mutual": rapid.Bool().Draw(r.T, "mutual")}
		if typ := rapid.SampledFrom([]string{"", "friend"}).Draw(r.T, "type"); typ != "" {
			payload["type"] = typ
		}
		if !r.liberal {
			return r.submit(agentworld.KindRelationshipRemoved, payload, func(*world) {})
		}
		return r.submit(agentworld.KindRelationshipRemoved, payload, func(w *world) { w.untie(me, payload) })
	case "quantum":
		if r.sim {
			return true // see batch
		}
		return r.quantum()
	case "cancel":
		id := "g" + r.reqID()
		r.both("cancel "+id, func(s *side) {
			found, err := s.agent.Cancel(context.Background(), id)
			s.receive("cancelled %v %v", found, err)
		})
	case "view":
		r.both("look", func(s *side) {
			v, err := s.world.View(context.Background(), me)
			tolerable(r.T, err)
			s.receive("entities %s relationships %s digest %s", jsondoc.AppendCanonical(nil, v.VisibleEntities),
				jsondoc.AppendCanonical(nil, v.VisibleRelationships), v.ContextDigest)
		})
	case "generate":
		if r.sim {
			return true // it would wait for a tick
		}
		req, about := r.reqID(), r.pick("about", shownIDs, hiddenIDs, absentIDs)
		r.both("generate "+req, func(s *side) {
			out, err := generate.Run(context.Background(), s.agent, echo{}, generate.Request{
				ReqID: req,
				Prompt: func(v view.View) generate.Prompt {
					s.receive("prompt from %s", jsondoc.AppendCanonical(nil, v.Value()))
					return generate.Prompt{Messages: []generate.ChatMessage{{Role: "user", Content: v.ContextDigest}}}
				},
				Intent: func(said string) (agents.Intent, bool) {
					return agents.Intent{Kind: agentworld.KindSpeak, Payload: value(text(map[string]any{"text": said, "target_id": about}))}, true
				},
			})
			for i := range out.Attempts {
				s.receive("attempt %d: %+v", i, out.Attempts[i])
			}
			s.receive("generated %q %v %v", out.Text, out.Finish, out.Interruptions)
			s.answer(out.Outcome, err)
		})
	case "batch":
		if r.sim {
			return true // between ticks sim_time is that of the last effect, which is a declassified answer
		}
		in := func(kind, payload string) agents.Intent {
			return agents.Intent{AgentID: me, Kind: kind, Payload: value(payload), ReqID: r.reqID()}
		}
		batch := []agents.Intent{in(agentworld.KindSpeak, `{"text":"one"}`), in(agentworld.KindInteract, `{"target_id":"`+r.pick("target", hiddenIDs, absentIDs)+`"}`)}
		r.both("batch", func(s *side) {
			for i := range batch {
				batch[i].ContextSeq = s.agent.ViewSeq()
			}
			list, err := s.world.SubmitBatch(context.Background(), batch)
			for _, o := range list {
				s.answer(o, err)
			}
		})
	case "resume":
		again := rapid.Bool().Draw(r.T, "restart")
		older := rapid.SampledFrom([]uint64{0, 0, 1, 2, 5}).Draw(r.T, "older")
		r.both("resume", func(s *side) {
			seq := s.agent.ViewSeq()
			seq -= min(seq, older)
			s.agent.Close()
			if again {
				for _, g := range s.gens {
					tolerable(r.T, g.End(context.Background(), agents.ReasonUser))
				}
				s.gens = nil
				tolerable(r.T, s.eng.Close())
				s.open(r.T)
			}
			var err error
			s.agent, err = s.world.Resume(context.Background(), me, seq)
			tolerable(r.T, err)
		})
	}
	return true
}

// forbidden is an intent that the default permissions forbid.
func (r *run) forbidden(kind string, payload map[string]any) bool {
	if r.liberal {
		return r.allowed(kind, payload)
	}
	return r.submit(kind, payload, func(*world) {
		r.Fatalf("me was allowed %s %s by default", kind, text(payload))
	})
}

// allowed is an intent of a kind that may write fields.
func (r *run) allowed(kind string, payload map[string]any) bool {
	switch kind {
	case agentworld.KindEntityUpdated:
		payload["fields"] = map[string]any{"mood": 9, "facing": []float64{0, 1}}
		if payload["entity_id"] != me {
			payload["fields"] = map[string]any{"mood": 9}
		}
	case agentworld.KindEntityCreated:
		if rapid.Bool().Draw(r.T, "of its own") {
			payload["entity_id"] = fmt.Sprint("made/", rapid.IntRange(1, 2).Draw(r.T, "made"))
		}
	case agentworld.KindRelationshipAdded:
		if rapid.Bool().Draw(r.T, "typed") {
			payload["type"] = "friend"
		}
	}
	return r.submit(kind, payload, func(w *world) {
		id, _ := payload["entity_id"].(string)
		if to, ok := payload["to"].(string); ok {
			id = to
		}
		if r.differ[id] {
			r.Fatalf("%s of the hidden %q was accepted\n%v", kind, id, &r.pair)
		}
		switch kind {
		case agentworld.KindEntityUpdated:
			maps.Copy(w.things[id].fields, payload["fields"].(map[string]any))
		case agentworld.KindEntityRemoved:
			w.remove(id)
		case agentworld.KindEntityCreated:
			w.things[id] = &thing{fields: map[string]any{}}
		case agentworld.KindRelationshipAdded:
			w.tie(me, id)
			w.tie(id, me)
		}
	})
}

// quantum submits intents of me in one quantum with those of others: of visible agents
// in both worlds, and of hidden ones in one of them.
func (r *run) quantum() bool {
	var mine []agents.Intent
	id := r.pick("target", shownIDs, hiddenIDs, absentIDs)
	for range rapid.IntRange(1, 3).Draw(r.T, "intents") {
		in := agents.Intent{AgentID: me, ReqID: r.reqID(), Priority: rapid.IntRange(-1, 1).Draw(r.T, "priority"), Kind: agentworld.KindSpeak, Payload: value(`{"text":"at once"}`)}
		if rapid.Bool().Draw(r.T, "private") {
			in.Payload = value(text(map[string]any{"text": "at once", "channel": "private", "target_id": id}))
		}
		mine = append(mine, in)
	}
	var others []agents.Submission
	if rapid.Bool().Draw(r.T, "seen too") {
		who := r.pick("actor", shownIDs)
		others = append(others, agents.Submission{Draft: &agents.EffectDraft{Kind: agentworld.KindSpeak, SourceID: who, Payload: value(`{"text":"with you"}`)}})
		if r.models()[0].things[id] != nil && !r.differ[id] && rapid.Bool().Draw(r.T, "and gone") {
			others = append(others, agents.Submission{Draft: &agents.EffectDraft{Kind: agentworld.KindEntityRemoved, SourceID: who, Payload: value(`{"entity_id":"` + id + `"}`)}})
		}
	}
	at := rapid.IntRange(0, 2).Draw(r.T, "noisy world")
	r.both("quantum about "+id, func(s *side) {
		subs := slices.Clone(others)
		for i := range mine {
			in := mine[i]
			in.ContextSeq = s.agent.ViewSeq()
			subs = append(subs, agents.Submission{Intent: &in})
		}
		if at < 2 && s == r.sides[at] && !r.policy.all {
			subs = append(subs, agents.Submission{Draft: &agents.EffectDraft{Kind: "Noise", SourceID: "nobody", Payload: value("{}")}})
		}
		list, err := s.world.Quantum(context.Background(), subs...)
		tolerable(r.T, err)
		for _, o := range list[len(others) : len(others)+len(mine)] {
			s.answer(o, nil)
		}
		if len(others) > 1 && accepted(list[1]) {
			r.models()[slices.Index(r.sides[:], s)].remove(id)
		}
	})
	return true
}

// hidden makes a change in one world that me may not notice.
func (r *run) hidden() {
	i := rapid.IntRange(0, 1).Draw(r.T, "world")
	w, s := r.models()[i], r.sides[i]
	var here []string
	for _, id := range hiddenIDs {
		if w.things[id] != nil {
			here = append(here, id)
		}
	}
	if len(here) == 0 {
		return
	}
	id := r.pick("hidden actor", here)
	other := r.pick("other", here)
	broadcast := func(kind, source string, payload map[string]any) bool {
		o, err := s.decide(agents.Submission{Draft: &agents.EffectDraft{Kind: kind, SourceID: source, Payload: value(text(payload))}})
		var rejection *agents.Rejection
		if err != nil && !errors.As(err, &rejection) {
			r.Fatal(err)
		}
		return accepted(o)
	}
	heard := r.policy.hears != nil && r.policy.hears(w, id)
	switch rapid.SampledFrom([]string{"move", "speak", "update", "interact", "private", "whisper", "remove", "agent", "secret", "shift"}).Draw(r.T, "hidden deed") {
	case "move":
		to := r.point("hidden to")
		if r.policy.spatial && w.distance(&to) <= 21 {
			return // me sees what happens there
		}
		if broadcast(agentworld.KindMove, id, map[string]any{"to": []float64{to[0], to[1]}}) {
			w.things[id].at = &to
		}
	case "speak":
		if heard {
			return
		}
		broadcast(agentworld.KindSpeak, id, map[string]any{"text": "nobody near"})
	case "update":
		mood := rapid.IntRange(0, 99).Draw(r.T, "mood")
		broadcast(agentworld.KindEntityUpdated, id, map[string]any{"entity_id": id, "fields": map[string]any{"mood": mood}})
	case "interact":
		if id != other && broadcast(agentworld.KindInteract, id, map[string]any{"target_id": other}) {
			w.tie(id, other)
			w.tie(other, id)
		}
	case "private": // between the hidden and the seen
		broadcast(agentworld.KindSpeak, id, map[string]any{"text": "for you", "channel": "private", "target_id": r.pick("listener", shownIDs)})
	case "whisper": // between the seen
		from, to := r.pick("whisperer", shownIDs), r.pick("listener", shownIDs)
		if r.a.things[from] == nil { // then its speech is visible as that of a non-entity
			return
		}
		broadcast(agentworld.KindSpeak, from, map[string]any{"text": "psst", "channel": "private", "target_id": to})
	case "remove":
		if broadcast(agentworld.KindEntityRemoved, id, map[string]any{"entity_id": id}) {
			w.remove(id)
		}
	case "agent":
		if heard {
			return // for it speaks
		}
		g, err := s.world.Register(context.Background(), id, value(`{"policy":"self"}`))
		tolerable(r.T, err)
		r.req++
		in := agents.Intent{AgentID: id, Kind: agentworld.KindSpeak, Payload: value(`{"text":"here"}`), ReqID: fmt.Sprint("h", r.req), ContextSeq: 1 << 40}
		_, err = s.decide(agents.Submission{Intent: &in})
		var rejection *agents.Rejection
		if err != nil && !errors.As(err, &rejection) {
			r.Fatal(err)
		}
		g.Close()
	case "secret":
		if len(r.policy.hidden) > 0 && w.things["a1"] != nil {
			broadcast(agentworld.KindEntityUpdated, id, map[string]any{"entity_id": id, "fields": map[string]any{"secret": 7}})
		}
	case "shift":
		// If positions are not shown, a visible entity moves. The move itself is
		// visible, so the entity moves in both worlds, to different places.
		if !r.policy.hiddenPlaces {
			return
		}
		who := r.pick("shifted", shownIDs)
		if r.a.things[who] == nil {
			return
		}
		for k, w := range r.models() {
			to := r.point(fmt.Sprint("shift ", k))
			o, err := r.sides[k].decide(agents.Submission{Draft: &agents.EffectDraft{Kind: agentworld.KindMove, SourceID: who, Payload: value(text(map[string]any{"to": []float64{to[0], to[1]}}))}})
			tolerable(r.T, err)
			if accepted(o) {
				w.things[who].at = &to
			}
		}
	}
}

// shown makes the same change in both worlds, visible to me or not.
func (r *run) shown() {
	who, other := r.pick("actor", shownIDs), r.pick("other", shownIDs)
	if r.a.things[who] == nil || r.a.things[other] == nil {
		return
	}
	kind, payload := "", map[string]any{}
	apply := func(*world) {}
	switch rapid.SampledFrom([]string{"move", "speak", "interact", "update"}).Draw(r.T, "deed") {
	case "move":
		if r.policy.hiddenPlaces {
			return // see shift
		}
		to := r.point("to")
		kind, payload = agentworld.KindMove, map[string]any{"to": []float64{to[0], to[1]}}
		apply = func(w *world) { w.things[who].at = &to }
	case "speak":
		kind, payload = agentworld.KindSpeak, map[string]any{"text": "good day"}
	case "interact":
		if who == other {
			return
		}
		kind, payload = agentworld.KindInteract, map[string]any{"target_id": other}
		apply = func(w *world) { w.tie(who, other); w.tie(other, who) }
	case "update":
		mood := rapid.IntRange(0, 9).Draw(r.T, "mood")
		kind, payload = agentworld.KindEntityUpdated, map[string]any{"entity_id": who, "fields": map[string]any{"mood": mood}}
	}
	for i, w := range r.models() {
		o, err := r.sides[i].decide(agents.Submission{Draft: &agents.EffectDraft{Kind: kind, SourceID: who, Payload: value(text(payload))}})
		tolerable(r.T, err)
		if accepted(o) {
			apply(w)
		}
	}
}

// echo is a generator that answers with its prompt.
type echo struct{}

func (echo) Name() string { return "echo" }

func (echo) Generate(_ context.Context, p generate.Prompt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("I saw "+p.Messages[0].Content, nil) }
}

// TestAttackNonInterference runs random pairs of worlds that agree on the part that an
// agent may see, gives the agent the same inputs in both, makes hidden changes in one
// of them, and requires that the agent receives the same bytes in both.
func TestAttackNonInterference(t *testing.T) {
	for range attack.Rounds(1, 60) {
		rapid.Check(t, history)
	}
}

// history is one random history of two worlds.
func history(rt *rapid.T) {
	r := &run{T: rt}
	if !r.begin() {
		rt.Skip("the drawn worlds do not agree")
	}
	r.drawSettings()
	for i, w := range r.models() {
		r.sides[i] = open(rt, string(rune('A'+i)), w, r.policy, r)
		defer func(s *side) {
			if err := s.eng.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
				rt.Error(err)
			}
		}(r.sides[i])
	}
	now := time.Duration(0)
	for _, s := range r.sides {
		s.collect(rt)
	}
	r.compare()
	for range rapid.IntRange(1, 25).Draw(rt, "steps") {
		goOn := true
		switch rapid.SampledFrom([]string{"input", "input", "input", "hidden", "hidden", "shown"}).Draw(rt, "step") {
		case "input":
			goOn = r.input()
		case "hidden":
			r.hidden()
		case "shown":
			r.shown()
		}
		if !goOn {
			return
		}
		if !r.agree() {
			return // from here on me may see the difference
		}
		now += 50 * time.Millisecond
		for _, s := range r.sides {
			require.NoError(rt, s.pass(now))
			s.collect(rt)
		}
		r.compare()
	}
}
