package director

// View returns the state for people and expressions, as state.director. Its
// members objectives, flags, choices_made, triggered_choices and beats have the
// names and values that director_state has in the beat contract; nothing that
// has not happened is null.
func (s *State) View() any {
	if s.episode == nil {
		return nil
	}
	e, c := s.episode, &s.core
	orNil := func(turn int) any {
		if turn == 0 {
			return nil
		}
		return int64(turn)
	}
	beats := make(map[string]any, len(e.Beats))
	for i := range e.Beats {
		at := &c.beats[i]
		beat := map[string]any{
			"status": statuses[at.status], "delivered_at_turn": orNil(at.deliveredAt), "detected_at_turn": nil,
			"choice_pending": at.status == statusDetected, "assurance": nil, "held": c.heldAt(i) >= 0,
			"eligible": s.eligible(c, i) && c.pendingChoice() < 0, "missed_deadline": at.missedDeadline,
			"urgency": e.Beats[i].Urgency(c.turn).String(),
		}
		if at.assurance > 0 {
			beat["detected_at_turn"], beat["assurance"] = int64(at.landedAt), assurances[at.assurance]
		}
		beats[e.Beats[i].ID] = beat
	}
	flags, causes := make(map[string]any, len(c.flags)), make(map[string]any, len(c.flags))
	for _, f := range c.flags {
		flags[f.name], causes[f.name] = true, map[string]any{"cause": f.cause, "turn": int64(f.turn)}
	}
	objectives := make(map[string]any, len(e.Objectives))
	for i := range e.Objectives {
		at := &c.objectives[i]
		o := map[string]any{"status": objectiveStatuses[at.status], "completed_at_turn": nil}
		if at.status == objectiveCompleted {
			o["completed_at_turn"] = int64(at.at)
		}
		objectives[e.Objectives[i].ID] = o
	}
	props := map[string]any{}
	for i := range e.Props {
		if c.props[i] > 0 {
			props[e.Props[i].ID] = int64(c.props[i])
		}
	}
	made, triggered, open := []any{}, []any{}, []any{}
	for i := range e.Choices {
		at, point := &c.choices[i], &e.Choices[i]
		if at.status == choiceSelected {
			made = append(made, map[string]any{
				"choice_point_id": point.ID, "selected": point.Options[at.option].ID, "turn": int64(at.madeAt),
			})
		}
		if at.status != choiceClosed && point.Beat < 0 {
			triggered = append(triggered, point.ID)
		}
		if at.status == choiceOpen {
			open = append(open, point.ID)
		}
	}
	awaiting := []any{}
	for _, subject := range s.Awaiting() {
		awaiting = append(awaiting, subject.Kind.String()+":"+subject.ID)
	}
	view := map[string]any{
		"episode": e.ID, "digest": e.digest.String(), "turn": int64(c.turn), "attempt": int64(c.attempt), "phase": phases[c.phase],
		"pacing": Pacing(max(c.turn, 1), e.Budget), "energy": Energies[c.energy], "directive": nil, "beats": beats, "flags": flags, "flag_causes": causes,
		"objectives": objectives, "props": props, "choices_made": made, "triggered_choices": triggered, "open_choices": open,
		"awaiting": awaiting, "failed": c.failed,
	}
	if c.directive >= 0 {
		view["directive"] = e.Beats[c.directive].ID
	}
	return view
}
