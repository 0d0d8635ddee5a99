package writer_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/writer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// open returns a writer of a new session, and the session's log.
func open(t *testing.T, authority session.TimeAuthority, reactor writer.Reactor) (*writer.Group, *writer.Writer, *eventlog.Session) {
	t.Helper()
	log, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	s, err := log.Session("a")
	require.NoError(t, err)
	g := writer.NewGroup(writer.Config{Log: log, Now: func() time.Time { return time.Unix(1_700_000_000, 0) }})
	w, err := g.Open(t.Context(), s, authority, session.NewReplay(&s.SessionReader, session.Projections(session.ProjectionConfig{}), nil), reactor)
	require.NoError(t, err)
	t.Cleanup(func() {
		g.Stop()
		g.Wait()
		require.NoError(t, log.Close())
		g.WaitFolded()
	})
	return g, w, s
}

// add appends one signal as a plain record.
func add(t *testing.T, w *writer.Writer, at time.Duration) {
	t.Helper()
	sig := &signal.Signal{ID: "s", Type: "tick", Timestamp: signal.Int(at.Milliseconds()), Source: "test", Payload: signal.Value{0x80}}
	ticket, err := w.Append(t.Context(), func(turn *writer.Turn) (*eventlog.Ticket, error) {
		var d session.Drafts
		d.Signal(at, sig)
		p := turn.Frontier()
		p.At = at
		return turn.Keep(writer.Proposal{Drafts: d.List(), After: &p})
	})
	require.NoError(t, err)
	_, err = ticket.Wait(t.Context())
	require.NoError(t, err)
}

// tick decides that time has passed.
func tick(t *testing.T, w *writer.Writer) {
	t.Helper()
	require.NoError(t, w.Decide(t.Context(), func(turn *writer.Turn) error {
		var d session.Drafts
		d.Tick(turn.Now())
		_, err := turn.Keep(writer.Proposal{Drafts: d.List()})
		return err
	}))
}

// words returns the words of the entries, and the kinds of those without.
func words(t *testing.T, w *writer.Writer) (list []string) {
	t.Helper()
	for e, err := range w.Entries(t.Context(), 1) {
		require.NoError(t, err)
		word := e.Kind.String()
		if e.Kind != eventlog.KindSignal {
			word, _, err = session.WordOf(&e)
			require.NoError(t, err)
		}
		list = append(list, word)
	}
	return list
}

// The writer puts the session's first entry before the first batch, and before the
// first decision the entry that tells when session time began.
func TestFirstEntries(t *testing.T) {
	for authority, want := range map[session.TimeAuthority][]string{
		session.TimeManual: {"opened", "signal", "tick"},
		session.TimeWall:   {"opened", "signal", "clock", "tick"},
	} {
		t.Run(string(authority), func(t *testing.T) {
			_, w, _ := open(t, authority, nil)
			require.Equal(t, authority, w.Authority())
			add(t, w, 0)
			tick(t, w)
			if diff := cmp.Diff(want, words(t, w)); diff != "" {
				t.Errorf("entries (-want +got)\n%s", diff)
			}
		})
	}
}

// A decision sees every batch that was staged before it, and the batches that it
// kept itself.
func TestDecisionsSeeTheNewestState(t *testing.T) {
	_, w, _ := open(t, session.TimeManual, nil)
	for i := range 300 { // more than a call folds by itself
		add(t, w, time.Duration(i)*time.Millisecond)
	}
	require.NoError(t, w.Decide(t.Context(), func(turn *writer.Turn) error {
		require.Equal(t, eventlog.Seq(301), turn.Fold().Head().Seq)
		require.Equal(t, 299*time.Millisecond, turn.Now())
		turn.Reach(time.Second)
		var d session.Drafts
		d.Tick(turn.Now())
		_, err := turn.Keep(writer.Proposal{Drafts: d.List()})
		require.Equal(t, time.Second, turn.Fold().At())
		return err
	}))
	require.Equal(t, time.Second, w.Clock().Now())
}

// The last decision of a turn is folded once the round has been handed to the store, and
// before its writer wakes. One that comes nevertheless is decided on the state behind it.
func TestLastDecision(t *testing.T) {
	_, w, _ := open(t, session.TimeManual, nil)
	w.KeepCurrent()
	keep := func(turn *writer.Turn, last bool) {
		var d session.Drafts
		d.Tick(turn.Now())
		_, err := turn.Keep(writer.Proposal{Drafts: d.List(), Last: last})
		require.NoError(t, err)
	}
	var then []eventlog.Seq
	require.NoError(t, w.Decide(t.Context(), func(turn *writer.Turn) error {
		keep(turn, false) // the session's first entry comes before it
		require.EqualValues(t, 2, turn.Fold().Head().Seq)
		keep(turn, true)
		require.EqualValues(t, 2, turn.Fold().Head().Seq)
		require.Equal(t, 1, w.Behind())
		keep(turn, false)
		require.EqualValues(t, 4, turn.Fold().Head().Seq)
		keep(turn, true)
		turn.Then(func() { w.Look(func(f *projection.Fold) { then = append(then, f.Head().Seq) }) })
		return nil
	}))
	require.Equal(t, []eventlog.Seq{5}, then)
	require.Zero(t, w.Behind())
	add(t, w, 0)
	require.Equal(t, []string{"opened", "tick", "tick", "tick", "tick", "signal"}, words(t, w))
}

// While the reactor reacts, the last decision of a turn is folded at once: the state says
// whether it goes on reacting.
func TestLastDecisionOfAReactor(t *testing.T) {
	_, w, _ := open(t, session.TimeManual, &echo{})
	for n := range 2 {
		require.NoError(t, w.Decide(t.Context(), func(turn *writer.Turn) error {
			var d session.Drafts
			d.Tick(turn.Now())
			_, err := turn.Keep(writer.Proposal{Drafts: d.List(), Last: n > 0})
			require.EqualValues(t, 2+n, turn.Fold().Head().Seq)
			return err
		}))
	}
	add(t, w, 0)
	require.Equal(t, []string{"opened", "tick", "tick", "signal", "tick"}, words(t, w))
}

// echo puts a tick behind every signal, once the session has begun.
type echo struct{ seqs []eventlog.Seq }

func (*echo) Reacts(f *projection.Fold) bool { return f.Head().Seq > 0 }

func (r *echo) React(t *writer.Turn, drafts []eventlog.Draft) (all []eventlog.Draft, err error) {
	for _, d := range drafts {
		if all = append(all, d); d.Kind == eventlog.KindSignal {
			r.seqs = append(r.seqs, t.Fold().Head().Seq+eventlog.Seq(len(all)))
			var own session.Drafts
			own.Tick(d.At)
			all = append(all, own.List()...)
		}
	}
	return all, nil
}

// A reactor extends batches before they are sealed, and knows the numbers that
// their entries will have.
func TestReactorExtendsBatches(t *testing.T) {
	r := &echo{}
	_, w, _ := open(t, session.TimeManual, r)
	tick(t, w)
	add(t, w, 0)
	add(t, w, 0)
	if diff := cmp.Diff([]string{"opened", "tick", "signal", "tick", "signal", "tick"}, words(t, w)); diff != "" {
		t.Errorf("entries (-want +got)\n%s", diff)
	}
	require.Equal(t, []eventlog.Seq{3, 5}, r.seqs)
}

// No append goes past the writer.
func TestAppendsPastTheWriterAreRefused(t *testing.T) {
	_, w, s := open(t, session.TimeManual, nil)
	add(t, w, 0)
	var d session.Drafts
	d.Tick(time.Second)
	_, err := s.Append(t.Context(), eventlog.Batch{Drafts: d.List()})
	require.ErrorIs(t, err, eventlog.ErrClaimed)
	_, err = s.Claim()
	require.ErrorIs(t, err, eventlog.ErrClaimed)
	tick(t, w)
	require.Equal(t, eventlog.Seq(3), w.Head().Seq)
}

// begun returns a session of a log of its own, with its first entry and those that add drafts.
func begun(t *testing.T, add func(*session.Drafts)) (*eventlog.Log, *eventlog.Session) {
	t.Helper()
	log, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	s, err := log.Session("a")
	require.NoError(t, err)
	var first session.Drafts
	first.Opened(0, session.TimeManual)
	add(&first)
	_, err = s.Append(t.Context(), eventlog.Batch{Drafts: first.List()})
	require.NoError(t, err)
	return log, s
}

// Open leaves the session free when it fails, so that it can be opened again.
func TestFailedOpenReleasesTheSession(t *testing.T) {
	log, s := begun(t, func(*session.Drafts) {})
	g := writer.NewGroup(writer.Config{Log: log, Now: time.Now})
	for _, name := range []string{session.ProjectionSession, session.ProjectionPerformances} {
		set := session.Projections(session.ProjectionConfig{})
		set = slices.DeleteFunc(set, func(p projection.Projection) bool { return p.Name == name })
		_, err := g.Open(t.Context(), s, session.TimeManual, session.NewReplay(&s.SessionReader, set, nil), nil)
		require.ErrorContains(t, err, "lack")
	}
	appender, err := s.Claim()
	require.NoError(t, err)
	set := session.Projections(session.ProjectionConfig{})
	_, err = g.Open(t.Context(), s, session.TimeManual, session.NewReplay(&s.SessionReader, set, nil), nil)
	require.ErrorIs(t, err, eventlog.ErrClaimed)
	_, err = s.Claim()
	require.ErrorIs(t, err, eventlog.ErrClaimed) // the failed Open did not release another's claim
	appender.Release()
	w, err := g.Open(t.Context(), s, session.TimeManual, session.NewReplay(&s.SessionReader, set, nil), nil)
	require.NoError(t, err)
	w.Release()
	_, err = s.Claim()
	require.NoError(t, err)
}

// A session that is within its budget is opened, and its fold made, without a warning.
func TestNoWarningWithinTheBudget(t *testing.T) {
	log, s := begun(t, func(first *session.Drafts) {
		first.Signal(0, &signal.Signal{ID: "s", Type: "tick", Timestamp: signal.Int(0), Source: "test", Payload: signal.Value{0x80}})
	})
	var notes bytes.Buffer
	g := writer.NewGroup(writer.Config{Log: log, Now: time.Now, Logger: slog.New(slog.NewTextHandler(&notes, nil))})
	w, err := g.Open(t.Context(), s, session.TimeManual, session.NewReplay(&s.SessionReader, session.Projections(session.ProjectionConfig{}), nil), nil)
	require.NoError(t, err)
	tick(t, w)
	require.Empty(t, notes.String())
	g.Stop()
	g.Wait()
}

// The context of work ends with Stop, and no work begins after it.
func TestStop(t *testing.T) {
	g, w, _ := open(t, session.TimeManual, nil)
	ended := make(chan struct{})
	require.True(t, w.Go(func(ctx context.Context) {
		<-ctx.Done()
		close(ended)
	}))
	require.True(t, g.Stop())
	g.Wait()
	<-ended
	require.False(t, g.Stop())
	require.False(t, w.Go(func(context.Context) {}))
}

// folds keeps what the writers of a group report about their folds.
type folds struct {
	lines []string
}

func (f *folds) FoldLoaded(_ string, at eventlog.Seq, took time.Duration) {
	f.lines = append(f.lines, fmt.Sprint("loaded ", at, took))
}

func (f *folds) FoldFailed(_ string, cause error) { f.lines = append(f.lines, cause.Error()) }

func (f *folds) Folded(_ string, entries, behind int, took time.Duration) {
	f.lines = append(f.lines, fmt.Sprint(entries, behind, took))
}

// A writer is behind from the staging of an entry until it is folded, and says so. A
// fold that refuses an entry is reported once, and from then on nothing is recorded.
func TestBehind(t *testing.T) {
	var told folds
	g, w, _ := open(t, session.TimeManual, nil)
	g.Measure(&told)
	if got := g.Writers(); len(got) != 1 || got[0] != w {
		t.Errorf("open writers: %v", got)
	}
	w.Look(func(*projection.Fold) {}) // makes the fold
	sig := &signal.Signal{ID: "s", Type: "tick", Timestamp: signal.Int(0), Source: "test", Payload: signal.Value{0x80}}
	behind := 0
	ticket, err := w.Append(t.Context(), func(turn *writer.Turn) (*eventlog.Ticket, error) {
		var d session.Drafts
		d.Signal(0, sig)
		d.Signal(0, sig)
		p := turn.Frontier()
		ticket, err := turn.Keep(writer.Proposal{Drafts: d.List(), After: &p})
		behind = w.Behind()
		return ticket, err
	})
	require.NoError(t, err)
	_, err = ticket.Wait(t.Context())
	require.NoError(t, err)
	w.Look(func(*projection.Fold) {})
	if behind != 3 || w.Behind() != 0 || w.Broken() != nil {
		t.Errorf("behind by %d in the turn, want 3 with the first entry; then by %d, %v", behind, w.Behind(), w.Broken())
	}
	w.Misplace()
	add(t, w, 0)
	w.Look(func(*projection.Fold) {})
	w.Look(func(*projection.Fold) {})
	if w.Broken() == nil || w.Behind() != 0 {
		t.Errorf("behind by %d, %v", w.Behind(), w.Broken())
	}
	if want := []string{"loaded 0 0s", "3 0 0s", w.Broken().Error()}; !slices.Equal(told.lines, want) {
		t.Errorf("told %q, want %q", told.lines, want)
	}
	w.Release()
	if got := g.Writers(); len(got) != 0 {
		t.Errorf("open writers after Release: %v", got)
	}
}
