package director_test

import (
	"bytes"
	"testing"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/signal"
)

// FuzzParse: no text makes trouble; what is accepted compiles to the same, can
// be migrated, and can be played.
func FuzzParse(f *testing.F) {
	f.Add([]byte(read(f, "episodes/interview.json")))
	f.Add([]byte(read(f, "episodes/interview-before.json")))
	f.Add([]byte(`{"beats": [{"id": "a", "description": "x", "character_instruction": "y", "target_turn": 1, "requires_beat": "a"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, diagnostics := director.Parse("x", text)
		if (e == nil) != (diagnostics.Err() != nil) {
			t.Fatalf("episode %v with %v", e, diagnostics)
		}
		if g, diagnostics := director.ParseGenre("x", text); (g == nil) != (diagnostics.Err() != nil) {
			t.Fatalf("doctrine %v with %v", g, diagnostics)
		}
		if e == nil {
			return
		}
		c, err := director.Compile(e.Value())
		if err != nil || c.Digest() != e.Digest() {
			t.Fatalf("Compile: %v", err)
		}
		if _, _, err := director.Migrate(e.Value()); err != nil && len(e.Beats)+len(e.Choices) < 4000 {
			t.Fatalf("Migrate: %v", err)
		}
		var s director.State
		play(t, &s, must(s.Start(e, director.Opening{})))
		for n := range 3 {
			g, records, err := s.Guide(director.Input{Turn: n + 1})
			if err != nil {
				return
			}
			play(t, &s, records)
			_ = g.Section()
			_, records, err = s.Respond(director.Response{Turn: n + 1, Text: string(text)})
			play(t, &s, must(records, err))
			if len(s.Awaiting()) > 0 {
				_, records, err = s.Expire("")
				play(t, &s, must(records, err))
			}
		}
		again, err := director.Restore(s.AppendState(nil))
		if err != nil || !bytes.Equal(again.AppendState(nil), s.AppendState(nil)) {
			t.Fatalf("Restore: %v", err)
		}
	})
}

// FuzzRestore: no bytes make trouble; what is accepted is canonical, and can be
// played on.
func FuzzRestore(f *testing.F) {
	states, _ := interview(f)
	for _, s := range states {
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
		s.Answer()
		for range 3 {
			_, records, err := s.Guide(director.Input{Turn: s.Turn() + 1, Text: "x"})
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
			for _, o := range s.Open() {
				if _, records, err := s.Choose(o.ID, o.Options[0].ID); err == nil {
					play(t, s, records)
				}
			}
		}
	})
}

// FuzzApply: no events make trouble; a state that took them can be restored.
func FuzzApply(f *testing.F) {
	states, records := interview(f)
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

// FuzzKeyword: a response that is a keyword has it, in either mode.
func FuzzKeyword(f *testing.F) {
	f.Add("Straße", "I CAN’T")
	f.Fuzz(func(t *testing.T, keyword, response string) {
		director.Occurs(keyword, response, false)
		director.Occurs(keyword, response, true)
		if director.Folded(keyword) != "" && !director.Occurs(keyword, keyword, false) {
			t.Errorf("%q is not in itself", keyword)
		}
	})
}
