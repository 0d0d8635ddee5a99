package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
)

func (a *app) playCommand() *cobra.Command {
	var (
		from, to  string
		rate, fps float64
		idle      time.Duration
		onStage   bool
		sceneFile string
	)
	cmd := &cobra.Command{
		Use:   "play [SESSION] [RANGE]",
		Short: "Play the commands that a renderer gets, or the stage itself",
		Long: `Play runs a session, or a range of it, and writes the commands that its
choreographies give to a renderer, each at its time: start, update, complete,
execute and interrupt. With -o jsonl a command is an object with t (ms of session
time), kind, performance, the fields of its kind, and seq, the entry it comes
at or after.

--rate 2 plays twice as fast, --rate 0 as fast as possible. Pauses are cut to
--idle. While something moves there are --fps updates a second of session time;
--fps 0 leaves only those that come at entries away too. Where no entry comes
for five minutes the updates pause until one does, and what begins and ends
meanwhile is shown. Without an end everything is played until it is over.

--stage shows what is seen instead. On a terminal it moves in place: space stops
and goes on, ← and → go an entry back and on, + and - change the rate, q ends.
Elsewhere the pictures are written one after another as text of COLUMNS by LINES,
each with a line above that says the moment, and a blank line between them; one
that looks like the one before is left out. --scene shows it with another scene.`,
		Example: `  sajou-replay play
  sajou-replay play --rate 0 --fps 0
  sajou-replay play --from 100 --to perf:p-120-1 --rate 4 -o jsonl
  sajou-replay play --stage
  sajou-replay play --stage --rate 0 --fps 2 | less`,
		Args: between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !(rate >= 0) || math.IsInf(rate, 0):
				return misuse("--rate %v: it is 0 or more", rate)
			case !(fps >= 0) || fps > 1000:
				return misuse("--fps %v: it is from 0 to 1000", fps)
			case idle < 0:
				return misuse("--idle %v: it is 0 or more", idle)
			case onStage && a.format != "text":
				return misuse("--stage draws for people; without it, -o %s writes the commands", a.format)
			case sceneFile != "" && !onStage:
				return misuse("--scene is for --stage")
			case a.format == "json" && rate > 0:
				return misuse("one JSON array is whole only at its end; use -o jsonl, or --rate 0")
			}
			session, rest, err := a.splitArgs(args)
			if err != nil {
				return err
			}
			text, err := rangeText(rest, from, to)
			if err != nil {
				return err
			}
			parsed, err := replay.ParseRange(text)
			if err != nil {
				return err
			}
			sc, err := a.readScene(sceneFile)
			if err != nil {
				return err
			}
			t, err := a.target(session)
			if err != nil {
				return err
			}
			defer t.Close()
			first, last, err := t.travel.ResolveRange(cmd.Context(), parsed)
			if err != nil {
				return err
			}
			if parsed.To == nil {
				// To the end means until everything has come to its end.
				if last, err = t.rest(cmd.Context(), last); err != nil {
					return err
				}
			}
			p := pace{rate: rate, fps: fps, idle: idle}
			if onStage {
				s := t.stagedWith(sc)
				over, err := s.span(cmd.Context(), first, last)
				if err != nil {
					return err
				}
				return a.playStage(cmd.Context(), s, over, p)
			}
			return a.play(cmd.Context(), t, first, last, p)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "address to begin at")
	cmd.Flags().StringVar(&to, "to", "", "address to end at")
	cmd.Flags().Float64Var(&rate, "rate", 1, "how fast; 0 does not wait at all")
	cmd.Flags().Float64Var(&fps, "fps", 30, "updates a second of session time; 0 for none")
	cmd.Flags().DurationVar(&idle, "idle", 2*time.Second, "longest pause; 0 cuts all of them")
	cmd.Flags().BoolVar(&onStage, "stage", false, "show the stage, not the commands")
	cmd.Flags().StringVar(&sceneFile, "scene", "", "file of a scene to show it with in place of the recorded ones")
	_ = cmd.MarkFlagFilename("scene", "json", "zip")
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

func rangeText(rest []string, from, to string) (string, error) {
	switch {
	case len(rest) > 1:
		return "", misuse("one range is enough, as in play SESSION 10..20")
	case len(rest) == 1 && (from != "" || to != ""):
		return "", misuse("the range %s and --from, --to say the same; leave one out", rest[0])
	case len(rest) == 1:
		return rest[0], nil
	}
	return from + ".." + to, nil
}

// rest returns the moment at which nothing is under way any more. What never
// comes to an end by itself ends with the last entry.
func (t *target) rest(ctx context.Context, last replay.Moment) (replay.Moment, error) {
	fold, err := t.travel.At(ctx, last)
	if err != nil {
		return last, err
	}
	began := fold.At()
	for range 1_000_000 {
		if err := ctx.Err(); err != nil {
			return last, err
		}
		next, ok := nextBoundary(fold)
		if !ok || next == math.MaxInt64 || next < fold.At() {
			break
		}
		before := fold.At()
		fold.Advance(next)
		if again := fold.At(); again == before && next == before {
			break
		}
	}
	last.Offset = fold.At() - began
	return last, nil
}

// pace says how fast commands are shown.
type pace struct {
	rate, fps float64
	idle      time.Duration
}

func (a *app) play(ctx context.Context, t *target, first, last replay.Moment, p pace) error {
	var frame time.Duration
	if p.fps > 0 {
		frame = time.Duration(float64(time.Second) / p.fps)
	}
	next, stop := iter.Pull2(t.log.Entries(ctx, max(first.Seq, 1)))
	defer stop()
	s := &player{pace: p, o: a.output(), next: next, seq: first.Seq, first: first}
	if err := s.peek(); err != nil {
		return err
	}
	for from := first; ; {
		err := s.run(ctx, t.travel, from, last, frame)
		if err == nil {
			break
		}
		if !errors.Is(err, errStill) {
			return err
		}
		// On to the next entry, or to the end, without frames.
		rest, to := replay.Moment{Seq: s.seq, Offset: s.still + 1 - s.entryAt}, last
		if rest.Seq < last.Seq {
			to = replay.Moment{Seq: rest.Seq, Offset: s.ahead.At - s.entryAt}
		}
		if rest.Compare(to) <= 0 {
			if err := s.run(ctx, t.travel, rest, to, 0); err != nil {
				return err
			}
		}
		if to == last {
			break
		}
		from = replay.Moment{Seq: rest.Seq + 1}
	}
	if s.o.items == 0 {
		fmt.Fprintf(a.stderr, "sajou-replay: no commands between %v and %v; are there choreographies? see: sajou-replay define ls\n", first, last)
	}
	return s.o.end()
}

// framesAfter is how long after an entry updates are shown. An animation that
// goes on until something interrupts it must not make a night of frames.
const framesAfter = 5 * time.Minute

// errStill ends a run in which nothing but updates has come for framesAfter.
var errStill = errors.New("nothing but updates for long")

// player shows commands at their time. An error ends the playing through the
// context.
type player struct {
	ctx    context.Context // a sink's calls have none; it lives as long as one run
	cancel context.CancelCauseFunc
	pace   pace
	o      *output
	err    error

	began bool
	at    time.Duration // session time of the command before

	// The entries, one ahead, tell at which of them a command comes.
	next    func() (eventlog.Entry, error, bool)
	ahead   *eventlog.Entry
	seq     eventlog.Seq
	entryAt time.Duration // of seq

	first  replay.Moment // where the playing began
	frames bool          // updates are shown in this run
	still  time.Duration // when they were too many
}

var _ choreography.CommandSink = (*player)(nil)

func (s *player) OnActionStart(c choreography.ActionStart) { s.show(c.Command()) }
func (s *player) OnActionUpdate(c choreography.ActionUpdate) {
	if s.frames && !s.tooStill(c.At) {
		s.show(c.Command())
	}
}
func (s *player) OnActionComplete(c choreography.ActionComplete) { s.show(c.Command()) }
func (s *player) OnActionExecute(c choreography.ActionExecute)   { s.show(c.Command()) }
func (s *player) OnInterrupt(c choreography.Interrupt)           { s.show(c.Command()) }

// run shows the commands from one moment to another. Where updates get too many
// it ends with errStill.
func (s *player) run(ctx context.Context, travel *replay.Replay, from, to replay.Moment, frame time.Duration) error {
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	defer s.cancel(nil)
	s.err, s.frames = nil, frame > 0
	err := travel.Commands(s.ctx, from, to, frame, s)
	if s.err != nil {
		return s.err
	}
	return err
}

// tooStill reports, and ends the run, if an update comes too long after the
// last entry, or after the beginning where that is later.
func (s *player) tooStill(at time.Duration) bool {
	if s.err != nil {
		return true
	}
	if s.err = s.pass(at); s.err == nil {
		since := s.entryAt
		if s.seq == s.first.Seq {
			since += s.first.Offset
		}
		if at-since <= framesAfter {
			return false
		}
		s.still, s.err = at, errStill
	}
	s.cancel(s.err)
	return true
}

func (s *player) show(c choreography.Command) {
	if s.err != nil {
		return
	}
	if s.err = s.wait(c.At); s.err == nil {
		s.err = s.write(&c)
	}
	if s.err != nil {
		s.cancel(s.err)
	}
}

// wait lets the time pass that lies between the command before and this one.
func (s *player) wait(at time.Duration) error {
	pause := at - s.at
	began := s.began
	s.at, s.began = at, true
	if !began || s.pace.rate == 0 || pause <= 0 {
		return s.ctx.Err()
	}
	if scaled := float64(pause) / s.pace.rate; scaled < float64(s.pace.idle) {
		pause = time.Duration(scaled)
	} else {
		pause = s.pace.idle
	}
	if err := s.o.Flush(); err != nil {
		return err
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// peek reads the entry ahead.
func (s *player) peek() error {
	e, err, ok := s.next()
	if !ok {
		s.ahead = nil
		return nil
	}
	s.ahead = &e
	return err
}

// pass takes the entries up to a time as gone by.
func (s *player) pass(at time.Duration) error {
	for s.ahead != nil && s.ahead.At <= at {
		s.seq, s.entryAt = s.ahead.Seq, s.ahead.At
		if err := s.peek(); err != nil {
			return err
		}
	}
	return nil
}

func (s *player) write(c *choreography.Command) error {
	if err := s.pass(c.At); err != nil {
		return err
	}
	if s.o.format == "text" {
		return s.o.item(commandText(s.seq, c), nil)
	}
	line, err := marshal(c)
	if err != nil {
		return err
	}
	line = append(line[:len(line)-1], fmt.Sprintf(`,"seq":%d}`, s.seq)...)
	return s.o.item("", line)
}

// commandText writes a command as one line of a table.
func commandText(seq eventlog.Seq, c *choreography.Command) string {
	var detail string
	switch c.Kind {
	case choreography.CommandInterrupt:
		detail = fmt.Sprintf("%s by %s", c.CorrelationID, c.InterruptedBy)
	case choreography.CommandStart:
		detail = fmt.Sprintf("%s %s %vms %s %s", c.Action, c.EntityRef, c.Duration, c.Easing, paramsText(c.Params))
	case choreography.CommandUpdate:
		detail = fmt.Sprintf("%s %s %3.0f%%", c.Action, c.EntityRef, c.Progress*100)
	default:
		detail = fmt.Sprintf("%s %s %s", c.Action, c.EntityRef, paramsText(c.Params))
	}
	where := "      "
	if seq > 0 {
		where = fmt.Sprintf("%6d", seq)
	}
	return strings.TrimRight(fmt.Sprintf("%s  %s  %-10s %-9s  %s", where, clockText(c.At), c.PerformanceID, c.Kind, printable(detail)), " ")
}

func paramsText(params map[string]any) string {
	if len(params) == 0 {
		return ""
	}
	data, err := marshal(params)
	if err != nil {
		return ""
	}
	return clip(string(data), 70)
}
