package conformance

import (
	"fmt"
	"slices"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

func judgeChain(s *agentScenario) error {
	var forms, sums []string
	prev := ""
	for e := range s.input.get("effects").elements() {
		effect := e.all()
		prev = checksum(prev, effect)
		forms, sums = append(forms, canonical(effect)), append(sums, prev)
		// An effect that went through the engine's own form is the same to the byte.
		if own, err := world.ParseEffect(effect); err == nil && len(own.Value()) == len(effect) && canonical(own.Value()) != canonical(effect) {
			return fmt.Errorf("the effect reads back as %s", canonical(own.Value()))
		}
	}
	for _, c := range []struct {
		name string
		got  []string
	}{{"canonical_json", forms}, {"checksums", sums}} {
		want := s.expected.get(c.name)
		if !want.given() {
			continue
		}
		texts := want.texts()
		if len(texts) != len(c.got) {
			s.compare("/"+c.name, false, len(c.got), len(texts))
			return nil
		}
		for i := range texts {
			s.compare(fmt.Sprintf("/%s/%d", c.name, i), c.got[i] == texts[i], c.got[i], texts[i])
		}
	}
	if want := s.expected.get("last_checksum", "final_checksum"); want.given() {
		s.compare("/last_checksum", prev == want.text(), prev, want)
	}
	return nil
}

// entries reads a log: entries of an effect and a checksum, or a list of each.
// A checksum that is not there is none that could fit.
func (s *agentScenario) entries() []chainEntry {
	var entries []chainEntry
	for e := range s.input.get("entries", "log").elements() {
		entries = append(entries, chainEntry{Effect: e.get("effect").all(), Checksum: e.get("checksum").text()})
		e.get("global_seq", "index").all()
	}
	sums := s.input.get("checksums").texts()
	for e := range s.input.get("effects").elements() {
		entry := chainEntry{Effect: e.all()}
		if len(entries) < len(sums) {
			entry.Checksum = sums[len(entries)]
		}
		entries = append(entries, entry)
	}
	return entries
}

func judgeIntegrity(s *agentScenario) error {
	entries := s.entries()
	r := verifyChain("conformance", entries)
	s.sameTruth("valid", r.Valid, s.expected.get("valid"))
	if want := s.expected.get("first_bad_index"); want != nil {
		bad := firstBad(r, entries)
		switch {
		case !want.given():
			s.compared++
			if bad >= 0 {
				return fmt.Errorf("/first_bad_index: %d, want none", bad)
			}
		default:
			s.sameCount("first_bad_index", bad, want)
		}
	}
	report := made(r)
	for _, name := range []string{"corrupted_entries", "missing_sequences", "total_entries", "details"} {
		if want := s.expected.get(name); want.given() {
			got, _ := report.Get(name)
			s.compare("/"+name, includes(got, want.all()), got, want)
		}
	}
	return nil
}

// firstBad returns the index of the first entry that is corrupted, or before
// which one is missing; -1 if there is none.
func firstBad(r chainReport, entries []chainEntry) int64 {
	bad := r.firstBadIndex()
	for i, e := range entries {
		v, _ := e.Effect.Get("global_seq")
		if seq, _ := v.Int64(); seq != int64(i)+1 {
			if bad < 0 || i < bad {
				bad = i
			}
			break
		}
	}
	return int64(bad)
}

// replayed is what a replay of effects comes to.
type replayed struct {
	seqs  []int64
	sums  []string
	state string
}

func replay(effects []signal.Value) (replayed, error) {
	var r replayed
	w, err := newSim("conformance")
	if err != nil {
		return r, err
	}
	if len(effects) > 0 {
		// A log that is cut off at its beginning goes on where it begins.
		first, _ := effects[0].Get("global_seq")
		if n, _ := first.Int64(); n > 1 {
			world := document{"metadata": document{"last_effect_seq": n - 1}}
			if err := w.keep(w.core.Begin(made(world))); err != nil {
				return r, err
			}
		}
	}
	prev := ""
	for _, e := range effects {
		if err := w.keep([]signal.Record{{Word: agents.WordEffect, Value: e}}, nil); err != nil {
			return r, err
		}
		prev = checksum(prev, w.records[len(w.records)-1])
		r.seqs, r.sums = append(r.seqs, w.seq(w.log[len(w.log)-1])), append(r.sums, prev)
	}
	r.state = string(w.core.AppendState(nil))
	return r, nil
}

// judgeReplay replays a log twice. What comes out must also be what went in.
func judgeReplay(s *agentScenario) error {
	var effects []signal.Value
	var recorded replayed
	prev := ""
	for e := range s.input.get("effects").elements() {
		effects = append(effects, e.all())
		prev = checksum(prev, e.all())
		recorded.seqs, recorded.sums = append(recorded.seqs, e.get("global_seq").integer()), append(recorded.sums, prev)
	}
	one, err := replay(effects)
	if err != nil {
		return err
	}
	two, err := replay(effects)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		got  bool
	}{
		{"same_global_seq", slices.Equal(one.seqs, two.seqs) && slices.Equal(one.seqs, recorded.seqs)},
		{"same_checksums", slices.Equal(one.sums, two.sums) && slices.Equal(one.sums, recorded.sums)},
		{"same_world_state_digest", one.state == two.state},
	} {
		s.sameTruth(c.name, c.got, s.expected.get(c.name))
	}
	if want := s.expected.get("checksums"); want.given() {
		s.sameList("checksums", one.sums, want.texts())
	}
	return nil
}
