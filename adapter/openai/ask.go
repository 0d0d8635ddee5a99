package openai

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
)

// linger is how long the end of a stream is waited for whose answer is whole,
// and the text of a refusal that has begun.
const linger = 250 * time.Millisecond

// ask asks until there is an answer or no more is to be tried. Its error is an
// [Error].
func (c *Client) ask(ctx context.Context, q question) (Completion, error) {
	begin := c.elapsed()
	timely, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := c.cfg.AfterFunc(c.cfg.Timeout, func() { cancel(&expired{"the whole request", c.cfg.Timeout}) })
	defer stop()

	var last *Error
	for attempt := 0; ; attempt++ {
		if ended := c.interrupted(ctx, timely); ended != nil {
			if last != nil {
				ended.Attempts, ended.Status = attempt, last.Status
				ended.Reason = strings.TrimPrefix(ended.Reason+"; before: "+last.Error(), "; ")
			}
			return Completion{}, ended
		}
		if !c.breaker.allow(c.elapsed()) {
			if last != nil { // it is what opened it
				return Completion{}, last
			}
			return Completion{}, &Error{Code: agents.BreakerOpen, Recovery: recovery(agents.BreakerOpen)}
		}
		a, err := c.attempt(ctx, timely, q)
		if err == nil {
			return a.completion(), nil
		}
		err.Attempts = attempt + 1
		delay, again := err.Recovery.Delay(attempt)
		delay = max(delay, err.RetryAfter)
		if !again || timely.Err() != nil || a.tokens > 0 && q.yield != nil ||
			err.RetryAfter > c.cfg.RetryAfter || c.elapsed()-begin+delay >= c.cfg.Timeout {
			return Completion{}, err
		}
		last = err
		c.wait(timely, delay)
	}
}

// elapsed is the breaker's time.
func (c *Client) elapsed() time.Duration { return c.cfg.Now().Sub(c.begin) }

// wait returns after d, or when ctx ends.
func (c *Client) wait(ctx context.Context, d time.Duration) {
	done := make(chan struct{})
	stop := c.cfg.AfterFunc(d, func() { close(done) })
	defer stop()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// attempt asks once. The answer is what came, also with an error.
func (c *Client) attempt(ctx, timely context.Context, q question) (*answer, *Error) {
	v := nothing // a panic of yield says nothing either
	defer func() { c.breaker.done(c.elapsed(), v) }()
	trying, cancel := context.WithCancelCause(timely)
	defer cancel(nil)
	w := &watch{after: c.cfg.AfterFunc, cancel: cancel}
	defer w.rest()

	a := &answer{most: q.most, limit: c.cfg.MaxTokens, yield: q.yield}
	err := c.exchange(trying, w, q.body, a)
	if err != nil && (errors.Is(err, ErrUnreachable) || errors.Is(err, ErrTruncated)) {
		if ended := c.interrupted(ctx, trying); ended != nil {
			err = ended // it broke off because it was ended
		}
	}
	switch {
	case err == nil, err.Recovery == agents.Abort && err.Status >= 300:
		v = well
	case ctx.Err() == nil:
		v = ill
	}
	return a, err
}

// exchange sends the question and reads the answer.
func (c *Client) exchange(ctx context.Context, w *watch, body []byte, a *answer) *Error {
	w.wait(c.cfg.FirstByte, "no answer")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return c.fault(nil, "BaseURL cannot be asked")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "sajou")
	if c.key.secret != nil {
		req.Header.Set("Authorization", "Bearer "+*c.key.secret)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var outer *url.Error
		if errors.As(err, &outer) {
			err = outer.Err // without the URL
		}
		return c.passing(ErrUnreachable, err.Error())
	}
	defer func() { _ = resp.Body.Close() }()

	encoding := resp.Header.Get("Content-Encoding")
	plain := encoding == "" || strings.EqualFold(encoding, "identity")
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		text := ""
		if plain {
			text = c.look(w, resp.Body)
		}
		e := c.refused(resp.StatusCode, text)
		e.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), c.cfg.Now())
		if to, err := resp.Location(); err == nil && errors.Is(e, ErrRedirect) {
			e.Reason = "to " + c.key.excerpt([]byte(to.Host), false)
		}
		return e
	}
	if !plain {
		return c.fault(ErrMalformed, "it is compressed, although that was not asked for")
	}
	return c.read(ctx, w, resp.Body, a)
}

// read reads the body of an answer. Once the answer is whole it does not fail.
func (c *Client) read(ctx context.Context, w *watch, body io.Reader, a *answer) *Error {
	r := bufio.NewReader(&limited{r: body, most: c.cfg.MaxBytes})
	f, err := formOf(r)
	if err == nil {
		switch f {
		case object:
			w.rest()
			err = c.object(w, r, a)
		case stream:
			err = c.stream(ctx, w, r, a)
		default:
			e := c.fault(ErrMalformed, "neither events nor an object")
			e.Body = c.look(w, r)
			return e
		}
	}
	var t *told
	switch {
	case a.whole || errors.Is(err, errEnough):
		return nil
	case err == nil && a.chosen:
		return nil
	case err == nil:
		return c.fault(ErrMalformed, "no choice in it")
	case errors.As(err, &t):
		text := c.key.excerpt(t.raw, false)
		if t.status != 0 {
			return c.refused(t.status, text)
		}
		e := c.passing(ErrService, "an error in place of words")
		e.Body = text
		return e
	case errors.Is(err, ErrLimit):
		return c.fault(ErrLimit, reason(err, ErrLimit))
	case errors.Is(err, ErrMalformed):
		return c.fault(ErrMalformed, reason(err, ErrMalformed))
	default: // it ended, or the connection did
		return c.passing(ErrTruncated, reason(err, ErrTruncated))
	}
}

// reason is what an error says beyond the one that it wraps.
func reason(err, wrapped error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), wrapped.Error()), ": ")
}

// object reads an answer that is one object.
func (c *Client) object(w *watch, r io.Reader, a *answer) error {
	var data []byte
	for block := make([]byte, 4<<10); ; {
		w.wait(c.cfg.Idle, "no further bytes")
		n, err := r.Read(block)
		w.rest()
		data = append(data, block[:n]...) // bounded by MaxBytes
		if err == io.EOF {
			return a.take(data)
		}
		if err != nil {
			return err
		}
	}
}

// stream reads an answer that is events. What is waited for first is the first
// of them.
func (c *Client) stream(ctx context.Context, w *watch, r *bufio.Reader, a *answer) error {
	s := &events{r: r}
	for {
		e, err := s.next()
		if !a.whole {
			w.rest() // what the caller does with a token is no fault of the server
		}
		if err != nil {
			return err // io.EOF too: without [DONE], what came before says whether it is whole
		}
		if err := context.Cause(ctx); err != nil {
			return err // tokens that were read ahead are not wanted any more
		}
		if string(bytes.TrimSpace(e.data)) == "[DONE]" {
			w.wait(linger, "the end")
			_, _ = io.CopyN(io.Discard, r, maxLook) // a connection that was read to its end can be used again
			return nil
		}
		whole := a.whole
		if e.name == "error" {
			err = errorEvent(e.data)
		} else {
			err = a.take(e.data)
		}
		switch {
		case err != nil:
			return err
		case !a.whole:
			w.wait(c.cfg.Idle, "no further event")
		case !whole:
			w.wait(linger, "the end")
		}
	}
}

// errorEvent reads an event that calls itself an error, whatever its form.
func errorEvent(data []byte) error {
	if t := toldIn(data); t != nil {
		return t
	}
	if t := toldOf(data); t != nil {
		return t
	}
	return fmt.Errorf("%w: an error that says nothing", ErrMalformed)
}

// look reads the beginning of something that is wrong.
func (c *Client) look(w *watch, r io.Reader) string {
	w.wait(linger, "the rest of a refusal")
	raw, err := io.ReadAll(io.LimitReader(r, maxLook+1))
	return c.key.excerpt(raw, err != nil)
}

// watch ends an attempt when what it waits for does not come in time. It is of
// the goroutine that makes the attempt.
type watch struct {
	after  func(time.Duration, func()) func() bool
	cancel context.CancelCauseFunc
	stop   func() bool // nil while nothing is waited for
}

// wait begins to wait for something, in place of what was waited for before.
func (w *watch) wait(d time.Duration, what string) {
	w.rest()
	w.stop = w.after(d, func() { w.cancel(&expired{what, d}) })
}

// rest waits for nothing.
func (w *watch) rest() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}
