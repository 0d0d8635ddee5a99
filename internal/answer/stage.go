package answer

import (
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
	"github.com/sajou-dev/sajou-go/internal/lint"
)

// IssueView is a mistake in a file of choreographies or scenes.
type IssueView struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Severity string `json:"severity"`
	Rule     string `json:"rule"`
	Message  string `json:"message"`
	Pointer  string `json:"pointer"`
}

// ViewIssue returns the view of a mistake.
func ViewIssue(f *lint.Issue) IssueView {
	return IssueView{f.File, f.Line, f.Column, f.Severity.String(), f.Rule, f.Message, f.Pointer}
}

// RehearsedView is the run of one scenario.
type RehearsedView struct {
	File       string                 `json:"file"`
	ID         string                 `json:"id"`
	Name       string                 `json:"name"`
	Commands   []choreography.Command `json:"commands"`
	Judged     bool                   `json:"judged"`
	Same       bool                   `json:"same"`
	Difference string                 `json:"difference,omitempty"`
}

// ViewRehearsed returns the view of a run: the commands of the scenario of a file, and how
// they compare with those that it expects.
func ViewRehearsed(file string, s *rehearsal.Scenario, commands []choreography.Command, verdict rehearsal.Comparison) RehearsedView {
	if commands == nil {
		commands = []choreography.Command{}
	}
	return RehearsedView{file, s.ID, s.Name, commands, s.Judged, verdict.Same, verdict.Difference}
}
