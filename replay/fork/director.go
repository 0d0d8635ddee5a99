package fork

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/history"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// scene is the director's part of a fork. Its events are those of the parent until its
// state is another one. From there on it is played again: the recorded inputs go to a
// [history.Continuation], and the walk is its decider.
type scene struct {
	played *history.Continuation
	again  bool // the recorded events no longer count

	first    eventlog.Seq  // of the batch that is read
	decision bool          // which is the director's
	now      time.Duration // of the input that is played
	asked    int           // how many answers of live models were used
}

// maxDepth bounds how often signals set flags whose events become signals again, as in a
// running session.
const maxDepth = 8

func (w *walk) continuation() *history.Continuation {
	cfg := history.ContinuationConfig{
		Refused: func(seq eventlog.Seq, word string, err error) {
			w.noteLeft(LeftOut{Seq: w.fold.Head().Seq + 1, Parent: seq, What: word, Reason: strings.TrimPrefix(err.Error(), "director: ")})
		},
		Played: func() { w.report.Played++ },
	}
	if w.models.Judge != nil {
		cfg.Judge = liveJudge{w}
	}
	if w.models.Answer != nil {
		cfg.Answer = func(ctx context.Context, turn history.CharacterTurn) (string, error) {
			a, err := w.live(func() (a liveAnswer, err error) {
				a.text, err = w.models.Answer(ctx, turn)
				return a, err
			})
			return a.text, err
		}
	}
	return history.NewContinuation(w, cfg)
}

// liveAnswer is the answer of a live model, or why there is none.
type liveAnswer struct {
	model, text string
	failure     string
}

// live returns the next answer of a live model. The first walk asks for it, and later walks
// repeat what it was given.
func (w *walk) live(ask func() (liveAnswer, error)) (liveAnswer, error) {
	if w.asked == len(w.answers) {
		if w.planned {
			return liveAnswer{}, fmt.Errorf("fork: %w: the second reading of %q asks another question", eventlog.ErrCorrupt, w.parent.Name())
		}
		a, err := ask()
		if err != nil {
			a.failure = err.Error()
		}
		w.answers = append(w.answers, a)
	}
	a := w.answers[w.asked]
	w.asked++
	w.report.Asked++
	if a.failure != "" {
		return a, errors.New(a.failure)
	}
	return a, nil
}

// liveJudge is the judge of a walk.
type liveJudge struct{ w *walk }

// Judge implements [director.Judge].
func (j liveJudge) Judge(ctx context.Context, q director.Question) (model, answer string, err error) {
	a, err := j.w.live(func() (a liveAnswer, err error) {
		a.model, a.text, err = j.w.models.Judge.Judge(ctx, q)
		return a, err
	})
	return a.model, a.text, err
}

// Reach implements [history.Decider].
func (w *walk) Reach(at time.Duration) { w.now = max(w.now, at) }

// Decide implements [history.Decider].
func (w *walk) Decide(_ context.Context, f func(*director.State) ([]signal.Record, error)) error {
	records, err := f(session.DirectorOf(w.fold))
	if err != nil || len(records) == 0 {
		return err
	}
	first := len(w.out)
	for _, r := range records {
		if err := w.event(w.now, r, 0); err != nil {
			return err
		}
	}
	w.out[first].batch = len(w.out) - first
	return nil
}

// event writes an event of the director, and the signals that it becomes.
func (w *walk) event(at time.Duration, r signal.Record, depth int) error {
	kind := eventlog.KindBeat
	if director.Declares(r) {
		kind = eventlog.KindDefine
	}
	if _, err := w.write(at, kind, session.AppendWord(nil, r.Word, r.Value)); err != nil || r.Word == session.WordMessage {
		return err
	}
	for _, cue := range session.DirectorOf(w.fold).Signals(r) {
		stamp := max(at, w.fold.At())
		if t := session.StateOf(w.fold).Time(); t.HasOrigin {
			stamp += time.Duration(t.Origin)
		}
		sig := &signal.Signal{
			ID: session.CueID(w.fold.Head().Seq + 1), Type: cue.Type, Timestamp: signal.Int(stamp.Milliseconds()),
			Source: session.CueSource, Payload: cue.Payload,
		}
		e, err := w.write(at, eventlog.KindSignal, sig.Append(nil))
		if err == nil {
			err = w.hear(&e, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write applies an entry of the fork's own.
func (w *walk) write(at time.Duration, kind eventlog.Kind, data []byte) (eventlog.Entry, error) {
	e := eventlog.Entry{Seq: w.fold.Head().Seq + 1, Kind: kind, At: max(at, w.fold.At()), Data: data}
	if err := w.fold.Apply(&e); err != nil {
		return e, fmt.Errorf("fork: %w", err)
	}
	w.out = append(w.out, step{draft: eventlog.Draft{Kind: kind, At: e.At, Data: data}})
	return e, nil
}

// hear writes the events by which the director's rules react to the newest entry.
func (w *walk) hear(e *eventlog.Entry, depth int) error {
	if depth > maxDepth {
		return nil
	}
	records, err := reactions(session.DirectorOf(w.fold), e, e.Seq)
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := w.event(e.At, r, depth); err != nil {
			return err
		}
	}
	return nil
}

// pad puts entries that say so in the places of recorded ones that no longer happen, up to
// the place of entry seq of the variant.
func (w *walk) pad(seq eventlog.Seq) error {
	for w.fold.Head().Seq+1 < seq {
		d := variant.Dropped(w.fold.At())
		if _, err := w.write(d.At, d.Kind, d.Data); err != nil {
			return err
		}
		w.out[len(w.out)-1].batch = 1
	}
	return nil
}

// own reports whether an entry is the director's: an event, a message, the declaration of
// an episode, or a signal that an event became. Parent is its number in the recording, 0
// if it has none.
func own(e *eventlog.Entry, parent eventlog.Seq) bool {
	switch e.Kind {
	case eventlog.KindBeat:
		return true
	case eventlog.KindDefine:
		return declaresEpisode(e)
	case eventlog.KindSignal:
		sig, err := signal.Decode(e.Data)
		return err == nil && sig.Problem == "" && sig.Source == session.CueSource && sig.ID == session.CueID(parent)
	default:
		return false
	}
}

// direct takes the next entry of a fork whose director is played again. It returns false
// for one that is not the director's.
func (w *walk) direct(ctx context.Context, was, e *eventlog.Entry, parent eventlog.Seq, changed bool) (bool, error) {
	recorded := *e // with its number in the recording
	recorded.Seq = parent
	switch {
	case !changed && own(e, parent):
		return true, w.stopping(w.played.Play(ctx, &recorded))
	case changed && was.Seq > 0 && own(was, was.Seq):
		if variant.IsDropped(e) {
			return true, w.stopping(w.played.Skip(ctx, was))
		}
		if declaresEpisode(e) {
			declared, err := declaredEpisode(e)
			if err != nil {
				return true, err
			}
			w.played.SetEpisode(declared)
		}
		return true, w.stopping(w.played.Replace(ctx, was, &recorded))
	case changed && e.Kind == eventlog.KindBeat:
		return true, w.stopping(w.played.Replace(ctx, nil, &recorded))
	}
	err := w.stopping(w.played.Flush(ctx))
	if err == nil {
		err = w.pad(e.Seq)
	}
	return false, err
}

// declaredEpisode returns the episode that an entry declares.
func declaredEpisode(e *eventlog.Entry) (*episode.Episode, error) {
	_, v, err := session.WordOf(e)
	var state director.State
	if err == nil {
		err = state.Declare(v)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: entry %d: %w", variant.ErrChange, e.Seq, err)
	}
	return state.Declared(), nil
}

// stopping makes the end of a walk of the error of a continuation.
func (w *walk) stopping(err error) error {
	var stopped *history.StoppedError
	if !errors.As(err, &stopped) {
		return err
	}
	reason := fmt.Sprintf("in turn %d ", stopped.Turn)
	var prompt *history.PromptError
	switch {
	case errors.As(err, &prompt) && prompt.Recorded == episode.ContentDigest{}:
		reason += fmt.Sprintf("the judge is asked about %v %q, which it was not when this was recorded; name a model for the judge", prompt.Subject.Kind, prompt.Subject.ID)
	case errors.As(err, &prompt):
		reason += fmt.Sprintf("the judge is asked about %v %q in other words than recorded; name a model for the judge", prompt.Subject.Kind, prompt.Subject.ID)
	case errors.Is(err, history.ErrScene):
		reason += "the character answers in another scene than recorded; name a model for the character"
	case errors.Is(err, history.ErrModel):
		reason += strings.ReplaceAll(strings.TrimPrefix(stopped.Err.Error(), "sajou: "), "\n", ": ")
	case errors.Is(err, history.ErrNoText):
		reason += "the log does not have what was said"
	default:
		return stopped.Err
	}
	w.report.Stopped = &Stopped{stopped.Seq, reason}
	return errStopped
}

// begin begins to play the director again at an entry that has changed. The events of one
// decision happen together, so it must be the first of them, and no reaction.
func (w *walk) begin(was, e *eventlog.Entry) error {
	r, err := session.BeatOf(was)
	if w.first < e.Seq && (w.decision || err == nil) {
		what := "entry " + fmt.Sprint(e.Seq)
		if err == nil {
			what += ", " + r.Word + ","
		}
		return fmt.Errorf("%w: %s is part of the decision that begins with entry %d; change that one", variant.ErrChange, what, w.first)
	}
	w.again = true
	return nil
}

// reactsOtherwise reports whether the director decides otherwise than recorded behind an
// entry that has changed from was to e.
func (w *walk) reactsOtherwise(was, e *eventlog.Entry, parent eventlog.Seq, recorded bool) (bool, error) {
	state := session.DirectorOf(w.fold)
	if own(was, parent) && was.Kind != eventlog.KindSignal || e.Kind == eventlog.KindBeat {
		return true, nil
	}
	if state.Episode() == nil {
		return false, nil
	}
	// The rules name entries by their numbers, which are others behind an inserted one.
	if !recorded && len(state.Episode().Signals)+len(state.Episode().FlagRules) > 0 {
		return true, nil
	}
	before, err := reactions(state, was, e.Seq)
	if err != nil {
		return false, err
	}
	after, err := reactions(state, e, e.Seq)
	if err != nil {
		return false, err
	}
	return !slices.EqualFunc(before, after, sameRecord), nil
}

func sameRecord(a, b signal.Record) bool { return a.Word == b.Word && slices.Equal(a.Value, b.Value) }

func declaresEpisode(e *eventlog.Entry) bool {
	if e.Kind != eventlog.KindDefine {
		return false
	}
	word, _, err := session.WordOf(e)
	return err == nil && word == episode.Word
}

// reactions returns the events by which the director's rules react to an entry.
func reactions(state *director.State, e *eventlog.Entry, seq eventlog.Seq) ([]signal.Record, error) {
	switch e.Kind {
	case eventlog.KindSignal:
		sig, err := signal.DecodeSound(e.Data)
		if err != nil || sig.Problem != "" {
			return nil, nil //nolint:nilerr // no rule hears an unreadable signal
		}
		return state.ExternalEvent(episode.OfSignal, sig.Type, sig.Payload, fmt.Sprintf("signal:%d", seq))
	case eventlog.KindEffect:
		r, err := session.WorldRecordOf(e)
		if err != nil || r.Word != agents.WordEffect {
			return nil, nil //nolint:nilerr // nor an unreadable effect
		}
		return state.ExternalEvent(episode.OfEffect, r.Value.TextOf("kind"), r.Value.Member("payload"), fmt.Sprintf("effect:%d", seq))
	default:
		return nil, nil
	}
}
