package main

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/sajou-dev/sajou-go/replay/corpus"
)

// corpora measures the check of a corpus with one recording: its chain is verified, and it
// is folded from its first entry and compared with the digests beside it.
func (b *bench) corpora() error {
	const goal = 300_000 // entries a second and core
	eng, ses, err := b.engine(b.path("corpus/store"))
	if err != nil {
		return err
	}
	if err := errors.Join(record(b.ctx, ses, b.scale.scanned, 1000, nil), eng.Close()); err != nil {
		return err
	}
	found, err := corpus.Find(b.path("corpus"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d recordings in the corpus, not 1: %w", len(found), err)
	}
	if _, err := found[0].Update(b.ctx, corpus.DefaultPoints); err != nil {
		return err
	}
	name := fmt.Sprintf("check of a corpus of %d entries, one core", b.scale.scanned)
	rounds, err := b.alone(name, func() (measurement, error) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		return timed(b.scale.scanned, func() error {
			c, err := found[0].Check(b.ctx)
			if err == nil && !c.Whole() {
				err = fmt.Errorf("the recording is not as it was: %+v", c)
			}
			return err
		}, nil)
	})
	if err != nil {
		return err
	}
	b.rateAlone(name, "entries", rounds, goal)
	return nil
}
