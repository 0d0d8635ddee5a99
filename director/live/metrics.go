package live

import (
	"context"
	"time"
)

// DirectorMetrics receives measurements of the directors of an engine. The methods are
// called by the goroutines that call the director and by those that call a judge, several
// at once. They must not wait, must not call the engine, and must not panic. Durations
// are of [Config].Now and never negative. A context is that of the call of the director,
// for its values; it may have ended.
type DirectorMetrics interface {
	// DirectorCalled: a call of a [Director], "start", "revise", "guide", "respond" or
	// "choose", has returned. The time of a respond includes the wait for verdicts.
	DirectorCalled(ctx context.Context, session, call string, took time.Duration, err error)

	// JudgeCalled: a call of a judge has returned.
	JudgeCalled(ctx context.Context, c JudgeCall)

	// QuestionsGivenUp: that many questions were recorded as unclear. They got no answer:
	// the session has no judge, its call timed out, or the program that called it ended.
	QuestionsGivenUp(session string, questions int)
}

// JudgeCall is a call of a judge that has returned.
type JudgeCall struct {
	Session string
	Model   string // as the judge named it, "" if it did not
	Turn    int
	Try     int // of the question, from 1
	Outcome JudgeOutcome
	Took    time.Duration // 0 if the judge was not called
}

// JudgeOutcome says how a call of a judge ended.
type JudgeOutcome uint8

// The outcomes.
const (
	JudgeAnswered  JudgeOutcome = iota // in time
	JudgeFailed                        // with an error or a panic, in time
	JudgeLate                          // after its question was given up
	JudgeNotCalled                     // too many calls before it have not returned
)

func (o JudgeOutcome) String() string {
	switch o {
	case JudgeAnswered:
		return "answered"
	case JudgeFailed:
		return "failed"
	case JudgeLate:
		return "late"
	case JudgeNotCalled:
		return "not_called"
	default:
		return "unknown"
	}
}

// began returns the time at which a measurement begins, the zero time without metrics.
func (d *Director) began() time.Time {
	if d.cfg.Metrics == nil {
		return time.Time{}
	}
	return d.cfg.Now()
}

// took returns the time since began, 0 without metrics.
func (d *Director) took(began time.Time) time.Duration {
	if d.cfg.Metrics == nil {
		return 0
	}
	return max(d.cfg.Now().Sub(began), 0)
}

// report reports a call of the director that ends with *err.
func (d *Director) report(ctx context.Context, call string, began time.Time, err *error) {
	if d.cfg.Metrics != nil {
		d.cfg.Metrics.DirectorCalled(ctx, d.w.Name(), call, d.took(began), *err)
	}
}
