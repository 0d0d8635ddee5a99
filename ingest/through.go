package ingest

import (
	"iter"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Through yields the items of a source after each signal has passed the stages, such as
// the removal of secrets. A stage changes the signal that it is given; the recorder sees
// only the result.
func Through(items iter.Seq2[recording.Item, error], stages ...func(*signal.Signal)) iter.Seq2[recording.Item, error] {
	if len(stages) == 0 {
		return items
	}
	return func(yield func(recording.Item, error) bool) {
		for item, err := range items {
			if err == nil {
				for _, stage := range stages {
					stage(item.Signal)
				}
			}
			if !yield(item, err) {
				return
			}
		}
	}
}
