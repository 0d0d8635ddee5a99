package episode

import (
	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/internal/wording"
)

// SourceFile is the text of one episode.
type SourceFile struct {
	File string // names it in diagnostics
	Text []byte // JSON, or YAML as [authored.Read] tells by the name
}

// ParseSeries is [Parse] for the episodes of a series, which are played one after
// another. It adds the diagnostics that need all of them: about flags that one sets
// and none reads, about ids that occur twice, and, in a series of several, about
// suggested episodes that are missing. Each result has the index of its source; an
// episode that is refused is nil.
func ParseSeries(sources ...SourceFile) ([]*Episode, []authored.Diagnostics) {
	episodes, builders := make([]*Episode, len(sources)), make([]builder, len(sources))
	texts, all := make([]*authored.Text, len(sources)), make([]authored.Diagnostics, len(sources))
	reads, ids := map[string]bool{}, map[string]int{}
	// An episode that is refused could read any flag, and one that makes signals of
	// all flags does.
	whole, everything := true, false
	for i, src := range sources {
		if texts[i], all[i] = authored.Read(src.File, src.Text); all[i] != nil {
			whole = false
			continue
		}
		v := texts[i].Value
		e := builders[i].episode(v)
		episodes[i] = e
		if e == nil {
			whole = false
			continue
		}
		for f := range e.Reads() {
			reads[f] = true
		}
		everything = everything || e.tellsFlags()
		if _, twice := ids[e.ID]; twice && e.ID != "" {
			builders[i].errorf(root(v).at("id"), "an episode %s exists already, in %s", wording.Quoted(e.ID), sources[ids[e.ID]].File)
			episodes[i] = nil
			continue
		}
		ids[e.ID] = i
	}
	for i, src := range sources {
		b := &builders[i]
		if e := episodes[i]; e != nil && whole {
			if !everything {
				b.unreadSets(root(e.value), reads)
			}
			if len(sources) > 1 {
				b.suggests(root(e.value), ids)
			}
		}
		if all[i] == nil {
			all[i] = texts[i].Placed(b.Diagnostics(src.File, texts[i].JSON))
		}
	}
	return episodes, all
}

// unreadSets warns of flags that the episode sets and nothing reads.
func (b *builder) unreadSets(n node, reads map[string]bool) {
	check := func(at node) {
		if flag, _ := at.Value.Text(); flag != "" && !reads[flag] {
			b.warnf(at, "nothing reads the flag %s: no beat, objective or rule depends on it", wording.Quoted(flag))
		}
	}
	effects := func(n node) {
		check(n.at("on_success").at("set_flag"))
		check(n.at("on_failure").at("set_flag"))
	}
	point := func(n node) {
		for _, o := range n.at("choices").elements {
			check(o.at("sets_flag"))
		}
	}
	for _, at := range n.at("beats").elements {
		point(at.at("choice_point"))
	}
	for _, at := range n.at("choice_points").elements {
		point(at)
	}
	if n.has("user_objective") || n.has("success_condition") {
		effects(n)
	}
	for _, at := range n.at("objectives").elements {
		effects(at)
	}
}

// suggests warns of suggestions that lead out of the series.
func (b *builder) suggests(n node, ids map[string]int) {
	check := func(at node) {
		id, _ := at.Value.Text()
		if _, ok := ids[id]; id != "" && !ok {
			b.warnf(at, "unknown episode %s", wording.Quoted(id))
		}
	}
	check(n.at("next_episode"))
	check(n.at("on_success").at("suggest_episode"))
	check(n.at("on_failure").at("suggest_episode"))
	for _, at := range n.at("objectives").elements {
		check(at.at("on_success").at("suggest_episode"))
		check(at.at("on_failure").at("suggest_episode"))
	}
}
