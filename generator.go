package sajou

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
)

// Generator makes the words of an agent: a language model, or something that
// stands for one.
//
// Its errors say by what they wrap whether it is asked again: an
// [*agents.Rejection], by its Recovery and RetryAfter, or an [agents.Code], by the
// table of codes. Any other error counts as [agents.GenerationFailed].
//
// One that has a method Name() string is called by that.
type Generator interface {
	// Generate begins one generation and yields its tokens in order, each as
	// soon as it is there. An error ends it. It ends soon after ctx does, also
	// while it waits for a token that does not come; whoever asked does not
	// wait for that.
	Generate(ctx context.Context, p Prompt) iter.Seq2[string, error]
}

// Prompt is what a generation goes by.
type Prompt struct {
	Messages []Message
	// MaxTokens is how many tokens are wanted at most; 0 leaves it to the
	// generator.
	MaxTokens int64
}

// Message is one message of a conversation.
type Message struct {
	Role    string // system, user or assistant
	Content string
}

var (
	// ErrGeneratorPanic says that a generator panicked, or ended its goroutine.
	ErrGeneratorPanic = errors.New("the generator panicked")

	// ErrGeneratorStuck says that too many generations of the agent go on
	// although they were given up: the generator does not heed its context.
	ErrGeneratorStuck = errors.New("generators that were given up do not return")
)

// GeneratorError is why a generator gave no answer, or why it was not asked for
// one. It wraps Code and Err.
type GeneratorError struct {
	Generator string
	AgentID   string
	ReqID     string
	// Code is what Err says it is, or [agents.GenerationFailed]. It is
	// [agents.BreakerOpen] if the generator was not asked because it failed too
	// often for this agent, and [agents.QueueFull] with [ErrGeneratorStuck].
	Code     agents.Code
	Recovery agents.Recovery
	// RetryAfter says when it may be asked again, if that is known.
	RetryAfter time.Duration
	Panic      any    // what it panicked with, if it did
	Stack      []byte // where it panicked
	Err        error  // the generator's own error, or one of this package; nil with BreakerOpen
}

func (e *GeneratorError) Error() string {
	return fmt.Sprintf("sajou: generation %q of %q by %s: %s", e.ReqID, e.AgentID, e.Generator, e.cause())
}

// cause is what it says beyond where it happened.
func (e *GeneratorError) cause() string {
	s := string(e.Code)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Panic != nil {
		s += fmt.Sprintf(": %v", e.Panic)
	}
	if e.RetryAfter > 0 {
		s += fmt.Sprintf(", again after %v", e.RetryAfter)
	}
	return s
}

// Unwrap returns the code and the cause; of a panic with an error, that too.
func (e *GeneratorError) Unwrap() []error {
	list := []error{e.Code}
	if e.Err != nil {
		list = append(list, e.Err)
	}
	if err, ok := e.Panic.(error); ok {
		list = append(list, err)
	}
	return list
}

// judge fills in what the cause says of itself.
func (e *GeneratorError) judge() *GeneratorError {
	if r, ok := errors.AsType[*agents.Rejection](e.Err); ok {
		e.Code, e.Recovery, e.RetryAfter = r.Code, r.Recovery, r.RetryAfter
	} else if code, ok := errors.AsType[agents.Code](e.Err); ok {
		e.Code = code
	}
	f, ok := e.Code.Failure()
	if !ok {
		e.Code = agents.GenerationFailed
		f, _ = e.Code.Failure()
	}
	if e.Recovery == "" {
		e.Recovery = f.Recovery
	}
	return e
}

// generatorName returns what a generator is called.
func generatorName(g Generator) (name string) {
	name = fmt.Sprintf("%T", g)
	defer func() { _ = recover() }() // whatever it does, its type is a name too
	if named, ok := g.(interface{ Name() string }); ok {
		if own := named.Name(); own != "" {
			name = own
		}
	}
	return name
}

// maxStreams is how many streams of one agent may go on after they were given
// up.
const maxStreams = 16

// streams are the generators at work for the agents of a world.
type streams struct {
	mu       sync.Mutex
	begin    time.Time                     // of the breakers' time; guarded by mu
	breakers map[[2]string]*agents.Breaker // by agent and generator, those that count failures; guarded by mu
	left     map[string]int                // by agent: given up, and not ended; guarded by mu
}

func newStreams() streams {
	return streams{breakers: map[[2]string]*agents.Breaker{}, left: map[string]int{}}
}

// elapsed is the breakers' time. Called with mu held.
func (s *streams) elapsed(now time.Time) time.Duration {
	if s.begin.IsZero() {
		s.begin = now
	}
	return now.Sub(s.begin)
}

// admit says whether a driver may ask its generator. If so, the end is to be
// reported.
func (s *streams) admit(d *driver) *GeneratorError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left[d.agent.id] >= maxStreams {
		return &GeneratorError{Code: agents.QueueFull, Err: ErrGeneratorStuck}
	}
	b, ok := s.breakers[d.breaker()]
	if !ok {
		return nil
	}
	b.Config = d.r.Breaker
	at, before := s.elapsed(d.now()), b.State()
	allowed := b.Allow(at)
	d.tellBreaker(before, b.State())
	if !allowed {
		return &GeneratorError{Code: agents.BreakerOpen, RetryAfter: b.Wait(at)}
	}
	return nil
}

// verdict is what a stream says of its generator.
type verdict int

const (
	unknown verdict = iota // it was given up
	well
	ill
)

// report says how a call ended that was admitted.
func (s *streams) report(d *driver, v verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := d.breaker()
	b, ok := s.breakers[key]
	if !ok {
		b = &agents.Breaker{}
	}
	b.Config = d.r.Breaker
	before := b.State()
	if v == unknown {
		b.Abandon()
	} else {
		b.Done(s.elapsed(d.now()), v == well)
	}
	d.tellBreaker(before, b.State())
	if b.State() == agents.BreakerClosed && b.Failures() == 0 {
		delete(s.breakers, key) // as good as new
	} else {
		s.breakers[key] = b
	}
}

// stream is one generator at work, on a goroutine of its own, so that nobody
// waits for one that does not heed its context. Such a one is left alone: its
// goroutine ends when it returns, if ever.
type stream struct {
	all    *streams
	agent  string
	cancel context.CancelFunc
	tokens chan string     // unbuffered: a generator runs no further ahead than one token
	done   chan struct{}   // closed when it has ended
	fault  *GeneratorError // of the end, nil if it ended well; written before done is closed

	left, ended bool // guarded by all.mu
}

// start has a generator begin.
func (s *streams) start(ctx context.Context, agent string, g Generator, p Prompt) *stream {
	ctx, cancel := context.WithCancel(ctx)
	st := &stream{all: s, agent: agent, cancel: cancel, tokens: make(chan string), done: make(chan struct{})}
	go st.run(ctx, g, p)
	return st
}

func (st *stream) run(ctx context.Context, g Generator, p Prompt) {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			st.fault = &GeneratorError{Panic: v, Stack: debug.Stack(), Err: ErrGeneratorPanic}
		} else if !returned {
			st.fault = &GeneratorError{Panic: "its goroutine was ended", Stack: debug.Stack(), Err: ErrGeneratorPanic}
		}
		st.end()
		close(st.done)
	}()
	st.fault = st.pass(ctx, g, p)
	returned = true
}

// pass passes on tokens until there are no more, or nobody wants any.
func (st *stream) pass(ctx context.Context, g Generator, p Prompt) *GeneratorError {
	for token, err := range g.Generate(ctx, p) {
		if err != nil {
			fault := (&GeneratorError{Err: err}).judge()
			_ = fault.Error() // here, where an error that panics harms nobody
			return fault
		}
		select {
		case st.tokens <- token:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

func (st *stream) end() {
	st.all.mu.Lock()
	defer st.all.mu.Unlock()
	st.ended = true
	if !st.left {
		return
	}
	if st.all.left[st.agent]--; st.all.left[st.agent] == 0 {
		delete(st.all.left, st.agent)
	}
}

// leave ends the stream, and waits for nothing.
func (st *stream) leave() {
	st.cancel()
	st.all.mu.Lock()
	defer st.all.mu.Unlock()
	if !st.ended {
		st.left = true
		st.all.left[st.agent]++
	}
}
