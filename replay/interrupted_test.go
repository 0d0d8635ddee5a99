package replay_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

// endsAt is a context that ends at one of the checks of it.
type endsAt struct {
	context.Context
	checks int // that it passes yet
	ended  bool
}

func (c *endsAt) Err() error {
	if c.checks--; c.checks < 0 {
		c.ended = true
		return context.Canceled
	}
	return nil
}

var errDamaged = errors.New("damaged")

// damaged is a tape that cannot be read after some entries.
type damaged struct {
	*tape
	good   int // entries that can be read yet
	failed bool
}

func (s *damaged) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for e, err := range s.tape.Entries(ctx, from) {
			if s.good--; err == nil && s.good < 0 {
				s.failed, err = true, errDamaged
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// questions are all that a replay is asked, each on a replay of its own.
func questions() map[string]func(ctx context.Context, r *replay.Replay) error {
	at := func(seq eventlog.Seq) replay.Moment { return replay.Moment{Seq: seq} }
	between := replay.Moment{Seq: 4, Offset: 7 * ms}
	cursor := func(move func(ctx context.Context, c *replay.Cursor) error) func(context.Context, *replay.Replay) error {
		return func(ctx context.Context, r *replay.Replay) error {
			c := r.Cursor()
			if err := c.Seek(ctx, between); err != nil {
				return err
			}
			return move(ctx, c)
		}
	}
	resolve := func(text string) func(context.Context, *replay.Replay) error {
		return func(ctx context.Context, r *replay.Replay) error {
			a, err := replay.ParseAddress(text)
			if err != nil {
				return err
			}
			_, err = r.Resolve(ctx, a)
			return err
		}
	}
	scan := func(needs replay.Needs, mode replay.Mode) func(context.Context, *replay.Replay) error {
		return func(ctx context.Context, r *replay.Replay) error {
			never := replay.EntryPredicate{Needs: needs, Test: func(context.Context, *replay.ScanStep) (bool, error) { return false, nil }}
			for _, err := range r.Scan(ctx, 2, 8, never, mode) {
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	play := func(cfg replay.PlayerConfig, do func(ctx context.Context, p *replay.Player) error) func(context.Context, *replay.Replay) error {
		return func(ctx context.Context, r *replay.Replay) error {
			cfg.Commands = new(recorder)
			p, err := replay.NewPlayer(ctx, r, cfg)
			if err != nil {
				return err
			}
			p.Play()
			return do(ctx, p)
		}
	}
	return map[string]func(ctx context.Context, r *replay.Replay) error{
		"at":     func(ctx context.Context, r *replay.Replay) error { _, err := r.At(ctx, between); return err },
		"fold":   func(ctx context.Context, r *replay.Replay) error { _, err := r.Fold(ctx, 7); return err },
		"entry":  func(ctx context.Context, r *replay.Replay) error { _, err := r.Entry(ctx, 7); return err },
		"moment": func(ctx context.Context, r *replay.Replay) error { _, err := r.MomentAt(ctx, 200*ms); return err },
		"rest":   func(ctx context.Context, r *replay.Replay) error { _, err := r.Rest(ctx, at(9)); return err },
		"commands": func(ctx context.Context, r *replay.Replay) error {
			return r.Commands(ctx, at(2), at(8), 0, new(recorder))
		},
		"commands and frames": func(ctx context.Context, r *replay.Replay) error {
			return r.Commands(ctx, between, at(9), 5*ms, new(recorder))
		},
		"commands of one entry": func(ctx context.Context, r *replay.Replay) error {
			return r.Commands(ctx, at(4), between, 5*ms, new(recorder))
		},
		"step":               cursor(func(ctx context.Context, c *replay.Cursor) error { return c.Step(ctx, 3) }),
		"step back":          cursor(func(ctx context.Context, c *replay.Cursor) error { return c.Step(ctx, -2) }),
		"step in time":       cursor(func(ctx context.Context, c *replay.Cursor) error { return c.StepTime(ctx, 90*ms) }),
		"step back in time":  cursor(func(ctx context.Context, c *replay.Cursor) error { return c.StepTime(ctx, -90*ms) }),
		"next command":       cursor(func(ctx context.Context, c *replay.Cursor) error { return c.StepCommand(ctx, 1) }),
		"command before":     cursor(func(ctx context.Context, c *replay.Cursor) error { return c.StepCommand(ctx, -1) }),
		"by hash":            resolve("#abcdef0"),
		"by time":            resolve("t:200ms"),
		"by sequence number": resolve("4+7ms"),
		"together": func(ctx context.Context, r *replay.Replay) error {
			for _, err := range replay.Together(ctx, r, r, replay.MomentRange{From: at(2), To: replay.Moment{Seq: 7, Offset: 40 * ms}}, replay.NeedsPrev) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"by performance": func(ctx context.Context, r *replay.Replay) error {
			// The toys have no performances, which the answer says after all reads.
			if err := resolve("perf:p-7-1")(ctx, r); !errors.Is(err, replay.ErrNoAddress) {
				return err
			}
			return nil
		},
		"by distance":  resolve("end-2+1ms"),
		"scan entries": scan(replay.NeedsEntry, replay.All),
		"scan states":  scan(replay.NeedsState, replay.Last),
		"scan changes": scan(replay.NeedsPrev, replay.First),
		"play": play(replay.PlayerConfig{From: at(1), To: at(9), Idle: 10 * ms}, func(ctx context.Context, p *replay.Player) error {
			for now := 0 * ms; p.State().Playing && now < 400*ms; now += 15 * ms {
				if err := p.Tick(ctx, now); err != nil {
					return err
				}
			}
			return nil
		}),
		"play round and round": play(replay.PlayerConfig{From: at(6), To: at(8), Loop: true, Rate: 3}, func(ctx context.Context, p *replay.Player) error {
			for now := 0 * ms; now < 300*ms; now += 40 * ms {
				if err := p.Tick(ctx, now); err != nil {
					return err
				}
			}
			return nil
		}),
		"play step by step": play(replay.PlayerConfig{}, func(ctx context.Context, p *replay.Player) error {
			for _, n := range []int{2, 1, -2, 4} {
				if err := p.Step(ctx, n); err != nil {
					return err
				}
			}
			for {
				if moved, err := p.Next(ctx); !moved || err != nil {
					return err
				}
			}
		}),
		"play from elsewhere": play(replay.PlayerConfig{To: at(9)}, func(ctx context.Context, p *replay.Player) error {
			if err := p.Seek(ctx, between); err != nil {
				return err
			}
			return p.Seek(ctx, at(2))
		}),
	}
}

// journey is nine entries with overlapping notes and a long pause.
func journey() *tape {
	s := &tape{}
	for i, pause := range []int{10, 20, 0, 15, 30, 0, 0, 150, 20} {
		s.add(time.Duration(pause)*ms, byte(10*(i%4)))
	}
	return s
}

// Whatever a replay is asked, an entry that cannot be read and a context that ends are
// its error, at whichever read or check of the context they come; without them it answers.
func TestEveryErrorIsReturned(t *testing.T) {
	images := takeImages(journey(), func(seq eventlog.Seq) bool { return seq == 3 })
	for name, ask := range questions() {
		for _, snaps := range []replay.Snapshots{nil, images} {
			require.NoError(t, ask(t.Context(), replay.Open(journey(), toys, snaps)), name)
			for good := 0; ; good++ {
				s := &damaged{tape: journey(), good: good}
				err := ask(t.Context(), replay.Open(s, toys, snaps))
				if !s.failed {
					require.NoError(t, err, name)
					break
				}
				require.ErrorIs(t, err, errDamaged, "%s: after %d entries", name, good)
			}
			for checks := 0; ; checks++ {
				ctx := &endsAt{Context: t.Context(), checks: checks}
				err := ask(ctx, replay.Open(journey(), toys, snaps))
				if !ctx.ended {
					require.NoError(t, err, name)
					break
				}
				require.ErrorIs(t, err, context.Canceled, "%s: ended at check %d", name, checks)
			}
		}
	}
}

// skipping is a tape that leaves out an entry.
type skipping struct {
	*tape
	out eventlog.Seq
}

func (s skipping) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for e, err := range s.tape.Entries(ctx, from) {
			if e.Seq != s.out && !yield(e, err) {
				return
			}
		}
	}
}

// An entry that is missing from the source is an error and never a state without it, with
// an image before the gap and without.
func TestGapIsAnError(t *testing.T) {
	images := takeImages(journey(), func(seq eventlog.Seq) bool { return seq == 3 })
	for _, snaps := range []replay.Snapshots{nil, images} {
		for out := eventlog.Seq(1); out <= 9; out++ {
			for to := eventlog.Seq(1); to <= 9; to++ {
				_, err := replay.Open(skipping{journey(), out}, toys, snaps).At(t.Context(), replay.Moment{Seq: to})
				if needed := out <= to && (snaps == nil || to < 3 || out >= 3); needed || snaps != nil && out == 3 {
					if out <= to {
						require.Error(t, err, "entry %d without %d", to, out)
					}
					continue
				}
				require.NoError(t, err, "entry %d without %d", to, out)
			}
		}
	}
}
