package episode

import (
	"github.com/sajou-dev/sajou-go/internal/wording"
)

// reach warns of flags that nothing sets, of beats that can never become eligible, and
// of conditions and choices that wait for an event that never happens. It computes the
// least fixed point: a part that only its own effect makes possible is impossible. It
// ignores turns; package explore also considers these.
func (b *builder) reach(n node, e *Episode) {
	r := reached{episode: e, flags: map[string]bool{"": true}, beats: make([]bool, len(e.Beats)), gone: make([]bool, len(e.Beats)), won: make([]bool, len(e.Objectives))}
	for _, f := range e.Flags {
		r.flags[f] = true
	}
	for i := range e.FlagRules {
		r.flags[e.FlagRules[i].Set] = true
	}
	for r.more() {
	}
	settable := map[string]bool{}
	for _, c := range e.Choices {
		for _, o := range c.Options {
			settable[o.SetsFlag] = true
		}
	}
	for _, o := range e.Objectives {
		settable[o.OnSuccess.SetFlag], settable[o.OnFailure.SetFlag] = true, true
	}
	unset := func(at node, flag string) bool {
		if r.flags[flag] || settable[flag] {
			return false
		}
		b.warnf(at, "nothing sets the flag %s; if another episode does, name it in flags", wording.Quoted(flag))
		return true
	}
	b.unread(n.at("flag_rules"), e, func(flag string) bool { return r.flags[flag] || settable[flag] })
	for i, at := range n.at("signals").elements {
		unset(at.at("flag"), e.Signals[i].About["flag"])
	}
	waits := func(at node, flag string) {
		if !unset(at, flag) && !r.flags[flag] {
			b.warnf(at, "nothing that sets the flag %s can happen", wording.Quoted(flag))
		}
	}
	point := func(at node) {
		for _, o := range at.at("choices").elements {
			if clears, _ := o.at("clears_flag").Value.Text(); !r.flags[clears] && !settable[clears] {
				b.warnf(o.at("clears_flag"), "clears_flag has no effect: nothing sets the flag %s", wording.Quoted(clears))
			}
		}
	}
	for i, at := range n.at("beats").elements {
		if !unset(at.at("requires_flag"), e.Beats[i].RequiresFlag) && !r.beats[i] {
			b.warnf(at, "beat %s can never become eligible", wording.Quoted(e.Beats[i].ID))
		}
		point(at.at("choice_point"))
	}
	for _, at := range n.at("choice_points").elements {
		point(at)
		id, _ := at.at("id").Value.Text()
		if t := e.Choices[e.choice[id]].Trigger; t.Turn == 0 && !r.won[t.Objective] {
			b.warnf(at.at("trigger"), "the objective can never be completed: choice point %s never opens", wording.Quoted(id))
		}
	}
	for i, at := range n.at("flag_context_rules").elements {
		waits(at.at("if_flag"), e.Contexts[i].Flag)
	}
	objectives := e.Objectives
	if n.has("user_objective") || n.has("success_condition") {
		waits(n.at("success_condition"), objectives[0].Success.Flag)
		waits(n.at("failure_condition"), objectives[0].Failure.Flag)
		objectives = objectives[1:]
	}
	for i, at := range n.at("objectives").elements {
		waits(at.at("success_condition"), objectives[i].Success.Flag)
		waits(at.at("failure_condition"), objectives[i].Failure.Flag)
	}
}

// reached holds the parts that are known to be possible so far.
type reached struct {
	episode *Episode
	flags   map[string]bool
	beats   []bool // that can become eligible
	gone    []bool // that can be given up
	won     []bool // objectives
}

// more adds the parts that the known ones make possible, and reports whether it added
// any.
func (r *reached) more() bool {
	e, changed := r.episode, false
	set := func(at *bool) {
		changed = changed || !*at
		*at = true
	}
	raise := func(flag string) {
		changed = changed || !r.flags[flag]
		r.flags[flag] = true
	}
	options := func(c int) {
		for _, o := range e.Choices[c].Options {
			raise(o.SetsFlag)
		}
	}
	for i := range e.Beats {
		beat := &e.Beats[i]
		j := beat.RequiresBeat
		if !r.flags[beat.RequiresFlag] || j >= 0 && !(r.gone[j] && e.Beats[j].Dependants == Release) && !(r.beats[j] && e.Beats[j].lands()) {
			continue
		}
		set(&r.beats[i])
		if beat.Choice >= 0 && beat.lands() {
			options(beat.Choice)
		}
	}
	for i := range e.Beats {
		// A beat is given up by itself, or with one that it requires.
		beat := &e.Beats[i]
		j := beat.RequiresBeat
		itself := r.beats[i] && beat.MaxOverdue > 0 && (beat.OnMiss == Skip || beat.OnMiss == Fail)
		if itself || j >= 0 && r.gone[j] && e.Beats[j].Dependants == Drop {
			set(&r.gone[i])
		}
	}
	for i := range e.Objectives {
		o := &e.Objectives[i]
		if o.Success.Kind != Never && o.Success.Kind != ByBudget && r.flags[o.Success.Flag] {
			set(&r.won[i])
			raise(o.OnSuccess.SetFlag)
		}
		if o.Failure.Kind == ByTurn || o.Failure.Kind == ByFlag && r.flags[o.Failure.Flag] || o.Failure.Kind == ByBudget && e.Budget > 0 {
			raise(o.OnFailure.SetFlag)
		}
	}
	for i := range e.Beats {
		// A beat that must not be missed fails all objectives.
		if r.beats[i] && e.Beats[i].OnMiss == Fail && e.Beats[i].MaxOverdue > 0 {
			for j := range e.Objectives {
				raise(e.Objectives[j].OnFailure.SetFlag)
			}
		}
	}
	for i := range e.Choices {
		if t := e.Choices[i].Trigger; e.Choices[i].Beat < 0 && (t.Turn > 0 || r.won[t.Objective]) {
			options(i)
		}
	}
	return changed
}

// lands reports whether anything can land the beat once it is eligible.
func (b *Beat) lands() bool {
	return b.Detection != Undetected || b.OnMiss == Force && b.MaxOverdue > 0
}

// Reads returns the flags on which beats, objectives or rules depend.
func (e *Episode) Reads() map[string]bool {
	read := map[string]bool{}
	for i := range e.Beats {
		read[e.Beats[i].RequiresFlag] = true
	}
	for i := range e.Objectives {
		read[e.Objectives[i].Success.Flag], read[e.Objectives[i].Failure.Flag] = true, true
	}
	for i := range e.Contexts {
		read[e.Contexts[i].Flag] = true
	}
	for i := range e.Signals {
		read[e.Signals[i].About["flag"]] = true
	}
	delete(read, "")
	return read
}
