package conformance

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

// sameEnd compares one thing about a world after the steps of a scenario.
func (s *agentScenario) sameEnd(name string, w *sim, want *node) error {
	switch name {
	case "effect_count", "log_entries", "log_length":
		return s.sameCount(name, int64(len(w.log)), want)
	case "global_seq":
		return s.sameCount(name, int64(w.core.Seq()-w.base), want)
	case "log_integrity":
		return s.sameTruth(name, w.integrity(), want)
	case "global_seq_consecutive", "global_seq_gapless":
		return s.sameTruth(name, w.consecutive(), want)
	case "uuids_unique", "unique_uuids":
		return s.sameTruth(name, w.unique(), want)
	case "effect_kinds":
		return s.sameList(name, w.column("kind"), want.texts())
	case "effect_sources", "effect_source_ids", "source_order":
		return s.sameList(name, w.column("source_id"), want.texts())
	case "effect_req_ids", "log_req_ids", "req_ids", "req_ids_in_log":
		return s.sameList(name, w.column("req_id"), want.texts())
	case "effects_by_agent", "effects_per_agent", "effects_by_source", "effect_count_by_agent":
		for id, n := range want.members() {
			count := 0
			for _, source := range w.column("source_id") {
				if source == id {
					count++
				}
			}
			if err := s.sameCount(name+"/"+id, int64(count), n); err != nil {
				return err
			}
		}
		return nil
	case "positions", "final_positions", "world_positions":
		for id, at := range want.members() {
			p, ok := w.core.World().Position(id)
			if err := s.compare("/"+name+"/"+id, ok && same(p.Value(), at.all()), p, at); err != nil {
				return err
			}
		}
		return nil
	case "effects", "log":
		return s.sameEffects(name, w, want)
	case "last_effect":
		if len(w.records) == 0 {
			return s.compare("/"+name, false, "none", want)
		}
		last := w.renumbered(w.records[len(w.records)-1])
		return s.compare("/"+name, includes(last, want.all()), last, want)
	case "entities":
		for id, m := range want.members() {
			e, _ := w.core.World().Entity(id)
			if err := s.compare("/"+name+"/"+id, includes(e, m.all()), e, m); err != nil {
				return err
			}
		}
		return nil
	case "view_seq", "view_seqs", "latest_view_seq":
		for id, seq := range want.members() {
			latest := w.core.LatestViewSeq(w.now, id)
			if err := s.sameCount(name+"/"+id, int64(max(latest, w.base)-w.base), seq); err != nil {
				return err
			}
		}
		return nil
	case "deltas", "deltas_received", "observations":
		for id, n := range want.members() {
			if err := s.sameCount(name+"/"+id, int64(len(w.deltas[id])), n); err != nil {
				return err
			}
		}
		return nil
	default:
		// It is named as not known, unless what is known fails already.
		want.asked = false
		return nil
	}
}

// sameEffects compares effects with objects of which each says as much as it
// wants to; sequence numbers count from set-up.
func (s *agentScenario) sameEffects(name string, w *sim, want *node) error {
	if want.kind() != signal.KindArray {
		want.asked = false
		return nil
	}
	if err := s.compare("/"+name, want.len() == len(w.records), len(w.records), want.len()); err != nil {
		return err
	}
	i := 0
	for e := range want.elements() {
		got := w.renumbered(w.records[i])
		if err := s.compare(fmt.Sprintf("/%s/%d", name, i), includes(got, e.all()), got, e); err != nil {
			return err
		}
		i++
	}
	return nil
}

func (w *sim) column(name string) []string {
	list := []string{}
	for _, r := range w.records {
		list = append(list, memberText(r, name))
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
	patched, err := agents.ApplyPatch(effect, []agents.Operation{{Op: "replace", Path: "/global_seq", Value: made(w.seq(effect))}})
	if err != nil {
		return effect
	}
	return patched
}

// integrity checks the chain of the effects after set-up.
func (w *sim) integrity() bool {
	var entries []agents.ChainEntry
	prev := ""
	for _, e := range w.log {
		e = w.renumbered(e)
		prev = agents.Checksum(prev, e)
		entries = append(entries, agents.ChainEntry{Effect: e, Checksum: prev})
	}
	return w.consecutive() && agents.Verify("conformance", entries).Valid
}
