// Package job runs questions and verifications that take longer than a request: scan,
// bisect, verify, minimize and policy-diff. A job is created, answers how far it is and what it has found, and
// can be cancelled.
//
// A test is an expression or an uploaded image, and definitions travel in the request.
// A job runs no command and opens no file of the server.
//
// The number of jobs, their time and the bytes of their results are bounded; see
// [Config]. The result of a job is kept for a while after its end.
//
// docs/server.md describes the requests, docs/glossary.md has the nouns of all packages.
package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/server/problem"
)

// Config holds the options of a [Jobs]. The zero value is a good default.
type Config struct {
	// Running bounds the jobs that run at the same time, and Kept all jobs, those that
	// wait or have ended included. Zero means 2 and 64.
	Running, Kept int

	// MaxTime bounds the time of one job, and KeepFor the time for which its result is
	// kept after its end. Zero means 10 min each.
	MaxTime, KeepFor time.Duration

	// MaxResult bounds the bytes of one result. What is found beyond it is counted, and
	// not kept. Zero means 4 MiB.
	MaxResult int

	// Now is the wall clock. Nil means [time.Now].
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	c.Running = cmp.Or(c.Running, 2)
	c.Kept = cmp.Or(c.Kept, 64)
	c.MaxTime = cmp.Or(c.MaxTime, 10*time.Minute)
	c.KeepFor = cmp.Or(c.KeepFor, 10*time.Minute)
	c.MaxResult = cmp.Or(c.MaxResult, 4<<20)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// JobStatus says how far a job is.
type JobStatus string

// The statuses of a job.
const (
	StatusWaiting   JobStatus = "waiting" // for others to end
	StatusRunning   JobStatus = "running"
	StatusDone      JobStatus = "done"
	StatusFailed    JobStatus = "failed"
	StatusCancelled JobStatus = "cancelled"
)

// Jobs are the jobs of one engine. Its methods may be called from many goroutines.
type Jobs struct {
	cfg    Config // immutable after New
	engine *sajou.Engine
	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	slots  chan struct{} // has an element for each job that runs
	work   sync.WaitGroup
	born   string // distinguishes the ids of this process from those of another

	mu   sync.Mutex
	made int    // the jobs that were ever created
	all  []*job // in the order of their creation
}

// New returns the jobs of an engine. [Jobs.Close] ends them; the caller closes the engine
// after that.
func New(engine *sajou.Engine, cfg Config) *Jobs {
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Jobs{
		cfg: cfg, engine: engine, ctx: ctx, cancel: cancel, slots: make(chan struct{}, cfg.Running),
		born: strconv.FormatInt(cfg.Now().UnixMilli(), 36),
	}
}

// Close cancels all jobs and waits for their end, or for that of ctx.
func (j *Jobs) Close(ctx context.Context) error {
	j.cancel(problem.ErrStopping)
	ended := make(chan struct{})
	go func() {
		j.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("jobs are still running: %w", ctx.Err())
	}
}

// Wait waits for the end of all jobs.
func (j *Jobs) Wait() { j.work.Wait() }

// errCancelled is the cause of the end of a job that its caller cancelled.
var errCancelled = errors.New("the job was cancelled")

// errTooLong is the cause of the end of a job that takes too long.
var errTooLong = errors.New("the job took too long")

// job is one job.
type job struct {
	id, kind, session string
	owner             string // the name of the caller that created it
	created           time.Time
	cancel            context.CancelCauseFunc
	maxResult         int

	mu          sync.Mutex // guards what follows
	status      JobStatus
	done, total uint64
	items       [][]byte // of the result, each a JSON value
	bytes       int
	found       int // items, those that are not kept included
	failure     *problem.Details
	ended       time.Time
}

// task does the work of a job.
type task func(ctx context.Context, j *job) error

// start creates a job.
//
// release is called at its end, and not if there is an error.
func (j *Jobs) start(kind, session, owner string, work task, release func()) (*job, error) {
	now := j.cfg.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forgetOld(now)
	if len(j.all) >= j.cfg.Kept {
		return nil, &problem.Details{Code: problem.TooMany, Detail: fmt.Sprintf("there are %d jobs; cancel one, or wait", len(j.all)), RetryAfter: 10}
	}
	if j.ctx.Err() != nil {
		return nil, problem.ErrStopping
	}
	j.made++
	ctx, cancel := context.WithCancelCause(j.ctx)
	b := &job{
		id: fmt.Sprintf("%s-%d", j.born, j.made), kind: kind, session: session, owner: owner,
		created: now, cancel: cancel, maxResult: j.cfg.MaxResult, status: StatusWaiting,
	}
	j.all = append(j.all, b)
	j.work.Add(1)
	go func() {
		defer j.work.Done()
		defer release()
		j.run(ctx, b, work)
	}()
	return b, nil
}

// forgetOld forgets the jobs whose results are no longer kept. The caller holds mu.
func (j *Jobs) forgetOld(now time.Time) {
	j.all = slices.DeleteFunc(j.all, func(b *job) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return !b.ended.IsZero() && now.Sub(b.ended) >= j.cfg.KeepFor
	})
}

// run waits for a free place and does the work of a job.
func (j *Jobs) run(ctx context.Context, b *job, work task) {
	defer b.cancel(nil)
	select {
	case j.slots <- struct{}{}:
		defer func() { <-j.slots }()
	case <-ctx.Done():
		b.end(context.Cause(ctx), j.cfg.Now())
		return
	}
	b.mu.Lock()
	b.status = StatusRunning
	b.mu.Unlock()
	limited, cancel := context.WithTimeoutCause(ctx, j.cfg.MaxTime, errTooLong)
	defer cancel()
	err := work(limited, b)
	if err != nil && limited.Err() != nil {
		err = context.Cause(limited)
	}
	b.end(err, j.cfg.Now())
}

// end notes how a job ended.
func (b *job) end(err error, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = now
	switch {
	case err == nil:
		b.status = StatusDone
	case errors.Is(err, errCancelled):
		b.status = StatusCancelled
	case errors.Is(err, errTooLong):
		b.status, b.failure = StatusFailed, &problem.Details{Code: problem.OverBudget, Detail: "the job took too long; search a shorter range", Err: err}
	default:
		b.status, b.failure = StatusFailed, problem.Of(err)
	}
}

// progress notes how far the work is.
func (b *job) progress(done, total uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done, b.total = done, total
}

// count counts something that was found and is not kept.
func (b *job) count() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found++
}

// add adds a value to the result. What the result has no room for is counted only.
func (b *job) add(value any) error {
	data, ok := value.([]byte)
	if !ok {
		var err error
		if data, err = answer.Marshal(value); err != nil {
			return err
		}
	}
	data = termtext.PrintableJSON(data)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found++
	if b.bytes+len(data) > b.maxResult || len(b.items) < b.found-1 {
		return nil // full: a later item that fits would leave a gap
	}
	b.bytes += len(data)
	b.items = append(b.items, slices.Clone(data))
	return nil
}

// addLast adds a value that ends the result, also where that has no room for others.
func (b *job) addLast(value any) error {
	data, err := answer.Marshal(value)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found++
	b.items = append(b.items, termtext.PrintableJSON(data))
	return nil
}

// JobView is a job.
type JobView struct {
	ID      string           `json:"id"`
	Session string           `json:"session"`
	Kind    string           `json:"kind"`
	Status  JobStatus        `json:"status"`
	Done    uint64           `json:"done"`  // of Total
	Total   uint64           `json:"total"` // entries, candidates or runs; 0 while it is not known
	Found   int              `json:"found"` // items of the result
	Kept    int              `json:"kept"`  // those of them that the result has
	Created time.Time        `json:"created"`
	Ended   *time.Time       `json:"ended,omitempty"`
	Problem *problem.Details `json:"problem,omitempty"`
}

// view returns the view of a job.
func (b *job) view() JobView {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := JobView{
		ID: b.id, Session: b.session, Kind: b.kind, Status: b.status, Done: b.done, Total: b.total,
		Found: b.found, Kept: len(b.items), Created: b.created.UTC(), Problem: b.failure,
	}
	if !b.ended.IsZero() {
		ended := b.ended.UTC()
		v.Ended = &ended
	}
	return v
}

// result returns the items so far.
func (b *job) result() [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.items)
}

// find returns a job of a session.
func (j *Jobs) find(session, id string) (*job, error) {
	if err := j.exists(session); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forgetOld(j.cfg.Now())
	for _, b := range j.all {
		if b.id == id && b.session == session {
			return b, nil
		}
	}
	return nil, problem.New(problem.NotFound, fmt.Sprintf("the session has no job %.80q; its result is kept for %v after the end", id, j.cfg.KeepFor))
}

// of returns the jobs of a session.
func (j *Jobs) of(session string) []JobView {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forgetOld(j.cfg.Now())
	list := []JobView{}
	for _, b := range j.all {
		if b.session == session {
			list = append(list, b.view())
		}
	}
	return list
}

// forget cancels a job and forgets it.
func (j *Jobs) forget(b *job) {
	b.cancel(errCancelled)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all = slices.DeleteFunc(j.all, func(other *job) bool { return other == b })
}
