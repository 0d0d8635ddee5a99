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

// linger bounds the wait for the end of a stream whose answer is complete, and
// for the body of a refusal.
const linger = 250 * time.Millisecond

// ask makes attempts until one succeeds or its error is not to be retried. Its
// error is an [Error].
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
			if last != nil { // this failure opened the breaker
				return Completion{}, last
			}
			return Completion{}, &Error{Code: agents.ErrBreakerOpen, Recovery: recovery(agents.ErrBreakerOpen)}
		}
		a, err := c.attempt(ctx, timely, q)
		if err == nil {
			return a.completion(&c.secrets), nil
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

// attempt makes one request. With an error, the answer has the content that came
// before it.
func (c *Client) attempt(ctx, timely context.Context, q question) (*answer, *Error) {
	v := nothing // stays so if yield panics: that is not a failure of the service
	defer func() { c.breaker.done(c.elapsed(), v) }()
	trying, cancel := context.WithCancelCause(timely)
	defer cancel(nil)
	w := &watch{after: c.cfg.AfterFunc, cancel: cancel}
	defer w.rest()

	a := &answer{most: q.most, limit: c.cfg.MaxTokens, yield: q.yield, words: c.secrets.inAnswers.Stream(redacted)}
	err := c.exchange(trying, w, q.body, a)
	a.end()
	if err != nil && (errors.Is(err, ErrUnreachable) || errors.Is(err, ErrTruncated)) {
		if ended := c.interrupted(ctx, trying); ended != nil {
			err = ended // the connection broke because the context ended
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
	if key := c.cfg.APIKey; key.secret != nil {
		req.Header.Set("Authorization", "Bearer "+*key.secret)
	}
	resp, err := c.send(ctx, req)
	if err != nil {
		var outer *url.Error
		if errors.As(err, &outer) {
			err = outer.Err // url.Error repeats the URL, which may have a key in its query
		}
		return c.passing(ErrUnreachable, err.Error())
	}
	// net/http aborts reads of a body when the context ends, but another transport
	// may not. Closing the body does.
	defer context.AfterFunc(ctx, func() { _ = resp.Body.Close() })()
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 {
		// After a switch of protocols the connection stays open: neither the context
		// nor a length ends a read from it.
		e := c.fault(ErrUpgrade, "")
		e.Status = resp.StatusCode
		return e
	}

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
			e.Reason = "to " + c.secrets.excerpt([]byte(to.Host), false)
		}
		return e
	}
	if !plain {
		return c.fault(ErrMalformed, "it is compressed, although that was not asked for")
	}
	return c.read(ctx, w, resp.Body, a)
}

// send sends a request. The client's own transport returns when the context ends.
// Another one may not: then its goroutine is left behind, and closes the response.
func (c *Client) send(ctx context.Context, req *http.Request) (*http.Response, error) {
	if c.own != nil {
		return c.http.Do(req)
	}
	type sent struct {
		resp *http.Response
		err  error
	}
	done := make(chan sent)
	left := make(chan struct{})
	go func() {
		resp, err := c.http.Do(req)
		select {
		case done <- sent{resp, err}:
		case <-left:
			if err == nil {
				_ = resp.Body.Close()
			}
		}
	}()
	select {
	case s := <-done:
		return s.resp, s.err
	case <-ctx.Done():
		close(left)
		return nil, ctx.Err()
	}
}

// read reads the body of an answer. An error after the answer is complete is
// ignored.
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
		text := c.secrets.excerpt(t.raw, false)
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
	default: // the stream ended early, or the connection broke
		return c.passing(ErrTruncated, reason(err, ErrTruncated))
	}
}

// reason returns the text of an error without that of the error it wraps.
func reason(err, wrapped error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), wrapped.Error()), ": ")
}

// object reads an answer that is one JSON object.
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

// stream reads an answer that is a stream of events. The wait for the first of
// them began in exchange, with FirstByte.
func (c *Client) stream(ctx context.Context, w *watch, r *bufio.Reader, a *answer) error {
	s := &events{r: r}
	for {
		e, err := s.next()
		if !a.whole {
			w.rest() // the time that the caller takes for a token does not count
		}
		if err != nil {
			return err // io.EOF too: read decides whether an answer without [DONE] is complete
		}
		if err := context.Cause(ctx); err != nil {
			return err // drop tokens that were read ahead
		}
		if string(bytes.TrimSpace(e.data)) == "[DONE]" {
			w.wait(linger, "the end")
			drain(r)
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
			if whole && !errors.Is(err, errEnough) { // an error after a complete answer is ignored
				drain(r)
			}
			return err
		case !a.whole:
			w.wait(c.cfg.Idle, "no further event")
		case !whole:
			w.wait(linger, "the end")
		}
	}
}

// drain reads the rest of an answer, because net/http reuses a connection only
// after its response was read to the end.
func drain(r io.Reader) { _, _ = io.CopyN(io.Discard, r, maxLook) }

// errorEvent reads the data of an event named error: an object with a member error,
// or the error itself.
func errorEvent(data []byte) error {
	if t := toldIn(data); t != nil {
		return t
	}
	if t := toldOf(data); t != nil {
		return t
	}
	return fmt.Errorf("%w: an error that says nothing", ErrMalformed)
}

// look returns an excerpt of an unexpected body.
func (c *Client) look(w *watch, r io.Reader) string {
	w.wait(linger, "the rest of a refusal")
	raw, err := io.ReadAll(io.LimitReader(r, maxLook+1))
	return c.secrets.excerpt(raw, err != nil)
}

// watch cancels an attempt whose next step takes too long. It belongs to the
// goroutine of the attempt.
type watch struct {
	after  func(time.Duration, func()) func() bool
	cancel context.CancelCauseFunc
	stop   func() bool // stops the timer; nil while none runs
}

// wait starts the timer, in place of one that runs. Its expiry cancels the attempt.
func (w *watch) wait(d time.Duration, what string) {
	w.rest()
	w.stop = w.after(d, func() { w.cancel(&expired{what, d}) })
}

// rest stops the timer.
func (w *watch) rest() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}
