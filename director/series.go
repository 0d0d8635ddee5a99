package director

import (
	"github.com/sajou-dev/sajou-go/signal"

	"github.com/sajou-dev/sajou-go/internal/wording"
)

// Source is the text of one episode.
type Source struct {
	File string // names it in diagnostics
	JSON []byte
}

// ParseSeries is [Parse] for the episodes of a series, that are played one
// after another. It also says what only all of them tell: flags that are set
// and that none of them reads, ids that stand twice, and suggestions of episodes
// that are not among them, if there are several. What is not refused is returned
// under the index of its source; the others are nil.
func ParseSeries(sources ...Source) ([]*Episode, []Diagnostics) {
	episodes, builders := make([]*Episode, len(sources)), make([]builder, len(sources))
	all := make([]Diagnostics, len(sources))
	reads, ids := map[string]bool{}, map[string]int{}
	// One that cannot be read could read any flag, and so does one that makes
	// signals of all of them.
	whole, everything := true, false
	for i, src := range sources {
		v, err := signal.ParseValue(src.JSON)
		if err != nil {
			_, all[i] = Parse(src.File, src.JSON)
			whole = false
			continue
		}
		e := builders[i].episode(v)
		episodes[i] = e
		if e == nil {
			whole = false
			continue
		}
		for f := range e.reads() {
			reads[f] = true
		}
		everything = everything || e.tellsFlags()
		if _, twice := ids[e.ID]; twice && e.ID != "" {
			builders[i].errorf(node{v: v}.at("id"), "there is another episode %s, in %s", wording.Quoted(e.ID), sources[ids[e.ID]].File)
			episodes[i] = nil
			continue
		}
		ids[e.ID] = i
	}
	for i, src := range sources {
		b := &builders[i]
		if e := episodes[i]; e != nil && whole {
			if !everything {
				b.unreadSets(node{v: e.value}, reads)
			}
			if len(sources) > 1 {
				b.suggests(node{v: e.value}, ids)
			}
		}
		if all[i] == nil {
			all[i] = b.diagnostics(src.File, src.JSON)
		}
	}
	return episodes, all
}

// unreadSets warns of flags that the episode sets and nothing reads.
func (b *builder) unreadSets(n node, reads map[string]bool) {
	check := func(at node) {
		if flag, _ := at.v.Text(); flag != "" && !reads[flag] {
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
		id, _ := at.v.Text()
		if _, ok := ids[id]; id != "" && !ok {
			b.warnf(at, "no episode here is called %s", wording.Quoted(id))
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
