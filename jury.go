package sajou

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// Judge says what a character's response accomplished. It is asked with
// [director.Question.Prompt], in which all that others wrote is delimited, and
// answers in its own words, of which only a plain YES or NO counts.
type Judge interface {
	// Judge returns the answer as it came, and which model gave it. It should
	// end when ctx does; whoever asked does not wait longer.
	Judge(ctx context.Context, q director.Question) (model, answer string, err error)
}

// jury asks the questions about one response, all at once, and records the
// answers in the order in which they were asked: equal answers make equal logs,
// whoever was quicker.
type jury struct {
	director *Director
	caller   context.Context // who waits, but not for how long
	judging  context.Context // of the judge's calls
	out      director.Outcome
	asked    []*question
	answered chan *question
	over     chan struct{} // closed when nobody waits for answers any more
}

// question is one that was asked, and its answer.
type question struct {
	director.Question
	verdict  director.Verdict
	answered bool
}

// maxHanging is how many calls of a judge may go on after they were given up,
// before it is asked no more.
const maxHanging = 32

// judgeAll has a response judged, and returns what came of it.
func (d *Director) judgeAll(ctx context.Context, out director.Outcome) (director.Outcome, error) {
	if d.judge == nil {
		return d.expire(ctx, "no judge")
	}
	// A turn is evaluated whoever waits for it: the judge's time ends with its
	// patience and with the engine's, not with the caller's.
	ctx = context.WithoutCancel(ctx)
	judging, cancel := context.WithCancel(ctx)
	defer cancel()
	closing := d.session.engine.live
	defer context.AfterFunc(closing, cancel)()
	j := &jury{director: d, caller: ctx, judging: judging, out: out, answered: make(chan *question), over: make(chan struct{})}
	defer close(j.over)
	tooLate := make(chan struct{})
	defer d.session.engine.cfg.AfterFunc(d.patience, func() { close(tooLate) })()
	for _, q := range out.Questions {
		j.ask(q)
	}
	for len(j.asked) > 0 {
		select {
		case q := <-j.answered:
			q.answered = true
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
func (j *jury) ask(asked director.Question) {
	q, d := &question{Question: asked}, j.director
	j.asked = append(j.asked, q)
	may := d.asked.hang()
	go func() {
		if may {
			q.verdict = d.ask(j.judging, asked)
			d.asked.unhang()
		} else {
			q.verdict.Failure = "the judge does not return"
		}
		select {
		case j.answered <- q:
		case <-j.over:
			d.late(asked, q.verdict)
		}
	}()
}

// record records the answers that are there before the first that is not.
func (j *jury) record() error {
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

// judge records one answer. Again says that the question is to be asked anew.
func (j *jury) judge(q *question) (again bool, err error) {
	v := q.verdict
	v.Turn, v.Attempt, v.Subject, v.Try = q.Turn, q.Attempt, q.Subject, q.Try
	err = j.director.decide(j.caller, func(s *director.State) (records []director.Record, err error) {
		out, records, err := s.Judge(v)
		if err == nil && out.Evaluated {
			j.out = out
		}
		again = askedAgain(records)
		return records, err
	})
	return again, err
}

// giveUp records the answers that came in time and stood behind one that did
// not, and the others as unclear.
func (j *jury) giveUp() (director.Outcome, error) {
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
	return j.director.expire(j.caller, fmt.Sprintf("no verdict within %v", j.director.patience))
}

// askedAgain reports whether a verdict was recorded after which the question is
// asked once more.
func askedAgain(records []director.Record) bool {
	for _, r := range records {
		if v, _ := r.Value.Get("again"); r.Word == director.VerdictRecorded {
			again, _ := v.Bool()
			return again
		}
	}
	return false
}

// ask calls the judge, and makes a verdict of whatever it does.
func (d *Director) ask(ctx context.Context, q director.Question) (v director.Verdict) {
	began := d.session.engine.cfg.Now()
	defer func() {
		if cause := recover(); cause != nil {
			v.Failure = fmt.Sprintf("the judge panicked: %v", cause)
		}
		v.Latency = max(d.session.engine.cfg.Now().Sub(began), 0).Milliseconds()
	}()
	model, answer, err := d.judge.Judge(ctx, q)
	v.Model, v.Raw = model, answer
	if err != nil {
		v.Failure = err.Error()
	}
	return v
}

// late records a verdict that nobody waits for any more.
func (d *Director) late(q director.Question, v director.Verdict) {
	if v.Raw == "" || d.session.engine.live.Err() != nil {
		return
	}
	v.Turn, v.Attempt, v.Subject, v.Try = q.Turn, q.Attempt, q.Subject, q.Try
	err := d.decide(context.Background(), func(s *director.State) (records []director.Record, err error) {
		_, records, err = s.Judge(v)
		return records, err
	})
	if err != nil && !errors.Is(err, eventlog.ErrClosed) {
		d.session.engine.cfg.Logger.Warn("a late verdict is lost", slog.String("session", d.session.Name()), slog.Any("err", err))
	}
}

// asking is who asks a judge just now.
type asking struct {
	mu      sync.Mutex
	calls   int           // of Respond; guarded by mu
	idle    chan struct{} // closed when there are none; guarded by mu
	hanging int           // calls of a judge; guarded by mu
}

// begin notes that somebody asks, until end.
func (a *asking) begin() (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls == 0 {
		a.idle = make(chan struct{})
	}
	a.calls++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.calls--; a.calls == 0 {
			close(a.idle)
		}
	}
}

// over returns what is closed when nobody asks any more; nil if nobody does.
func (a *asking) over() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls == 0 {
		return nil
	}
	return a.idle
}

// hang notes a call of a judge, unless too many of them have not returned.
func (a *asking) hang() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hanging >= maxHanging {
		return false
	}
	a.hanging++
	return true
}

func (a *asking) unhang() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hanging--
}
