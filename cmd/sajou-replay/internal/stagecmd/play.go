// Package stagecmd has the commands about choreographies and the stage: play,
// render, rehearse, lint and define.
package stagecmd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/stage/debugger"
)

// Play returns the command "play".
func Play(a *cli.App) *cobra.Command {
	var (
		from, to  string
		rate, fps float64
		idle      time.Duration
		onStage   bool
		sceneFile string
		defines   cli.Definitions
		pauseOn   string
		follow    bool
	)
	cmd := &cobra.Command{
		Use:   "play [SESSION] [RANGE]",
		Short: "Play the commands of a renderer, or the stage",
		Long: `Play plays a session, or a range of it, and writes the commands that its
choreographies send to a renderer, each at its time: start, update, complete,
execute and interrupt. With -o jsonl a command is an object with t (ms of session
time), kind, performance, the fields of its kind, and seq, the newest entry at
that time. A range without an end is played until every performance has ended.

--rate 2 plays at twice the speed, --rate 0 without waiting. --idle limits the
length of a pause. --fps is the number of updates in a second of session time
while something moves; --fps 0 writes no updates. If no entry follows for five
minutes, play omits the updates until the next entry, and writes only the other
commands.

--stage opens the debugger in the terminal: the stage, the entries around the
cursor, a part of the state, the running performances and the board, with keys to
step by entry, boundary, frame, performance, beat and correlation, to run to an
expression forwards and backwards, to search, to compare two moments and to name
them; ? lists the keys. A window that becomes narrower leaves out the board first,
then the performances, the state, the entries and the scrub bar. --pause-on pauses
where an expression becomes true. --follow shows the entries that another process
records, and opens the store once a second for it; it copies the session into
memory. --scene uses the scene of a file.

--stage -o text writes the frames as text of COLUMNS by LINES, each below a line
with its moment and with a blank line between them; frames equal to the one before
are left out. It needs no terminal.

` + cli.DefinitionsHelp,
		Example: `  sajou-replay play
  sajou-replay play --rate 0 --fps 0
  sajou-replay play --from 30 --to perf:p-36-1 --rate 4 -o jsonl
  sajou-replay play 30..40 --stage -o text --rate 0 --fps 2
  sajou-replay play --rate 0 --fps 0 --define choreographies.json`,
		Args: cli.Between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !(rate >= 0) || math.IsInf(rate, 0):
				return cli.Misuse("--rate %v: must be 0 or more", rate)
			case !(fps >= 0) || fps > 1000:
				return cli.Misuse("--fps %v: must be from 0 to 1000", fps)
			case idle < 0:
				return cli.Misuse("--idle %v: must be 0 or more", idle)
			case onStage && a.Format != "text":
				return cli.Misuse("--stage writes text only; omit -o %s, or omit --stage to write commands", a.Format)
			case sceneFile != "" && !onStage:
				return cli.Misuse("--scene needs --stage")
			case sceneFile != "" && len(defines) > 0:
				return cli.Misuse("--scene and --define exclude each other; a file of --define may hold a scene")
			case follow && len(defines) > 0:
				return cli.Misuse("--follow and --define exclude each other; omit one")
			case (pauseOn != "" || follow) && !onStage:
				return cli.Misuse("--pause-on and --follow need --stage")
			case follow && sceneFile != "":
				return cli.Misuse("--follow and --scene exclude each other; omit one")
			case onStage && !cmd.Flags().Changed("output") && !a.IsInteractive():
				return errNoTerminal
			case onStage && cmd.Flags().Changed("output") && (pauseOn != "" || follow):
				return cli.Misuse("--pause-on and --follow need the terminal; omit -o text")
			case a.Format == "json" && rate > 0:
				return cli.Misuse("-o json writes one array, which is complete only at the end; use -o jsonl, or --rate 0")
			}
			session, rest, err := a.SplitArgs(args)
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
			sc, err := a.ReadScene(cmd.Context(), sceneFile)
			if err != nil {
				return err
			}
			var pause *where.Expression
			if pauseOn != "" {
				p, err := answer.Compile(pauseOn)
				if err != nil {
					return err
				}
				pause = &p.Expression
			}
			t, err := a.OpenSession(session)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := a.SeeThrough(cmd.Context(), t, defines); err != nil {
				return err
			}
			if err := t.FoldFor(pause); err != nil {
				return err
			}
			first, last, err := t.Travel.ResolveRange(cmd.Context(), parsed)
			if err != nil {
				return err
			}
			if parsed.To == nil {
				// Without an end, play until every performance has ended.
				if last, err = t.Travel.Rest(cmd.Context(), last); err != nil {
					return err
				}
			}
			p := Pace{Rate: rate, fps: fps, Idle: idle}
			switch {
			case onStage && cmd.Flags().Changed("output"):
				return writeStage(cmd.Context(), a, t.Reel(sc), first, last, p)
			case onStage:
				travel := t.Reel(sc).Travel()
				t.Anchor(travel)
				var live *liveLog
				if follow {
					if live, travel, err = followLog(cmd.Context(), a, t); err != nil {
						return err
					}
				}
				return debugStage(cmd.Context(), a, t, travel, debugger.Config{
					From: first, To: last, Rate: p.Rate, Frame: p.frame(), Idle: p.Idle, PauseOn: pauseOn,
				}, live)
			}
			return PlayCommands(cmd.Context(), a, t, first, last, p)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "begin at `ADDR`")
	cmd.Flags().StringVar(&to, "to", "", "end at `ADDR`")
	cmd.Flags().Float64Var(&rate, "rate", 1, "speed `FACTOR`; 0 plays without waiting")
	cmd.Flags().Float64Var(&fps, "fps", 30, "`N` updates in a second of session time; 0 writes none")
	cmd.Flags().DurationVar(&idle, "idle", 2*time.Second, "longest pause; 0 removes every pause")
	cmd.Flags().BoolVar(&onStage, "stage", false, "draw the stage instead of writing commands")
	cmd.Flags().StringVar(&sceneFile, "scene", "", "with --stage, use the scene of `FILE` instead of the recorded ones")
	cmd.Flags().StringVar(&pauseOn, "pause-on", "", "with --stage, pause where `EXPR` becomes true")
	cmd.Flags().BoolVar(&follow, "follow", false, "with --stage, show entries that follow")
	_ = cmd.MarkFlagFilename("scene", "json", "yaml", "yml", "zip")
	defines.Flag(cmd)
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func rangeText(rest []string, from, to string) (string, error) {
	switch {
	case len(rest) > 1:
		return "", cli.Misuse("too many arguments: %q; play takes one range, as in play SESSION 10..20", rest[1])
	case len(rest) == 1 && (from != "" || to != ""):
		return "", cli.Misuse("the range %s excludes --from and --to; omit one", rest[0])
	case len(rest) == 1:
		return rest[0], nil
	}
	return from + ".." + to, nil
}

// PlayCommands prints the commands of the entries from first to last at the given pace.
func PlayCommands(ctx context.Context, a *cli.App, t *cli.OpenedSession, first, last replay.Moment, p Pace) error {
	var frame time.Duration
	if p.fps > 0 {
		frame = time.Duration(float64(time.Second) / p.fps)
	}
	next, stop := iter.Pull2(t.Travel.Entries(ctx, max(first.Seq, 1)))
	defer stop()
	s := &commandPrinter{pace: p, o: a.Output(), next: next, seq: first.Seq, first: first}
	if err := s.peek(); err != nil {
		return err
	}
	for from := first; ; {
		err := s.run(ctx, t.Travel, from, last, frame)
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
			if err := s.run(ctx, t.Travel, rest, to, 0); err != nil {
				return err
			}
		}
		if to == last {
			break
		}
		from = replay.Moment{Seq: rest.Seq + 1}
	}
	if s.o.Items == 0 {
		fmt.Fprintf(a.Stderr, "sajou-replay: no commands between %v and %v; list the choreographies with: sajou-replay define ls\n", first, last)
	}
	return s.o.End()
}

// errStill ends a run in which nothing but updates has come for [replay.MaxStill].
var errStill = errors.New("nothing but updates for long")

// commandPrinter is a sink that prints commands at their time. A sink cannot return an
// error, so an error cancels the context of the run.
type commandPrinter struct {
	ctx    context.Context // of the run; the methods of a sink receive none
	cancel context.CancelCauseFunc
	pace   Pace
	o      *cli.Output
	err    error

	began bool
	at    time.Duration // session time of the last command

	// The entries, read one ahead, to find the newest entry at a command.
	next    func() (eventlog.Entry, error, bool)
	ahead   *eventlog.Entry
	seq     eventlog.Seq
	entryAt time.Duration // of seq

	first  replay.Moment // where the playing began
	frames bool          // updates are shown in this run
	still  time.Duration // session time at which the run ended with errStill
}

var _ choreography.CommandSink = (*commandPrinter)(nil)

func (s *commandPrinter) OnActionStart(c choreography.ActionStart) { s.show(c.Command()) }

func (s *commandPrinter) OnActionUpdate(c choreography.ActionUpdate) {
	if s.frames && !s.tooStill(c.At) {
		s.show(c.Command())
	}
}

func (s *commandPrinter) OnActionComplete(c choreography.ActionComplete) { s.show(c.Command()) }

func (s *commandPrinter) OnActionExecute(c choreography.ActionExecute) { s.show(c.Command()) }

func (s *commandPrinter) OnInterrupt(c choreography.Interrupt) { s.show(c.Command()) }

// run shows the commands from one moment to another. It ends with errStill if
// only updates came for [replay.MaxStill].
func (s *commandPrinter) run(ctx context.Context, travel *replay.Replay, from, to replay.Moment, frame time.Duration) error {
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	defer s.cancel(nil)
	s.err, s.frames = nil, frame > 0
	err := travel.Commands(s.ctx, from, to, frame, s)
	if s.err != nil {
		return s.err
	}
	return err
}

// tooStill reports whether an update comes more than [replay.MaxStill] after the last
// entry, or after the beginning if that is later. If so it ends the run.
func (s *commandPrinter) tooStill(at time.Duration) bool {
	if s.err != nil {
		return true
	}
	if s.err = s.pass(at); s.err == nil {
		since := s.entryAt
		if s.seq == s.first.Seq {
			since += s.first.Offset
		}
		if at-since <= replay.MaxStill {
			return false
		}
		s.still, s.err = at, errStill
	}
	s.cancel(s.err)
	return true
}

func (s *commandPrinter) show(c choreography.Command) {
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

// wait waits for the time between the last command and this one.
func (s *commandPrinter) wait(at time.Duration) error {
	pause := at - s.at
	began := s.began
	s.at, s.began = at, true
	if !began || s.pace.Rate == 0 || pause <= 0 {
		return s.ctx.Err()
	}
	if err := s.o.Flush(); err != nil {
		return err
	}
	return s.pace.wait(s.ctx, pause)
}

// peek reads the next entry.
func (s *commandPrinter) peek() error {
	e, err, ok := s.next()
	if !ok {
		s.ahead = nil
		return nil
	}
	s.ahead = &e
	return err
}

// pass advances over the entries up to a time.
func (s *commandPrinter) pass(at time.Duration) error {
	for s.ahead != nil && s.ahead.At <= at {
		s.seq, s.entryAt = s.ahead.Seq, s.ahead.At
		if err := s.peek(); err != nil {
			return err
		}
	}
	return nil
}

func (s *commandPrinter) write(c *choreography.Command) error {
	if err := s.pass(c.At); err != nil {
		return err
	}
	if s.o.Format == "text" {
		return s.o.Item(cli.CommandText(s.seq, c), nil)
	}
	line, err := cli.Marshal(c)
	if err != nil {
		return err
	}
	line = append(line[:len(line)-1], fmt.Sprintf(`,"seq":%d}`, s.seq)...)
	return s.o.Item("", line)
}
