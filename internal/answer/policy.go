package answer

import (
	"encoding/json"

	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/projection"
)

// DifferenceView is a difference between two views of an agent.
type DifferenceView struct {
	Seq      uint64          `json:"seq"`
	At       float64         `json:"at"`
	Agent    string          `json:"agent"`
	What     string          `json:"what"`
	Path     string          `json:"path"`
	Before   json.RawMessage `json:"before,omitempty"`
	After    json.RawMessage `json:"after,omitempty"`
	Standing bool            `json:"standing,omitempty"`
	Cause    CauseView       `json:"cause"`
}

// ViewDifference returns the view of a difference.
func ViewDifference(d query.PolicyDifference) DifferenceView {
	return DifferenceView{
		d.Entry, projection.Millis(d.At), d.Agent, string(d.What), d.Path,
		CanonicalJSON(d.Before), CanonicalJSON(d.After), d.Standing, ViewCause(d.Cause),
	}
}

// TallyView counts differences.
type TallyView struct {
	Same         bool   `json:"same"`
	Entries      uint64 `json:"entries"`
	DeltasBefore uint64 `json:"deltas_before"`
	DeltasAfter  uint64 `json:"deltas_after"`
	OnlyBefore   uint64 `json:"only_before"`
	OnlyAfter    uint64 `json:"only_after"`
	Different    uint64 `json:"different"`
}

// ViewTally returns the view of the number of differences.
func ViewTally(n query.PolicyTally) TallyView {
	return TallyView{n.Same(), n.Entries, n.DeltasBefore, n.DeltasAfter, n.OnlyBefore, n.OnlyAfter, n.Different}
}

// SummaryView is the last line of a list of differences.
type SummaryView struct {
	Summary TallyView `json:"summary"`
}
