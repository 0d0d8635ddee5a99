package sajou_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// tally counts signals, by weight.
type tally struct {
	weight, sum uint64
	applied     *int         // in this process
	panics      eventlog.Seq // at this entry
	at          time.Duration
}

func (s *tally) Apply(e *eventlog.Entry) {
	if e.Seq == s.panics {
		panic("it cannot count")
	}
	*s.applied++
	if e.Kind == eventlog.KindSignal {
		s.sum += s.weight
	}
}
func (s *tally) Advance(at time.Duration) { s.at = at }
func (s *tally) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, s.sum), uint64(s.at))
}
func (s *tally) View() any { return int64(s.sum) }

// tallying returns the projection "tally" with a version, which is its weight too.
func tallying(version uint32, applied *int, panics eventlog.Seq) projection.Projection {
	return projection.Projection{
		Name: "tally", Version: version,
		New: func() projection.State { return &tally{weight: uint64(version), applied: applied, panics: panics} },
		Restore: func(data []byte) (projection.State, error) {
			if len(data) != 16 {
				return nil, errors.New("want 16 bytes")
			}
			return &tally{
				weight: uint64(version), applied: applied, panics: panics,
				sum: binary.BigEndian.Uint64(data), at: time.Duration(binary.BigEndian.Uint64(data[8:])),
			}, nil
		},
	}
}

func sumOf(t *testing.T, f *projection.Fold) uint64 {
	t.Helper()
	s, err := sajou.State[*tally](f, "tally")
	require.NoError(t, err)
	require.Equal(t, f.At(), s.at)
	return s.sum
}

// recordTally opens the store in dir with projections, records n signals 10 ms apart
// from entry's number on, and returns the engine.
func recordTally(t *testing.T, dir string, n int, own ...projection.Projection) (*sajou.Engine, *sajou.Session) {
	t.Helper()
	eng, err := sajou.Open(dir, sajou.Config{SnapshotEvery: 50, Projections: own})
	require.NoError(t, err)
	ses, err := eng.Begin(t.Context(), "a", session.TimeManual)
	require.NoError(t, err)
	first := int(ses.Head().Seq)
	for i := range n {
		_, err := ses.Signal(t.Context(), enginetest.TaskSignal(i, int64(first+i)*10))
		require.NoError(t, err)
	}
	return eng, ses
}

// A projection of the program has its state live and at any entry, restored from images
// of its own, and the images of the engine stay those of a program without it.
func TestOwnProjection(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	applied := 0
	eng, ses := recordTally(t, dir, 210, tallying(3, &applied, 0))
	f, err := ses.State(ctx)
	require.NoError(t, err)
	require.Equal(t, uint64(3*210), sumOf(t, f))
	require.Equal(t, int64(3*210), f.View()["tally"])
	require.NoError(t, eng.Close())

	// Without it the engine's images are used, and give the same states.
	eng, ses = recordTally(t, dir, 0)
	plain, err := ses.State(ctx)
	require.NoError(t, err)
	require.Equal(t, f.Digests()[:len(plain.Digests())], plain.Digests())
	_, err = sajou.State[*tally](plain, "tally")
	require.ErrorIs(t, err, sajou.ErrProjection)
	core, err := eng.Snapshots().List("a")
	require.NoError(t, err)
	require.NotEmpty(t, core)
	_, ok, err := eng.Snapshots().Nearest("a", 211, session.Projections(session.ProjectionConfig{}), func(eventlog.Head) bool { return true })
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, eng.Close())

	// With it again, any moment costs an image and the entries behind it.
	applied = 0
	eng, ses = recordTally(t, dir, 0, tallying(3, &applied, 0))
	for _, seq := range []eventlog.Seq{211, 207, 120, 60, 1} {
		applied = 0
		f, err := ses.At(ctx, replay.Moment{Seq: seq})
		require.NoError(t, err)
		require.Equal(t, uint64(3*(seq-1)), sumOf(t, f))
		require.Less(t, applied, 100, "entry %d", seq)
	}
	bad, checked, err := eng.VerifySnapshots(ctx, "a")
	require.NoError(t, err)
	require.Empty(t, bad)
	require.Greater(t, checked, len(core)) // its images are compared too
	require.NoError(t, eng.Close())
}

// apartImages returns the Seqs of the images of a version of "tally" in a closed store.
func apartImages(t *testing.T, dir string, version uint32) []snapshot.ImageInfo {
	t.Helper()
	s, err := snapshot.Open(dir+"/"+sajou.SnapshotFile, snapshot.Config{ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	list, err := s.List(snapshot.ApartName("a", "tally", version))
	require.NoError(t, err)
	return list
}

// Another version is built beside the images of the old one, which go when it has come
// as far, all at once. A new projection is built over an old session the same way.
func TestOwnProjectionIsRebuilt(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	applied := 0
	eng, ses := recordTally(t, dir, 210) // nothing of the program's yet
	_, err := ses.State(ctx)
	require.NoError(t, err)
	require.NoError(t, eng.Close())

	eng, ses = recordTally(t, dir, 0, tallying(1, &applied, 0))
	f, err := ses.State(ctx)
	require.NoError(t, err)
	require.Equal(t, uint64(210), sumOf(t, f))
	require.Equal(t, 211, applied) // folded once
	require.NoError(t, eng.Close())
	old := apartImages(t, dir, 1)
	require.Len(t, old, 4)

	eng, ses = recordTally(t, dir, 0, tallying(2, &applied, 0))
	f, err = ses.At(ctx, replay.Moment{Seq: 120}) // not as far as the old one
	require.NoError(t, err)
	require.Equal(t, uint64(2*119), sumOf(t, f))
	require.NoError(t, eng.Close())
	require.Equal(t, old, apartImages(t, dir, 1))
	require.NotEmpty(t, apartImages(t, dir, 2))

	applied = 0
	eng, ses = recordTally(t, dir, 0, tallying(1, &applied, 0)) // the old program again
	f, err = ses.At(ctx, replay.Moment{Seq: 211})
	require.NoError(t, err)
	require.Equal(t, uint64(210), sumOf(t, f))
	require.Less(t, applied, 100)
	require.NoError(t, eng.Close())
	require.NotEmpty(t, apartImages(t, dir, 2)) // the old program drops nothing of a newer one

	eng, ses = recordTally(t, dir, 0, tallying(2, &applied, 0))
	f, err = ses.State(ctx)
	require.NoError(t, err)
	require.Equal(t, uint64(2*210), sumOf(t, f))
	n, err := eng.DropSnapshots("other")
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, eng.Close())
	require.Empty(t, apartImages(t, dir, 1))
	require.NotEmpty(t, apartImages(t, dir, 2))

	eng, _ = recordTally(t, dir, 0)
	_, err = eng.DropSnapshots("a")
	require.NoError(t, err)
	require.NoError(t, eng.Close())
	require.Empty(t, apartImages(t, dir, 2))
}

// A projection that panics is out of use, live and in a replay, and everything else
// goes on: the log, the engine's states and the other projections.
func TestOwnProjectionPanics(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	applied := 0
	var text bytes.Buffer
	other := tallying(1, &applied, 0)
	other.Name = "other"
	eng, err := sajou.Open(dir, sajou.Config{
		SnapshotEvery: 10, Projections: []projection.Projection{tallying(1, &applied, 7), other},
		Logger: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	require.NoError(t, err)
	ses, err := eng.Begin(ctx, "a", session.TimeManual)
	require.NoError(t, err)
	for i := range 30 {
		_, err := ses.Signal(ctx, enginetest.TaskSignal(i, int64(i)))
		require.NoError(t, err)
		f, err := ses.State(ctx)
		require.NoError(t, err)
		_, err = sajou.State[*tally](f, "tally")
		if f.Head().Seq < 7 {
			require.NoError(t, err)
			require.Equal(t, sajou.Health{}, eng.Health())
			continue
		}
		require.ErrorIs(t, err, sajou.ErrProjection)
		require.ErrorContains(t, err, "entry 7: it cannot count")
		h := eng.Health()
		require.Len(t, h.Projections, 1)
		require.Equal(t, []string{"a", "tally"}, []string{h.Projections[0].Session, h.Projections[0].Projection})
		require.ErrorContains(t, h.Projections[0].Err, "entry 7: it cannot count")
		require.NoError(t, h.Err(), "everything is recorded all the same")
		s, err := sajou.State[*tally](f, "other")
		require.NoError(t, err)
		require.Equal(t, uint64(i+1), s.sum)
	}
	travelled, err := ses.At(ctx, replay.Moment{Seq: 25})
	require.NoError(t, err)
	_, err = sajou.State[*tally](travelled, "tally")
	require.ErrorIs(t, err, sajou.ErrProjection)
	_, err = sajou.State[projection.State](travelled, session.ProjectionWorld)
	require.ErrorIs(t, err, sajou.ErrProjection)
	require.NoError(t, eng.Close())
	require.Equal(t, 1, strings.Count(text.String(), "projection=tally"), text.String())
	require.Empty(t, apartImages(t, dir, 1)) // a failed state is not kept

	// Corrected under the same version, it is folded again.
	eng, ses = recordTally(t, dir, 0, tallying(1, &applied, 0))
	f, err := ses.State(ctx)
	require.NoError(t, err)
	require.Equal(t, uint64(30), sumOf(t, f))
	require.NoError(t, eng.Close())
}

// Projections that cannot be used are refused by Open.
func TestOwnProjectionsAreChecked(t *testing.T) {
	good := tallying(1, new(int), 0)
	for want, change := range map[string]func(p *projection.Projection){
		"two projections": func(p *projection.Projection) { p.Name = session.ProjectionWorld },
		"taken":           func(p *projection.Projection) { p.Name = "seq" },
		"zero byte":       func(p *projection.Projection) { p.Name = "a\x00b" },
		"lacks New":       func(p *projection.Projection) { p.New = nil },
		"Join":            func(p *projection.Projection) { p.Join = func(projection.State, func(string) projection.State) {} },
	} {
		bad := good
		change(&bad)
		_, err := sajou.Open(t.TempDir(), sajou.Config{Projections: []projection.Projection{bad}})
		require.ErrorContains(t, err, want)
	}
}

// Cost adds up what the calls of language models cost, as their signals tell.
type Cost struct{ Total float64 }

func (c *Cost) Apply(e *eventlog.Entry) {
	sig, err := session.SignalOf(e)
	if err != nil || sig.Type != "token_usage" {
		return
	}
	cost, _ := sig.Payload.Get("cost")
	var amount float64
	if cost.Decode(&amount) == nil {
		c.Total += amount
	}
}
func (c *Cost) Advance(time.Duration)    {} // time alone costs nothing
func (c *Cost) Append(dst []byte) []byte { return fmt.Appendf(dst, "%v", c.Total) }
func (c *Cost) View() any                { return c.Total }

// A program adds a projection of its own: its state is kept up to date while the session
// runs, and is found at every entry of the past.
func ExampleState() {
	costs := projection.Projection{
		Name: "costs", Version: 1,
		New: func() projection.State { return &Cost{} },
		Restore: func(data []byte) (projection.State, error) {
			c := &Cost{}
			_, err := fmt.Sscan(string(data), &c.Total)
			return c, err
		},
	}
	ctx := context.Background()
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Projections: []projection.Projection{costs}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = eng.Close() }()
	ses, err := eng.Session(ctx, "release-42")
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, cost := range []string{"0.25", "0.5", "4"} {
		sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"s%d","type":"token_usage","timestamp":1700000000%03d,"source":"example",`+
			`"payload":{"agentId":"ada","promptTokens":900,"completionTokens":100,"model":"m","cost":%s}}`, i, i, cost))
		if err == nil {
			_, err = ses.Signal(ctx, sig)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, at := range []func() (*projection.Fold, error){
		func() (*projection.Fold, error) { return ses.State(ctx) },                     // now
		func() (*projection.Fold, error) { return ses.At(ctx, replay.Moment{Seq: 3}) }, // at an old entry
	} {
		fold, err := at()
		if err != nil {
			fmt.Println(err)
			return
		}
		cost, err := sajou.State[*Cost](fold, "costs")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("entry %d: %.2f\n", fold.Head().Seq, cost.Total)
	}
	// Output:
	// entry 4: 4.75
	// entry 3: 0.75
}
