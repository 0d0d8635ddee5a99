package replay_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/snapshot"
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
	good   int  // entries that can be read yet
	once   bool // those behind the first that cannot be read can be read again
	failed bool
}

func (s *damaged) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for e, err := range s.tape.Entries(ctx, from) {
			if s.good--; err == nil && s.good < 0 && !(s.once && s.failed) {
				s.failed, err = true, errDamaged
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// annotated is a damaged session with all that a source can have. Its marks are read from its
// entries.
type annotated struct{ *damaged }

func (a annotated) Origin() (time.Time, bool) {
	return time.Date(2026, 11, 21, 14, 2, 5, 0, time.UTC), true
}

func (a annotated) Correlation(e *eventlog.Entry) (string, bool) {
	return strconv.Itoa(int(e.Data[0]) / 10 % 2), true
}

func (a annotated) Marks(ctx context.Context) iter.Seq2[replay.Mark, error] {
	return func(yield func(replay.Mark, error) bool) {
		for e, err := range a.Entries(ctx, 1) {
			if err != nil {
				yield(replay.Mark{}, err)
				return
			}
			m := replay.Mark{Seq: e.Seq}
			switch e.Seq {
			case 1:
				m.Beats = []string{"warm"}
			case 3, 7:
				m.Turn = uint64(e.Seq / 3)
			case 4, 8:
				m.Landed = "warm"
			}
			if !yield(m, nil) {
				return
			}
		}
	}
}

// apartStore returns the images of a journey with a tally at its third entry, and the images
// of the tally alone at its second and its sixth, of which the latter is of another history.
func apartStore(t *testing.T) *snapshot.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "images")
	store, err := snapshot.Open(path, snapshot.Config{})
	require.NoError(t, err)
	s, applied := journey(), 0
	for _, img := range takeImages(s, func(seq eventlog.Seq) bool { return seq == 3 || seq == 7 }) {
		require.NoError(t, store.Put("tape", img))
	}
	f := projection.NewFold(withTally(1, &applied)[1:], genesis)
	for i := range s.entries[:6] {
		require.NoError(t, f.Apply(&s.entries[i]))
		img := f.Image()
		switch i {
		case 5:
			img.Head.Hash[0]++
			fallthrough
		case 1:
			require.NoError(t, store.Put(snapshot.ApartName("tape", "tally", 1), img))
		}
	}
	require.NoError(t, store.Close())
	store, err = snapshot.Open(path, snapshot.Config{ReadOnly: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
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
	// refused is the answer that the session has no such address, after all reads.
	refused := func(text string) func(context.Context, *replay.Replay) error {
		return func(ctx context.Context, r *replay.Replay) error {
			if err := resolve(text)(ctx, r); !errors.Is(err, replay.ErrNoAddress) {
				return err
			}
			return nil
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
		"by performance":              refused("perf:p-7-1"), // the toys have no performances
		"by no hash":                  refused("#0123456789"),
		"by no beat":                  refused("beat:warm#-3"),
		"by distance":                 resolve("end-2+1ms"),
		"by turn":                     resolve("turn:2"),
		"by beat":                     resolve("beat:warm#-1"),
		"by step":                     resolve("@-1"),
		"by time step":                resolve("@+90ms"),
		"by bookmark":                 resolve("@mark+3ms"),
		"by correlation from the end": resolve("corr:1#-2"),
		"by time at the end":          refused("t:250ms"),
		"range": func(ctx context.Context, r *replay.Replay) error {
			rg, err := replay.ParseRange("corr:1#2..t:240ms")
			if err != nil {
				return err
			}
			_, _, err = r.ResolveRange(ctx, rg)
			return err
		},
		"walk": func(ctx context.Context, r *replay.Replay) error {
			for _, err := range r.Moments(ctx, replay.MomentRange{From: between, To: at(9), Rest: true, Every: 20 * ms}, replay.NeedsPrev) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"walk before an entry": func(ctx context.Context, r *replay.Replay) error {
			for _, err := range r.Moments(ctx, replay.MomentRange{From: at(3), To: replay.Moment{Seq: 7, Offset: 40 * ms}, Rest: true}, replay.NeedsState) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"step of a moment": func(ctx context.Context, r *replay.Replay) error {
			_, err := r.StepAt(ctx, between, replay.NeedsPrev)
			return err
		},
		"step before all": func(ctx context.Context, r *replay.Replay) error {
			_, err := r.StepAt(ctx, replay.Moment{Offset: 5 * ms}, replay.NeedsPrev)
			return err
		},
		"intervals": func(ctx context.Context, r *replay.Replay) error {
			for _, err := range replay.Intervals(ctx, r, replay.MomentRange{To: at(8)}, running(replay.NeedsPrev)) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"values": func(ctx context.Context, r *replay.Replay) error {
			for _, err := range replay.ScanValues(ctx, r, 2, 8, running(replay.NeedsState)) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"anchor": func(ctx context.Context, r *replay.Replay) error {
			return r.CheckAnchor(ctx, replay.Anchor{Head: journey().entries[3].Head(), Offset: 7 * ms})
		},
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
	apart, applied := apartStore(t), 0
	for name, ask := range questions() {
		for _, open := range []func(s replay.Source) *replay.Replay{
			func(s replay.Source) *replay.Replay { return replay.Open(s, toys, nil) },
			func(s replay.Source) *replay.Replay { return replay.Open(s, toys, images) },
			func(s replay.Source) *replay.Replay {
				set := withTally(1, &applied)
				return replay.Open(s, set, replay.Stored(apart, s, set))
			},
		} {
			answered := func(s *damaged) *replay.Replay {
				r := open(annotated{s})
				last := replay.Moment{Seq: 5, Offset: 2 * ms}
				r.Anchor(&notes{last: &last, anchors: map[string]replay.Anchor{"mark": {Head: s.entries[6].Head(), Offset: 2 * ms}}})
				return r
			}
			require.NoError(t, ask(t.Context(), answered(&damaged{tape: journey(), good: 1 << 20})), name)
			for _, once := range []bool{false, true} {
				for good := 0; ; good++ {
					s := &damaged{tape: journey(), good: good, once: once}
					err := ask(t.Context(), answered(s))
					if !s.failed {
						require.NoError(t, err, name)
						break
					}
					require.ErrorIs(t, err, errDamaged, "%s: after %d entries", name, good)
				}
			}
			for checks := 0; ; checks++ {
				ctx := &endsAt{Context: t.Context(), checks: checks}
				err := ask(ctx, answered(&damaged{tape: journey(), good: 1 << 20}))
				if !ctx.ended {
					require.NoError(t, err, name)
					break
				}
				require.ErrorIs(t, err, context.Canceled, "%s: ended at check %d", name, checks)
			}
		}
	}
}

// skipping is a tape that leaves out an entry, or those from an entry on.
type skipping struct {
	*tape
	out, end eventlog.Seq // 0: none
}

func (skipping) Correlation(e *eventlog.Entry) (string, bool) {
	return strconv.Itoa(int(e.Data[0]) / 10 % 2), true
}

func (s skipping) Entries(ctx context.Context, from eventlog.Seq) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for e, err := range s.tape.Entries(ctx, from) {
			if s.end > 0 && e.Seq >= s.end || e.Seq != s.out && !yield(e, err) {
				return
			}
		}
	}
}

// What is asked of a source with a gap, or of one that ends before its Head says, has the answers
// and the errors that it had, with images before the gap and without.
func TestRecordedGaps(t *testing.T) {
	images := takeImages(journey(), func(seq eventlog.Seq) bool { return seq == 3 })
	all := questions()
	golden.Trace(t, "testdata/gaps.txt", func(step func(name, text string)) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			var out strings.Builder
			for _, snaps := range []replay.Snapshots{nil, images} {
				for seq := eventlog.Seq(1); seq <= 9; seq++ {
					for _, src := range []replay.Source{skipping{tape: journey(), out: seq}, skipping{tape: journey(), end: seq}} {
						r := replay.Open(src, toys, snaps)
						r.Anchor(&notes{last: &replay.Moment{Seq: 5, Offset: 2 * ms}, anchors: map[string]replay.Anchor{"mark": {Head: journey().entries[6].Head(), Offset: 2 * ms}}})
						fmt.Fprintln(&out, all[name](t.Context(), r))
					}
				}
			}
			step(name, out.String())
		}
	})
}

// An entry that is missing from the source is an error and never a state without it, with
// an image before the gap and without.
func TestGapIsAnError(t *testing.T) {
	images := takeImages(journey(), func(seq eventlog.Seq) bool { return seq == 3 })
	for _, snaps := range []replay.Snapshots{nil, images} {
		for out := eventlog.Seq(1); out <= 9; out++ {
			for to := eventlog.Seq(1); to <= 9; to++ {
				_, err := replay.Open(skipping{tape: journey(), out: out}, toys, snaps).At(t.Context(), replay.Moment{Seq: to})
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
