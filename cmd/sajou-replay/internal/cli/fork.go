package cli

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
)

// ForkView is the label of a fork as JSON has it.
type ForkView struct {
	Parent     string       `json:"parent"`
	Head       HeadView     `json:"head"`
	At         eventlog.Seq `json:"at"`
	Entries    eventlog.Seq `json:"entries"`
	Incomplete bool         `json:"incomplete,omitempty"`
	Of         *ForkView    `json:"fork,omitempty"`
}

// ViewFork returns the JSON view of the label of a fork whose Head is head, nil for no
// label.
func ViewFork(f *session.Fork, head eventlog.Head) *ForkView {
	if f == nil {
		return nil
	}
	v := &ForkView{Parent: f.Parent, Head: ViewHead(f.Head), At: f.At, Entries: f.Entries, Incomplete: !f.Complete(head)}
	if f.Of != nil {
		v.Of = ViewFork(f.Of, f.Head)
	}
	return v
}

// ForkText describes the label of a fork in one line, "" for no label.
func ForkText(f *session.Fork, head eventlog.Head) string {
	if f == nil {
		return ""
	}
	text := f.Title()
	for of := f.Of; of != nil; of = of.Of {
		text += ", of a " + of.Title()
	}
	if !f.Complete(head) {
		text += fmt.Sprintf(", incomplete: %d of %d entries", head.Seq, f.Entries)
	}
	return termtext.Clip(termtext.Printable(text), 200)
}
