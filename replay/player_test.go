package replay_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage"
)

// onstage is a sink that knows the actions under way by the commands alone.
type onstage struct {
	running  []string // in the order they were started; see underWay
	progress map[string]string
	commands []string // since the last jump, without updates
	unknown  []string // commands that end or continue an action that is not under way
}

func key(performance, action, entity string) string {
	return fmt.Sprintf("%s %s %s", performance, action, entity)
}

func (s *onstage) OnActionStart(c choreography.ActionStart) {
	s.running = append(s.running, fmt.Sprintf("%s %v %v %s %v", key(c.PerformanceID, c.Action, c.EntityRef), c.At, c.Duration, c.Easing, c.Params))
	s.commands = append(s.commands, enginetest.CommandLine(c.Command()))
}

// find returns where the action of a command is, or -1.
func (s *onstage) find(k string) int {
	return slices.IndexFunc(s.running, func(r string) bool { return strings.HasPrefix(r, k+" ") })
}

func (s *onstage) OnActionUpdate(c choreography.ActionUpdate) {
	k := key(c.PerformanceID, c.Action, c.EntityRef)
	if s.find(k) < 0 {
		s.unknown = append(s.unknown, enginetest.CommandLine(c.Command()))
	}
	if s.progress == nil {
		s.progress = map[string]string{}
	}
	s.progress[k] = fmt.Sprint(c.At, c.Progress, c.Elapsed)
}

func (s *onstage) OnActionComplete(c choreography.ActionComplete) {
	s.commands = append(s.commands, enginetest.CommandLine(c.Command()))
	k := key(c.PerformanceID, c.Action, c.EntityRef)
	i := s.find(k)
	if i < 0 {
		s.unknown = append(s.unknown, enginetest.CommandLine(c.Command()))
		return
	}
	s.running = slices.Delete(s.running, i, i+1)
	delete(s.progress, k)
}

func (s *onstage) OnActionExecute(c choreography.ActionExecute) {
	s.commands = append(s.commands, enginetest.CommandLine(c.Command()))
}

func (s *onstage) OnInterrupt(c choreography.Interrupt) {
	s.commands = append(s.commands, enginetest.CommandLine(c.Command()))
	s.running = slices.DeleteFunc(s.running, func(r string) bool { return strings.HasPrefix(r, c.PerformanceID+" ") })
	for k := range s.progress {
		if strings.HasPrefix(k, c.PerformanceID+" ") {
			delete(s.progress, k)
		}
	}
}

// underWay shows the actions under way with their progress, in no particular order.
func (s *onstage) underWay() []string {
	all := slices.Clone(s.running)
	for k, p := range s.progress {
		all = append(all, k+": "+p)
	}
	slices.Sort(all)
	return all
}

// seeking is an onstage that is told of jumps.
type seeking struct {
	onstage

	jumps []string
}

func (s *seeking) OnSeek(f *projection.Fold, m replay.Moment) {
	s.jumps = append(s.jumps, fmt.Sprint(m, " at ", f.At()))
	s.onstage = onstage{}
}

// view keeps the last state that a player showed.
type view struct {
	moment replay.Moment
	frame  *stage.Frame
	digest string
	shown  []string // the moments
	err    error
}

func (v *view) Show(f *projection.Fold, m replay.Moment) (changed bool, err error) {
	frame := session.StageOf(f).Frame()
	changed = v.frame == nil || !cmp.Equal(v.frame, frame, sameStage)
	v.moment, v.frame, v.digest = m, frame, enginetest.Digests(f)
	v.shown = append(v.shown, m.String())
	return changed, v.err
}

var sameStage = cmpopts.IgnoreFields(stage.Frame{}, "Scene", "At")

// recordStory records a story, and returns its replay.
func recordStory(t testing.TB, story []enginetest.Step) *replay.Replay {
	t.Helper()
	eng := enginetest.Memory(t, sajou.Config{})
	ses := enginetest.BeginManual(t, eng, "a")
	ms := int64(0)
	for i, step := range story {
		ms += step.Wait
		_, err := ses.Record(t.Context(), step.Record(t, i, ms))
		require.NoError(t, err)
	}
	r, err := eng.Replay("a")
	require.NoError(t, err)
	return r
}

// The commands that a sink has seen after any sequence of jumps, steps and ticks
// describe the same stage as a straight run to that instant, and the screen shows it.
func TestPlayerProperty(t *testing.T) {
	ctx := t.Context()
	story := slices.Concat([]enginetest.Step{{Typ: "choreographies"}, {Typ: "scene"}}, enginetest.DigestStory, enginetest.DigestStory)
	r := recordStory(t, story)
	to, err := r.Rest(ctx, replay.Moment{Seq: r.Head().Seq})
	require.NoError(t, err)
	underWay, jumps := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		var (
			plain  onstage
			seeker seeking
			screen view
			now    time.Duration
			cfg    = replay.PlayerConfig{Frame: 50 * ms, Rate: rapid.SampledFrom([]float64{0, 0.25, 1, 8}).Draw(rt, "rate"), Screen: &screen}
			list   []*replay.Player
		)
		if rapid.Bool().Draw(rt, "idle") {
			cfg.Idle = 300 * ms
		}
		cfg.Loop = rapid.Bool().Draw(rt, "loop")
		for _, sink := range []choreography.CommandSink{&plain, &seeker} {
			cfg.Commands = sink
			p, err := replay.NewPlayer(ctx, r, cfg)
			require.NoError(rt, err)
			p.Play()
			list = append(list, p)
		}
		moment := func() replay.Moment {
			at := time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(rt, "at"))
			m, err := r.MomentAt(ctx, at)
			require.NoError(rt, err)
			if m.Compare(to) > 0 {
				m = to
			}
			return m
		}
		for range rapid.IntRange(1, 12).Draw(rt, "calls") {
			var do func(p *replay.Player) error
			switch rapid.IntRange(0, 5).Draw(rt, "call") {
			case 0, 1:
				now += time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(rt, "tick"))
				do = func(p *replay.Player) error { return p.Tick(ctx, now) }
			case 2, 3:
				m := moment()
				jumps++
				do = func(p *replay.Player) error { return p.Seek(ctx, m) }
			case 4:
				n := rapid.IntRange(-3, 3).Draw(rt, "step")
				do = func(p *replay.Player) error { defer p.Play(); return p.Step(ctx, n) }
			default:
				do = func(p *replay.Player) error { _, err := p.Next(ctx); return err }
			}
			for _, p := range list {
				require.NoError(rt, do(p))
			}
			at := list[0].State().Moment
			require.Equal(rt, list[0].State(), list[1].State())

			var straight onstage
			require.NoError(rt, r.Commands(ctx, replay.Moment{}, at, 0, &straight))
			want := straight.underWay()
			if len(want) > 0 {
				underWay++
			}
			for _, sink := range []*onstage{&plain, &seeker.onstage} {
				if diff := cmp.Diff(want, sink.underWay(), cmpopts.EquateEmpty()); diff != "" {
					rt.Fatalf("under way at %v after a straight run (-) and of the player (+):\n%s", at, diff)
				}
				if len(sink.unknown) > 0 {
					rt.Fatalf("commands for actions that are not under way: %v", sink.unknown)
				}
			}
			f, err := r.At(ctx, at)
			require.NoError(rt, err)
			if diff := cmp.Diff(session.StageOf(f).Frame(), screen.frame, sameStage); diff != "" {
				rt.Fatalf("the stage at %v (-) and as shown last (+), at %v:\n%s", at, screen.moment, diff)
			}
			if screen.moment == at && screen.digest != enginetest.Digests(f) {
				rt.Fatalf("the state at %v is %s, the player has %s", at, enginetest.Digests(f), screen.digest)
			}
		}
		// From here on the sink sees what a straight run sees after the moment.
		from := list[0].State().Moment
		before := len(plain.commands)
		for more := true; more; {
			var err error
			more, err = list[0].Next(ctx)
			require.NoError(rt, err)
		}
		var head, whole onstage
		require.NoError(rt, r.Commands(ctx, replay.Moment{}, from, 0, &head))
		require.NoError(rt, r.Commands(ctx, replay.Moment{}, to, 0, &whole))
		if diff := cmp.Diff(whole.commands[len(head.commands):], plain.commands[before:], cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("commands after %v in a straight run (-) and of the player (+):\n%s", from, diff)
		}
	})
	if !testing.Short() && (jumps == 0 || underWay == 0) { // the short form draws too few to tell
		t.Errorf("%d jumps, and %d times an action was under way: too little happens", jumps, underWay)
	}
}

// trip is a session of four entries, an action of 100 ms and a long pause:
// 1 at 0, 2 at 10 ms, 3 at 30 ms that begins the action, and 4 at 10 s.
func trip() *tape {
	s := new(tape)
	s.add(0)
	s.add(10 * ms)
	s.add(20*ms, 100)
	s.add(10*time.Second - 30*ms)
	return s
}

// moments is a screen that keeps the moments that it was shown. It says that the
// picture differs while an action runs.
type moments struct {
	shown []string
	err   error
}

func (s *moments) Show(f *projection.Fold, m replay.Moment) (bool, error) {
	s.shown = append(s.shown, m.String())
	return f.State("band").(*band).Moving(), s.err
}

func (s *moments) take() (shown []string) {
	shown, s.shown = s.shown, nil
	return shown
}

// Tick moves the position by the time of the clock, at the rate.
func TestPlayerTicks(t *testing.T) {
	ctx := t.Context()
	var screen moments
	var sink recorder
	p, err := replay.NewPlayer(ctx, replay.Open(trip(), toys, nil), replay.PlayerConfig{Commands: &sink, Screen: &screen, Idle: time.Second, Rate: 0.5, Loop: true})
	require.NoError(t, err)
	tick := func(now time.Duration) func() error { return func() error { return p.Tick(ctx, now) } }
	for _, step := range []struct {
		what  string
		do    func() error
		want  string // the state
		shown []string
	}{
		{"the beginning", func() error { return nil }, "0 0s x0.5 playing false", []string{"0"}},
		{"a tick of a pause", tick(time.Hour), "0 0s x0.5 playing false", nil},
		{"play", func() error { p.Play(); return nil }, "0 0s x0.5 playing true", nil},
		{"10 ms", tick(time.Hour + 10*ms), "1+5ms 5ms x0.5 playing true", []string{"1+5ms"}},
		{"10 ms without a change", tick(time.Hour + 18*ms), "1+9ms 9ms x0.5 playing true", nil},
		{"a clock that runs back", tick(time.Hour), "1+9ms 9ms x0.5 playing true", nil},
		{"two entries", tick(time.Hour + 62*ms), "3+10ms 40ms x0.5 playing true", []string{"3+10ms"}},
		{"a frame", tick(time.Hour + 64*ms), "3+11ms 41ms x0.5 playing true", []string{"3+11ms"}},
		{"pause", func() error { p.Pause(); return nil }, "3+11ms 41ms x0.5 playing false", nil},
		{"a second later", func() error { p.Play(); return p.Tick(ctx, 2*time.Hour) }, "3+11ms 41ms x0.5 playing true", nil},
		{"faster", func() error { return p.SetRate(2) }, "3+11ms 41ms x2 playing true", nil},
		{"the end of the action", tick(2*time.Hour + 50*ms), "3+111ms 141ms x2 playing true", []string{"3+111ms"}},
		{"nothing for less than a second", tick(2*time.Hour + 1049*ms), "3+2.109s 2.139s x2 playing true", nil},
		{"nothing for longer", tick(2*time.Hour + 1051*ms), "4 10s x2 playing true", []string{"4"}},
		{"the loop", tick(2*time.Hour + 1052*ms), "0 0s x2 playing true", []string{"0"}},
		{"a step", func() error { return p.Step(ctx, 3) }, "3 30ms x2 playing false", []string{"3"}},
		{"a step beyond the end", func() error { return p.Step(ctx, 1<<40) }, "4 10s x2 playing false", []string{"4"}},
		{"a step before the beginning", func() error { return p.Step(ctx, -1<<63) }, "0 0s x2 playing false", []string{"0"}},
		{"a jump", func() error { return p.Seek(ctx, replay.Moment{Seq: 3, Offset: 7 * ms}) }, "3+7ms 37ms x2 playing false", []string{"3+7ms"}},
		{"a step back to the entry", func() error { return p.Step(ctx, -1) }, "3 30ms x2 playing false", []string{"3"}},
		{"a step back", func() error { return p.Step(ctx, -1) }, "2 10ms x2 playing false", []string{"2"}},
	} {
		require.NoError(t, step.do(), step.what)
		s := p.State()
		if got := fmt.Sprintf("%v %v x%v playing %v", s.Moment, s.At, s.Rate, s.Playing); got != step.want {
			t.Errorf("after %s: %s, want %s", step.what, got, step.want)
		}
		if diff := cmp.Diff(step.shown, screen.take()); diff != "" {
			t.Errorf("after %s: shown (-want +got):\n%s", step.what, diff)
		}
	}
	want := []string{
		"start 30ms", "complete 130ms", // playing
		"start 30ms", "complete 130ms", // steps
		"start 30ms",                   // the jump
		"interrupt 37ms", "start 30ms", // back to the entry
		"interrupt 30ms", // back before it
	}
	enginetest.WantLines(t, "commands", sink.commands, want...)
}

// A rate so low that a tick is less than a nanosecond of the session still moves it.
func TestPlayerSlowly(t *testing.T) {
	p, err := replay.NewPlayer(t.Context(), replay.Open(trip(), toys, nil), replay.PlayerConfig{Rate: 0.25})
	require.NoError(t, err)
	p.Play()
	for now := range time.Duration(41) {
		require.NoError(t, p.Tick(t.Context(), now))
	}
	require.Equal(t, 10*time.Nanosecond, p.State().At)
}

// Next stops at entries, at frames while an action runs, and at the first frame after
// it has ended.
func TestPlayerFrames(t *testing.T) {
	ctx := t.Context()
	s := trip()
	s.add(0, 200) // 200 ms from 10 s on, as the last entry
	for _, c := range []struct {
		cfg  replay.PlayerConfig
		want string
	}{
		{replay.PlayerConfig{}, "0 1 2 3 4 5 5+200ms"},
		{replay.PlayerConfig{Frame: 40 * ms}, "0 1 2 3 3+10ms 3+50ms 3+90ms 3+130ms 4 5 5+40ms 5+80ms 5+120ms 5+160ms 5+200ms"},
		{replay.PlayerConfig{Frame: 40 * ms, From: replay.Moment{Seq: 3, Offset: 20 * ms}, To: replay.Moment{Seq: 4}}, "3+20ms 3+50ms 3+90ms 3+130ms 4"},
		{replay.PlayerConfig{Frame: 40 * ms, From: replay.Moment{Seq: 4}, To: replay.Moment{Seq: 4}}, "4"},
	} {
		var screen moments
		c.cfg.Screen = &screen
		p, err := replay.NewPlayer(ctx, replay.Open(s, toys, nil), c.cfg)
		require.NoError(t, err)
		for more := true; more; {
			more, err = p.Next(ctx)
			require.NoError(t, err)
		}
		if got := strings.Join(screen.shown, " "); got != c.want {
			t.Errorf("%+v: %s, want %s", c.cfg, got, c.want)
		}
		if s := p.State(); !s.Ended || s.Playing {
			t.Errorf("at the end %+v", s)
		}
	}
}

// stepClock is a clock whose frames a test draws.
type stepClock struct{ frames chan func(time.Duration) }

func (c stepClock) Now() time.Duration { return 0 }
func (c stepClock) RequestFrame(frame func(time.Duration)) func() {
	c.frames <- frame
	return func() {}
}

// Run plays at the frames of its clock, asks for none while the player pauses, and
// returns at the end of the range or of its context.
func TestPlayerRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p, err := replay.NewPlayer(ctx, replay.Open(trip(), toys, nil), replay.PlayerConfig{})
		require.NoError(t, err)
		clock := stepClock{make(chan func(time.Duration))}
		done := make(chan error)
		run := func() { go func() { done <- p.Run(ctx, clock) }() }
		run()
		p.Play()
		(<-clock.frames)(time.Hour)
		(<-clock.frames)(time.Hour + 5*ms)
		frame := <-clock.frames // it has ticked
		require.Equal(t, replay.Moment{Seq: 1, Offset: 5 * ms}, p.State().Moment)
		p.Pause()
		frame(time.Hour + 6*ms)
		synctest.Wait()
		select {
		case <-clock.frames:
			t.Error("a frame was requested in a pause")
		default:
		}
		p.Play()
		(<-clock.frames)(2 * time.Hour) // the pause does not count
		(<-clock.frames)(3 * time.Hour)
		require.NoError(t, <-done)
		require.True(t, p.State().Ended)

		run() // waits for Play
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		p.Play()
		require.ErrorIs(t, p.Run(ctx, stepClock{make(chan func(time.Duration), 1)}), context.Canceled)
	})
}

// Calls that a session or a range does not allow change nothing. An error of the screen
// or of a read pauses the player.
func TestPlayerErrors(t *testing.T) {
	ctx := t.Context()
	r := replay.Open(trip(), toys, nil)
	at := func(seq uint64) replay.Moment { return replay.Moment{Seq: eventlog.Seq(seq)} }
	for _, c := range []struct {
		cfg  replay.PlayerConfig
		want error
	}{
		{replay.PlayerConfig{From: at(9)}, replay.ErrSyntax},
		{replay.PlayerConfig{To: at(9)}, replay.ErrNoAddress},
		{replay.PlayerConfig{From: at(3), To: at(2)}, replay.ErrSyntax},
		{replay.PlayerConfig{From: replay.Moment{Seq: 1, Offset: time.Hour}, To: at(3)}, replay.ErrNoAddress},
	} {
		if _, err := replay.NewPlayer(ctx, r, c.cfg); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.cfg, err, c.want)
		}
	}
	for _, rate := range []float64{-1, math.Inf(1), math.NaN()} {
		if _, err := replay.NewPlayer(ctx, r, replay.PlayerConfig{Rate: rate}); err == nil {
			t.Errorf("a rate of %v is accepted", rate)
		}
	}
	var screen moments
	var sink recorder
	p, err := replay.NewPlayer(ctx, r, replay.PlayerConfig{From: at(2), To: at(3), Screen: &screen, Commands: &sink})
	require.NoError(t, err)
	require.Error(t, p.SetRate(0))
	p.Play()
	for _, m := range []replay.Moment{at(1), at(4), at(9), {Seq: 2, Offset: time.Hour}} {
		require.ErrorIs(t, p.Seek(ctx, m), replay.ErrNoAddress)
		require.Equal(t, at(2), p.State().Moment)
	}
	require.Equal(t, []string{"2"}, screen.take())

	p.Play()
	require.NoError(t, p.Tick(ctx, 0))
	screen.err = errors.New("the screen is broken")
	require.ErrorIs(t, p.Tick(ctx, time.Second), screen.err)
	require.False(t, p.State().Playing)

	p, err = replay.NewPlayer(ctx, r, replay.PlayerConfig{Commands: &sink})
	require.NoError(t, err)
	sink.commands = nil
	require.NoError(t, p.Step(ctx, 3))
	p.Play()
	ended, end := context.WithCancel(ctx)
	end()
	require.ErrorIs(t, p.Seek(ended, at(1)), context.Canceled)
	require.False(t, p.State().Playing)
	_, err = p.Next(ended)
	require.ErrorIs(t, err, context.Canceled)
	enginetest.WantLines(t, "commands", sink.commands, "start 30ms")
}

// drift moves for ever, without a boundary.
type drift struct{ now time.Duration }

func (s *drift) Apply(e *eventlog.Entry)  { s.now = e.At }
func (s *drift) Advance(at time.Duration) { s.now = at }
func (s *drift) Append(dst []byte) []byte { return binary.BigEndian.AppendUint64(dst, uint64(s.now)) }
func (s *drift) View() any                { return int64(s.now) }
func (s *drift) Moving() bool             { return true }

// Frames go on for as long as is allowed after an entry, or after the beginning, and at each
// multiple of the least span.
func TestFramesOfWhatNeverEnds(t *testing.T) {
	set := projection.Set{{Name: "drift", Version: 1, New: func() projection.State { return new(drift) }, Restore: func([]byte) (projection.State, error) { return nil, errors.New("not kept") }}}
	s := &tape{}
	s.add(2 * time.Minute)
	for _, tt := range []struct {
		from, to replay.Moment
		frame    time.Duration
		want     []string
	}{
		{replay.Moment{}, replay.Moment{Seq: 1, Offset: time.Hour}, time.Minute, []string{"0+1m0s", "1", "1+1m0s", "1+2m0s", "1+3m0s", "1+4m0s", "1+5m0s", "1+1h0m0s"}},
		{replay.Moment{Seq: 1, Offset: time.Minute}, replay.Moment{Seq: 1, Offset: time.Hour}, 2 * time.Minute, []string{"1+2m0s", "1+4m0s", "1+6m0s", "1+1h0m0s"}},
		{replay.Moment{Seq: 1}, replay.Moment{Seq: 1, Offset: 3}, 1, []string{"1+1ns", "1+2ns", "1+3ns"}},
		{replay.Moment{Seq: 1}, replay.Moment{Seq: 1, Offset: 3}, 0, []string{"1+3ns"}},
	} {
		p, err := replay.NewPlayer(t.Context(), replay.Open(s, set, nil), replay.PlayerConfig{From: tt.from, To: tt.to, Frame: tt.frame})
		require.NoError(t, err)
		var got []string
		for {
			moved, err := p.Next(t.Context())
			require.NoError(t, err)
			if !moved {
				break
			}
			got = append(got, p.State().Moment.String())
		}
		require.Equal(t, tt.want, got)
	}
}

// The last multiple of a frame's length before session time ends is a frame, and there is none
// behind it.
func TestFramesAtTheEndOfTime(t *testing.T) {
	set := projection.Set{{Name: "drift", Version: 1, New: func() projection.State { return new(drift) }, Restore: func([]byte) (projection.State, error) { return nil, errors.New("not kept") }}}
	for _, step := range []time.Duration{time.Minute, 7 * time.Second, math.MaxInt64, math.MaxInt64/2 + 1} {
		s := &tape{}
		last := math.MaxInt64 / step * step
		s.add(last - 5*time.Second)
		p, err := replay.NewPlayer(t.Context(), replay.Open(s, set, nil), replay.PlayerConfig{From: replay.Moment{Seq: 1}, To: replay.Moment{Seq: 1, Offset: math.MaxInt64 - s.entries[0].At}, Frame: step})
		require.NoError(t, err)
		got := []time.Duration{}
		for moved := true; moved; {
			moved, err = p.Next(t.Context())
			require.NoError(t, err)
			got = append(got, p.State().At)
		}
		require.Equal(t, slices.Compact([]time.Duration{last, math.MaxInt64}), slices.Compact(got), "frames of %v", step)
	}
}

// The part of a nanosecond that a slow rate has left over is played later, and not after a
// jump.
func TestPartOfANanosecond(t *testing.T) {
	for _, jumps := range []bool{false, true} {
		p, err := replay.NewPlayer(t.Context(), replay.Open(song(), toys, nil), replay.PlayerConfig{Rate: 0.5})
		require.NoError(t, err)
		p.Play()
		require.NoError(t, p.Tick(t.Context(), 0))
		require.NoError(t, p.Tick(t.Context(), 1))
		if jumps {
			require.NoError(t, p.Seek(t.Context(), replay.Moment{}))
		}
		require.NoError(t, p.Tick(t.Context(), 2))
		require.Equal(t, map[bool]time.Duration{false: 1, true: 0}[jumps], p.State().At)
	}
}

// A pause is counted from the last change, from Play and from each round of a loop.
func TestPausesAreCounted(t *testing.T) {
	s := &tape{}
	s.add(0)
	s.add(10 * time.Second)
	start := func(to replay.Moment) (*replay.Player, func(now time.Duration) time.Duration) {
		p, err := replay.NewPlayer(t.Context(), replay.Open(s, toys, nil), replay.PlayerConfig{From: replay.Moment{Seq: 1}, To: to, Idle: time.Second, Loop: true})
		require.NoError(t, err)
		p.Play()
		return p, func(now time.Duration) time.Duration {
			require.NoError(t, p.Tick(t.Context(), now))
			return p.State().At
		}
	}
	to := replay.Moment{Seq: 1, Offset: 900 * ms}
	p, tick := start(to)
	for i, want := range []time.Duration{0, 500 * ms, 900 * ms, 0, 500 * ms, 900 * ms, 0} { // no round has a second
		require.Equal(t, want, tick(time.Duration(i)*500*ms), "tick %d", i)
	}
	require.True(t, p.State().Playing)

	// Up to entry 2, a second without a change leads there at once.
	p, tick = start(replay.Moment{Seq: 2})
	require.Zero(t, tick(0))
	require.Equal(t, 999*ms, tick(999*ms))
	p.Pause()
	p.Play()
	require.Equal(t, 999*ms, tick(5*time.Second))
	require.Equal(t, 1998*ms, tick(5999*ms), "the count begins again with Play")
	p.Play() // it plays already
	require.Equal(t, 10*time.Second, tick(6*time.Second))
}
