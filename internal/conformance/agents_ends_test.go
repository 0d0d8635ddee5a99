package conformance

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/signal"
)

// sameEnd compares one thing about a world after the steps of a scenario.
func (s *agentScenario) sameEnd(name string, w *sim, want *node) {
	switch name {
	case "effect_count", "log_entries", "log_length":
		s.sameCount(name, int64(len(w.log)), want)
		return
	case "global_seq":
		s.sameCount(name, int64(w.core.Seq()-w.base), want)
		return
	case "log_integrity":
		s.sameTruth(name, w.integrity(), want)
		return
	case "global_seq_consecutive", "global_seq_gapless":
		s.sameTruth(name, w.consecutive(), want)
		return
	case "uuids_unique", "unique_uuids":
		s.sameTruth(name, w.unique(), want)
		return
	case "effect_kinds":
		s.sameList(name, w.column("kind"), want.texts())
		return
	case "effect_sources", "effect_source_ids", "source_order":
		s.sameList(name, w.column("source_id"), want.texts())
		return
	case "effect_req_ids", "log_req_ids", "req_ids", "req_ids_in_log":
		s.sameList(name, w.column("req_id"), want.texts())
		return
	case "effects_by_agent", "effects_per_agent", "effects_by_source", "effect_count_by_agent":
		for id, n := range want.members() {
			count := 0
			for _, source := range w.column("source_id") {
				if source == id {
					count++
				}
			}
			s.sameCount(name+"/"+id, int64(count), n)
		}
		return
	case "positions", "final_positions", "world_positions":
		for id, at := range want.members() {
			p, ok := w.core.World().Position(id)
			s.compare("/"+name+"/"+id, ok && equalValues(p.Value(), at.all()), p, at)
		}
		return
	case "effects", "log":
		s.sameEffects(name, w, want)
		return
	case "effect_payload_contains":
		s.samePayloads(name, w, want)
		return
	case "error_fields":
		s.sameRejection(name, w, want)
		return
	case "permissions":
		for id, list := range want.members() {
			s.sameSet(name+"/"+id, w.permissions[id], list.texts())
		}
		return
	case "last_effect":
		if len(w.records) == 0 {
			s.compare("/"+name, false, "none", want)
			return
		}
		last := w.renumbered(w.records[len(w.records)-1])
		s.compare("/"+name, includes(last, want.all()), last, want)
		return
	case "entities":
		for id, m := range want.members() {
			e, _ := w.core.World().Entity(id)
			s.compare("/"+name+"/"+id, includes(e, m.all()), e, m)
		}
		return
	case "view_seq", "view_seqs", "latest_view_seq":
		for id, seq := range want.members() {
			latest := w.core.LatestViewSeq(w.now, id)
			s.sameCount(name+"/"+id, int64(max(latest, w.base)-w.base), seq)
		}
		return
	case "deltas", "deltas_received", "observations":
		for id, n := range want.members() {
			s.sameCount(name+"/"+id, int64(len(w.deltas[id])), n)
		}
		return
	default:
		// It is named as not known, unless what is known fails already.
		want.asked = false
	}
}

// samePayloads compares members of the payloads of effects, each named by the
// effect's place and the member.
func (s *agentScenario) samePayloads(name string, w *sim, want *node) {
	i := 0
	for e := range want.elements() {
		what := fmt.Sprintf("/%s/%d", name, i)
		i++
		at := int(e.get("index").integer())
		if at < 0 || at >= len(w.records) {
			s.compare(what, false, fmt.Sprint(len(w.records), " effects"), e)
			continue
		}
		payload, _ := w.records[at].Get("payload")
		got, _ := payload.Get(e.get("field").text())
		s.compare(what, equalValues(got, e.get("value").all()), got, e)
	}
}

// sameRejection compares what the refusal of one step says, member by member.
func (s *agentScenario) sameRejection(name string, w *sim, want *node) {
	step := int(want.get("step").integer())
	if step < 0 || step >= len(w.refused) || w.refused[step] == nil {
		s.compare("/"+name, false, "no refusal", want)
		return
	}
	r := w.refused[step]
	for member, v := range want.members() {
		what := "/" + name + "/" + member
		switch member {
		case "step":
		case "agent_id":
			s.compare(what, r.AgentID == v.text(), r.AgentID, v)
		case "req_id":
			s.compare(what, r.ReqID == v.text(), r.ReqID, v)
		case "limit":
			s.compare(what, r.Limit == v.integer(), r.Limit, v)
		case "expected_seq":
			s.compare(what, int64(r.ExpectedSeq-w.base) == v.integer(), r.ExpectedSeq, v)
		case "actual_seq":
			s.compare(what, int64(r.ActualSeq-w.base) == v.integer(), r.ActualSeq, v)
		default:
			v.asked = false // it is named as not known
		}
	}
}

// sameEffects compares effects with objects of which each says as much as it
// wants to; sequence numbers count from set-up.
func (s *agentScenario) sameEffects(name string, w *sim, want *node) {
	if want.kind() != signal.KindArray {
		want.asked = false
		return
	}
	if s.compare("/"+name, want.len() == len(w.records), len(w.records), want.len()); want.len() != len(w.records) {
		return
	}
	i := 0
	for e := range want.elements() {
		got := w.renumbered(w.records[i])
		s.compare(fmt.Sprintf("/%s/%d", name, i), includes(got, e.all()), got, e)
		i++
	}
}

func (w *sim) column(name string) []string {
	list := []string{}
	for _, r := range w.records {
		list = append(list, r.TextOf(name))
	}
	return list
}

func (w *sim) seq(effect signal.Value) int64 {
	v, _ := effect.Get("global_seq")
	i, _ := v.Int64()
	return i - int64(w.base)
}

func (w *sim) consecutive() bool {
	for i, e := range w.log {
		if w.seq(e) != int64(i)+1 {
			return false
		}
	}
	return true
}

func (w *sim) unique() bool {
	seen := map[string]bool{}
	for _, id := range w.column("uuid") {
		seen[id] = true
	}
	return len(seen) == len(w.records)
}

// renumbered returns an effect as if set-up had made none.
func (w *sim) renumbered(effect signal.Value) signal.Value {
	patched, err := jsondoc.ApplyPatch(effect, []jsondoc.Operation{{Op: "replace", Path: "/global_seq", Value: made(w.seq(effect))}})
	if err != nil {
		return effect
	}
	return patched
}

// integrity checks the chain of the effects after set-up.
func (w *sim) integrity() bool {
	var entries []chainEntry
	prev := ""
	for _, e := range w.log {
		e = w.renumbered(e)
		prev = checksum(prev, e)
		entries = append(entries, chainEntry{Effect: e, Checksum: prev})
	}
	return w.consecutive() && verifyChain("conformance", entries).Valid
}
