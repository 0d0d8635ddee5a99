package agents_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
)

// TestQuotaIsBounded shows that under a large quota an agent never has more in
// a minute than it allows, nearly all of what it allows, and a state that does not grow
// with what it asks.
func TestQuotaIsBounded(t *testing.T) {
	const quota = 2000
	for _, tt := range []struct {
		name, config string
		intents      int64
		most         int // bytes of state for each use that counts
	}{
		{"intents", `{"cooldowns":"off","staleness_threshold":100000,"quota_intents_per_minute":2000,"quota_tokens_per_minute":-1}`, quota, 12},
		{"tokens", `{"cooldowns":"off","staleness_threshold":100000,"quota_intents_per_minute":-1,"quota_tokens_per_minute":6000}`, quota, 12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRun(t)
			r.must(r.core.Configure(parse(t, tt.config)))
			r.must(r.core.Begin(parse(t, `{"entities":{"a":{}}}`)))
			r.must(r.core.Register(agents.Registration{AgentID: "a", Policy: parse(t, `{"policy":"self"}`)}))
			empty := len(r.core.AppendState(nil))
			var accepted []time.Duration
			for i := range 9000 {
				r.now += 17 * time.Millisecond
				in := speak("a", fmt.Sprint("r", i), 0)
				in.Payload = parse(t, `{"text":"hi"}`)
				o, records := r.core.Submit(r.now, in)
				for _, record := range records {
					r.core.Apply(r.now, record)
				}
				if !o.OK() {
					wantCode(t, o, agents.ErrQuotaExceeded)
					continue
				}
				accepted = append(accepted, r.now)
				since, _ := slices.BinarySearch(accepted, r.now-time.Minute+1)
				if n := len(accepted) - since; n > quota {
					t.Fatalf("%d in the minute up to %v", n, r.now)
				}
			}
			// 153 s hold two minutes in full and a third begun.
			if len(accepted) < 3*quota-100 {
				t.Errorf("%d accepted, nearly %d would have been allowed", len(accepted), 3*quota)
			}
			if size := len(r.core.AppendState(nil)) - empty; size > 1001*tt.most+200 {
				t.Errorf("the state has grown by %d bytes", size)
			}
			if _, err := agents.RestoreCore(r.core.AppendState(nil), options); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestMemoryIsShared shows that the state writes out an agent's memory of an entity
// only if it differs from the world.
func TestMemoryIsShared(t *testing.T) {
	r := newRun(t)
	r.must(r.core.Configure(parse(t, `{"cooldowns":"off"}`)))
	var entities, places strings.Builder
	for i := range 100 {
		fmt.Fprintf(&entities, `,"tree%d":{"type":"tree","story":"%s"}`, i, strings.Repeat("x", 500))
		fmt.Fprintf(&places, `,"tree%d":[%d,0]`, i, i)
	}
	r.must(r.core.Begin(parse(t, `{"entities":{"a":{}`+entities.String()+`},"spatial_index":{"a":[0,0]`+places.String()+`}}`)))
	r.must(r.core.Register(agents.Registration{AgentID: "a", Policy: parse(t, `{"policy":"fog","of":{"policy":"distance","limit":200},"capacity":200}`)}))
	before := len(r.core.AppendState(nil))
	r.draft(agents.EffectDraft{Kind: "Move", SourceID: "a", Payload: parse(t, `{"to":[5000,0]}`)})
	if grown := len(r.core.AppendState(nil)) - before; grown > 100*20+200 {
		t.Errorf("100 memories take %d bytes", grown)
	}
	r.draft(agents.EffectDraft{Kind: "EntityUpdated", SourceID: "b", Payload: parse(t, `{"entity_id":"tree7","fields":{"story":"felled"}}`)})
	view, _ := r.core.View("a")
	tree, _ := view.VisibleEntities.Get("tree7")
	story, _ := tree.Get("story")
	seen, _ := tree.Get("last_seen_seq")
	if text, _ := story.Text(); len(text) != 500 || seen.String() != "1" {
		t.Errorf("remembered: %v", tree)
	}
	c, err := agents.RestoreCore(r.core.AppendState(nil), options)
	require.NoError(t, err)
	again, _ := c.View("a")
	if again.Value().String() != view.Value().String() {
		t.Errorf("taken up again\n%v\nwas\n%v", again.Value(), view.Value())
	}
}
