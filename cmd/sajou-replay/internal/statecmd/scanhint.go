package statecmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
)

// remarkMisspelt tells, after a search that found nothing, of a member of the state that the
// expression names and that no entry of the range has, with the nearest name that one has.
// It reads the range once more if the last entry does not have the member.
func (f *Finder) remarkMisspelt(ctx context.Context, a *cli.App, t *cli.OpenedSession, over replay.MomentRange) {
	if f.expression == nil || over.To.Seq == 0 {
		return
	}
	last, err := t.Travel.At(ctx, over.To)
	if err != nil {
		return // the search itself has reported it
	}
	for _, names := range f.expression.StatePaths() {
		missing, meant := answer.Misspelt(last, names)
		if missing < 1 {
			continue
		}
		names = names[:missing+1]
		test := replay.EntryPredicate{Needs: replay.NeedsState, Test: func(_ context.Context, s *replay.ScanStep) (bool, error) {
			at, near := answer.Misspelt(s.Fold, names)
			if at == missing && near != "" {
				meant = near
			}
			return at < 0, nil
		}}
		exists := false
		for _, err := range t.Travel.Scan(ctx, max(over.From.Seq, 1), over.To.Seq, test, replay.First) {
			if err != nil {
				return
			}
			exists = true
		}
		if exists {
			continue
		}
		hint := ""
		if meant != "" {
			hint = fmt.Sprintf("; did you mean %s?", termtext.Quote(meant))
		}
		fmt.Fprintf(a.Stderr, "sajou-replay: at no entry of %d..%d the state has %s%s\n",
			max(over.From.Seq, 1), over.To.Seq, termtext.Printable(strings.Join(names, ".")), hint)
		return
	}
}
