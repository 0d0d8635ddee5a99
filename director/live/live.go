// Package live runs the director of a session while the session is being written.
//
// A [Director] decides with the pure state of package director, against the newest
// entry, and records what it decides: each decision is one batch of the session's
// writer. Its [Reactions] extend the batches of others: an episode may turn the
// director's events into signals, and signals and effects may set its flags.
//
// # Invariants
//
//   - A decision runs in a turn of the writer, alone. A judge is asked outside of any
//     turn, so that a slow judge delays no writer.
//   - Verdicts are recorded in the order of the questions, whichever answer comes first:
//     equal answers make equal logs.
//   - A response that was recorded is evaluated even if its caller has gone: judging
//     ends with [Config.JudgeTimeout] or with the engine.
package live

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/writer"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Config says how a director works. Its functions and its Logger are required.
type Config struct {
	// Judge answers the director's questions. With nil they are recorded as unclear.
	Judge director.Judge

	// JudgeTimeout is how long the director waits for the verdicts about a response.
	JudgeTimeout time.Duration

	// OmitText keeps the text of messages out of the log. The director's events hold
	// their digests.
	OmitText bool

	Now       func() time.Time                                   // the wall's clock
	AfterFunc func(d time.Duration, f func()) (stop func() bool) // as time.AfterFunc
	Logger    *slog.Logger
	Metrics   DirectorMetrics // nil: nothing is measured
}

// DefaultJudgeTimeout is the usual [Config.JudgeTimeout].
const DefaultJudgeTimeout = 5 * time.Second

// Director keeps one session on the script of an episode, live. A chat service
// calls Guide before the character speaks, Respond after it has spoken, and Choose when
// the user chooses. A result is durable when it is returned. The methods may be called
// from many goroutines; each call may be repeated after an error, and then returns the
// first result.
//
//	d := ses.Director()
//	err := d.Start(ctx, episode, director.Opening{})
//	guidance, err := d.Guide(ctx, director.TurnInput{Turn: 1, Text: "Hello."})
//	outcome, err := d.Respond(ctx, director.Response{Turn: 1, Text: "Sit down."})
//	choice, err := d.Choose(ctx, outcome.Choice.ID, outcome.Choice.Options[0].ID)
type Director struct {
	w        *writer.Writer
	cfg      Config
	inFlight *inFlight // shared by all directors of the session
}

// New returns the director of a writer's session.
func New(w *writer.Writer, cfg Config) *Director {
	return &Director{w: w, cfg: cfg, inFlight: &inFlight{}}
}

// With returns a director of the same session with another judge.
func (d *Director) With(judge director.Judge) *Director {
	other := *d
	other.cfg.Judge = judge
	return &other
}

// decide records the events that f decides on the newest state, if any, as one batch.
func (d *Director) decide(ctx context.Context, f func(*director.State) ([]signal.Record, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.w.Decide(ctx, func(t *writer.Turn) error {
		records, err := f(session.DirectorOf(t.Fold()))
		if err != nil || len(records) == 0 {
			return err
		}
		drafts := make([]eventlog.Draft, 0, len(records))
		for _, r := range records {
			if r.Word == session.WordMessage && d.cfg.OmitText {
				continue
			}
			drafts = append(drafts, draftOf(t.Now(), r))
		}
		_, err = t.Keep(writer.Proposal{Drafts: drafts})
		return err
	})
}

// Start begins an episode. Starting it again before anything has happened in it records
// nothing. Verdicts that are awaited, although no call of a judge is in flight, are given
// up. Errors: those of [director.State.Start].
func (d *Director) Start(ctx context.Context, e *episode.Episode, o director.Opening) (err error) {
	defer d.report(ctx, "start", d.began(), &err)
	for {
		err := d.decide(ctx, func(s *director.State) ([]signal.Record, error) {
			if begun, err := s.Begun(e, o); begun || err != nil {
				return nil, err
			}
			return s.Start(e, o)
		})
		if !errors.Is(err, director.ErrAwaiting) || d.inFlight.over() != nil {
			return err
		}
		// The program that asked the judge has ended.
		if _, err := d.expire(ctx, reasonNotAsked); err != nil && !errors.Is(err, director.ErrTurn) {
			return err
		}
	}
}

// Revise replaces the episode that is played by a changed version of it. Beats, choices
// and objectives keep their history by their id. Errors: those of
// [director.State.Revise].
func (d *Director) Revise(ctx context.Context, e *episode.Episode) (err error) {
	defer d.report(ctx, "revise", d.began(), &err)
	return d.decide(ctx, func(s *director.State) ([]signal.Record, error) { return s.Revise(e) })
}

// Guide opens a turn and returns the guidance for the character. After [Director.Choose]
// of a choice of a beat the input of the next turn is that choice, and in.Text may be
// empty: the option's label is recorded as the user's message (ADR-009,
// "Choice-as-Message Flow"). Guide waits while verdicts
// about the turn before are in flight. If they are awaited and no call of a judge is in
// flight, it gives them up. Errors: those of [director.State.Guide].
func (d *Director) Guide(ctx context.Context, in director.TurnInput) (g director.Guidance, err error) {
	defer d.report(ctx, "guide", d.began(), &err)
	for {
		err = d.decide(ctx, func(s *director.State) (records []signal.Record, err error) {
			text := in.Text
			if answer := s.ChoiceLine(); text == "" && answer != nil {
				text = answer.Content
			}
			g, records, err = s.Guide(in)
			if !slices.ContainsFunc(records, func(r signal.Record) bool { return r.Word == episode.TurnOpened }) {
				return records, err // the turn is open, and its message is recorded
			}
			return session.Utterance{Turn: in.Turn, Role: "user", Text: text}.Before(records), err
		})
		if !errors.Is(err, director.ErrAwaiting) {
			return g, err
		}
		if over := d.inFlight.over(); over != nil {
			select {
			case <-over:
				continue
			case <-ctx.Done():
				return g, ctx.Err()
			}
		}
		// The program that asked the judge has ended.
		if _, err := d.expire(ctx, reasonNotAsked); err != nil && !errors.Is(err, director.ErrTurn) {
			return g, err
		}
	}
}

// Respond records a response of the character, has it judged, and returns the outcome.
// Verdicts that have not come within [Config.JudgeTimeout] are recorded as unclear; a
// verdict that comes later is recorded and changes nothing.
func (d *Director) Respond(ctx context.Context, r director.Response) (out director.ResponseResult, err error) {
	defer d.report(ctx, "respond", d.began(), &err)
	end := d.inFlight.begin()
	judging := false
	defer func() {
		if !judging {
			end()
		}
	}()
	err = d.decide(ctx, func(s *director.State) (records []signal.Record, err error) {
		out, records, err = s.Respond(r)
		return session.Utterance{Turn: r.Turn, Attempt: out.Attempt, Role: "character", Text: r.Text}.Before(records), err
	})
	if err != nil || out.Evaluated || len(out.Questions) == 0 {
		return out, err
	}
	// A turn is evaluated even if its caller has gone: the judging ends with its timeout
	// or with the engine.
	type judged struct {
		out director.ResponseResult
		err error
	}
	done := make(chan judged, 1)
	judging = d.w.Go(func(context.Context) {
		defer end()
		out, err := d.judgeAll(context.WithoutCancel(ctx), out)
		done <- judged{out, err}
	})
	if !judging {
		return out, eventlog.ErrClosed
	}
	select {
	case j := <-done:
		return j.out, j.err
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

// expire gives up the verdicts that are awaited.
func (d *Director) expire(ctx context.Context, reason string) (out director.ResponseResult, err error) {
	missing := 0
	err = d.decide(ctx, func(s *director.State) (records []signal.Record, err error) {
		missing = len(s.Awaiting())
		out, records, err = s.Expire(reason)
		return records, err
	})
	if err == nil && d.cfg.Metrics != nil {
		d.cfg.Metrics.QuestionsGivenUp(d.w.Name(), missing)
	}
	return out, err
}

// Choose makes the user's choice. Choosing the same option again gives the
// first result. Errors: those of [director.State.Choose].
func (d *Director) Choose(ctx context.Context, choicePoint, choice string) (c director.ChoiceResult, err error) {
	defer d.report(ctx, "choose", d.began(), &err)
	err = d.decide(ctx, func(s *director.State) (records []signal.Record, err error) {
		c, records, err = s.Choose(choicePoint, choice)
		return records, err
	})
	return c, err
}

// Events iterates over the director's events from a Seq on, and then over those that are
// recorded, each once it is durable, until ctx ends or the engine closes.
func (d *Director) Events(ctx context.Context, from eventlog.Seq) iter.Seq2[session.DirectorEvent, error] {
	return func(yield func(session.DirectorEvent, error) bool) {
		for e, err := range d.w.Follow(ctx, from) {
			if err != nil {
				yield(session.DirectorEvent{}, err)
				return
			}
			if e.Kind != eventlog.KindBeat {
				continue
			}
			r, err := session.BeatOf(&e)
			if err == nil && r.Word == session.WordMessage {
				continue
			}
			if !yield(session.DirectorEvent{Seq: e.Seq, At: e.At, Record: r}, err) {
				return
			}
		}
	}
}

// Rerun plays the inputs of a recorded session in this director's session; see
// [history.Rerun].
func (d *Director) Rerun(ctx context.Context, r *replay.Replay, cfg history.RerunConfig) (history.RerunResult, error) {
	return history.Rerun(ctx, r, rerunTarget{d}, cfg)
}

// rerunTarget is a director as a rerun uses it.
type rerunTarget struct{ d *Director }

func (t rerunTarget) Name() string           { return t.d.w.Name() }
func (t rerunTarget) Reach(at time.Duration) { t.d.w.Clock().Reach(at) }

func (t rerunTarget) Decide(ctx context.Context, f func(*director.State) ([]signal.Record, error)) error {
	return t.d.decide(ctx, f)
}

func (t rerunTarget) Respond(ctx context.Context, judge director.Judge, r director.Response) error {
	_, err := t.d.With(judge).Respond(ctx, r)
	return err
}
