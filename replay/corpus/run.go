package corpus

import (
	"context"
	"iter"
)

// CheckAll checks recordings, so many at once as jobs says, at least 1, and yields the
// outcomes in the order of the recordings. After an error, that of ctx, the sequence
// ends.
func CheckAll(ctx context.Context, recordings []StoredRecording, jobs int) iter.Seq2[Check, error] {
	type outcome struct {
		check Check
		err   error
	}
	return func(yield func(Check, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		slots := make(chan struct{}, max(1, jobs))
		outcomes := make([]chan outcome, len(recordings))
		for i := range outcomes {
			outcomes[i] = make(chan outcome, 1)
		}
		started := make(chan struct{})
		go func() {
			defer close(started)
			for i, r := range recordings {
				slots <- struct{}{}
				go func() {
					defer func() { <-slots }()
					c, err := r.Check(ctx)
					outcomes[i] <- outcome{c, err}
				}()
			}
		}()
		for i := range outcomes {
			o := <-outcomes[i]
			if !yield(o.check, o.err) || o.err != nil {
				cancel()
				// Every check ends soon after ctx, and none outlives the call.
				<-started
				for range cap(slots) {
					slots <- struct{}{}
				}
				return
			}
		}
	}
}
