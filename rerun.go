package sajou

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// RerunConfig says how a recorded session is run again.
type RerunConfig struct {
	// Mode says where verdicts come from.
	Mode RerunMode
	// Episode is played in the place of the recorded one of the same id. Nil
	// plays what was recorded.
	Episode *director.Episode
	// Judge is asked in mode [RerunLive].
	Judge Judge
}

// Reran is what came of running a session again.
type Reran struct {
	Turns int // that were opened
	// Stopped says why it ended before the recording did, nil if it did not: a
	// [StoppedError].
	Stopped error
}

// StoppedError says that what was recorded next cannot happen in the new
// session: the story has become another, in which the user has not spoken yet.
type StoppedError struct {
	Turn int
	Seq  eventlog.Seq // of the recorded session
	Err  error
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("sajou: turn %d cannot be played on from entry %d: %v", e.Turn, e.Seq, e.Err)
}

// Unwrap returns why.
func (e *StoppedError) Unwrap() error { return e.Err }

// ErrEpisodeID says that a session does not play the episode that was given.
var ErrEpisodeID = errors.New("sajou: the session plays no episode of that id")

// Rerun plays what was said and chosen in the recorded session through the
// director of another one, which has no episode yet, at the recorded session times
// if its time is not the wall clock's. Signals and effects are heard by its rules
// and not recorded again. The same episode in mode [RerunStrict] gives the
// same events. [Differences] tells what became different.
//
// Where a choice that was made is not open now, its label is what the user says.
// Errors: [PromptError], [ErrNoText], [ErrEpisodeID], [ErrNoEpisode].
func (r *Replay) Rerun(ctx context.Context, to *Session, cfg RerunConfig) (Reran, error) {
	if err := r.exists(); err != nil {
		return Reran{}, err
	}
	again := rerun{RerunConfig: cfg, to: to, director: to.Director()}
	if err := again.fresh(); err != nil {
		return Reran{}, err
	}
	if cfg.Mode == RerunLive && cfg.Judge == nil {
		return Reran{}, errors.New("sajou: no judge to ask again")
	}
	begun := false
	for m, err := range r.moves(ctx, true, cfg.Episode) {
		if err != nil {
			return again.reran, err
		}
		begun = begun || m.episode != nil
		if m.word == director.EpisodeStarted && cfg.Episode != nil && m.episode.ID != cfg.Episode.ID && !again.found {
			return again.reran, fmt.Errorf("%w: it is %q, and the session plays %q", ErrEpisodeID, cfg.Episode.ID, m.episode.ID)
		}
		to.clock.reach(m.at)
		err := again.move(ctx, m)
		switch {
		case err == nil:
		case cannotHappen(err):
			again.reran.Stopped = &StoppedError{m.turn, m.seq, err}
			return again.reran, nil
		default:
			return again.reran, err
		}
	}
	if !begun {
		return again.reran, fmt.Errorf("%w in session %q", ErrNoEpisode, r.name)
	}
	return again.reran, nil
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
	to       *Session
	director *Director
	reran    Reran
	found    bool // the given episode was recorded
	label    string
}

func (a *rerun) fresh() error {
	return a.to.decide(func(*eventlog.Round) error {
		if a.director.state.state.Episode() != nil {
			return fmt.Errorf("sajou: session %q plays an episode already", a.to.Name())
		}
		return nil
	})
}

func (a *rerun) move(ctx context.Context, m *move) error {
	switch m.word {
	case director.EpisodeStarted:
		return a.start(ctx, m)
	case director.TurnOpened, director.GuidanceIssued:
		return a.guide(ctx, m)
	case director.ResponseRecorded:
		return a.respond(ctx, m)
	case director.ChoiceSelected:
		return a.choose(ctx, m)
	case director.VerdictRecorded:
		switch {
		case a.Mode == RerunLive:
			return nil
		case m.verdict == nil:
			return a.late(ctx, m)
		default:
			return a.judge(ctx, m.verdict)
		}
	case director.EpisodeRevised:
		if a.Episode != nil && a.Episode.ID == m.episode.ID {
			return nil // it is what is given from the beginning
		}
		return a.settled(ctx, func() error { return a.director.Revise(ctx, m.episode) })
	case "":
		return a.director.decide(ctx, func(s *director.State) ([]director.Record, error) {
			return s.Heard(m.heard.kind, m.heard.name, m.heard.payload, fmt.Sprintf("%v:%d", m.heard.kind, m.seq))
		})
	}
	return nil
}

func (a *rerun) start(ctx context.Context, m *move) error {
	e := m.episode
	if a.Episode != nil && a.Episode.ID == e.ID {
		e, a.found = a.Episode, true
	}
	var o director.Opening
	if energy := textMember(m.record.Value, "energy"); energy != m.episode.Energy {
		o.Energy = energy
	}
	flags, _ := m.record.Value.Get("flags")
	for f := range flags.Elements() {
		if name, ok := f.Text(); ok {
			o.Flags = append(o.Flags, name)
		}
	}
	a.label = ""
	return a.settled(ctx, func() error { return a.director.Start(ctx, e, o) })
}

// settled does what waits for verdicts, without them if nobody has given them.
func (a *rerun) settled(ctx context.Context, do func() error) error {
	err := do()
	if !errors.Is(err, director.ErrAwaiting) {
		return err
	}
	if _, err := a.director.expire(ctx, unanswered); err != nil {
		return err
	}
	return do()
}

func (a *rerun) guide(ctx context.Context, m *move) error {
	text, err := m.text()
	if err != nil {
		return err
	}
	if m.word == director.TurnOpened && textMember(m.record.Value, "input") == "choice" && text == "" {
		text = a.label
	}
	err = a.settled(ctx, func() error {
		return a.director.decide(ctx, func(s *director.State) (records []director.Record, err error) {
			in := director.Input{Turn: m.turn, Text: text}
			if answer := s.Answer(); answer != nil && text == a.label {
				// The user chose here as well; what was typed then is as it was.
				if in.Text = ""; m.said != "" {
					in.Text = answer.Content
				}
			}
			_, records, err = s.Guide(in)
			return a.director.saying(Said{Turn: in.Turn, Role: "user", Text: in.Text}, records), err
		})
	})
	if err == nil && m.word == director.TurnOpened {
		a.reran.Turns++
	}
	return err
}

func (a *rerun) choose(ctx context.Context, m *move) error {
	point := textMember(m.record.Value, "choice_point")
	a.label = textMember(m.record.Value, "label")
	err := a.settled(ctx, func() error {
		_, err := a.director.Choose(ctx, point, textMember(m.record.Value, "choice"))
		return err
	})
	if errors.Is(err, director.ErrNotFound) || errors.Is(err, director.ErrNotOpen) || errors.Is(err, director.ErrConflict) {
		return nil // it is no choice in this story: the next input tells
	}
	return err
}

// late records a verdict that came when nobody waited for it.
func (a *rerun) late(ctx context.Context, m *move) error {
	v := recordedVerdict(m.seq, m.record.Value).Verdict
	v.Try = math.MaxInt // of a try that nobody waits for
	return a.director.decide(ctx, func(s *director.State) ([]director.Record, error) {
		_, records, err := s.Judge(v)
		if errors.Is(err, director.ErrNotFound) || errors.Is(err, director.ErrTurn) {
			return nil, nil // it is about what there is not in this story
		}
		return records, err
	})
}

func (a *rerun) respond(ctx context.Context, m *move) error {
	text, err := m.text()
	if err != nil {
		return err
	}
	r := director.Response{Turn: m.turn, Attempt: m.attempt, Text: text, Before: m.before}
	if a.Mode == RerunLive {
		_, err := a.director.With(a.Judge).Respond(ctx, r)
		return err
	}
	var out director.Outcome
	err = a.director.decide(ctx, func(s *director.State) (records []director.Record, err error) {
		if out, records, err = s.Respond(r); err == nil && a.Mode == RerunStrict {
			err = m.check(out.Questions)
		}
		return a.director.saying(Said{r.Turn, out.Attempt, "character", r.Text}, records), err
	})
	if err != nil {
		return err
	}
	for _, q := range out.Questions {
		if _, asked := m.prompts[q.Subject]; asked {
			continue // what was answered, or was not, comes next
		}
		for again := true; again; {
			again = false
			v := director.Verdict{Turn: q.Turn, Attempt: q.Attempt, Subject: q.Subject, Failure: unanswered}
			err := a.director.decide(ctx, func(s *director.State) (records []director.Record, err error) {
				_, records, err = s.Judge(v)
				again = askedAgain(records)
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
func (m *move) check(questions []director.Question) error {
	for _, q := range questions {
		if was := m.prompts[q.Subject]; was != q.Digest {
			return &PromptError{q.Turn, q.Attempt, q.Subject, was, q.Digest, m.rebuilt}
		}
	}
	return nil
}

// judge gives a recorded verdict to the director, unless nobody asks for it.
func (a *rerun) judge(ctx context.Context, v *RecordedVerdict) error {
	return a.director.decide(ctx, func(s *director.State) ([]director.Record, error) {
		if v.Turn != s.Turn() || !slices.Contains(s.Awaiting(), v.Subject) {
			return nil, nil
		}
		_, records, err := s.Judge(v.Verdict)
		if err == nil && !v.Again && v.Failure != "" && askedAgain(records) {
			// It was given up, and not answered: so were all that were awaited.
			_, records, err = s.Expire(v.Failure)
		}
		return records, err
	})
}

// unanswered is why a verdict is unclear that the recording does not have.
const unanswered = "no verdict was recorded"

func decodeHex(dst []byte, text string) bool {
	n, err := hex.Decode(dst, []byte(text))
	return err == nil && n == len(dst)
}
