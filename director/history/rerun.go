package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// RerunConfig says how a recorded session is played again.
type RerunConfig struct {
	// Mode says where verdicts come from.
	Mode RerunMode
	// Episode is played in the place of the recorded one of the same id. Nil
	// plays what was recorded.
	Episode *episode.Episode
	// Judge is asked in mode [RerunLive].
	Judge director.Judge
}

// RerunResult is the outcome of playing a session again.
type RerunResult struct {
	Turns int // the number of turns that were opened
	// Stopped is a [*StoppedError] if the rerun ended before the recording did, nil
	// otherwise.
	Stopped error
}

// StoppedError says that the next recorded input cannot happen in the new session: the
// story has changed, and the user has not spoken in the new one yet.
type StoppedError struct {
	Turn int
	Seq  eventlog.Seq // of the recorded session
	Err  error
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("sajou: turn %d cannot be played on from entry %d: %v", e.Turn, e.Seq, e.Err)
}

// Unwrap returns the director's refusal.
func (e *StoppedError) Unwrap() error { return e.Err }

// ErrEpisodeID is wrapped by the error about an episode that the session does not play.
var ErrEpisodeID = errors.New("sajou: the session plays no episode of that id")

// Target is the live director of the session that a rerun plays in. Package
// director/live has it.
type Target interface {
	Decider
	// Name returns the session's name.
	Name() string
	// Respond records a response and has it judged.
	Respond(ctx context.Context, judge director.Judge, r director.Response) error
}

// Decider records what a director decides in a session.
type Decider interface {
	// Reach lets session time come to an instant, if it has not passed it.
	Reach(at time.Duration)
	// Decide records the events that f decides on the newest state, if any, as one
	// batch.
	Decide(ctx context.Context, f func(*director.State) ([]signal.Record, error)) error
}

// Rerun plays the inputs of a recorded session (what was said and chosen) in another
// session, which has no episode yet, at the recorded session times if its time is not
// the wall clock's. Its rules hear the recorded signals and effects, which are not
// recorded again. The same episode in mode [RerunStrict] gives the same events.
// [Differences] compares the two sessions.
//
// If a recorded choice is not open now, its label is what the user says. Errors:
// [*PromptError], [ErrNoText], [ErrEpisodeID], [ErrNoEpisode].
func Rerun(ctx context.Context, r *replay.Replay, to Target, cfg RerunConfig) (RerunResult, error) {
	again := rerun{RerunConfig: cfg, decide: to.Decide, respondLive: to.Respond}
	if err := again.checkNew(ctx, to.Name()); err != nil {
		return RerunResult{}, err
	}
	if cfg.Mode == RerunLive && cfg.Judge == nil {
		return RerunResult{}, errors.New("sajou: no judge to ask again")
	}
	begun := false
	for in, err := range inputs(ctx, r, true, cfg.Episode) {
		if err != nil {
			return again.result, err
		}
		begun = begun || in.episode != nil
		if in.word == episode.EpisodeStarted && cfg.Episode != nil && in.episode.ID != cfg.Episode.ID && !again.found {
			return again.result, fmt.Errorf("%w: it is %q, and the session plays %q", ErrEpisodeID, cfg.Episode.ID, in.episode.ID)
		}
		to.Reach(in.at)
		err := again.play(ctx, in)
		switch {
		case err == nil:
		case cannotHappen(err):
			again.result.Stopped = &StoppedError{in.turn, in.seq, err}
			return again.result, nil
		default:
			return again.result, err
		}
	}
	if !begun {
		return again.result, fmt.Errorf("%w in session %q", ErrNoEpisode, r.Name())
	}
	return again.result, nil
}

// cannotHappen reports whether an error is the director's refusal.
func cannotHappen(err error) bool {
	for _, refusal := range []error{director.ErrTurn, director.ErrAwaiting, director.ErrChoicePending} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

type rerun struct {
	RerunConfig
	decide      func(ctx context.Context, f func(*director.State) ([]signal.Record, error)) error // as [Decider]
	respondLive func(context.Context, director.Judge, director.Response) error
	result      RerunResult
	found       bool // the given episode was recorded
	label       string

	// other asks a judge in mode RerunStrict about a question that was not recorded; nil:
	// that is a [PromptError].
	other func(context.Context, director.Question) (director.Verdict, error)
	// refused, unless nil, is called for each choice that is not open.
	refused func(*input, error)
}

// checkNew refuses a session that plays an episode already.
func (a *rerun) checkNew(ctx context.Context, name string) error {
	return a.decide(ctx, func(s *director.State) ([]signal.Record, error) {
		if s.Episode() != nil {
			return nil, fmt.Errorf("sajou: session %q plays an episode already", name)
		}
		return nil, nil
	})
}

func (a *rerun) play(ctx context.Context, in *input) error {
	switch in.word {
	case episode.EpisodeStarted:
		return a.start(ctx, in)
	case episode.TurnOpened, episode.GuidanceIssued:
		return a.guide(ctx, in)
	case episode.ResponseRecorded:
		return a.respond(ctx, in)
	case episode.ChoiceSelected:
		return a.choose(ctx, in)
	case episode.VerdictRecorded:
		switch {
		case a.Mode == RerunLive:
			return nil
		case in.verdict == nil:
			return a.late(ctx, in)
		default:
			return a.judge(ctx, in.verdict)
		}
	case episode.EpisodeRevised:
		if a.Episode != nil && a.Episode.ID == in.episode.ID {
			return nil // the given episode is in force from the beginning
		}
		return a.settled(ctx, func(s *director.State) ([]signal.Record, error) { return s.Revise(in.episode) })
	case "":
		return a.decide(ctx, func(s *director.State) ([]signal.Record, error) {
			return s.ExternalEvent(in.outside.kind, in.outside.name, in.outside.payload, fmt.Sprintf("%v:%d", in.outside.kind, in.seq))
		})
	}
	return nil
}

func (a *rerun) start(ctx context.Context, in *input) error {
	e := in.episode
	if a.Episode != nil && a.Episode.ID == e.ID {
		e, a.found = a.Episode, true
	}
	var o director.Opening
	if energy := in.record.Value.TextOf("energy"); energy != in.episode.Energy {
		o.Energy = energy
	}
	flags, _ := in.record.Value.Get("flags")
	for f := range flags.Elements() {
		if name, ok := f.Text(); ok {
			o.Flags = append(o.Flags, name)
		}
	}
	a.label = ""
	return a.settled(ctx, func(s *director.State) ([]signal.Record, error) { return s.Start(e, o) })
}

// settled records a decision that has to wait while verdicts are awaited. If the
// recording has none, it gives them up first.
func (a *rerun) settled(ctx context.Context, f func(*director.State) ([]signal.Record, error)) error {
	err := a.decide(ctx, f)
	if !errors.Is(err, director.ErrAwaiting) {
		return err
	}
	err = a.decide(ctx, func(s *director.State) ([]signal.Record, error) {
		_, records, err := s.Expire(unanswered)
		return records, err
	})
	if err != nil {
		return err
	}
	return a.decide(ctx, f)
}

func (a *rerun) guide(ctx context.Context, in *input) error {
	text, err := in.text()
	if err != nil {
		return err
	}
	if in.word == episode.TurnOpened && in.record.Value.TextOf("input") == "choice" && text == "" {
		text = a.label
	}
	err = a.settled(ctx, func(s *director.State) ([]signal.Record, error) {
		given := director.TurnInput{Turn: in.turn, Text: text}
		if answer := s.ChoiceLine(); answer != nil && text == a.label {
			// The user chose here as well; a typed text stays as it was.
			if given.Text = ""; in.said != "" {
				given.Text = answer.Content
			}
		}
		_, records, err := s.Guide(given)
		return session.Utterance{Turn: given.Turn, Role: "user", Text: given.Text}.Before(records), err
	})
	if err == nil && in.word == episode.TurnOpened {
		a.result.Turns++
	}
	return err
}

func (a *rerun) choose(ctx context.Context, in *input) error {
	point := in.record.Value.TextOf("choice_point")
	a.label = in.record.Value.TextOf("label")
	err := a.settled(ctx, func(s *director.State) ([]signal.Record, error) {
		_, records, err := s.Choose(point, in.record.Value.TextOf("choice"))
		return records, err
	})
	if errors.Is(err, director.ErrNotFound) || errors.Is(err, director.ErrNotOpen) || errors.Is(err, director.ErrConflict) {
		if a.refused != nil {
			a.refused(in, err)
		}
		return nil // the choice is not open in this story: the next input says its label
	}
	return err
}

// late records a verdict that came too late in the recording.
func (a *rerun) late(ctx context.Context, in *input) error {
	v := recordedVerdict(in.seq, in.record.Value).Verdict
	v.Try = math.MaxInt // a try that no caller waits for
	return a.decide(ctx, func(s *director.State) ([]signal.Record, error) {
		_, records, err := s.Judge(v)
		if errors.Is(err, director.ErrNotFound) || errors.Is(err, director.ErrTurn) {
			return nil, nil // its subject does not exist in this story
		}
		return records, err
	})
}

func (a *rerun) respond(ctx context.Context, in *input) error {
	text, err := in.text()
	if err != nil {
		return err
	}
	r := director.Response{Turn: in.turn, Attempt: in.attempt, Text: text, Before: in.before}
	if a.Mode == RerunLive {
		return a.respondLive(ctx, a.Judge, r)
	}
	var out director.ResponseResult
	err = a.decide(ctx, func(s *director.State) (records []signal.Record, err error) {
		if out, records, err = s.Respond(r); err == nil && a.Mode == RerunStrict && a.other == nil {
			err = in.check(out.Questions)
		}
		return session.Utterance{Turn: r.Turn, Attempt: out.Attempt, Role: "character", Text: r.Text}.Before(records), err
	})
	if err != nil {
		return err
	}
	for _, q := range out.Questions {
		if was, asked := in.prompts[q.Subject]; asked && (a.other == nil || was == q.Digest) {
			continue // its verdict is one of the next inputs
		}
		for again := true; again; q.Try++ {
			again = false
			v := director.Verdict{Turn: q.Turn, Attempt: q.Attempt, Subject: q.Subject, Failure: unanswered}
			if a.other != nil {
				var err error
				if v, err = a.other(ctx, q); err != nil {
					return err
				}
				v.Turn, v.Attempt, v.Subject, v.Try = q.Turn, q.Attempt, q.Subject, q.Try
			}
			err := a.decide(ctx, func(s *director.State) (records []signal.Record, err error) {
				_, records, err = s.Judge(v)
				again = director.AskedAgain(records)
				return records, err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// check compares questions with those that were recorded.
func (in *input) check(questions []director.Question) error {
	for _, q := range questions {
		if was := in.prompts[q.Subject]; was != q.Digest {
			return &PromptError{q.Turn, q.Attempt, q.Subject, was, q.Digest, in.rebuilt}
		}
	}
	return nil
}

// judge gives a recorded verdict to the director, if that awaits it.
func (a *rerun) judge(ctx context.Context, v *RecordedVerdict) error {
	return a.decide(ctx, func(s *director.State) ([]signal.Record, error) {
		if v.Turn != s.Turn() || !slices.Contains(s.Awaiting(), v.Subject) {
			return nil, nil
		}
		_, records, err := s.Judge(v.Verdict)
		if err == nil && !v.Again && v.Failure != "" && director.AskedAgain(records) {
			// It was given up without an answer, and with it all that were awaited.
			_, records, err = s.Expire(v.Failure)
		}
		return records, err
	})
}

// unanswered is the recorded reason of a verdict that the recording does not have. It
// is part of the format.
const unanswered = "no verdict was recorded"
