package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// The recorded reasons of verdicts that did not come. They are part of the format.
const (
	reasonNotAsked = "nobody asks for it any more"
	reasonNoJudge  = "no judge"
	reasonHanging  = "the judge does not return"
	reasonPanic    = "the judge panicked: %v"
	reasonTimeout  = "no verdict within %v"
)

// judging asks the questions about one response, all at once, and records the answers
// in the order of the questions, so that equal answers make equal logs whichever comes
// first. It belongs to one goroutine; calls of the judge send to it through answered.
type judging struct {
	director *Director
	caller   context.Context // the caller's values, without its cancellation
	calls    context.Context // of the judge's calls
	out      director.ResponseResult
	asked    []*question
	answered chan *question
	over     chan struct{} // closed when the goroutine of judging has ended
}

// question is a question that was asked, and its answer.
type question struct {
	director.Question
	verdict  director.Verdict
	answered bool
	called   bool          // the judge was called
	took     time.Duration // of that call; 0 without metrics
}

// maxHanging bounds the calls of a judge that have not returned. At the bound it is not
// asked again.
const maxHanging = 32

// judgeAll has a response judged and returns the outcome.
func (d *Director) judgeAll(ctx context.Context, out director.ResponseResult) (director.ResponseResult, error) {
	if d.cfg.Judge == nil {
		return d.expire(ctx, reasonNoJudge)
	}
	calls, cancel := context.WithCancel(ctx)
	defer cancel()
	closing := d.w.Context()
	defer context.AfterFunc(closing, cancel)()
	j := &judging{director: d, caller: ctx, calls: calls, out: out, answered: make(chan *question), over: make(chan struct{})}
	defer close(j.over)
	tooLate := make(chan struct{})
	defer d.cfg.AfterFunc(d.cfg.JudgeTimeout, func() { close(tooLate) })()
	for _, q := range out.Questions {
		j.ask(q)
	}
	for len(j.asked) > 0 {
		select {
		case q := <-j.answered:
			q.answered = true
			j.report(q, false)
			if closing.Err() != nil {
				// The end of the engine ended the calls: their errors are not verdicts.
				return j.out, eventlog.ErrClosed
			}
			if err := j.record(); err != nil {
				return j.out, err
			}
		case <-tooLate:
			cancel()
			return j.giveUp()
		case <-closing.Done():
			return j.out, eventlog.ErrClosed
		}
	}
	return j.out, nil
}

// ask begins a call of the judge.
func (j *judging) ask(asked director.Question) {
	q, d := &question{Question: asked}, j.director
	j.asked = append(j.asked, q)
	may := d.inFlight.startCall()
	go func() {
		if may {
			began := d.began()
			q.verdict = d.ask(j.calls, asked)
			d.inFlight.endCall()
			q.called, q.took = true, d.took(began)
		} else {
			q.verdict.Failure = reasonHanging
		}
		select {
		case j.answered <- q:
		case <-j.over:
			j.report(q, true)
			d.late(asked, q.verdict)
		}
	}()
}

// report reports a call of the judge that has returned. late says that its question was
// given up before.
func (j *judging) report(q *question, late bool) {
	d := j.director
	if d.cfg.Metrics == nil {
		return
	}
	c := JudgeCall{Session: d.w.Name(), Model: q.verdict.Model, Turn: q.Turn, Try: q.Try, Took: q.took}
	switch {
	case !q.called:
		c.Outcome = JudgeNotCalled
	case late:
		c.Outcome = JudgeLate
	case q.verdict.Failure != "":
		c.Outcome = JudgeFailed
	}
	d.cfg.Metrics.JudgeCalled(j.caller, c)
}

// record records the answers up to the first that is missing.
func (j *judging) record() error {
	for len(j.asked) > 0 && j.asked[0].answered {
		q := j.asked[0]
		j.asked = j.asked[1:]
		again, err := j.judge(q)
		if err != nil {
			return err
		}
		if again {
			q.Try++
			j.ask(q.Question)
		}
	}
	return nil
}

// judge records one answer. again says that the question has to be asked once more.
func (j *judging) judge(q *question) (again bool, err error) {
	v := q.verdict
	v.Turn, v.Attempt, v.Subject, v.Try = q.Turn, q.Attempt, q.Subject, q.Try
	err = j.director.decide(j.caller, func(s *director.State) (records []signal.Record, err error) {
		out, records, err := s.Judge(v)
		if err == nil && out.Evaluated {
			j.out = out
		}
		again = director.AskedAgain(records)
		return records, err
	})
	return again, err
}

// giveUp records the answers that came in time but had to wait for an earlier one, and
// the missing ones as unclear.
func (j *judging) giveUp() (director.ResponseResult, error) {
	missing := false
	for _, q := range j.asked {
		if !q.answered {
			missing = true
			continue
		}
		again, err := j.judge(q)
		if err != nil {
			return j.out, err
		}
		missing = missing || again
	}
	if !missing {
		return j.out, nil
	}
	return j.director.expire(j.caller, fmt.Sprintf(reasonTimeout, j.director.cfg.JudgeTimeout))
}

// ask calls the judge and makes a verdict of its answer, its error or its panic.
func (d *Director) ask(ctx context.Context, q director.Question) (v director.Verdict) {
	began := d.cfg.Now()
	defer func() {
		if cause := recover(); cause != nil {
			v.Failure = fmt.Sprintf(reasonPanic, cause)
		}
		v.Latency = max(d.cfg.Now().Sub(began), 0).Milliseconds()
	}()
	model, answer, err := d.cfg.Judge.Judge(ctx, q)
	v.Model, v.Raw = model, answer
	if err != nil {
		v.Failure = err.Error()
	}
	return v
}

// late records a verdict that came after its question was given up.
func (d *Director) late(q director.Question, v director.Verdict) {
	if v.Raw == "" || d.w.Context().Err() != nil {
		return
	}
	v.Turn, v.Attempt, v.Subject, v.Try = q.Turn, q.Attempt, q.Subject, q.Try
	err := d.decide(d.w.Context(), func(s *director.State) (records []signal.Record, err error) {
		_, records, err = s.Judge(v)
		return records, err
	})
	if err != nil && !errors.Is(err, eventlog.ErrClosed) {
		d.cfg.Logger.Warn("a late verdict is lost", slog.String("session", d.w.Name()), slog.Any("err", err))
	}
}

// inFlight counts what is being judged.
type inFlight struct {
	mu       sync.Mutex
	responds int           // calls of Respond; guarded by mu
	idle     chan struct{} // closed when there are none; guarded by mu
	calls    int           // calls of a judge that have not returned; guarded by mu
}

// begin counts a call of Respond, until end is called.
func (f *inFlight) begin() (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.responds == 0 {
		f.idle = make(chan struct{})
	}
	f.responds++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.responds--; f.responds == 0 {
			close(f.idle)
		}
	}
}

// over returns a channel that is closed when the last call of Respond ends; nil if there
// is none.
func (f *inFlight) over() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.responds == 0 {
		return nil
	}
	return f.idle
}

// startCall counts a call of a judge. It returns false if too many have not returned.
func (f *inFlight) startCall() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls >= maxHanging {
		return false
	}
	f.calls++
	return true
}

// endCall takes back startCall.
func (f *inFlight) endCall() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls--
}
