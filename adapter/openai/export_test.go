package openai

import (
	"bufio"
	"io"
	"net/url"
	"time"
)

// Failures returns the breaker's count of failures.
func (c *Client) Failures() int {
	c.breaker.mu.Lock()
	defer c.breaker.mu.Unlock()
	return c.breaker.Breaker.Failures()
}

// RetryAfter is retryAfter.
func RetryAfter(value string, now time.Time) time.Duration { return retryAfter(value, now) }

// Event is an event with its own copy of the data.
type Event struct{ Name, Data string }

// ReadEvents reads all events of a stream.
func ReadEvents(r io.Reader) ([]Event, error) {
	s := &events{r: bufio.NewReader(r)}
	var all []Event
	for {
		e, err := s.next()
		if err != nil {
			return all, err
		}
		all = append(all, Event{e.name, string(e.data)})
	}
}

// Take reads one object of an answer into the text of a completion.
func Take(data []byte) (Completion, error) {
	s := newSecrets(Key{}, &url.URL{})
	a := &answer{limit: 1, words: s.inAnswers.Stream(redacted)}
	err := a.take(data)
	a.end()
	return a.completion(&s), err
}
