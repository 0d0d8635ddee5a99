package sajou

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// Director keeps one session on the script of an episode, live. A chat service
// calls Guide before the character speaks, Respond after it has, and Choose when
// the user does. What is returned is durable. Its methods may be called from many
// goroutines; each call may be made again after an error, and then gives the
// first result.
//
//	d := ses.Director()
//	err := d.Start(ctx, episode, director.Opening{})
//	guidance, err := d.Guide(ctx, director.Input{Turn: 1, Text: "Hello."})
//	outcome, err := d.Respond(ctx, director.Response{Turn: 1, Text: "Sit down."})
//	choice, err := d.Choose(ctx, outcome.Choice.ID, outcome.Choice.Options[0].ID)
type Director struct {
	session  *Session
	state    *directorState // of the session's fold; guarded by session.mu
	judge    Judge
	patience time.Duration
	asked    *asking // shared by all Directors of the session
}

// DefaultPatience is how long the verdicts about a response are waited for,
// unless the configuration says otherwise.
const DefaultPatience = 5 * time.Second

// Director returns the session's director, with the judge of the engine's
// [Config].
func (s *Session) Director() *Director {
	s.directorOnce.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		state, _ := s.fold.State(ProjectionDirector).(*directorState) // Begin has looked
		s.director = &Director{s, state, s.engine.cfg.Judge, s.engine.cfg.Patience, &asking{}}
	})
	return s.director
}

// With returns the director with another judge.
func (d *Director) With(judge Judge) *Director {
	other := *d
	other.judge = judge
	return &other
}

// decided is what a decision of the pure director comes to.
type decided func(s *director.State) ([]director.Record, error)

// decide records what f decides, if anything, as one batch.
func (d *Director) decide(ctx context.Context, f decided) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := d.session
	return s.decide(func(round *eventlog.Round) error {
		records, err := f(d.state.state)
		if err != nil || len(records) == 0 {
			return err
		}
		p := s.openAt(s.clock.now())
		if err := s.prompter(&p).beats(records, 0); err != nil {
			return err
		}
		_, err = s.keep(round, p, "", false)
		return err
	})
}

// saying puts a message before the events that came of it.
func (d *Director) saying(m Said, records []director.Record) []director.Record {
	if len(records) == 0 || m.Text == "" || d.session.engine.cfg.OmitText {
		return records
	}
	return append([]director.Record{m.record()}, records...)
}

// Start begins an episode.
func (d *Director) Start(ctx context.Context, e *director.Episode, o director.Opening) error {
	return d.decide(ctx, func(s *director.State) ([]director.Record, error) { return s.Start(e, o) })
}

// Revise brings a changed episode into force under the one that is played: what
// has happened stays with what has the same id. Errors: those of
// [director.State.Revise].
func (d *Director) Revise(ctx context.Context, e *director.Episode) error {
	return d.decide(ctx, func(s *director.State) ([]director.Record, error) { return s.Revise(e) })
}

// Guide opens a turn and returns what the character is to be told. While
// verdicts about the turn before are awaited it waits for them, and gives them up
// when nobody asks for them any more. Errors: those of [director.State.Guide].
func (d *Director) Guide(ctx context.Context, in director.Input) (g director.Guidance, err error) {
	for {
		err = d.decide(ctx, func(s *director.State) (records []director.Record, err error) {
			g, records, err = s.Guide(in)
			return d.saying(Said{Turn: in.Turn, Role: "user", Text: in.Text}, records), err
		})
		if !errors.Is(err, director.ErrAwaiting) {
			return g, err
		}
		if over := d.asked.over(); over != nil {
			select {
			case <-over:
				continue
			case <-ctx.Done():
				return g, ctx.Err()
			}
		}
		// Who asked is gone, with the program that did.
		if _, err := d.expire(ctx, "nobody asks for it any more"); err != nil && !errors.Is(err, director.ErrTurn) {
			return g, err
		}
	}
}

// Respond records what the character said, has it judged, and returns what came
// of it. Verdicts that have not come within [Config.Patience] are recorded as
// unclear; what comes after that is recorded and changes nothing.
func (d *Director) Respond(ctx context.Context, r director.Response) (director.Outcome, error) {
	end := d.asked.begin()
	defer end()
	var out director.Outcome
	err := d.decide(ctx, func(s *director.State) (records []director.Record, err error) {
		out, records, err = s.Respond(r)
		return d.saying(Said{r.Turn, out.Attempt, "character", r.Text}, records), err
	})
	if err != nil || out.Evaluated || len(out.Questions) == 0 {
		return out, err
	}
	return d.judgeAll(ctx, out)
}

// expire gives up the verdicts that are awaited.
func (d *Director) expire(ctx context.Context, reason string) (out director.Outcome, err error) {
	err = d.decide(ctx, func(s *director.State) (records []director.Record, err error) {
		out, records, err = s.Expire(reason)
		return records, err
	})
	return out, err
}

// Choose makes the user's choice. Choosing the same option again gives the
// first result. Errors: those of [director.State.Choose].
func (d *Director) Choose(ctx context.Context, choicePoint, choice string) (c director.Choice, err error) {
	err = d.decide(ctx, func(s *director.State) (records []director.Record, err error) {
		c, records, err = s.Choose(choicePoint, choice)
		return records, err
	})
	return c, err
}

// Beat is one event of the director's, where it stands in the log.
type Beat struct {
	Seq eventlog.Seq
	At  time.Duration
	director.Record
}

// Events iterates over the director's events from a Seq on and goes on with
// those that come, each once it is durable, until ctx ends or the engine closes.
func (d *Director) Events(ctx context.Context, from eventlog.Seq) iter.Seq2[Beat, error] {
	return func(yield func(Beat, error) bool) {
		for e, err := range d.session.Subscribe(ctx, from) {
			if err != nil {
				yield(Beat{}, err)
				return
			}
			if e.Kind != eventlog.KindBeat {
				continue
			}
			r, err := BeatOf(&e)
			if err == nil && r.Word == wordMessage {
				continue
			}
			if !yield(Beat{e.Seq, e.At, r}, err) {
				return
			}
		}
	}
}
