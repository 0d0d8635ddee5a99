package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// opening measures the time from opening the store of a long session to the first
// durable signal, beside the log alone on a copy of the store. Each round closes the
// store again, which is not measured.
func (b *bench) opening() error {
	n, dir, copied := b.scale.scanned, b.path("opening"), b.path("opening-log")
	eng, ses, err := b.engine(dir)
	if err != nil {
		return err
	}
	err = errors.Join(record(b.ctx, ses, n, 1000, nil), eng.Close())
	if err == nil {
		err = os.CopyFS(copied, os.DirFS(dir))
	}
	if err != nil {
		return err
	}
	next := n // signal of the engine and, one behind it, of the log
	name := fmt.Sprintf("opening at %d entries and the first durable signal", n)
	all, err := b.interleave(name,
		side{"log alone", func() (m measurement, err error) {
			sig, err := makeSignal(next)
			if err != nil {
				return m, err
			}
			var log *eventlog.Log
			m, err = timed(1, func() (err error) {
				if log, err = eventlog.Open(copied, eventlog.Config{}); err != nil {
					return err
				}
				ses, err := log.Session("bench")
				if err != nil {
					return err
				}
				list := drafts([]*signal.Signal{sig})
				list[0].At = ses.At()
				_, err = ses.Append(b.ctx, eventlog.Batch{Drafts: list})
				return err
			}, nil)
			if log != nil {
				err = errors.Join(err, log.Close())
			}
			return m, err
		}},
		side{"engine", func() (m measurement, err error) {
			sig, err := makeSignal(next)
			if err != nil {
				return m, err
			}
			next++
			var eng *sajou.Engine
			m, err = timed(1, func() (err error) {
				if eng, err = sajou.Open(dir, sajou.Config{}); err != nil {
					return err
				}
				ses, err := eng.Session(b.ctx, "bench")
				if err == nil {
					_, err = ses.Signal(b.ctx, sig)
				}
				return err
			}, nil)
			if eng != nil {
				err = errors.Join(err, eng.Close())
			}
			return m, err
		}})
	if err != nil {
		return err
	}
	log, engine := all[0].durations(), all[1].durations()
	b.percentileBeside(name, 0.5, engine, log, 1.5)
	b.workBeside("  processor time", engine, "log alone", log, 0)
	return nil
}

// durations returns the series with the time of each round in its times.
func (s series) durations() series {
	all := append(series{}, s...)
	for i := range all {
		all[i].times = []float64{1000 / all[i].rate}
	}
	return all
}
