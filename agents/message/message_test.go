package message_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/message"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

const unbound = `{"cooldowns":"off","quota_intents_per_minute":-1,"quota_tokens_per_minute":-1,` +
	`"intent_kinds":["SpeakResponse","MessageEmitted","Alarm"]}`

func begin(t testing.TB, fs vfs.FS, config string) *sajou.Session {
	t.Helper()
	ses := open(t, fs)
	require.NoError(t, ses.Agents().Configure(context.Background(), value(config)))
	return ses
}

func open(t testing.TB, fs vfs.FS) *sajou.Session {
	t.Helper()
	eng, err := sajou.Open("store", sajou.Config{FS: fs})
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	ses, err := eng.Begin(context.Background(), "room", session.TimeManual)
	require.NoError(t, err)
	return ses
}

func join(t testing.TB, room *message.Room, members ...message.Member) {
	t.Helper()
	for _, m := range members {
		require.NoError(t, room.Join(context.Background(), m))
	}
}

func emit(t testing.TB, room *message.Room, from string, m message.Message) uint64 {
	t.Helper()
	o, err := room.Emit(context.Background(), from, m)
	require.NoError(t, err)
	return o.GlobalSeq
}

var ends int // of heard

// heard returns what an agent hears behind an effect, up to what it then says to
// itself: that is heard whatever the policy.
func heard(t testing.TB, ses *sajou.Session, room *message.Room, agent string, after uint64) (list []message.Message) {
	t.Helper()
	ends++
	end := fmt.Sprint("end ", ends)
	_, err := ses.Agents().Broadcast(context.Background(), agents.EffectDraft{
		Kind: world.KindMessageEmitted, SourceID: agent,
		Payload: value(fmt.Sprintf(`{"text":%q,"channel":"private","target_id":%q}`, end, agent)),
	})
	require.NoError(t, err)
	for m, err := range room.Resume(context.Background(), agent, after, message.Filter{}) {
		require.NoError(t, err)
		if m.Text == end {
			return list
		}
		if !strings.HasPrefix(m.Text, "end ") {
			list = append(list, m)
		}
	}
	t.Fatal("the iteration has ended")
	return nil
}

func lines(list []message.Message) string {
	var b strings.Builder
	for _, m := range list {
		fmt.Fprintf(&b, "%s %s", m.Kind, m.From)
		if m.To != "" {
			fmt.Fprintf(&b, " to %s", m.To)
		}
		fmt.Fprintf(&b, " (%s): %s\n", m.Channel, m.Text)
	}
	return b.String()
}

// What is said to one or to a team stays there: third ones hear nothing of it and see
// nothing of it, and kinds stay what they are.
func TestChannels(t *testing.T) {
	ses := begin(t, vfs.NewMem(), unbound)
	room := message.New(ses, "Alarm")
	all := value(`{"policy":"everything"}`)
	join(t, room,
		message.Member{AgentID: "ann", Team: "red", Policy: all}, message.Member{AgentID: "bob", Team: "red", Policy: all},
		message.Member{AgentID: "cid", Team: "blue", Policy: all}, message.Member{AgentID: "dot", Policy: all})
	for i, said := range []struct {
		from string
		m    message.Message
	}{
		{"ann", message.Message{Text: "hello"}},
		{"ann", message.Message{Channel: "team", Text: "reds only"}},
		{"ann", message.Message{To: "cid", Text: "between us"}},
		{"cid", message.Message{Kind: world.KindSpeakResponse, Channel: "private", To: "ann", Text: "agreed"}},
		{"bob", message.Message{Kind: world.KindMessageEmitted, Text: "news"}},
		{"bob", message.Message{Kind: "Alarm", To: "ann", Text: "fire in secret"}},
		{"cid", message.Message{Kind: "Alarm", Channel: "team", Text: "blue alarm"}},
		{"dot", message.Message{Kind: "Alarm", Text: "fire"}},
		{"dot", message.Message{Channel: "team", Text: "of no team"}},
	} {
		said.m.ReqID = fmt.Sprint(i)
		emit(t, room, said.from, said.m)
	}
	emit(t, room, "street", message.Message{Text: "honk"})
	const public = "Speak ann (public): hello\n"
	const rest = "Alarm dot (public): fire\n"
	for agent, want := range map[string]string{
		"ann": public + "Speak ann (team): reds only\nSpeak ann to cid (private): between us\n" +
			"SpeakResponse cid to ann (private): agreed\nMessageEmitted bob (public): news\n" +
			"Alarm bob to ann (private): fire in secret\n" + rest,
		"bob": public + "Speak ann (team): reds only\nMessageEmitted bob (public): news\nAlarm bob to ann (private): fire in secret\n" + rest,
		"cid": public + "Speak ann to cid (private): between us\nSpeakResponse cid to ann (private): agreed\n" +
			"MessageEmitted bob (public): news\nAlarm cid (team): blue alarm\n" + rest,
		"dot": public + "MessageEmitted bob (public): news\n" + rest + "Speak dot (team): of no team\n",
	} {
		want += "MessageEmitted street (public): honk\n"
		if diff := cmp.Diff(want, lines(heard(t, ses, room, agent, 0))); diff != "" {
			t.Errorf("%s hears (-want +got)\n%s", agent, diff)
		}
	}
	for _, agent := range []string{"bob", "dot"} {
		v, err := ses.Agents().View(t.Context(), agent)
		require.NoError(t, err)
		for _, secret := range []string{"between us", "agreed", "in secret"} {
			if strings.Contains(v.Value().String(), secret) {
				t.Errorf("%s sees %q", agent, secret)
			}
		}
	}
	filtered := map[string]message.Filter{
		"Speak ann (team): reds only\n":                                          {Channels: []string{"team"}},
		"Alarm bob to ann (private): fire in secret\nAlarm dot (public): fire\n": {Kinds: []string{"Alarm"}},
		"SpeakResponse cid to ann (private): agreed\n": {
			Channels: []string{"private"}, Kinds: []string{"Speak", "SpeakResponse"}, Others: true,
		},
	}
	for want, f := range filtered {
		var got []message.Message
		for m, err := range room.Resume(t.Context(), "ann", 0, f) {
			require.NoError(t, err)
			if got = append(got, m); len(got) == strings.Count(want, "\n") {
				break
			}
		}
		if lines(got) != want {
			t.Errorf("%+v: %s, want %s", f, lines(got), want)
		}
	}
}

// What is heard is what the policy lets through: by distance, by the sources that it
// listens to, by the fields that it shows.
func TestPolicies(t *testing.T) {
	ses := begin(t, vfs.NewMem(), unbound)
	room := message.New(ses)
	for agent, policy := range map[string]string{
		"near": `{"policy":"distance","limit":5}`, "far": `{"policy":"distance","limit":5}`,
		"kin": `{"policy":"conversation"}`, "loner": `{"policy":"conversation"}`,
		"deaf":    `{"policy":"channel","channels":["private"]}`,
		"blinded": `{"policy":"fields","fields":{"last_message":false,"message_count":false}}`,
		"self":    `{"policy":"self"}`, "ann": `{"policy":"everything"}`,
	} {
		join(t, room, message.Member{AgentID: agent, Policy: value(policy)})
	}
	place := func(agent, at string) {
		t.Helper()
		if _, err := ses.Agents().Broadcast(t.Context(), agents.EffectDraft{
			Kind: world.KindMove, SourceID: agent, Payload: value(`{"to":` + at + `}`),
		}); err != nil {
			t.Fatal(err)
		}
	}
	place("ann", "[0,0]")
	place("near", "[3,0]")
	place("far", "[9,0]")
	if _, err := ses.Agents().Broadcast(t.Context(), agents.EffectDraft{
		Kind: world.KindRelationshipAdded, SourceID: "gm", Payload: value(`{"from":"kin","to":"ann"}`),
	}); err != nil {
		t.Fatal(err)
	}
	emit(t, room, "ann", message.Message{Text: "one", ReqID: "1"})
	place("near", "[30,0]")
	place("far", "[4,0]")
	emit(t, room, "ann", message.Message{Text: "two", ReqID: "2"})
	emit(t, room, "ann", message.Message{Text: "to all of you", Channel: "private", To: "deaf", ReqID: "3"})
	for agent, want := range map[string]string{
		"near": "one", "far": "two", "kin": "one two", "loner": "", "deaf": "to all of you", "blinded": "", "self": "",
		"ann": "one two to all of you",
	} {
		var got []string
		for _, m := range heard(t, ses, room, agent, 0) {
			got = append(got, m.Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s hears %q, want %q", agent, got, want)
		}
	}
}

// A reader that is slower than its queue, and than anybody's patience, loses nothing.
func TestSlowReader(t *testing.T) {
	ctx := t.Context()
	room := message.New(begin(t, vfs.NewMem(), strings.Replace(unbound, "{", `{"max_queue_depth":1,"backpressure_policy":"drop_newest",`, 1)))
	join(t, room, message.Member{AgentID: "ann"}, message.Member{AgentID: "bob"})
	messages := room.Subscribe(ctx, "bob", message.Filter{})
	const count = 300
	for i := range count {
		emit(t, room, "ann", message.Message{Text: fmt.Sprint(i), ReqID: fmt.Sprint(i)})
	}
	for pass := range 2 { // and it may be read again
		i := 0
		var before uint64
		for m, err := range messages {
			require.NoError(t, err)
			if m.Text != fmt.Sprint(i) || m.GlobalSeq <= before || m.ReqID != m.Text {
				t.Fatalf("pass %d: message %d is %+v", pass, i, m)
			}
			before = m.GlobalSeq
			if i++; i == count {
				break
			}
		}
	}
}

// Whatever happens, an agent hears the same while it happens, afterwards, behind any
// effect, and when the store is opened again.
func TestSameWheneverItIsRead(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fs := vfs.NewCrashableMem()
		ses := begin(t, fs, unbound)
		room := message.New(ses, "Alarm")
		names := []string{"ann", "bob", "cid"}
		policies := []string{
			`{}`, `{"policy":"everything"}`, `{"policy":"distance","limit":3}`, `{"policy":"conversation"}`, `{"policy":"team"}`,
			`{"policy":"channel","channels":["public"]}`,
		}
		for _, name := range names {
			join(t, room, message.Member{AgentID: name, Team: "red"})
		}
		live := room.Subscribe(t.Context(), "ann", message.Filter{})
		for i := range rapid.IntRange(0, 25).Draw(rt, "steps") {
			name := rapid.SampledFrom(names).Draw(rt, "who")
			other := rapid.SampledFrom(names).Draw(rt, "to whom")
			var err error
			switch rapid.IntRange(0, 6).Draw(rt, "what") {
			case 0:
				err = room.Join(t.Context(), message.Member{
					AgentID: name, Team: rapid.SampledFrom([]string{"red", "blue"}).Draw(rt, "team"),
					Policy: value(rapid.SampledFrom(policies).Draw(rt, "policy")),
				})
			case 1:
				_, err = ses.Agents().Broadcast(t.Context(), agents.EffectDraft{
					Kind: world.KindMove, SourceID: name, Payload: value(fmt.Sprintf(`{"to":[%d,0]}`, rapid.IntRange(0, 6).Draw(rt, "x"))),
				})
			case 2:
				_, err = ses.Agents().Broadcast(t.Context(), agents.EffectDraft{
					Kind: world.KindInteract, SourceID: name, Payload: value(fmt.Sprintf(`{"target_id":%q}`, other)),
				})
			default:
				m := message.Message{Text: fmt.Sprint(i), ReqID: fmt.Sprint(i)}
				m.Kind = rapid.SampledFrom([]string{"Speak", "SpeakResponse", "MessageEmitted", "Alarm"}).Draw(rt, "kind")
				if m.Channel = rapid.SampledFrom([]string{"public", "team", "private"}).Draw(rt, "channel"); m.Channel == "private" {
					m.To = other
				}
				_, err = room.Emit(t.Context(), name, m)
			}
			if err != nil && !errors.Is(err, agents.ErrInvalid) { // whom it does not see it cannot speak to
				rt.Fatal(err)
			}
		}
		join(t, room, message.Member{AgentID: "ann", Policy: value(`{"policy":"everything"}`)}) // so that the end is heard
		emit(t, room, "end", message.Message{To: "ann", Text: "end"})
		read := func(messages func(func(message.Message, error) bool)) (list []message.Message) {
			for m, err := range messages {
				require.NoError(rt, err)
				if list = append(list, m); m.Text == "end" {
					return list
				}
			}
			return nil
		}
		all := read(room.Resume(t.Context(), "ann", 0, message.Filter{}))
		if diff := cmp.Diff(read(live), all); diff != "" {
			rt.Fatalf("live and afterwards:\n%s", diff)
		}
		for i, m := range all {
			if m.Channel == "private" && m.To != "ann" && m.From != "ann" {
				rt.Fatalf("heard %+v", m)
			}
			if i+1 < len(all) && all[i+1].GlobalSeq <= m.GlobalSeq {
				rt.Fatalf("%d comes before %d", m.GlobalSeq, all[i+1].GlobalSeq)
			}
		}
		// All that was read was durable.
		again := message.New(open(t, fs.CrashClone(vfs.CrashCloneCfg{})), "Alarm")
		if diff := cmp.Diff(all, read(again.Resume(t.Context(), "ann", 0, message.Filter{}))); diff != "" {
			rt.Fatalf("from the store:\n%s", diff)
		}
		after := rapid.Uint64Range(0, all[len(all)-1].GlobalSeq-1).Draw(rt, "after")
		rest := slices.DeleteFunc(slices.Clone(all), func(m message.Message) bool { return m.GlobalSeq <= after })
		if diff := cmp.Diff(rest, read(room.Resume(t.Context(), "ann", after, message.Filter{}))); diff != "" {
			rt.Fatalf("behind effect %d:\n%s", after, diff)
		}
	})
}

// Rights, quotas, cooldowns and staleness hold for what agents say, and a req_id is
// said once. Others have no requests.
func TestIntents(t *testing.T) {
	ctx := t.Context()
	ses := begin(t, vfs.NewMem(), `{}`)
	room := message.New(ses)
	join(t, room, message.Member{AgentID: "ann"}, message.Member{AgentID: "bob"},
		message.Member{AgentID: "mute", Permissions: []string{"submit_intent", "intent:move"}})
	first := emit(t, room, "ann", message.Message{Text: "hello", ReqID: "1"})
	again, err := room.Emit(ctx, "ann", message.Message{Text: "hello", ReqID: "1"})
	if err != nil || again.Status != agents.Duplicate || again.GlobalSeq != first {
		t.Errorf("said again: %+v, %v", again, err)
	}
	for name, c := range map[string]struct {
		from string
		m    message.Message
		want error
	}{
		"at once":       {"ann", message.Message{Text: "hello", ReqID: "2"}, agents.ErrCooldownActive},
		"no right":      {"mute", message.Message{Text: "hello", ReqID: "1"}, agents.ErrForbidden},
		"stale":         {"bob", message.Message{Text: "hello", ReqID: "1", ContextSeq: 1}, agents.ErrStaleContext},
		"no name":       {"bob", message.Message{Text: "hello"}, agents.ErrInvalidIntent},
		"nothing":       {"bob", message.Message{ReqID: "3"}, agents.ErrInvalid},
		"not allowed":   {"bob", message.Message{Kind: "MessageEmitted", Text: "x", ReqID: "4"}, agents.ErrInvalid},
		"to nobody":     {"bob", message.Message{Channel: "private", Text: "x", ReqID: "5"}, message.ErrInvalid},
		"to a stranger": {"bob", message.Message{To: "zoe", Text: "x", ReqID: "6"}, agents.ErrInvalid},
		"channel":       {"bob", message.Message{Channel: "secret", Text: "x", ReqID: "7"}, message.ErrInvalid},
		"kind":          {"bob", message.Message{Kind: "Move", Text: "x", ReqID: "8"}, message.ErrInvalid},
		"payload":       {"bob", message.Message{Payload: value(`[1]`), ReqID: "9"}, message.ErrInvalid},
		"cut payload":   {"bob", message.Message{Payload: signal.Value{0x81}, ReqID: "9"}, message.ErrInvalid},
		"a stranger's":  {"zoe", message.Message{Text: "x", ReqID: "1"}, message.ErrInvalid},
	} {
		if _, err := room.Emit(ctx, c.from, c.m); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for m, err := range room.Subscribe(ctx, "zoe", message.Filter{}) {
		assert.ErrorIsf(t, err, agents.ErrUnknownAgent, "a stranger hears %+v, %v", m, err)
	}
	// The payload goes along, and what is said beside it counts.
	emit(t, room, "bob", message.Message{Payload: value(`{"mood":"calm","text":"?"}`), Text: "!", ReqID: "10"})
	got := heard(t, ses, room, "ann", first)
	if len(got) != 1 || got[0].Text != "!" || got[0].Payload.String() != `{"mood":"calm","text":"!"}` {
		t.Errorf("ann hears %+v", got)
	}
}

// One that leaves hears nothing until it joins again, and its subscription goes on.
func TestLeaving(t *testing.T) {
	ctx := t.Context()
	room := message.New(begin(t, vfs.NewMem(), unbound))
	join(t, room, message.Member{AgentID: "ann"}, message.Member{AgentID: "bob"})
	messages := room.Subscribe(ctx, "bob", message.Filter{})
	emit(t, room, "ann", message.Message{Text: "before", ReqID: "1"})
	require.NoError(t, room.Leave(ctx, "bob"))
	assert.ErrorIs(t, room.Leave(ctx, "bob"), agents.ErrUnknownAgent, "leaving twice")
	emit(t, room, "ann", message.Message{Text: "while", ReqID: "2"})
	join(t, room, message.Member{AgentID: "bob"})
	emit(t, room, "ann", message.Message{Text: "after", ReqID: "3"})
	var got []string
	for m, err := range messages {
		require.NoError(t, err)
		if got = append(got, m.Text); m.Text == "after" {
			break
		}
	}
	if !slices.Equal(got, []string{"before", "after"}) {
		t.Errorf("bob hears %q", got)
	}
}

// A message comes when the policy's latency says, and not before: it waits for time to
// pass. An iteration ends with its context, or with the engine.
func TestLatency(t *testing.T) {
	ses := begin(t, vfs.NewMem(), unbound)
	room := message.New(ses)
	join(t, room, message.Member{AgentID: "ann"},
		message.Member{AgentID: "bob", Policy: value(`{"latency_model":{"model":"fixed","ms":300}}`)})
	messages := room.Subscribe(t.Context(), "bob", message.Filter{})
	emit(t, room, "ann", message.Message{Text: "far away", ReqID: "1"})
	type told struct {
		m   message.Message
		now time.Duration
	}
	got := make(chan told, 1)
	go func() {
		for m, err := range messages {
			if err != nil {
				t.Error(err)
			}
			got <- told{m, ses.Agents().Now()}
			break
		}
		close(got)
	}()
	for _, at := range []time.Duration{100, 299, 300} {
		require.NoError(t, ses.Agents().Advance(t.Context(), at*time.Millisecond))
	}
	if g := <-got; g.m.Text != "far away" || g.m.At != 300*time.Millisecond || g.now < g.m.At {
		t.Errorf("told at %v: %+v", g.now, g.m)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for m, err := range room.Resume(ctx, "bob", 0, message.Filter{}) {
		t.Errorf("after its end: %+v, %v", m, err)
	}
}

func value(text string) signal.Value {
	v, err := signal.ParseValue([]byte(text))
	if err != nil {
		panic(err)
	}
	return v
}
