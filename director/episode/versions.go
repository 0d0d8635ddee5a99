package episode

// Dropped holds the ids of the parts that a version removes, in the order of the
// version before. Its JSON is part of the event episodeRevised.
type Dropped struct {
	Beats        []string `json:"beats,omitempty"`
	ChoicePoints []string `json:"choice_points,omitempty"`
	Objectives   []string `json:"objectives,omitempty"`
	Props        []string `json:"props,omitempty"`
}

// Without returns the parts of e that the other version does not have.
func (e *Episode) Without(other *Episode) Dropped {
	var d Dropped
	d.Beats = missing(len(e.Beats), e.BeatID, len(other.Beats), other.BeatID)
	d.ChoicePoints = missing(len(e.Choices), e.ChoiceID, len(other.Choices), other.ChoiceID)
	d.Objectives = missing(len(e.Objectives), e.ObjectiveID, len(other.Objectives), other.ObjectiveID)
	d.Props = missing(len(e.Props), e.PropID, len(other.Props), other.PropID)
	return d
}

func missing(n int, id func(int) string, others int, other func(int) string) (ids []string) {
	there := make(map[string]bool, others)
	for i := range others {
		there[other(i)] = true
	}
	for i := range n {
		if !there[id(i)] {
			ids = append(ids, id(i))
		}
	}
	return ids
}

// BeatID returns the id of beat i.
func (e *Episode) BeatID(i int) string { return e.Beats[i].ID }

// ChoiceID returns the id of choice i.
func (e *Episode) ChoiceID(i int) string { return e.Choices[i].ID }

// ObjectiveID returns the id of objective i.
func (e *Episode) ObjectiveID(i int) string { return e.Objectives[i].ID }

// PropID returns the id of prop i.
func (e *Episode) PropID(i int) string { return e.Props[i].ID }

// KeepsChoice reports whether another version opens choice i at the same beat.
func (e *Episode) KeepsChoice(i int, other *Episode) bool {
	j, ok := other.choice[e.Choices[i].ID]
	if !ok {
		return false
	}
	b, c := e.Choices[i].Beat, other.Choices[j].Beat
	if b < 0 || c < 0 {
		return b < 0 && c < 0
	}
	return e.Beats[b].ID == other.Beats[c].ID
}

// SameBeat returns the index of a beat of another version, -1 if e does not have it.
func (e *Episode) SameBeat(from *Episode, beat int) int {
	if beat < 0 {
		return -1
	}
	if i, ok := e.beats[from.Beats[beat].ID]; ok {
		return i
	}
	return -1
}
