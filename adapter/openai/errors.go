package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
)

// What can be wrong with an answer. An [Error] wraps one of them, unless its
// code says all.
var (
	// ErrUnreachable says that no answer came.
	ErrUnreachable = errors.New("the service cannot be reached")
	// ErrService says that the service answered with an error: a status, or an
	// error in place of words.
	ErrService = errors.New("the service refused")
	// ErrRedirect says that it is somewhere else: BaseURL is wrong.
	ErrRedirect = errors.New("a redirect is not followed")
	// ErrTruncated says that an answer broke off.
	ErrTruncated = errors.New("the answer broke off")
	// ErrMalformed says that what came is no answer of this API.
	ErrMalformed = errors.New("the answer is malformed")
	// ErrLimit says that an answer is larger than it may be.
	ErrLimit = errors.New("the answer is too long")
)

// Error is why there is no answer, or not the whole one. It wraps Err, and an
// [*agents.Rejection] with Code, Recovery and RetryAfter, which is what a caller
// that tries again goes by. No text in it has the key.
type Error struct {
	// Code is one of [agents.GenerationFailed], [agents.GenerationTimeout],
	// [agents.BreakerOpen], and [agents.Cancelled] when the caller gave up.
	Code agents.Code
	// Recovery is what may be done about it: Abort if the same question will be
	// answered the same way.
	Recovery agents.Recovery
	// Status is the HTTP status, 0 if there was none.
	Status int
	// RetryAfter is how long the server wants to be left alone, 0 if it did not
	// say.
	RetryAfter time.Duration
	// Attempts is how many requests were made.
	Attempts int
	// Reason says what happened.
	Reason string
	// Body is the beginning of what the server sent that was wrong, up to 512
	// bytes.
	Body string
	// Err is one of this package's errors, what the caller's context says, or
	// nil.
	Err error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("openai: " + string(e.Code))
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Status != 0 && e.Status != http.StatusOK {
		fmt.Fprintf(&b, ": %s", strings.TrimSpace(strconv.Itoa(e.Status)+" "+http.StatusText(e.Status)))
	}
	if e.Reason != "" {
		b.WriteString(": " + e.Reason)
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, ", again after %v", e.RetryAfter)
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, ", attempt %d", e.Attempts)
	}
	if e.Body != "" {
		fmt.Fprintf(&b, ": %q", e.Body)
	}
	return b.String()
}

func (e *Error) Unwrap() []error {
	list := []error{&agents.Rejection{Code: e.Code, Recovery: e.Recovery, RetryAfter: e.RetryAfter, Reason: e.Reason}}
	if e.Err != nil {
		list = append(list, e.Err)
	}
	return list
}

// fault is an error that will not pass by itself; passing is one that may.
func (c *Client) fault(err error, reason string) *Error {
	return &Error{
		Code: agents.GenerationFailed, Recovery: agents.Abort, Err: err,
		Reason: c.key.excerpt([]byte(reason), false),
	}
}

func (c *Client) passing(err error, reason string) *Error {
	e := c.fault(err, reason)
	e.Recovery = recovery(e.Code)
	return e
}

func recovery(code agents.Code) agents.Recovery {
	f, _ := code.Failure()
	return f.Recovery
}

// refused is what a status means that is no answer. Body is the beginning of
// what came with it.
func (c *Client) refused(status int, body string) *Error {
	e := c.fault(ErrService, "")
	e.Status, e.Body = status, body
	switch {
	case status < 400:
		e.Err = ErrRedirect
		if status < 300 {
			e.Err = ErrMalformed
		}
	case status == http.StatusRequestTimeout || status == http.StatusGatewayTimeout:
		e.Code, e.Recovery = agents.GenerationTimeout, recovery(agents.GenerationTimeout)
	case status == http.StatusConflict || status == http.StatusTooEarly || status == http.StatusTooManyRequests:
		e.Recovery = agents.RetryWithDelay
	case status >= 500:
		e.Recovery = recovery(e.Code)
	}
	return e
}

// expired says which time ran out. It is the cause of a context's end.
type expired struct {
	what  string
	after time.Duration
}

func (e *expired) Error() string { return fmt.Sprintf("%s after %v", e.what, e.after) }

// interrupted is why an attempt was ended, nil if it was not. ctx is the
// caller's, trying the attempt's.
func (c *Client) interrupted(ctx, trying context.Context) *Error {
	cause := context.Cause(trying)
	if cause == nil {
		return nil
	}
	e := &Error{Code: agents.GenerationTimeout}
	if err := ctx.Err(); err == nil {
		e.Reason = cause.Error()
	} else {
		e.Err = err
		if !errors.Is(err, context.DeadlineExceeded) {
			e.Code = agents.Cancelled
		}
		if why := context.Cause(ctx); why != nil && !errors.Is(err, why) {
			e.Reason = c.key.excerpt([]byte(why.Error()), false)
		}
	}
	e.Recovery = recovery(e.Code)
	return e
}

// maxRetryAfter keeps what a server says from overflowing a duration.
const maxRetryAfter = 7 * 24 * time.Hour

// retryAfter reads the header of this name: seconds, or a date. Anything else
// is 0.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(date.Sub(now), 0), maxRetryAfter)
	}
	return 0
}
