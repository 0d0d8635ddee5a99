package director

import "github.com/sajou-dev/sajou-go/director/episode"

// View returns the state as people and expressions read it, as state.director. Its
// members objectives, flags, choices_made, triggered_choices and beats have the
// names and values of director_state in the beat contract ("Director State
// Extension"). A turn in which something has not happened is null.
func (s *State) View() any {
	if s.episode == nil {
		return nil
	}
	e, c := s.episode, &s.core
	pending := c.pendingChoice() >= 0
	beats := make(map[string]any, len(e.Beats))
	for i := range e.Beats {
		at := c.beats.at(i)
		beat := at.view()
		beat["held"], beat["urgency"] = c.heldAt(i) >= 0, e.Beats[i].Urgency(c.turn).String()
		beat["eligible"] = s.eligible(c, i) && !pending
		beats[e.Beats[i].ID] = beat
	}
	flags, causes := make(map[string]any, len(c.flags)), make(map[string]any, len(c.flags))
	for _, f := range c.flags {
		flags[f.name], causes[f.name] = true, map[string]any{"cause": f.cause, "turn": int64(f.turn)}
	}
	objectives := make(map[string]any, len(e.Objectives))
	for i := range e.Objectives {
		objectives[e.Objectives[i].ID] = c.objectives[i].view()
	}
	props := map[string]any{}
	for i := range e.Props {
		if c.props[i] > 0 {
			props[e.Props[i].ID] = int64(c.props[i])
		}
	}
	made, triggered, open := []any{}, []any{}, []any{}
	for i := range e.Choices {
		at, point := c.choices.at(i), &e.Choices[i]
		if at.status == choiceSelected {
			made = append(made, map[string]any{
				"choice_point_id": point.ID, "selected": at.option, "turn": int64(at.madeAt),
			})
		}
		if at.status != choiceClosed && point.Beat < 0 {
			triggered = append(triggered, point.ID)
		}
		if at.status == choiceOpen {
			open = append(open, point.ID)
		}
	}
	for _, p := range c.removed.choices {
		if p.at.status == choiceSelected {
			made = append(made, map[string]any{"choice_point_id": p.id, "selected": p.at.option, "turn": int64(p.at.madeAt)})
		}
	}
	awaiting := []any{}
	for _, subject := range s.Awaiting() {
		awaiting = append(awaiting, subject.Kind.String()+":"+subject.ID)
	}
	view := map[string]any{
		"episode": e.ID, "digest": e.Digest().String(), "turn": int64(c.turn), "attempt": int64(c.attempt), "phase": phases[c.phase],
		"pacing": episode.Pacing(max(c.turn, 1), e.Budget), "energy": episode.EnergyName(c.energy), "directive": nil, "beats": beats, "flags": flags, "flag_causes": causes,
		"objectives": objectives, "props": props, "choices_made": made, "triggered_choices": triggered, "open_choices": open,
		"awaiting": awaiting, "failed": c.failed, "removed": c.removed.view(), "declared": nil,
	}
	if c.directive >= 0 {
		view["directive"] = e.Beats[c.directive].ID
	}
	if s.declared != nil {
		view["declared"] = s.declared.ID
	}
	return view
}

func orNil(turn int) any {
	if turn == 0 {
		return nil
	}
	return int64(turn)
}

func (b *beatState) view() map[string]any {
	view := map[string]any{
		"status": statuses[b.status], "delivered_at_turn": orNil(b.deliveredAt), "detected_at_turn": nil,
		"choice_pending": b.status == statusDetected, "assurance": nil, "missed_deadline": b.missedDeadline,
	}
	if b.assurance > 0 {
		view["detected_at_turn"], view["assurance"] = int64(b.landedAt), assurances[b.assurance]
	}
	return view
}

func (o *objectiveState) view() map[string]any {
	view := map[string]any{"status": objectiveStatuses[o.status], "completed_at_turn": nil}
	if o.status == objectiveCompleted {
		view["completed_at_turn"] = int64(o.at)
	}
	return view
}

// view returns the progress of the parts that revisions removed. Choices are among
// choices_made.
func (h *removedParts) view() map[string]any {
	beats, objectives, props := map[string]any{}, map[string]any{}, map[string]any{}
	for i := range h.beats {
		beats[h.beats[i].id] = h.beats[i].at.view()
	}
	for i := range h.objectives {
		objectives[h.objectives[i].id] = h.objectives[i].at.view()
	}
	for _, p := range h.props {
		props[p.id] = int64(p.at)
	}
	return map[string]any{"beats": beats, "objectives": objectives, "props": props}
}
