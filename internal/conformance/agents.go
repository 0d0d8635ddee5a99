package conformance

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

// agentKinds are the kinds of scenario about agents, and how each is judged.
var agentKinds = map[string]func(s agentScenario) error{
	"visibility":            judgeVisibility,
	"field_visibility":      judgeFields,
	"event_visibility":      judgeEvents,
	"view_seq":              judgeViewSeq,
	"ordering":              judgeOrdering,
	"ordering_permutations": judgePermutations,
	"move":                  judgeMove,
	"submit":                judgeSubmit,
	"submit_worlds":         judgeWorlds,
	"interruption":          judgeInterruption,
	"delta":                 judgeDelta,
	"patch_apply":           judgePatch,
	"chain":                 judgeChain,
	"integrity":             judgeIntegrity,
	"replay":                judgeReplay,
	"circuit_breaker":       judgeBreaker,
	"timed_queue":           judgeTimedQueue,
	"backpressure":          judgeBackpressure,
	"pipeline_order":        judgePipeline,
	"recovery":              judgeRecovery,
}

// agentScenario is one file about agents.
type agentScenario struct {
	id, kind, title string
	tags            []string
	input, expected signal.Value
}

// literal says that the file follows the letter of the document's sketches.
func (s agentScenario) literal() bool { return slices.Contains(s.tags, "seed-literal") }

// readAgents reads a file with one scenario about agents. What follows the
// letter of a sketch is counted apart, since a mode of the engine runs it.
func readAgents(file string) ([]Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	v, err := signal.ParseValue(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s := agentScenario{
		id: textAt(v, "id"), kind: textAt(v, "kind"), title: textAt(v, "title"), tags: names(v, "tags"),
		input: get(v, "input"), expected: get(v, "expected"),
	}
	if s.id == "" || s.kind == "" {
		return nil, fmt.Errorf("%s: want id and kind", filepath.Base(file))
	}
	c := Case{Name: s.id + " " + s.title}
	for _, tag := range []string{"seed-literal", "format-literal"} {
		if slices.Contains(s.tags, tag) {
			c.Apart = tag
		}
	}
	judge, ok := agentKinds[s.kind]
	if !ok {
		c.Inapplicable = fmt.Sprintf("no harness for the kind %q", s.kind)
		return []Case{c}, nil
	}
	c.Judge = func() error { return judge(s) }
	return []Case{c}, nil
}

// get, textAt, names, numberAt and truth read members; what is missing is zero.
func get(v signal.Value, names ...string) signal.Value {
	for _, name := range names {
		if m, ok := v.Get(name); ok {
			return m
		}
	}
	return nil
}

func textAt(v signal.Value, name string) string {
	s, _ := get(v, name).Text()
	return s
}

func names(v signal.Value, name string) []string {
	var list []string
	for e := range get(v, name).Elements() {
		if s, ok := e.Text(); ok {
			list = append(list, s)
		}
	}
	return list
}

func numberAt(v signal.Value, name string) float64 {
	f, _ := get(v, name).Float64()
	return f
}

func integer(v signal.Value, name string) int64 {
	i, _ := get(v, name).Int64()
	return i
}

func truth(v signal.Value, name string) bool {
	b, _ := get(v, name).Bool()
	return b
}

func millis(v signal.Value, name string) time.Duration {
	return time.Duration(math.Round(float64(numberAt(v, name) * 1e6)))
}

func canonical(v signal.Value) string { return string(agents.AppendCanonical(nil, v)) }

// same compares as JSON, where a number is its value.
func same(a, b signal.Value) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	_, err := agents.ApplyPatch(a, []agents.Operation{{Op: "test", Path: "", Value: b}})
	return err == nil
}

// made makes a value of Go values; the harness gives only what JSON can hold.
func made(format string, args ...any) signal.Value {
	v, err := signal.ParseValue(fmt.Appendf(nil, format, args...))
	if err != nil {
		panic("conformance: " + err.Error())
	}
	return v
}

// sim runs one world as an engine would: it folds what is decided, at a clock
// that the scenario sets.
type sim struct {
	core   *agents.Core
	now    time.Duration
	base   uint64 // the world's sequence number after set-up
	deltas map[string][]agents.Delta
	log    []signal.Value // the effects, as recorded
	gone   []agents.Cancellation
}

func newSim(world string) (*sim, error) {
	core, err := agents.NewCore(agents.Options{})
	if err != nil {
		return nil, err
	}
	core.Bind(world, nil)
	return &sim{core: core, deltas: map[string][]agents.Delta{}}, nil
}

// keep folds records.
func (s *sim) keep(records []agents.Record, err error) error {
	if err != nil {
		return err
	}
	for _, r := range records {
		out := s.core.Apply(s.now, r)
		if out.Err != nil {
			return out.Err
		}
		s.take(out)
	}
	return nil
}

func (s *sim) take(out agents.Applied) {
	for _, d := range out.Deliveries {
		s.deltas[d.Agent] = append(s.deltas[d.Agent], d.Delta)
	}
	s.gone = append(s.gone, out.Cancellations...)
	if out.Effect != nil {
		s.log = append(s.log, out.Effect.Value())
	}
}

func (s *sim) at(now time.Duration) {
	s.now = max(s.now, now)
	s.take(s.core.Advance(s.now))
}

func (s *sim) broadcast(d agents.Draft) error {
	o, records := s.core.Broadcast(s.now, d)
	if err := o.Err(); err != nil {
		return err
	}
	return s.keep(records, nil)
}

func (s *sim) register(id string, policy signal.Value, permissions []string) error {
	return s.keep(s.core.Register(agents.Registration{AgentID: id, Policy: policy, Permissions: permissions}))
}

// begin sets a world up from a document; relations with types may stand beside it.
func (s *sim) begin(world, typed signal.Value) error {
	if typed != nil {
		world = made(`{"entities":%v,"relationships":%v,"spatial_index":%v,"typed_relationships":%v}`,
			orEmpty(get(world, "entities")), orEmpty(get(world, "relationships")), orEmpty(get(world, "spatial_index")), typed)
	}
	return s.keep(s.core.Begin(world))
}

func orEmpty(v signal.Value) signal.Value {
	if v == nil {
		return made("{}")
	}
	return v
}

func readDraft(v signal.Value) agents.Draft {
	return agents.Draft{Kind: textAt(v, "kind"), Payload: get(v, "payload"), SourceID: textAt(v, "source_id"), SchemaVersion: textAt(v, "schema_version")}
}

func judgeVisibility(s agentScenario) error {
	agent := textAt(s.input, "agent_id")
	w, err := looking(s, map[string]signal.Value{agent: get(s.input, "policy")})
	if err != nil {
		return err
	}
	view, _ := w.core.View(agent)
	return sameSet("visible_entities", visible(view, agent, truth(s.expected, "excluding_self")),
		without(names(s.expected, "visible_entities"), agent, truth(s.expected, "excluding_self")))
}

// looking sets up a scenario's world with agents that look at it.
func looking(s agentScenario, policies map[string]signal.Value) (*sim, error) {
	w, err := newSim("conformance")
	if err != nil {
		return nil, err
	}
	if err := w.begin(get(s.input, "world"), get(s.input, "typed_relationships")); err != nil {
		return nil, err
	}
	for _, id := range sortedKeys(policies) {
		if err := w.register(id, policies[id], nil); err != nil {
			return nil, err
		}
	}
	w.base = w.core.Seq()
	return w, nil
}

func visible(v agents.View, agent string, excluding bool) []string {
	var ids []string
	for id := range v.VisibleEntities.Members() {
		ids = append(ids, id)
	}
	return without(ids, agent, excluding)
}

func without(ids []string, agent string, excluding bool) []string {
	if excluding {
		return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == agent })
	}
	return ids
}

func sameSet(what string, got, want []string) error {
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: %q, want %q", what, got, want)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func judgeFields(s agentScenario) error {
	agent, entity := textAt(s.input, "agent_id"), textAt(s.input, "entity_id")
	w, err := looking(s, map[string]signal.Value{agent: get(s.input, "policy")})
	if err != nil {
		return err
	}
	view, _ := w.core.View(agent)
	shown := get(view.VisibleEntities, entity)
	if shown == nil {
		return fmt.Errorf("%q is not visible", entity)
	}
	want := get(s.expected, "fields")
	for name, v := range want.Members() {
		if !same(get(shown, name), v) {
			return fmt.Errorf("/fields/%s: %v, want %v", name, get(shown, name), v)
		}
	}
	for name := range get(get(get(s.input, "world"), "entities"), entity).Members() {
		if get(want, name) == nil && get(shown, name) != nil {
			return fmt.Errorf("/fields/%s is shown", name)
		}
	}
	return nil
}

func judgeEvents(s agentScenario) error {
	if get(s.input, "world") == nil {
		return judgeTwoWorlds(s)
	}
	policies := map[string]signal.Value{}
	for id, p := range get(s.input, "policies").Members() {
		policies[id] = p
	}
	w, err := looking(s, policies)
	if err != nil {
		return err
	}
	clear(w.deltas)
	if err := w.broadcast(readDraft(get(s.input, "draft"))); err != nil {
		return err
	}
	for _, id := range names(s.expected, "receives") {
		if len(w.deltas[id]) == 0 {
			return fmt.Errorf("%q does not receive it", id)
		}
	}
	for _, id := range names(s.expected, "does_not_receive") {
		if len(w.deltas[id]) > 0 {
			return fmt.Errorf("%q receives it", id)
		}
	}
	return nil
}

// judgeTwoWorlds looks at one world, then at another.
func judgeTwoWorlds(s agentScenario) error {
	agent := textAt(s.input, "agent_id")
	for _, when := range []string{"before", "after"} {
		policy := get(s.input, "policy")
		if policy == nil {
			policy = get(get(s.input, "policies"), agent)
		}
		one := s
		one.input = made(`{"world":%v}`, orEmpty(get(s.input, "world_"+when, when)))
		w, err := looking(one, map[string]signal.Value{agent: policy})
		if err != nil {
			return err
		}
		view, _ := w.core.View(agent)
		want := "visible_" + when
		excluding := truth(s.expected, "excluding_self")
		if err := sameSet(want, visible(view, agent, excluding), without(names(s.expected, want), agent, excluding)); err != nil {
			return err
		}
	}
	return nil
}

func judgeViewSeq(s agentScenario) error {
	policies := map[string]signal.Value{}
	for id, p := range get(s.input, "agents").Members() {
		policies[id] = p
	}
	w, err := looking(s, policies)
	if err != nil {
		return err
	}
	clear(w.deltas)
	agent := textAt(s.expected, "observations_for")
	last, count := w.base, 0
	for d := range get(s.input, "drafts").Elements() {
		if err := w.broadcast(readDraft(d)); err != nil {
			return err
		}
		for _, delta := range w.deltas[agent][count:] {
			if truth(s.expected, "strictly_increasing") && delta.ViewSeq <= last {
				return fmt.Errorf("view_seq %d after %d", delta.ViewSeq, last)
			}
			if truth(s.expected, "each_at_most_global_seq") && delta.ViewSeq > w.core.Seq() {
				return fmt.Errorf("view_seq %d at global_seq %d", delta.ViewSeq, w.core.Seq())
			}
			last = delta.ViewSeq
		}
		count = len(w.deltas[agent])
	}
	if truth(s.expected, "last_view_seq_equals_global_seq") && last != w.core.Seq() {
		return fmt.Errorf("view_seq %d at the end, global_seq %d", last, w.core.Seq())
	}
	return nil
}

// quantum hands drafts in, in an order of arrival, and returns the uuids in the
// order of their numbers.
func quantum(drafts signal.Value, arrival []int) ([]string, error) {
	w, err := newSim("conformance")
	if err != nil {
		return nil, err
	}
	var all []agents.Submission
	for d := range drafts.Elements() {
		draft := readDraft(d)
		all = append(all, agents.Submission{
			Draft: &draft, UUID: textAt(d, "uuid"), Priority: int(integer(d, "priority")),
			SimTime: numberAt(d, "sim_time"), Timed: get(d, "sim_time") != nil,
		})
	}
	var intake agents.Intake
	for i := range all {
		if arrival != nil {
			i = arrival[i]
		}
		if o := intake.Offer(w.core, w.now, all[i]); o.Ticket == 0 {
			return nil, o.Outcome.Err()
		}
	}
	list := agents.Submissions(intake.Take(w.core, 0, math.Inf(1)))
	decision := w.core.Decide(w.now, agents.Quantum{By: agents.CloseFlush}, list)
	if err := w.keep(decision.Records, nil); err != nil {
		return nil, err
	}
	var uuids []string
	for i, e := range w.log {
		if integer(e, "global_seq") != int64(i)+1 {
			return nil, fmt.Errorf("effect %d has the number %d", i, integer(e, "global_seq"))
		}
		uuids = append(uuids, textAt(e, "uuid"))
	}
	return uuids, nil
}

func judgeOrdering(s agentScenario) error {
	got, err := quantum(get(s.input, "same_quantum_drafts", "drafts"), nil)
	if err != nil {
		return err
	}
	if want := names(s.expected, "uuid_order"); !slices.Equal(got, want) {
		return fmt.Errorf("uuid_order: %q, want %q", got, want)
	}
	return nil
}

func judgePermutations(s agentScenario) error {
	for order := range get(s.input, "arrival_orders").Elements() {
		var arrival []int
		for e := range order.Elements() {
			i, _ := e.Int64()
			arrival = append(arrival, int(i))
		}
		got, err := quantum(get(s.input, "drafts"), arrival)
		if err != nil {
			return err
		}
		if want := names(s.expected, "uuid_order"); !slices.Equal(got, want) {
			return fmt.Errorf("arrival %v: %q, want %q", arrival, got, want)
		}
	}
	return nil
}

func judgeMove(s agentScenario) error {
	w, err := newSim("conformance")
	if err != nil {
		return err
	}
	if err := w.begin(made(`{"entities":{"a":{"type":"agent"}},"spatial_index":{"a":[0,0,0]}}`), nil); err != nil {
		return err
	}
	if err := w.register("a", nil, nil); err != nil {
		return err
	}
	o, records := w.core.Submit(0, agents.Intent{Kind: agents.KindMove, Payload: get(s.input, "payload"), ReqID: "r", AgentID: "a"})
	if want := truth(s.expected, "valid"); o.OK() != want {
		return fmt.Errorf("valid: %v, want %v (%v)", o.OK(), want, o.Err())
	}
	if !o.OK() {
		return nil
	}
	if err := w.keep(records, nil); err != nil {
		return err
	}
	at, _ := w.core.World().Position("a")
	if want := get(s.expected, "position"); want != nil && !same(at.Value(), want) {
		return fmt.Errorf("position: %v, want %v", at.Value(), want)
	}
	return nil
}

func judgeDelta(s agentScenario) error {
	before, after := get(s.input, "old_view"), get(s.input, "new_view")
	patch := agents.Diff(before, after, int(numberAt(get(s.input, "policy"), "max_patch_ops")))
	got, err := agents.ApplyPatch(before, patch)
	if err != nil {
		return err
	}
	if want := get(s.expected, "apply_gives"); !same(got, want) {
		return fmt.Errorf("apply_gives: %v, want %v", got, want)
	}
	for want := range get(s.expected, "required_ops").Elements() {
		found := slices.ContainsFunc(patch, func(op agents.Operation) bool {
			v := get(want, "value")
			return op.Op == textAt(want, "op") && op.Path == textAt(want, "path") && (v == nil || same(v, op.Value))
		})
		if !found {
			return fmt.Errorf("required_ops: %v is not in %v", want, agents.PatchValue(patch))
		}
	}
	return nil
}

func judgePatch(s agentScenario) error {
	doc := get(s.input, "document")
	before := doc.String()
	var got signal.Value
	patch, err := agents.ParsePatch(get(s.input, "patch"))
	if err == nil {
		got, err = agents.ApplyPatch(doc, patch)
	}
	if want := truth(s.expected, "error"); (err != nil) != want {
		return fmt.Errorf("error: %v, want %v", err, want)
	}
	if doc.String() != before {
		return fmt.Errorf("the document became %v", doc)
	}
	if want := get(s.expected, "result", "document"); err == nil && want != nil && !same(got, want) {
		return fmt.Errorf("result: %v, want %v", got, want)
	}
	return nil
}

func judgeChain(s agentScenario) error {
	prev := ""
	canon, sums := names(s.expected, "canonical_json"), names(s.expected, "checksums")
	i := 0
	for e := range get(s.input, "effects").Elements() {
		if i < len(canon) && canonical(e) != canon[i] {
			return fmt.Errorf("/canonical_json/%d: %s, want %s", i, canonical(e), canon[i])
		}
		prev = agents.Checksum(prev, e)
		if i < len(sums) && prev != sums[i] {
			return fmt.Errorf("/checksums/%d: %s, want %s", i, prev, sums[i])
		}
		i++
	}
	if len(sums) > 0 && i != len(sums) {
		return fmt.Errorf("%d checksums, want %d", i, len(sums))
	}
	return nil
}

func judgeIntegrity(s agentScenario) error {
	var entries []agents.ChainEntry
	sums := names(s.input, "checksums")
	for e := range get(s.input, "effects").Elements() {
		if len(entries) >= len(sums) {
			return fmt.Errorf("%d checksums for more effects", len(sums))
		}
		entries = append(entries, agents.ChainEntry{Effect: e, Checksum: sums[len(entries)]})
	}
	r := agents.Verify("conformance", entries)
	if want := truth(s.expected, "valid"); r.Valid != want {
		return fmt.Errorf("valid: %v, want %v", r, want)
	}
	if want := get(s.expected, "first_bad_index"); want != nil && want.Kind() != signal.KindNull && int64(r.FirstBadIndex()) != integer(s.expected, "first_bad_index") {
		return fmt.Errorf("first_bad_index: %d, want %v", r.FirstBadIndex(), want)
	}
	if want := get(s.expected, "missing_sequences"); want != nil && fmt.Sprint(r.MissingSequences) != fmt.Sprint(strings.ReplaceAll(want.String(), ",", " ")) {
		return fmt.Errorf("missing_sequences: %v, want %v", r.MissingSequences, want)
	}
	return nil
}

func judgeReplay(s agentScenario) error {
	var states, sums [2]string
	var seqs [2][]int64
	for i := range states {
		w, err := newSim("conformance")
		if err != nil {
			return err
		}
		for e := range get(s.input, "effects").Elements() {
			if err := w.keep([]agents.Record{{Word: agents.WordEffect, Value: e}}, nil); err != nil {
				return err
			}
		}
		for _, e := range w.log {
			sums[i] = agents.Checksum(sums[i], e)
			seqs[i] = append(seqs[i], integer(e, "global_seq"))
		}
		states[i] = string(w.core.AppendState(nil))
	}
	if states[0] != states[1] || sums[0] != sums[1] || !slices.Equal(seqs[0], seqs[1]) {
		return fmt.Errorf("two replays differ: %v %s, %v %s", seqs[0], sums[0], seqs[1], sums[1])
	}
	i, prev := 0, ""
	for e := range get(s.input, "effects").Elements() {
		prev = agents.Checksum(prev, e)
		if i >= len(seqs[0]) || seqs[0][i] != integer(e, "global_seq") {
			return fmt.Errorf("numbers %v, effect %d was recorded as %d", seqs[0], i, integer(e, "global_seq"))
		}
		i++
	}
	if prev != sums[0] {
		return fmt.Errorf("the last checksum is %s, was %s", sums[0], prev)
	}
	return nil
}

func judgeBreaker(s agentScenario) error {
	b := agents.Breaker{Config: agents.BreakerConfig{
		Failures:   int(integer(s.input, "failure_threshold")),
		Recovery:   seconds(numberAt(s.input, "recovery_timeout")),
		Cumulative: s.literal(),
	}}
	var want []signal.Value
	for e := range get(s.expected, "calls").Elements() {
		want = append(want, e)
	}
	i := 0
	for call := range get(s.input, "calls").Elements() {
		if i >= len(want) {
			return fmt.Errorf("%d calls expected, there are more", len(want))
		}
		now := seconds(numberAt(call, "t"))
		executed := b.Allow(now)
		if executed {
			b.Done(now, truth(call, "ok"))
		}
		if executed != truth(want[i], "executed") || string(b.State()) != textAt(want[i], "state") {
			return fmt.Errorf("/calls/%d: %v %s, want %v", i, executed, b.State(), want[i])
		}
		i++
	}
	return nil
}

func seconds(f float64) time.Duration { return time.Duration(math.Round(float64(f * 1e9))) }

func judgeTimedQueue(s agentScenario) error {
	var q agents.Queue[string]
	at := map[string]time.Duration{}
	for p := range get(s.input, "puts").Elements() {
		at[textAt(p, "item")] = millis(p, "deliver_at_ms")
		q.Put(millis(p, "deliver_at_ms"), textAt(p, "item"))
	}
	var got []string
	for {
		next, ok := q.Next()
		if !ok {
			break
		}
		if item, early := q.Get(next - 1); early && truth(s.expected, "never_before_delivery_time") {
			return fmt.Errorf("%q came before its time", item)
		}
		item, _ := q.Get(next)
		if next < at[item] {
			return fmt.Errorf("%q came at %v", item, next)
		}
		got = append(got, item)
	}
	if want := names(s.expected, "order"); !slices.Equal(got, want) {
		return fmt.Errorf("order: %q, want %q", got, want)
	}
	return nil
}

func judgeBackpressure(s agentScenario) error {
	q := agents.Queue[string]{Depth: int(integer(s.input, "max_queue_depth")), Pressure: agents.Backpressure(textAt(s.input, "policy"))}
	var verdict agents.PutVerdict
	for _, item := range names(s.input, "enqueue") {
		verdict, _, _ = q.Put(0, item)
	}
	var got []string
	for item, ok := q.Get(0); ok; item, ok = q.Get(0) {
		got = append(got, item)
	}
	if want := names(s.expected, "queue"); !slices.Equal(got, want) {
		return fmt.Errorf("queue: %q, want %q", got, want)
	}
	fourth := textAt(s.expected, "fourth")
	ok := true
	switch {
	case strings.HasPrefix(fourth, "deferred"):
		ok = verdict == agents.Deferred
	case strings.Contains(fourth, "drop"):
		ok = verdict == agents.Dropped
	case fourth != "":
		ok = verdict == agents.Shed || verdict == agents.Queued
	}
	if !ok {
		return fmt.Errorf("fourth: %v, want %s", verdict, fourth)
	}
	return nil
}

func judgeRecovery(s agentScenario) error {
	for _, code := range names(s.input, "errors") {
		f, ok := agents.Code(code).Failure()
		if !ok {
			return fmt.Errorf("no such code: %s", code)
		}
		if allowed := names(get(s.expected, "allowed"), code); !slices.Contains(allowed, string(f.Recovery)) {
			return fmt.Errorf("%s: %s, allowed are %q", code, f.Recovery, allowed)
		}
	}
	return nil
}
