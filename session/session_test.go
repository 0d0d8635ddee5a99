package session_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/msgptest"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

const dispatch = `{"id":"1","type":"task_dispatch","timestamp":1700000000000,"source":"a","payload":{"taskId":"t","from":"a","to":"b"}}`

// drafted returns the entries that Drafts makes of one of each kind, in two batches
// that share the builder's memory.
func drafted(t *testing.T) (entries []eventlog.Entry) {
	t.Helper()
	sig, err := signal.Parse([]byte(dispatch))
	require.NoError(t, err)
	payload, err := signal.ParseValue([]byte(`{"steps":[],"on":"task_dispatch"}`))
	require.NoError(t, err)
	declaration, err := language.CompileDeclaration("choreography", payload)
	require.NoError(t, err)
	said := session.Utterance{Turn: 1, Role: "user", Text: "hello"}.Record()
	var d session.Drafts
	keep := func() {
		for _, draft := range d.List() {
			entries = append(entries, eventlog.Entry{
				Seq: eventlog.Seq(len(entries) + 1), Kind: draft.Kind, At: draft.At, Data: slices.Clone(draft.Data),
			})
		}
		d.Reset()
	}
	d.Opened(0, session.TimeWall)
	d.Clock(0, 1_700_000_000_000_000_000)
	d.Declaration(0, declaration)
	require.Equal(t, 3, d.Len())
	keep()
	require.Zero(t, d.Len())
	d.Signal(time.Millisecond, sig)
	d.Record(eventlog.KindBeat, time.Millisecond, said.Word, said.Value)
	d.Tick(2 * time.Millisecond)
	keep()
	return entries
}

// What Drafts writes is what the decoders read.
func TestDraftsAreReadBack(t *testing.T) {
	entries := drafted(t)
	words := map[int]string{0: "opened", 1: "clock", 2: "choreography", 4: "message", 5: "tick"}
	for i, want := range words {
		word, _, err := session.WordOf(&entries[i])
		require.NoError(t, err)
		require.Equal(t, want, word)
	}
	require.Equal(t, session.Rules, session.RulesOf(&entries[0]))
	declaration, err := session.DeclarationOf(&entries[2])
	require.NoError(t, err)
	require.Equal(t, "choreography", declaration.Word())
	sig, err := session.SignalOf(&entries[3])
	require.NoError(t, err)
	require.Equal(t, "task_dispatch", sig.Type)
	record, err := session.BeatOf(&entries[4])
	require.NoError(t, err)
	said, ok := session.UtteranceOf(record)
	require.True(t, ok)
	require.Equal(t, session.Utterance{Turn: 1, Role: "user", Text: "hello"}, said)

	_, err = session.BeatOf(&entries[3])
	require.Error(t, err)
	_, err = session.WorldRecordOf(&entries[3])
	require.Error(t, err)
	_, err = session.SignalOf(&entries[0])
	require.Error(t, err)
	_, _, err = session.WordOf(&entries[3])
	require.ErrorIs(t, err, eventlog.ErrCorrupt)
	require.JSONEq(t, `{"seq":6,"at":2,"kind":"session","hash":"`+entries[5].Hash.String()+`","session":{"tick":{}}}`,
		string(session.AppendEntryJSON(nil, &entries[5])))
}

// A message is never an event, and stands before events only.
func TestUtterance(t *testing.T) {
	_, ok := session.UtteranceOf(signal.Record{Word: episode.TurnOpened})
	require.False(t, ok)
	said, events := session.Utterance{Turn: 2, Attempt: 1, Role: "character", Text: "Sit."}, []signal.Record{{Word: episode.ResponseRecorded}}
	require.Len(t, said.Before(events), 2)
	require.Equal(t, session.WordMessage, said.Before(events)[0].Word)
	require.Empty(t, said.Before(nil))
	said.Text = ""
	require.Len(t, said.Before(events), 1)
}

// openedUnder is the first entry of a session that records a number of rules.
func openedUnder(rules int) []byte {
	b := msgp.AppendArrayHeader(nil, 2)
	b = msgp.AppendString(b, "opened")
	b = msgp.AppendMapHeader(b, 2)
	b = msgp.AppendString(b, "time")
	b = msgp.AppendString(b, "wall")
	b = msgp.AppendString(b, "rules")
	return msgp.AppendInt(b, rules)
}

// An entry with an invalid number of rules does not open a session.
func TestRulesThatAreNone(t *testing.T) {
	for _, n := range []int{0, -1, 1 << 40} {
		e := eventlog.Entry{Seq: 1, Kind: eventlog.KindSession, Data: openedUnder(n)}
		if got := session.RulesOf(&e); got != 0 {
			t.Errorf("rules %d are taken for %d", n, got)
		}
	}
}

// A state of the session that no entries lead to is refused.
func TestRestoreSessionState(t *testing.T) {
	set := session.Projections(session.ProjectionConfig{})
	fold := projection.NewFold(set, eventlog.Genesis("session"))
	for i, e := range drafted(t) {
		e.Seq = eventlog.Seq(i + 1)
		require.NoError(t, fold.Apply(&e))
	}
	// [authority, has origin, origin, flagged, number of each kind…]
	whole := fold.Image().Parts[0].Data
	if _, err := set[0].Restore(whole); err != nil || set[0].Name != session.ProjectionSession {
		t.Fatalf("%s: %v", set[0].Name, err)
	}
	number := func(n int64) []byte { return msgp.AppendInt64(nil, n) }
	text := func(s string) []byte { return msgp.AppendString(nil, s) }
	for name, data := range map[string][]byte{
		"an unknown authority":         msgptest.Set(whole, text("wale"), 0),
		"a long authority":             msgptest.Set(whole, text("manuals"), 0),
		"an origin without a session":  msgptest.Set(whole, text(""), 0),
		"an origin of another clock":   msgptest.Set(whole, text("sim"), 0),
		"an origin that is none":       msgptest.Set(whole, []byte{0xc2}, 1),
		"no boolean":                   msgptest.Set(whole, number(1), 1),
		"no origin":                    msgptest.Set(whole, text("x"), 2),
		"more flagged than signals":    msgptest.Set(whole, number(1000), 3),
		"fewer flagged than none":      msgptest.Set(whole, number(-1), 3),
		"entries of no kind":           msgptest.Set(whole, number(1), 4),
		"a negative number of signals": msgptest.Set(whole, number(-1), 5),
		"a number beyond all":          msgptest.Set(whole, msgp.AppendUint64(nil, math.MaxUint64), 6),
		"opened without an entry":      msgptest.Set(whole, number(0), 9),
		"a number in nine bytes":       msgptest.Set(whole, []byte{0xd3, 0, 0, 0, 0, 0, 0, 0, 1}, 9),
		"an element more":              append([]byte{whole[0] + 1}, append(bytes.Clone(whole[1:]), 0)...),
		"two elements less":            append([]byte{whole[0] - 2}, whole[1:len(whole)-2]...), // one less: no rules
		"rules 0":                      msgptest.Set(whole, number(0), 10),
		"rules of no session":          msgptest.Set(msgptest.Set(whole, text(""), 0), number(0), 9),
		"something behind":             append(bytes.Clone(whole), 0xc0),
		"nothing":                      nil,
	} {
		if _, err := set[0].Restore(data); err == nil {
			t.Errorf("%s: restored", name)
		}
	}
	for n := range whole {
		if _, err := set[0].Restore(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes: restored", n, len(whole))
		}
	}
}

// FuzzEntry shows and folds entries with any data: each is shown as one valid JSON
// object and as a view, and the state after it is restored from its image.
func FuzzEntry(f *testing.F) {
	sig, err := signal.Parse([]byte(`{"id":"1","type":"task_dispatch","timestamp":1,"source":"a","correlationId":"c","payload":{"taskId":"t","from":"a","to":"b"}}`))
	require.NoError(f, err)
	f.Add(uint8(eventlog.KindSignal), sig.Append(nil))
	f.Add(uint8(eventlog.KindSession), []byte("\x92\xa6opened\x81\xa4time\xa4wall"))
	f.Add(uint8(eventlog.KindDefine), []byte("\x92\xacchoreography\x82\xa2on\xa1x\xa5steps\x90"))
	f.Add(uint8(eventlog.KindEffect), []byte{0xc0})
	f.Add(uint8(eventlog.KindSignal), []byte("\x92\x81\xa1\xff\xa1\xff\xa1p"))
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		e := eventlog.Entry{Seq: 1, Kind: eventlog.Kind(kind%5 + 1), Data: data}
		if text := session.AppendEntryJSON(nil, &e); !json.Valid(text) {
			t.Errorf("%v entry %x is shown as %s", e.Kind, data, text)
		}
		if view := session.EntryView(&e); view["kind"] != e.Kind.String() {
			t.Errorf("%v entry %x is viewed as %v", e.Kind, data, view)
		}
		fold := projection.NewFold(session.Projections(session.ProjectionConfig{}), eventlog.Genesis("fuzz"))
		if err := fold.Apply(&e); err != nil {
			t.Fatal(err)
		}
		fold.Advance(1000)
		_ = fold.View()
		img := fold.Image()
		restored, err := projection.RestoreFold(fold.Set(), img)
		if err != nil {
			t.Fatalf("%v entry %x: %v", e.Kind, data, err)
		}
		if diff := cmp.Diff(img, restored.Image()); diff != "" {
			t.Fatalf("%v entry %x: restored as another state (-written +restored):\n%s", e.Kind, data, diff)
		}
	})
}
