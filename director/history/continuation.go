package history

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Continuation plays the director's part of a recorded session on in another history of
// it, from any entry on: what [Rerun] does with a whole session in mode [RerunStrict].
// It is given the entries of the recording in their order: with Saw those that both
// histories have, and from the first difference on with Play, Replace and Skip.
//
// The user's lines and choices are played as they were recorded. A recorded response of
// the character stands while the scene is the one in which it was made: the same lines,
// forced lines and guidance. A recorded verdict stands while its question is the same,
// word for word. Other responses and verdicts come from the models of the
// [ContinuationConfig].
//
// The methods return a [*StoppedError] where the recording cannot be continued; its Seq is
// that of the input that was not played.
type Continuation struct {
	cfg    ContinuationConfig
	to     Decider
	reader inputReader
	again  rerun

	ctx   context.Context // of the method that runs; the reader's callback receives none
	err   error           // of the input that was played last
	muted bool            // inputs are not played

	was, now sceneHash // what the character has been shown since Saw, in the recording and now
	lines    dialogue  // of the other history

	said     string     // the role whose newest text is given by Replace, "" for none
	given    bool       // the response that the reader holds has such a text
	answered *sceneHash // was, in front of the newest response's text; nil if it is played
	open     sceneHash  // was, in front of the response that the reader holds
}

// ContinuationConfig says how a [Continuation] goes on where the recording has no answer.
type ContinuationConfig struct {
	// Episode takes the place of the recorded one of the same id from its next beginning
	// on; nil for none.
	Episode *episode.Episode

	// Judge answers questions that are not the recorded ones. With nil the continuation
	// stops with a [PromptError].
	Judge director.Judge

	// Answer returns the character's response in a scene that is not the recorded one. With
	// nil the continuation stops with [ErrScene].
	Answer func(ctx context.Context, turn CharacterTurn) (string, error)

	// Refused, unless nil, is called with each recorded input that cannot happen any more:
	// its entry, its word and the director's refusal.
	Refused func(seq eventlog.Seq, word string, err error)

	// Played, unless nil, is called after each input that was played.
	Played func()
}

// CharacterTurn is a turn in which the character is to respond.
type CharacterTurn struct {
	Episode  *episode.Episode
	Guidance director.Guidance
	Messages []session.Utterance // the latest ones; the user's line is the last
}

// ErrScene is wrapped by the error about a response that was made in another scene.
var ErrScene = errors.New("sajou: the character would answer in another scene than recorded")

// ErrModel is wrapped by the error about a model that does not answer.
var ErrModel = errors.New("sajou: the model does not answer")

// sceneHash identifies what a character has been shown.
type sceneHash = [sha256.Size]byte

// NewContinuation returns a continuation that decides with to. Nothing has been seen yet.
func NewContinuation(to Decider, cfg ContinuationConfig) *Continuation {
	c := &Continuation{cfg: cfg, to: to, muted: true}
	c.reader = inputReader{yield: c.input, listens: map[string]bool{}}
	c.again = rerun{RerunConfig: RerunConfig{Mode: RerunStrict, Episode: cfg.Episode}, decide: c.decide}
	c.again.refused = c.refuse
	if cfg.Judge != nil {
		c.again.other = func(ctx context.Context, q director.Question) (director.Verdict, error) {
			model, answer, err := cfg.Judge.Judge(ctx, q)
			if err != nil {
				return director.Verdict{}, errors.Join(ErrModel, err)
			}
			return director.Verdict{Model: model, Raw: answer}, nil
		}
	}
	return c
}

// SetEpisode sets [ContinuationConfig].Episode.
func (c *Continuation) SetEpisode(e *episode.Episode) { c.again.Episode = e }

// Saw takes in an entry that both histories have.
func (c *Continuation) Saw(e *eventlog.Entry) {
	c.reader.entry(e)
	if r, err := session.BeatOf(e); err == nil {
		c.say(r)
	}
}

// Play takes in an entry of the recording, and plays the input that it holds or completes.
func (c *Continuation) Play(ctx context.Context, e *eventlog.Entry) error {
	return c.playing(ctx, func() {
		c.reader.entry(e)
		c.recorded(e)
	})
}

// Replace plays an entry in the place of one of the recording, which is nil if the entry
// is new. A message is what the user or the character says then.
func (c *Continuation) Replace(ctx context.Context, was, e *eventlog.Entry) error {
	return c.playing(ctx, func() {
		if r, err := session.BeatOf(e); err == nil {
			if u, ok := session.UtteranceOf(r); ok {
				c.said = u.Role
			}
		}
		before := c.reader.state
		c.reader.entry(e)
		c.reader.state = before
		if was != nil {
			c.pass(was)
		}
	})
}

// Skip takes in an entry of the recording that does not happen.
func (c *Continuation) Skip(ctx context.Context, was *eventlog.Entry) error {
	return c.playing(ctx, func() { c.pass(was) })
}

// pass notes an entry of the recording alone.
func (c *Continuation) pass(was *eventlog.Entry) {
	if r, ok := session.DirectorRecordOf(was); ok {
		_ = c.reader.state.Apply(r.Word, r.Value) // one that cannot follow changes nothing, as in every fold
	}
	c.recorded(was)
}

// Flush plays the input that waits for the entries behind it, if any. It is called in
// front of entries that are not the director's, and at the end.
func (c *Continuation) Flush(ctx context.Context) error {
	return c.playing(ctx, func() { c.reader.flush() })
}

func (c *Continuation) playing(ctx context.Context, do func()) error {
	if c.muted {
		c.muted, c.reader.open = false, nil // that response has happened in both
		c.reader.seen = true
	}
	c.ctx, c.err = ctx, nil
	do()
	return c.err
}

// input plays an input of the recording.
func (c *Continuation) input(in *input, _ error) bool {
	switch {
	case c.muted:
		switch in.word {
		case episode.ChoiceSelected:
			c.again.label = strings.Clone(in.record.Value.TextOf("label"))
		case episode.EpisodeStarted:
			c.again.label = ""
		}
		return true
	case c.err != nil:
		return false
	case in.word == "": // the other history has its own signals and effects
		return true
	}
	if in.word == episode.TurnOpened && c.said == "user" {
		in.digest, c.said = "", ""
	}
	c.to.Reach(in.at)
	err := c.ctx.Err()
	if err == nil && in.word == episode.ResponseRecorded {
		err = c.respond(in)
	} else if err == nil {
		err = c.again.play(c.ctx, in)
	}
	switch {
	case err == nil:
		if c.cfg.Played != nil {
			c.cfg.Played()
		}
	case cannotHappen(err):
		c.refuse(in, err)
	case c.ctx.Err() != nil:
		c.err = c.ctx.Err()
	default:
		c.err = &StoppedError{in.turn, in.seq, err}
	}
	return c.err == nil
}

func (c *Continuation) refuse(in *input, err error) {
	if c.cfg.Refused != nil {
		c.cfg.Refused(in.seq, in.word, err)
	}
}

// respond plays a response: the recorded one in the scene in which it was made, otherwise
// that of a model.
func (c *Continuation) respond(in *input) error {
	if c.given {
		in.digest, c.given = "", false
		return c.again.respond(c.ctx, in)
	}
	if c.open == c.now {
		return c.again.respond(c.ctx, in)
	}
	var turn CharacterTurn
	err := c.to.Decide(c.ctx, func(s *director.State) ([]signal.Record, error) {
		if in.turn != s.Turn() {
			return nil, director.ErrTurn // a turn that was not opened has no response
		}
		g, err := s.Guidance(in.turn)
		turn = CharacterTurn{Episode: s.Episode(), Guidance: g}
		return nil, err
	})
	switch {
	case err != nil:
		return err
	case c.cfg.Answer == nil:
		return ErrScene
	}
	c.lines.opening = turn.Episode.OpeningLine
	for _, l := range c.lines.lines {
		if l.turn == in.turn && l.Role == "character" && !l.forced {
			break // an attempt that is made again
		}
		turn.Messages = append(turn.Messages, session.Utterance{Turn: l.turn, Role: l.Role, Text: l.Text})
	}
	said, err := c.cfg.Answer(c.ctx, turn)
	if err != nil {
		return errors.Join(ErrModel, err)
	}
	other := *in
	other.said, other.digest = said, ""
	before := c.lines.before(in.turn, true, true)
	other.before = before[max(0, len(before)-len(in.before)):]
	return c.again.respond(c.ctx, &other)
}

// recorded notes what an entry of the recording shows to the character.
func (c *Continuation) recorded(e *eventlog.Entry) {
	r, err := session.BeatOf(e)
	if err != nil {
		return
	}
	if u, ok := session.UtteranceOf(r); ok && u.Role == "character" {
		before := c.was
		c.answered = &before
	}
	c.was = shown(c.was, r)
	if r.Word == episode.ResponseRecorded {
		c.open = c.was
		if c.answered != nil {
			c.open = *c.answered
		}
		c.answered = nil
		c.given, c.said = c.said == "character", ""
	}
}

// shown adds a record to what the character has been shown.
func shown(before sceneHash, r signal.Record) sceneHash {
	switch r.Word {
	case session.WordMessage, episode.GuidanceIssued, episode.BeatForced, episode.EpisodeStarted, episode.EpisodeRevised:
		return sha256.Sum256(slices.Concat(before[:], []byte(r.Word), r.Value))
	}
	return before
}

// say notes what is said in the other history.
func (c *Continuation) say(r signal.Record) {
	switch r.Word {
	case session.WordMessage:
		if u, ok := session.UtteranceOf(r); ok {
			c.lines.say(u.Turn, u.Role, strings.Clone(u.Text))
		}
	case episode.BeatForced:
		c.lines.force(int(r.Value.IntOf("turn")), r.Value.TextOf("line"))
	case episode.EpisodeStarted:
		c.lines = dialogue{}
	}
}

// decide records what f decides in the other history, and notes it.
func (c *Continuation) decide(ctx context.Context, f func(*director.State) ([]signal.Record, error)) error {
	var decided []signal.Record
	err := c.to.Decide(ctx, func(s *director.State) (records []signal.Record, err error) {
		records, err = f(s)
		decided = records
		return records, err
	})
	if err != nil {
		return err
	}
	for _, r := range decided {
		c.now = shown(c.now, r)
		c.say(r)
	}
	return nil
}
