package director_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// FuzzParse checks that Parse returns for every text, and that an accepted episode
// compiles to the same, can be migrated and can be played.
func FuzzParse(f *testing.F) {
	f.Add([]byte(read(f, "script/interview.json")))
	f.Add([]byte(read(f, "script/interview-before.json")))
	f.Add([]byte(`{"beats": [{"id": "a", "description": "x", "character_instruction": "y", "target_turn": 1, "requires_beat": "a"}]}`))
	f.Add([]byte(`{"signals": [{"on": "flagSet", "type": "a"}, {"on": "directive", "type": "b", "payload": {"turn": [1]}}],
		"flag_rules": [{"on_signal": "s", "when": {"n": {"gt": 1}}, "set": "x"}, {"on_effect": "e", "clear": "x"}], "flags": ["x"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, diagnostics := episode.Parse("x", text)
		if (e == nil) != (diagnostics.Err(episode.ErrEpisode) != nil) {
			t.Fatalf("episode %v with %v", e, diagnostics)
		}
		if g, diagnostics := episode.ParseGenre("x", text); (g == nil) != (diagnostics.Err(episode.ErrEpisode) != nil) {
			t.Fatalf("doctrine %v with %v", g, diagnostics)
		}
		if e == nil {
			return
		}
		c, err := episode.Compile(e.Value())
		if err != nil || c.Digest() != e.Digest() {
			t.Fatalf("Compile: %v", err)
		}
		if _, _, err := episode.Migrate(e.Value()); err != nil && len(e.Beats)+len(e.Choices) < 4000 {
			t.Fatalf("Migrate: %v", err)
		}
		var s director.State
		play(t, &s, must(s.Start(e, director.Opening{})))
		for n := range 3 {
			g, records, err := s.Guide(director.TurnInput{Turn: n + 1})
			if err != nil {
				return
			}
			play(t, &s, records)
			_ = g.Section()
			_, records, err = s.Respond(director.Response{Turn: n + 1, Text: string(text)})
			play(t, &s, must(records, err))
			for _, r := range records {
				for _, cue := range s.Signals(r) {
					if sig := (&signal.Signal{Type: cue.Type, Timestamp: signal.Int(0), Payload: cue.Payload}); sig.Validate() != nil {
						t.Fatalf("%s %s: %v", cue.Type, cue.Payload, sig.Validate())
					}
				}
			}
			for _, rule := range e.FlagRules {
				play(t, &s, must(s.ExternalEvent(rule.Kind, rule.Name, e.Value(), "x")))
			}
			if len(s.Awaiting()) > 0 {
				_, records, err = s.Expire("")
				play(t, &s, must(records, err))
			}
		}
		play(t, &s, must(s.Revise(bare(t, e.ID))))
		play(t, &s, must(s.Revise(e)))
		again, err := director.Restore(s.AppendState(nil))
		if err != nil || !bytes.Equal(again.AppendState(nil), s.AppendState(nil)) {
			t.Fatalf("Restore: %v", err)
		}
	})
}

// bare returns an episode in which nothing happens.
func bare(t testing.TB, id string) *episode.Episode {
	t.Helper()
	v, err := signal.ParseValue([]byte(`{"title": "bare"}`))
	require.NoError(t, err)
	if id != "" {
		m := msgp.AppendMapHeader(nil, 1)
		v = msgp.AppendString(msgp.AppendString(m, "id"), id)
	}
	e, err := episode.Compile(v)
	require.NoError(t, err)
	return e
}

// revisions plays the example, revises it to an empty episode and back.
func revisions(t testing.TB) (states [][]byte, records []signal.Record) {
	plain, _ := interview(t)
	s, err := director.Restore(plain[len(plain)-1])
	require.NoError(t, err)
	e := s.Episode()
	step := func(more []signal.Record) {
		for _, r := range more {
			states, records = append(states, s.AppendState(nil)), append(records, r)
			play(t, s, []signal.Record{r})
		}
	}
	step(must(s.Revise(bare(t, e.ID))))
	step(must(s.ExternalEvent(episode.OfSignal, "telephone_rings", value(t, `{"caller": "the other company"}`), "signal:1")))
	step(must(s.Revise(e)))
	step(must(s.ExternalEvent(episode.OfSignal, "telephone_rings", value(t, `{"caller": "the other company"}`), "signal:2")))
	return append(states, s.AppendState(nil)), records
}

// FuzzRestore checks that Restore returns for all bytes, and that an accepted state is
// canonical and can be played on.
func FuzzRestore(f *testing.F) {
	states, _ := interview(f)
	revised, _ := revisions(f)
	for _, s := range append(states, revised...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := director.Restore(b)
		if err != nil {
			return
		}
		if !bytes.Equal(s.AppendState(nil), b) {
			t.Fatal("not canonical")
		}
		s.View()
		s.Pending()
		s.Open()
		s.ChoiceLine()
		for range 3 {
			_, records, err := s.Guide(director.TurnInput{Turn: s.Turn() + 1, Text: "x"})
			if err == nil {
				play(t, s, records)
			}
			_, records, err = s.Respond(director.Response{Turn: s.Turn(), Text: "salary, offer"})
			if err == nil {
				play(t, s, records)
			}
			if _, records, err = s.Expire(""); err == nil {
				play(t, s, records)
			}
			if e := s.Episode(); e != nil {
				if records, err := s.ExternalEvent(episode.OfSignal, "telephone_rings", e.Value(), "x"); err == nil {
					play(t, s, records)
				}
				if records, err := s.Revise(bare(t, e.ID)); err == nil {
					play(t, s, records)
					if records, err := s.Revise(e); err == nil {
						play(t, s, records)
					}
				}
			}
			for _, o := range s.Open() {
				if _, records, err := s.Choose(o.ID, o.Options[0].ID); err == nil {
					play(t, s, records)
				}
			}
		}
	})
}

// FuzzApply checks that Apply returns for all events, and that the state after them can
// be restored.
func FuzzApply(f *testing.F) {
	states, records := interview(f)
	for i, r := range records {
		f.Add(states[i], r.Word, []byte(r.Value))
	}
	states, records = revisions(f)
	for i, r := range records {
		f.Add(states[i], r.Word, []byte(r.Value))
	}
	f.Fuzz(func(t *testing.T, state []byte, word string, value []byte) {
		s, err := director.Restore(state)
		if err != nil {
			return
		}
		v, _, err := signal.CheckValue(value)
		if err != nil {
			return
		}
		if err := s.Apply(word, v); err != nil && !bytes.Equal(s.AppendState(nil), state) {
			t.Fatalf("%v, and the state has changed", err)
		} else if err != nil {
			return
		}
		s.View()
		if _, err := director.Restore(s.AppendState(nil)); err != nil {
			t.Fatalf("%s %s: %v", word, v, err)
		}
	})
}

// Parse goes once through an object of very many unknown members.
func TestManyUnknownMembers(t *testing.T) {
	read := func(n int) time.Duration {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, `,"k%d":1`, i)
		}
		begun := time.Now()
		_, ds := episode.Parse("many.json", []byte("{"+text.String()[1:]+"}"))
		if len(ds) == 0 {
			t.Fatal("nothing is said about members that are not known")
		}
		return time.Since(begun)
	}
	read(1000)
	// Quadratic time would be 256 times as long for sixteen times as many members,
	// which no load on the machine causes.
	if few, many := read(4000), read(64_000); many > 100*few && many > time.Second {
		t.Errorf("4000 members take %v, 64000 take %v", few, many)
	}
}
