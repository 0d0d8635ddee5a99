package where_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/signal"
)

// An expression finds the entries of a session at which it holds. Its names are checked
// before the first entry is read.
func ExampleCompile() {
	if err := findFailures(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// entry has no member "paylod"; did you mean "payload"?
	// entry 3: grind failed, signals so far: 2
}

func findFailures(ctx context.Context) error {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Session(ctx, "a")
	if err != nil {
		return err
	}
	for id, outcome := range []string{`"dig","success":true`, `"grind","success":false`} {
		sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"%d","type":"tool_result","timestamp":1700000000000,"source":"example",`+
			`"payload":{"agentId":"smith","callId":"c-%d","toolName":%s}}`, id, id, outcome))
		if err != nil {
			return err
		}
		if _, err := ses.Signal(ctx, sig); err != nil {
			return err
		}
	}

	_, err = where.Compile(`!entry.paylod.success`, eng.Projections())
	if mistake, ok := errors.AsType[*where.ExpressionError](err); ok {
		fmt.Println(mistake.Reason)
	}
	failed, err := where.Compile(`entry.type == "tool_result" && !entry.payload.success`, eng.Projections())
	if err != nil {
		return err
	}
	counted, err := where.CompileValue(`state.session.entries.signal`, eng.Projections())
	if err != nil {
		return err
	}
	past, err := eng.Replay("a")
	if err != nil {
		return err
	}
	condition := replay.EntryPredicate{Needs: replay.NeedsState, Test: func(ctx context.Context, s *replay.ScanStep) (bool, error) {
		in := where.Input{Entry: s.Entry, State: s.Fold}
		matches, err := failed.Match(ctx, in)
		if err != nil || !matches {
			return false, err
		}
		signals, _, err := counted.Value(ctx, in)
		fmt.Printf("entry %d: grind failed, signals so far: %v\n", s.Entry.Seq, signals)
		return true, err
	}}
	for _, err := range past.Scan(ctx, 1, past.Head().Seq, condition, replay.All) {
		if err != nil {
			return err
		}
	}
	return nil
}
