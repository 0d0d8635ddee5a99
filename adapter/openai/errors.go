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

// Kinds of failure. An [Error] wraps one of them, unless its code is specific
// enough. Their texts and the reasons in this package reach the records of
// generations through [agents.Rejection], so they are not reworded.
var (
	// ErrUnreachable means that the service did not answer.
	ErrUnreachable = errors.New("the service cannot be reached")
	// ErrService means that the service answered with an error: a status, or an
	// error in place of content.
	ErrService = errors.New("the service refused")
	// ErrRedirect means that the service redirects: BaseURL is wrong.
	ErrRedirect = errors.New("a redirect is not followed")
	// ErrUpgrade means that the server switches to another protocol.
	ErrUpgrade = errors.New("an upgrade is not followed")
	// ErrTruncated means that an answer is incomplete.
	ErrTruncated = errors.New("the answer broke off")
	// ErrMalformed means that an answer does not follow the API.
	ErrMalformed = errors.New("the answer is malformed")
	// ErrLimit means that an answer is larger than a limit of the Config.
	ErrLimit = errors.New("the answer is too long")
)

// Error is the failure of a request, which may have yielded a part of its answer. It
// wraps Err, and an [*agents.Rejection] with Code, Recovery and RetryAfter, by which a
// caller decides whether to retry. None of its texts contains the key.
type Error struct {
	// Code is one of [agents.ErrGenerationFailed], [agents.ErrGenerationTimeout],
	// [agents.ErrBreakerOpen], and [agents.ErrCancelled] when the caller gave up.
	Code agents.Code
	// Recovery is the remedy: Abort if the same question would fail again.
	Recovery agents.Recovery
	// Status is the HTTP status, 0 if there was none.
	Status int
	// RetryAfter is the wait that the server asks for, 0 if it does not.
	RetryAfter time.Duration
	// Attempts is the number of requests that were sent.
	Attempts int
	// Reason describes the failure.
	Reason string
	// Body is the beginning of the malformed or refusing answer, up to 512
	// bytes.
	Body string
	// Err is one of this package's errors, the error of the caller's context, or
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

// fault returns a permanent error.
func (c *Client) fault(err error, reason string) *Error {
	return &Error{
		Code: agents.ErrGenerationFailed, Recovery: agents.Abort, Err: err,
		Reason: c.secrets.excerpt([]byte(reason), false),
	}
}

// passing returns a temporary error, which is retried.
func (c *Client) passing(err error, reason string) *Error {
	e := c.fault(err, reason)
	e.Recovery = recovery(e.Code)
	return e
}

func recovery(code agents.Code) agents.Recovery {
	f, _ := code.Failure()
	return f.Recovery
}

// refused returns the error of a status that is not an answer. body is an excerpt of
// the response's body.
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
		e.Code, e.Recovery = agents.ErrGenerationTimeout, recovery(agents.ErrGenerationTimeout)
	case status == http.StatusConflict || status == http.StatusTooEarly || status == http.StatusTooManyRequests:
		e.Recovery = agents.RetryWithDelay
	case status >= 500:
		e.Recovery = recovery(e.Code)
	}
	return e
}

// expired is the cause of a context that ended at one of the time limits of the
// Config.
type expired struct {
	what  string
	after time.Duration
}

func (e *expired) Error() string { return fmt.Sprintf("%s after %v", e.what, e.after) }

// interrupted returns the error of an attempt whose context ended, nil if it did
// not. ctx is the caller's context, trying the attempt's.
func (c *Client) interrupted(ctx, trying context.Context) *Error {
	cause := context.Cause(trying)
	if cause == nil {
		return nil
	}
	e := &Error{Code: agents.ErrGenerationTimeout}
	if err := ctx.Err(); err == nil {
		e.Reason = cause.Error()
	} else {
		e.Err = err
		if !errors.Is(err, context.DeadlineExceeded) {
			e.Code = agents.ErrCancelled
		}
		if why := context.Cause(ctx); why != nil && !errors.Is(err, why) {
			e.Reason = c.secrets.excerpt([]byte(why.Error()), false)
		}
	}
	e.Recovery = recovery(e.Code)
	return e
}

// maxRetryAfter keeps the header of a server from overflowing a duration.
const maxRetryAfter = 7 * 24 * time.Hour

// retryAfter reads the header Retry-After: seconds, or a date (RFC 9110 §10.2.3). It
// returns 0 for anything else.
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
