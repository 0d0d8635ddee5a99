package replay

import (
	"context"
	"iter"
	"sync"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// split says how searches are divided.
type split struct {
	workers int          // that run at once
	entries eventlog.Seq // of the shortest segment
}

// segment is a stretch of entries that one worker of a search visits.
type segment struct{ from, to eventlog.Seq }

// The bounds of the segments of a search. A worker runs ahead of the results that have
// been taken by a few segments, and in each by a few batches.
const (
	segmentsPerWorker = 8
	segmentEntries    = 2 * reach // a shorter one costs more than it saves
	resultsInBatch    = 32
	batchesAhead      = 2
)

// segments divides from..to among the cores. A segment that folds begins after a saved
// image, because otherwise its worker would fold what the one before folds. So without
// images, or with projections whose images are kept apart, there is one segment.
func (r *Replay) segments(ctx context.Context, from, to eventlog.Seq, folds bool) []segment {
	all := []segment{{from, to}}
	if from > to || folds && (r.snaps == nil || len(r.set.Apart()) > 0) {
		return all
	}
	n := min(eventlog.Seq(r.split.workers*segmentsPerWorker), (to-from+1)/r.split.entries)
	if r.split.workers == 1 || n < 2 {
		return all
	}
	for i := range n - 1 {
		cut := from + (to-from+1)/n*(i+1)
		if folds {
			img, ok, err := r.snaps.Nearest(ctx, cut-1)
			if err != nil || !ok {
				continue
			}
			cut = img.Head.Seq + 1
		}
		last := &all[len(all)-1]
		if cut <= last.from || cut > to {
			continue
		}
		last.to = cut - 1
		all = append(all, segment{cut, to})
	}
	return all
}

// inOrder calls work for the numbers below n with some workers, and yields the results in the
// order of the numbers. Work ends when emit returns false. Its error follows its
// results and ends the sequence. When the sequence ends, no call is running any more.
func inOrder[T any](ctx context.Context, workers, n int, work func(ctx context.Context, i int, emit func(T) bool) error) iter.Seq2[T, error] {
	if n == 1 {
		return alone(ctx, work)
	}
	type part struct {
		batches chan []T
		err     error // set before batches is closed
	}
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		left := make(chan struct{}) // closed when no more results are taken
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		defer close(left)

		workers := min(n, workers)
		parts := make([]part, n)
		for i := range parts {
			parts[i].batches = make(chan []T, batchesAhead)
		}
		ahead := make(chan struct{}, 2*workers) // one for each part that has begun and is not taken
		next := make(chan int)
		running.Go(func() {
			defer close(next)
			for i := range n {
				select {
				case ahead <- struct{}{}:
				case <-ctx.Done():
				}
				next <- i // each number, so that each part is closed
			}
		})
		for range workers {
			running.Go(func() {
				for i := range next {
					p := &parts[i]
					if p.err = ctx.Err(); p.err == nil {
						p.err = batched(p.batches, left, func(emit func(T) bool) error { return work(ctx, i, emit) })
					}
					if p.err == nil {
						p.err = ctx.Err() // the part is perhaps not complete
					}
					close(p.batches)
				}
			})
		}
		for i := range parts {
			for batch := range parts[i].batches {
				for _, result := range batch {
					if !yield(result, nil) {
						return
					}
				}
			}
			if err := parts[i].err; err != nil {
				var none T
				yield(none, err)
				return
			}
			<-ahead
		}
	}
}

// alone is [inOrder] for one part, without a goroutine.
func alone[T any](ctx context.Context, work func(ctx context.Context, i int, emit func(T) bool) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		taken := true
		err := work(ctx, 0, func(result T) bool {
			taken = yield(result, nil)
			return taken
		})
		if err != nil && taken {
			var none T
			yield(none, err)
		}
	}
}

// batched sends what work emits in batches, the last of them also after an error. It
// sends nothing more when left is closed.
func batched[T any](to chan<- []T, left <-chan struct{}, work func(emit func(T) bool) error) error {
	var batch []T
	send := func() bool {
		select {
		case to <- batch:
			batch = nil
			return true
		case <-left:
			return false
		}
	}
	err := work(func(result T) bool {
		batch = append(batch, result)
		return len(batch) < resultsInBatch || send()
	})
	if len(batch) > 0 {
		send()
	}
	return err
}
