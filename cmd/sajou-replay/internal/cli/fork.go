package cli

import (
	"context"
	"fmt"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
)

// Fork returns the label of a session that is a fork, for JSON, and the remark that says
// so, for text. Both are zero for a recording.
func (t *OpenedSession) Fork(ctx context.Context) (label *answer.ForkView, note string, err error) {
	fork, err := session.ReadFork(ctx, t.Log)
	if fork == nil || err != nil {
		return nil, "", err
	}
	head := t.Log.Head()
	return answer.ViewFork(fork, head), "not a recording, but a " + ForkText(fork, head), nil
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
