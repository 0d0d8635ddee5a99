package generate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/live"
)

// Generator produces the text of an agent: a language model, or a substitute.
//
// The error that its error wraps decides whether it is called again: an
// [*agents.Rejection], by its Recovery and RetryAfter, or an [agents.Code], by the
// table of codes. Any other error counts as [agents.ErrGenerationFailed].
//
// A generator with a method Name() string has that name.
type Generator interface {
	// Generate begins one generation and yields its tokens in order, each as
	// soon as it is produced. An error ends it. It must end soon after ctx does, also
	// while it waits for a token; the caller does not wait for that.
	Generate(ctx context.Context, p Prompt) iter.Seq2[string, error]
}

// Prompt is the input of a generation.
type Prompt struct {
	Messages []ChatMessage
	// MaxTokens bounds the tokens of the answer; 0 leaves the bound to the
	// generator.
	MaxTokens int64
}

// ChatMessage is one message of a prompt.
type ChatMessage struct {
	Role    string // system, user or assistant
	Content string
}

var (
	// ErrGeneratorPanic says that a generator panicked, or ended its goroutine.
	ErrGeneratorPanic = errors.New(reasonPanicked)

	// ErrGeneratorStuck says that too many abandoned calls of the agent's
	// generators have not ended: a generator ignores its context.
	ErrGeneratorStuck = errors.New("generators that were given up do not return")
)

// GeneratorError says why a generator gave no answer, or was not called. It wraps
// Code and Err.
type GeneratorError struct {
	Generator string
	AgentID   string
	ReqID     string
	// Code is the code that Err wraps, or [agents.ErrGenerationFailed]. It is
	// [agents.ErrBreakerOpen] if the generator was not called because it failed too
	// often for this agent, and [agents.ErrQueueFull] with [ErrGeneratorStuck].
	Code     agents.Code
	Recovery agents.Recovery
	// RetryAfter is the time until it may be called again, if that is known.
	RetryAfter time.Duration
	Panic      any    // the value of a panic
	Stack      []byte // the stack of a panic
	Err        error  // the generator's own error, or one of this package; nil with ErrBreakerOpen
}

func (e *GeneratorError) Error() string {
	return fmt.Sprintf("sajou: generation %q of %q by %s: %s", e.ReqID, e.AgentID, e.Generator, e.cause())
}

// cause returns the message without the request and the generator.
func (e *GeneratorError) cause() string {
	s := string(e.Code)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Panic != nil {
		s += fmt.Sprintf(": %v", e.Panic)
	}
	if e.RetryAfter > 0 {
		s += fmt.Sprintf(reasonRetryAfter, e.RetryAfter)
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

// judge fills in the code, the recovery and the delay from Err.
func (e *GeneratorError) judge() *GeneratorError {
	if r, ok := errors.AsType[*agents.Rejection](e.Err); ok {
		e.Code, e.Recovery, e.RetryAfter = r.Code, r.Recovery, r.RetryAfter
	} else if code, ok := errors.AsType[agents.Code](e.Err); ok {
		e.Code = code
	}
	f, ok := e.Code.Failure()
	if !ok {
		e.Code = agents.ErrGenerationFailed
		f, _ = e.Code.Failure()
	}
	if e.Recovery == "" {
		e.Recovery = f.Recovery
	}
	return e
}

// generatorName returns the name of a generator.
func generatorName(g Generator) (name string) {
	name = fmt.Sprintf("%T", g)
	defer func() { _ = recover() }() // if Name panics, the type is the name
	if named, ok := g.(interface{ Name() string }); ok {
		if own := named.Name(); own != "" {
			name = own
		}
	}
	return name
}

// stream is one call of a generator, on a goroutine of its own, so that nothing
// waits for a generator that ignores its context. Such a call is abandoned: its
// goroutine ends when the generator returns, if ever.
type stream struct {
	seam   live.Driver
	cancel context.CancelFunc
	tokens chan string     // unbuffered: the generator is at most one token ahead
	done   chan struct{}   // closed when the generator has returned
	fault  *GeneratorError // nil if the generator succeeded; written before done is closed

	mu          sync.Mutex // taken before the lock of the agent's breakers
	left, ended bool       // guarded by mu
}

// start calls a generator.
func start(ctx context.Context, seam live.Driver, g Generator, p Prompt) *stream {
	ctx, cancel := context.WithCancel(ctx)
	st := &stream{seam: seam, cancel: cancel, tokens: make(chan string), done: make(chan struct{})}
	go st.run(ctx, g, p)
	return st
}

func (st *stream) run(ctx context.Context, g Generator, p Prompt) {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			st.fault = &GeneratorError{Panic: v, Stack: debug.Stack(), Err: ErrGeneratorPanic}
		} else if !returned {
			st.fault = &GeneratorError{Panic: reasonGoexit, Stack: debug.Stack(), Err: ErrGeneratorPanic}
		}
		st.end()
		close(st.done)
	}()
	st.fault = st.pass(ctx, g, p)
	returned = true
}

// pass passes tokens until there are no more or ctx ends.
func (st *stream) pass(ctx context.Context, g Generator, p Prompt) *GeneratorError {
	for token, err := range g.Generate(ctx, p) {
		if err != nil {
			fault := (&GeneratorError{Err: err}).judge()
			_ = fault.Error() // on this goroutine, which recovers if Error panics
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
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended = true; st.left {
		st.seam.Abandoned(-1)
	}
}

// leave cancels the stream without waiting. If it still runs, it counts as
// abandoned until it ends.
func (st *stream) leave() {
	st.cancel()
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.ended {
		st.left = true
		st.seam.Abandoned(1)
	}
}
