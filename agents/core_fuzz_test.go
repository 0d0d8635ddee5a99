package agents_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// FuzzRestoreCore shows that restoring never panics, and that a restored state is
// written again with the same bytes.
func FuzzRestoreCore(f *testing.F) {
	r := meadow(f, coreConfigs[4])
	r.issue("one", "/entities/b")
	r.draft(agents.EffectDraft{Kind: "Speak", SourceID: "b", Payload: parse(f, `{"text":"hi"}`)})
	r.submit(speak("a", "two", 1))
	whole := r.core.AppendState(nil)
	f.Add(whole)
	for n := range whole {
		if _, err := agents.RestoreCore(whole[:n], options); !errors.Is(err, world.ErrState) {
			f.Errorf("%d of %d bytes: err = %v, want ErrState", n, len(whole), err)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := agents.RestoreCore(b, options)
		if err != nil {
			if !errors.Is(err, world.ErrState) && !errors.Is(err, world.ErrStateVersion) {
				t.Fatalf("err = %v", err)
			}
			return
		}
		if !bytes.Equal(c.AppendState(nil), b) {
			t.Fatal("written otherwise than read")
		}
		c.Bind("w", nil)
		c.Advance(c.Now() + time.Hour)
		c.Expire(c.Now())
		c.Submit(c.Now(), speak("a", "three", 1))
	})
}

// FuzzApply shows that folding is total: after any record the
// state can be written and restored.
func FuzzApply(f *testing.F) {
	words := []string{
		agents.WordConfig, agents.WordWorld, agents.WordAgent, agents.WordLeft, agents.WordEffect, agents.WordOutcome,
		agents.WordQuantum, agents.WordToken, agents.WordCancel, agents.WordGenerated, "other",
	}
	r := meadow(f, `{}`)
	r.issue("one")
	r.draft(agents.EffectDraft{Kind: "Move", SourceID: "b", Payload: parse(f, `{"to":[1,2]}`)})
	r.submit(speak("a", "two", 1))
	for _, k := range r.log {
		f.Add(uint8(slices.Index(words, k.record.Word)), []byte(k.record.Value))
	}
	f.Fuzz(func(t *testing.T, word uint8, b []byte) {
		v, rest, err := signal.CheckValue(b)
		if err != nil || len(rest) > 0 {
			return
		}
		r := meadow(t, `{}`)
		r.issue("one")
		r.core.Apply(time.Second, signal.Record{Word: words[int(word)%len(words)], Value: v})
		if _, err := agents.RestoreCore(r.core.AppendState(nil), options); err != nil {
			t.Fatal(err)
		}
	})
}
