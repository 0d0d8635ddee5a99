package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
)

// TestKnowsProperty is the law of knowing: whatever is recorded, at every
// moment an agent knows the view that all deltas lead to that were made and had reached
// it by then.
func TestKnowsProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		v := enginetest.RecordVault(t, sajou.Config{SnapshotEvery: rapid.SampledFrom([]int{-1, 1, 3}).Draw(r, "snapshots")})
		now := time.Duration(0)
		for range rapid.IntRange(5, 25).Draw(r, "steps") {
			switch rapid.IntRange(0, 9).Draw(r, "step") {
			case 0, 1, 2:
				v.Happens("Move", rapid.SampledFrom([]string{"scout", "clerk"}).Draw(r, "who"), fmt.Sprintf(`{"to":[%d,0]}`, rapid.IntRange(0, 20).Draw(r, "x")))
			case 3, 4:
				v.Happens("EntityUpdated", "gm", fmt.Sprintf(`{"entity_id":"vault","fields":{"code":%d,"locked":%v}}`, rapid.IntRange(0, 9).Draw(r, "code"), rapid.Bool().Draw(r, "locked")))
			case 5:
				v.Happens("Speak", "clerk", `{"text":"psst","channel":"private","target_id":"scout"}`)
			case 6:
				v.Register("scout", rapid.SampledFrom([]string{
					`{"policy":"distance","limit":8,"latency_model":{"model":"jitter","ms":30,"spread_ms":300}}`,
					`{"policy":"fog","of":{"policy":"distance","limit":5},"latency_model":200}`, `{"policy":"everything"}`,
				}).Draw(r, "policy"))
			case 7:
				if g, err := v.World.Agent(t.Context(), "scout"); err == nil && rapid.Bool().Draw(r, "leaves") {
					v.Must(g.Leave(t.Context()))
				}
			default:
				now += time.Duration(rapid.IntRange(1, 150).Draw(r, "ms")) * ms
				v.Wait(now)
			}
		}
		v.Mark("end")
		agent := rapid.SampledFrom([]string{"scout", "clerk"}).Draw(r, "agent")
		seq := eventlog.Seq(rapid.IntRange(0, int(v.Seqs["end"])).Draw(r, "seq"))
		log, err := v.Eng.Log().Session("vault")
		v.Must(err)
		// The core itself, entry by entry, and every delta by its own time.
		core, err := agents.NewCore(agents.Options{})
		v.Must(err)
		type made struct {
			at    time.Duration
			delta view.Delta
		}
		var deltas []made
		var at, next time.Duration
		left := time.Duration(-1)
		for e, err := range log.Entries(t.Context(), 1) {
			v.Must(err)
			if next = e.At; e.Seq > seq {
				break
			}
			at = e.At
			record, err := session.WorldRecordOf(&e)
			if err != nil {
				continue
			}
			_, was := core.View(agent)
			out := core.Apply(e.At, record)
			if _, is := core.View(agent); is && !was {
				deltas, left = nil, -1
			} else if was && !is {
				left = e.At
			}
			for _, d := range out.Deliveries {
				if d.Agent == agent {
					deltas = append(deltas, made{d.At, d.Delta})
				}
			}
		}
		m := replay.Moment{Seq: seq}
		if next > at {
			m.Offset = time.Duration(rapid.Int64Range(0, int64(next-at)).Draw(r, "offset"))
		}
		instant, want, pending := at+m.Offset, enginetest.Value(t, `{"visible_entities":{},"visible_relationships":{}}`), 0
		var last view.Delta
		for _, d := range deltas {
			switch {
			case left >= 0 && d.at > left: // it never came
			case d.at > instant:
				pending++
			default:
				want, err = jsondoc.ApplyPatch(want, d.delta.Patches)
				v.Must(err)
				last = d.delta
			}
		}
		k := v.Knows(agent, m)
		got := fmt.Sprintf(`{"visible_entities":%s,"visible_relationships":%s}`,
			jsondoc.AppendCanonical(nil, k.View.VisibleEntities), jsondoc.AppendCanonical(nil, k.View.VisibleRelationships))
		if diff := cmp.Diff(string(jsondoc.AppendCanonical(nil, want)), got); diff != "" {
			r.Fatalf("%s at %v (-deltas +known)\n%s", agent, m, diff)
		}
		if k.View.ViewSeq != last.ViewSeq || len(deltas) > 0 && last.ContextDigest() != "" && k.View.ContextDigest != last.ContextDigest() || len(k.Pending) != pending {
			r.Fatalf("%s at %v: %d %s with %d on their way; the deltas say %d %s, %d", agent, m,
				k.View.ViewSeq, k.View.ContextDigest, len(k.Pending), last.ViewSeq, last.ContextDigest(), pending)
		}
		if k.At != instant || k.Head.Seq != seq {
			r.Fatalf("%v: entry %d at %v", m, k.Head.Seq, k.At)
		}
	})
}
