package agents_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/flow"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestStories runs the stories in testdata/stories: a world and agents in it, and
// below each step the answers to it and what reaches each agent. The steps are
//
//	world                   begin with the entities and relations below, one a line:
//	                          NAME [at X Y [Z]] [FIELD=VALUE…]
//	                          FROM -> TO, FROM -TYPE-> TO [STRENGTH], FROM <-TYPE-> TO
//	config NAME=VALUE…      put a configuration in force
//	policy POLICY           show what a policy compiles from, or why it does not
//	register AGENT POLICY   register agents: this one, or one on each line below
//	leave AGENT             take an agent out
//	effect SOURCE KIND …    broadcast a draft; the source - is none
//	submit AGENT/REQ KIND … submit an intent
//	batch, quantum, tick N  decide the submissions below, one a line, all or none,
//	                        or as one quantum, or as that of the tick at N seconds
//	enqueue                 put the submissions below in the intake
//	take [N]                decide the next N of the intake, as one quantum
//	generate AGENT/REQ …    begin a generation: context=N reads=[…] classes=[…] deadline=D
//	cancel AGENT/REQ [WHY]  cancel a generation, or a submission that waits
//	advance DURATION        let time pass
//	view AGENT…             show the views of agents
//	deltas AGENT            show in full what an agent received since the last time
//	outcome AGENT/REQ       show how a request was answered
//
// effect, submit, generate, cancel and outcome take more lines below.
//
// A POLICY is the name of a kind, then members of it or settings of the agent
// (limit=10 interrupt=only_conflict), then in parentheses what it is made of. A
// VALUE is JSON, or text without spaces. An intent's payload has what is not
// priority=N, time=SECONDS or context=N, which is the newest view_seq of the agent unless
// it is given.
//
// After each story a second core folds the records at their times and must have the
// same state, and each agent's deltas must lead to the view whose digest they carry.
func TestStories(t *testing.T) {
	golden.Steps(t, "testdata/stories/*.txt", func(t *testing.T) golden.Story {
		core, err := agents.NewCore(storyOptions)
		require.NoError(t, err)
		core.Bind("town", nil)
		s := &story{t: t, core: core, queues: map[string]*flow.Queue[agents.Delivery]{}, views: map[string]signal.Value{}, received: map[string][]signal.Value{}}
		t.Cleanup(s.replay)
		return s.step
	})
}

// storyOptions have the policy "lit" of a program, which sees entities that have the
// field lit, and the handler of the kind "Open".
var storyOptions = agents.Options{
	Customs:  []view.Custom{{Name: "lit", Version: 1, Compile: func(signal.Value) (view.Policy, error) { return litPolicy{view.Everything()}, nil }}},
	Handlers: []world.Handler{{Kind: "Open", Plan: open}},
}

// open opens a door until the fifth second, unless the door is open or locked.
func open(w world.ReadOnly, e world.Effect) ([]world.Change, error) {
	id := e.Payload.TextOf("door")
	door, ok := w.Entity(id)
	switch {
	case !ok:
		return nil, errors.New("no such door")
	case e.SimTime > 5:
		return nil, errors.New("it is too late")
	case door.BoolOf("open"):
		return nil, errors.New("it is open")
	case door.BoolOf("locked"):
		return nil, errors.New("it is locked")
	}
	return []world.Change{world.SetField(id, "open", signal.Bool(true))}, nil
}

type litPolicy struct{ view.Policy }

func (litPolicy) Sees(eye *view.Viewpoint, id string) bool {
	object, _ := eye.Entity(id)
	_, lit := object.Get("lit")
	return lit
}

type story struct {
	t        *testing.T
	core     *agents.Core
	intake   agents.Intake
	now      time.Duration
	requests int // that were submitted without a name
	log      []storyEntry
	queues   map[string]*flow.Queue[agents.Delivery]
	views    map[string]signal.Value   // of each agent, from what it received alone
	received map[string][]signal.Value // since the last step deltas
	lines    []storyLine
}

// storyEntry is a record and when it was kept; without a word it says only the time.
type storyEntry struct {
	at     time.Duration
	record signal.Record
}

// storyLine is a line of output about something that happens at a time.
type storyLine struct {
	at   time.Duration
	text string
}

func (s *story) say(at time.Duration, format string, args ...any) {
	s.lines = append(s.lines, storyLine{at, fmt.Sprintf(format, args...)})
}

func (s *story) must(records []signal.Record, err error) {
	if err != nil {
		s.say(s.now, "refused: %v", err)
		return
	}
	s.keep(records)
}

func (s *story) step(step, input string) string {
	s.t.Helper()
	began := s.now
	s.lines = nil
	verb, rest, _ := strings.Cut(step, " ")
	rest = strings.TrimSpace(rest)
	switch verb {
	case "world":
		s.must(s.core.Begin(s.parse(worldJSON(s.t, input))))
	case "config":
		s.must(s.core.Configure(s.parse(storyObject(storyWords(rest)))))
	case "policy":
		json := policyJSON(s.t, rest)
		s.say(s.now, "%s", json)
		if _, err := agents.CompilePolicy(s.parse(json), storyOptions); err != nil {
			s.say(s.now, "refused: %v", err)
		}
	case "register":
		for _, text := range storyLines(rest, input) {
			id, policy, _ := strings.Cut(text, " ")
			s.register(id, policy)
		}
	case "leave":
		s.must(s.core.Leave(rest))
		delete(s.queues, rest)
		delete(s.views, rest)
	case "effect", "submit", "generate", "cancel", "outcome":
		list := storyLines(rest, input)
		for _, text := range list {
			name := ""
			if w := storyWords(text); len(list) > 1 {
				name = w[0]
				if verb == "effect" {
					name += " " + w[1]
				}
			}
			s.one(verb, name, text)
		}
	case "batch":
		var intents []agents.Intent
		for _, text := range storyLines("", input) {
			intents = append(intents, *s.submission(text).Intent)
		}
		d := s.core.DecideBatch(s.now, intents)
		for i, o := range d.Outcomes {
			s.answer(requested(agents.Submission{Intent: &intents[i]}), o)
		}
		s.keep(d.Records)
	case "quantum", "tick":
		q := agents.Quantum{By: agents.CloseFlush}
		if verb == "tick" {
			q = agents.Quantum{By: agents.CloseTick, Timed: true, SimTime: s.number(rest), SourceID: "clock"}
		}
		var subs []agents.Submission
		for _, text := range storyLines("", input) {
			subs = append(subs, s.submission(text))
		}
		s.decide(q, subs)
	case "enqueue":
		for _, text := range storyLines(rest, input) {
			s.offer(s.submission(text))
		}
	case "take":
		most := 0
		if rest != "" {
			most = int(s.number(rest))
		}
		s.decide(agents.Quantum{By: agents.CloseFlush}, agents.Submissions(s.intake.Take(s.core, most, world.Seconds(s.now))))
	case "advance":
		d, err := time.ParseDuration(rest)
		if err != nil {
			s.t.Fatal(err)
		}
		s.advance(s.now + d)
	case "view":
		for _, id := range strings.Fields(rest) {
			s.view(id)
		}
	case "deltas":
		for _, v := range s.received[rest] {
			s.say(s.now, "%s", v)
		}
		s.received[rest] = nil
	default:
		s.t.Fatalf("unknown step %q", step)
	}
	s.receive()
	slices.SortStableFunc(s.lines, func(a, b storyLine) int { return cmp.Compare(a.at, b.at) })
	var out strings.Builder
	for _, l := range s.lines {
		if s.now > began {
			fmt.Fprintf(&out, "%v: ", l.at)
		}
		fmt.Fprintln(&out, l.text)
	}
	if out.Len() == 0 {
		return "ok\n"
	}
	return out.String()
}

// one takes a step that may stand on several lines, each decided by itself.
func (s *story) one(verb, name, text string) {
	s.t.Helper()
	id, rest, _ := strings.Cut(text, " ")
	switch verb {
	case "effect":
		o, records := s.core.Broadcast(s.now, *s.submission("effect " + text).Draft)
		s.answer(name, o)
		s.keep(records)
	case "submit":
		o, records := s.core.Submit(s.now, *s.submission(text).Intent)
		s.answer(name, o)
		s.keep(records)
	case "generate":
		s.generate(name, text)
	case "cancel":
		s.cancel(id, rest)
	case "outcome":
		agent, req, _ := strings.Cut(id, "/")
		if o, ok := s.core.Answered(agent, req); ok {
			s.answer(name, o)
		} else {
			s.say(s.now, "%s", strings.TrimSpace(name+" has no final answer"))
		}
	}
}

func (s *story) register(id, policy string) {
	r := agents.Registration{AgentID: id, Policy: s.parse(policyJSON(s.t, policy))}
	if class, ok := r.Policy.Get("class"); ok {
		r.Class, _ = class.Text()
	}
	if list, ok := r.Policy.Get("permissions"); ok {
		r.Permissions = []string{}
		for e := range list.Elements() {
			name, _ := e.Text()
			r.Permissions = append(r.Permissions, name)
		}
	}
	if members := storyWords(policy); r.Class != "" || r.Permissions != nil {
		members = slices.DeleteFunc(members, func(w string) bool {
			return strings.HasPrefix(w, "class=") || strings.HasPrefix(w, "permissions=")
		})
		r.Policy = s.parse(policyJSON(s.t, strings.Join(members, " ")))
	}
	s.must(s.core.Register(r))
}

// submission reads an intent, or a draft after the word effect.
func (s *story) submission(text string) agents.Submission {
	s.t.Helper()
	w := storyWords(text)
	if len(w) < 2 {
		s.t.Fatalf("submission %q", text)
	}
	if w[0] == "effect" {
		d := &agents.EffectDraft{SourceID: strings.TrimPrefix(w[1], "-"), Kind: w[2]}
		sub := agents.Submission{Draft: d}
		d.Payload = s.members(w[3:], &sub, &sub.Priority, nil)
		return sub
	}
	in := &agents.Intent{Kind: w[1], Unprioritized: true, Priority: 1000}
	var named bool
	if in.AgentID, in.ReqID, named = strings.Cut(w[0], "/"); !named {
		s.requests++
		in.ReqID = fmt.Sprint("r", s.requests)
	}
	in.ContextSeq = s.core.LatestViewSeq(s.now, in.AgentID)
	sub := agents.Submission{Intent: in}
	in.Payload = s.members(w[2:], &sub, &in.Priority, &in.ContextSeq)
	if in.Priority == 1000 {
		in.Priority = 0
	} else {
		in.Unprioritized = false
	}
	return sub
}

// members reads a payload and what is none of it.
func (s *story) members(w []string, sub *agents.Submission, priority *int, context *uint64) signal.Value {
	w = slices.DeleteFunc(slices.Clone(w), func(w string) bool {
		name, text, _ := strings.Cut(w, "=")
		switch {
		case name == "time":
			sub.SimTime, sub.Timed = s.number(text), true
		case name == "priority":
			*priority = int(s.number(text))
		case name == "context" && context != nil:
			*context = uint64(s.number(text))
		default:
			return false
		}
		return true
	})
	return s.parse(storyObject(w))
}

func (s *story) decide(q agents.Quantum, subs []agents.Submission) {
	d := s.core.Decide(s.now, q, subs)
	for i, o := range d.Outcomes {
		s.answer(requested(subs[i]), o)
	}
	s.keep(d.Records)
}

// requested names a submission.
func requested(sub agents.Submission) string {
	if d := sub.Draft; d != nil {
		return d.SourceID + " " + d.Kind
	}
	return sub.Intent.AgentID + "/" + sub.Intent.ReqID
}

func (s *story) offer(sub agents.Submission) {
	name := requested(sub)
	offered := s.intake.Offer(s.core, s.now, sub)
	if shed := offered.Shed; shed != nil {
		s.answer(requested(shed.Submission), agents.Outcome{Rejection: offered.Refusal})
	}
	switch {
	case offered.Joined:
		s.say(s.now, "%s waits already", name)
	case offered.Ticket > 0:
		s.say(s.now, "%s waits, %d in all", name, s.intake.Len())
	default:
		s.answer(name, offered.Outcome)
	}
}

func (s *story) generate(name, text string) {
	w := storyWords(text)
	r := agents.TokenRequest{Current: true}
	r.AgentID, r.ReqID, _ = strings.Cut(w[0], "/")
	for _, m := range w[1:] {
		name, text, _ := strings.Cut(m, "=")
		switch name {
		case "context":
			r.ContextSeq, r.Current = uint64(s.number(text)), false
		case "reads":
			r.Reads = s.names(text)
		case "classes":
			r.Classes = s.names(text)
		case "deadline":
			d, err := time.ParseDuration(text)
			if err != nil {
				s.t.Fatal(err)
			}
			r.Deadline = d
		default:
			s.t.Fatalf("a generation has no %q", name)
		}
	}
	token, records, err := s.core.Issue(s.now, r)
	if err == nil {
		s.say(s.now, "%s", strings.TrimSpace(fmt.Sprintf("%s begins with view %d, until %v", name, token.ContextSeq, token.Deadline)))
	}
	s.must(records, err)
}

func (s *story) cancel(id, reason string) {
	agent, req, _ := strings.Cut(id, "/")
	if _, waits := s.intake.Cancel(agent, req); waits {
		s.say(s.now, "%s no longer waits", id)
		s.keep(s.core.Withdraw(agent, req))
		return
	}
	records, ok := s.core.Cancel(agent, req, reason)
	if !ok {
		s.say(s.now, "refused: no such generation")
	}
	s.keep(records)
}

// advance lets time pass as the live side does: it comes back when time alone
// cancels something or a deadline comes.
func (s *story) advance(until time.Duration) {
	for s.now < until {
		s.now = until
		if next, ok := s.core.Next(); ok && next < until {
			s.now = next
		}
		if s.core.Due(s.now) {
			s.log = append(s.log, storyEntry{at: s.now})
			s.take(s.core.Advance(s.now))
		}
		s.keep(s.core.Expire(s.now))
	}
}

func (s *story) keep(records []signal.Record) {
	s.t.Helper()
	for _, r := range records {
		s.log = append(s.log, storyEntry{s.now, r})
		out := s.core.Apply(s.now, r)
		if out.Err != nil {
			s.t.Fatalf("%s %v: %v", r.Word, r.Value, out.Err)
		}
		s.take(out)
	}
}

func (s *story) take(out agents.Applied) {
	for _, c := range out.Cancellations {
		s.say(c.At, "%s/%s is cancelled: %s", c.Agent, c.ReqID, c.Reason)
	}
	if e := out.Effect; e != nil {
		if channel, _ := e.Channel(); world.IsMessage(e.Kind) || channel != world.ChannelPublic {
			var hear []string
			for id := range s.core.Agents() {
				if id != e.SourceID && s.core.Receives(id, *e) {
					hear = append(hear, id)
				}
			}
			s.say(s.now, "the message of %s is for %s", e.SourceID, cmp.Or(strings.Join(hear, " and "), "no other agent"))
		}
	}
	for _, d := range out.Deliveries {
		if s.queues[d.Agent] == nil {
			s.queues[d.Agent] = &flow.Queue[agents.Delivery]{}
		}
		s.queues[d.Agent].Put(d.At, d)
		if d.At > s.now {
			s.say(s.now, "%s is to receive view %d at %v", d.Agent, d.Delta.ViewSeq, d.At)
		}
	}
}

// receive hands out what has come by now.
func (s *story) receive() {
	s.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(s.queues)) {
		for {
			d, ok := s.queues[id].Get(s.now)
			if !ok {
				break
			}
			s.hand(d)
		}
	}
}

func (s *story) hand(d agents.Delivery) {
	s.t.Helper()
	before, ok := s.views[d.Agent]
	if !ok {
		before = s.parse(`{"visible_entities":{},"visible_relationships":{}}`)
	}
	after, err := jsondoc.ApplyPatch(before, d.Delta.Patches)
	if err != nil {
		s.t.Fatalf("delta for %s: %v", d.Agent, err)
	}
	s.views[d.Agent] = after
	valid(s.t, view.DeltaSchema(), d.Delta)
	entities, _ := after.Get("visible_entities")
	relations, _ := after.Get("visible_relationships")
	if got := (view.View{AgentID: d.Agent, VisibleEntities: entities, VisibleRelationships: relations}).Digest(); got != d.Delta.ContextDigest() {
		s.t.Errorf("%s has a view of the digest %s, the delta says %s", d.Agent, got, d.Delta.ContextDigest())
	}
	s.received[d.Agent] = append(s.received[d.Agent], s.parse(fmt.Sprintf(`{"view_seq":%d,"patches":%s}`, d.Delta.ViewSeq, jsondoc.PatchValue(d.Delta.Patches))))
	text := ""
	switch ops := d.Delta.Patches; {
	case d.Delta.IsFullView():
		text = " all of it:"
		for name := range entities.Members() {
			text += " " + name
		}
	case len(ops) == 0:
		text = " no change"
	case len(ops) == 1:
		text = " " + storyOperation(ops[0])
	default:
		for _, op := range ops {
			text += "\n  " + storyOperation(op)
		}
	}
	s.say(d.At, "%s receives view %d:%s", d.Agent, d.Delta.ViewSeq, text)
}

func storyOperation(op jsondoc.Operation) string {
	if op.Value == nil {
		return op.Op + " " + op.Path
	}
	return fmt.Sprintf("%s %s %s", op.Op, op.Path, op.Value)
}

// answer shows an outcome.
func (s *story) answer(name string, o agents.Outcome) {
	if name != "" {
		name += " "
	}
	valid(s.t, agents.OutcomeSchema(), o)
	r := o.Rejection
	if r == nil {
		s.say(s.now, "%s%v, effect %d", name, o.Status, o.GlobalSeq)
		return
	}
	text := fmt.Sprintf("%s%v: %s", name, o.Status, r.Code)
	if r.Reason != "" {
		text += ", " + r.Reason
	}
	for _, p := range r.Problems {
		text += "; " + strings.TrimPrefix(p.Path+": "+p.Reason, ": ")
	}
	text += fmt.Sprintf(" (%s", r.Recovery)
	if r.ExpectedSeq > 0 {
		text += fmt.Sprintf(", context %d, expected %d", r.ActualSeq, r.ExpectedSeq)
	}
	if r.RetryAfter > 0 {
		text += fmt.Sprintf(" after %v", r.RetryAfter)
	}
	s.say(s.now, "%s)", text)
}

func (s *story) view(id string) {
	v, ok := s.core.View(id)
	if !ok {
		s.say(s.now, "refused: no agent %s", id)
		return
	}
	valid(s.t, view.ViewSchema(), v)
	s.say(s.now, "%s at view %d:", id, v.ViewSeq)
	for name, object := range v.VisibleEntities.Members() {
		s.say(s.now, "  %s %s", name, object)
	}
	for name, list := range v.VisibleRelationships.Members() {
		s.say(s.now, "  %s -> %s", name, list)
	}
}

// replay folds the log in another core, and restores one from its state.
func (s *story) replay() {
	again, err := agents.NewCore(storyOptions)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, l := range s.log {
		if l.record.Word == "" {
			again.Advance(l.at)
			continue
		}
		again.Apply(l.at, l.record)
	}
	s.core.Advance(s.now)
	again.Advance(s.now)
	state := s.core.AppendState(nil)
	restored, err := agents.RestoreCore(state, storyOptions)
	if err != nil {
		s.t.Fatal(err)
	}
	if string(again.AppendState(nil)) != string(state) || string(restored.AppendState(nil)) != string(state) {
		s.t.Error("replayed or restored, the state differs")
	}
}

func (s *story) parse(text string) signal.Value {
	s.t.Helper()
	v, err := signal.ParseValue([]byte(text))
	if err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	return v
}

func (s *story) number(text string) float64 {
	s.t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *story) names(text string) []string {
	s.t.Helper()
	var names []string
	if err := json.Unmarshal([]byte(text), &names); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	return names
}

// storyLines returns the non-empty lines of a step's argument and its input.
func storyLines(first, input string) []string {
	var list []string
	for text := range strings.Lines(first + "\n" + input) {
		if text = strings.TrimSpace(text); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// storyWords splits a line at spaces outside of strings, arrays and objects.
func storyWords(text string) []string {
	var list []string
	depth, quoted, escaped, begin := 0, false, false, 0
	for i, r := range text + " " {
		switch {
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("[{", r):
			depth++
		case strings.ContainsRune("]}", r):
			depth--
		case depth == 0 && strings.ContainsRune(" (),", r):
			if i > begin {
				list = append(list, text[begin:i])
			}
			if r != ' ' {
				list = append(list, string(r))
			}
			begin = i + 1
		}
	}
	return list
}

// storyObject returns the JSON object of words NAME=VALUE.
func storyObject(list []string) string {
	members := make([]string, len(list))
	for i, w := range list {
		members[i] = storyMember(w)
	}
	return "{" + strings.Join(members, ",") + "}"
}

func storyMember(w string) string {
	name, text, _ := strings.Cut(w, "=")
	if !json.Valid([]byte(text)) {
		text = strconv.Quote(text)
	}
	return strconv.Quote(name) + ":" + text
}

// policyJSON returns the JSON of a policy.
func policyJSON(t *testing.T, text string) string {
	t.Helper()
	policy, rest := policyOf(storyWords(text))
	if len(rest) > 0 {
		t.Fatalf("policy %q: %q stands too much", text, rest)
	}
	return policy
}

func policyOf(w []string) (policy string, rest []string) {
	if len(w) == 0 {
		return "{}", nil
	}
	members := []string{`"policy":` + strconv.Quote(w[0])}
	named := func() {
		for ; len(w) > 0 && strings.Contains(w[0], "="); w = w[1:] {
			members = append(members, storyMember(w[0]))
		}
	}
	w = w[1:]
	named()
	if len(w) > 0 && w[0] == "(" {
		var of []string
		for w[0] != ")" {
			policy, w = policyOf(w[1:])
			of = append(of, policy)
		}
		list := strings.Join(of, ",")
		if members[0] == `"policy":"all"` || members[0] == `"policy":"any"` {
			list = "[" + list + "]"
		}
		members, w = append(members, `"of":`+list), w[1:]
		named()
	}
	return "{" + strings.Join(members, ",") + "}", w
}

var storyRelation = regexp.MustCompile(`^(\S+) (<?)-(?:(\w+)-)?> (\S+)(?: (\S+))?$`)

// worldJSON returns the JSON of a world.
func worldJSON(t *testing.T, text string) string {
	t.Helper()
	var entities, places []string
	relations := map[string][]string{}
	relate := func(from, to, typ, strength string) {
		r := strconv.Quote(to)
		if typ != "" {
			r = `{"to":` + r + `,"type":` + strconv.Quote(typ) + `,"strength":` + cmp.Or(strength, "0") + `}`
		}
		relations[from] = append(relations[from], r)
	}
	for _, l := range storyLines("", text) {
		if m := storyRelation.FindStringSubmatch(l); m != nil {
			relate(m[1], m[4], m[3], m[5])
			if m[2] != "" {
				relate(m[4], m[1], m[3], m[5])
			}
			continue
		}
		w := storyWords(l)
		id, w := w[0], w[1:]
		if len(w) > 0 && w[0] == "at" {
			n := 1
			for n < len(w) && json.Valid([]byte(w[n])) {
				n++
			}
			places = append(places, strconv.Quote(id)+":["+strings.Join(w[1:n], ",")+"]")
			w = w[n:]
		}
		entities = append(entities, strconv.Quote(id)+":"+storyObject(w))
	}
	var lists []string
	for _, from := range slices.Sorted(maps.Keys(relations)) {
		lists = append(lists, strconv.Quote(from)+":["+strings.Join(relations[from], ",")+"]")
	}
	return fmt.Sprintf(`{"entities":{%s},"spatial_index":{%s},"relationships":{%s}}`,
		strings.Join(entities, ","), strings.Join(places, ","), strings.Join(lists, ","))
}
