package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/secret"
)

// answer accumulates one answer while it is read. It belongs to the goroutine
// of the attempt.
type answer struct {
	most, limit int64 // tokens requested, 0 for no limit; tokens allowed
	yield       func(string) bool
	tokens      int64
	words       *secret.Stream  // redacts configured secrets in the tokens
	text        strings.Builder // used if yield is nil
	said        Completion      // without its Text
	chosen      bool            // a choice was seen
	whole       bool            // the answer is complete
	refused     bool            // yield returned false
}

// errEnough stops reading an answer when the caller or the budget has enough.
var errEnough = errors.New("enough")

// message is the object of an answer, or of one event of it.
type message struct {
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        int     `json:"index"`
	Delta        content `json:"delta"`
	Message      content `json:"message"`
	FinishReason string  `json:"finish_reason"`
}

type content struct {
	Content string `json:"content"`
}

// take parses one object and adds its content. Its errors wrap errEnough, [ErrLimit],
// [ErrMalformed], [ErrTruncated], or are a [*told].
func (a *answer) take(data []byte) error {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		if told := toldIn(data); told != nil { // an error object may have choices of any type
			return told
		}
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && syntax.Offset >= int64(len(data)) {
			return fmt.Errorf("%w: %v", ErrTruncated, err)
		}
		return fmt.Errorf("%w: %v", ErrMalformed, err)
	}
	if told := toldOf(m.Error); told != nil {
		return told
	}
	if m.Model != "" {
		a.said.Model = m.Model
	}
	var u Usage
	if len(m.Usage) > 0 && json.Unmarshal(m.Usage, &u) == nil && u != (Usage{}) {
		a.said.Usage = u // usage is informative: a malformed one is ignored
	}
	for _, c := range m.Choices {
		if c.Index != 0 {
			continue
		}
		a.chosen = true
		err := a.add(c.Delta.Content + c.Message.Content) // a server sends one of the two
		if err == nil && c.FinishReason != "" {
			a.said.FinishReason, a.whole = c.FinishReason, true
		}
		return err
	}
	return nil
}

// add counts a token, and passes it on.
func (a *answer) add(token string) error {
	switch {
	case token == "":
		return nil
	case a.most > 0 && a.tokens >= a.most:
		return errEnough
	case a.tokens >= a.limit:
		return fmt.Errorf("%w: more than %d tokens", ErrLimit, a.limit)
	}
	a.tokens++
	words := a.words.Next(token)
	if a.tokens == a.most {
		words += a.words.End()
	}
	if !a.give(words) {
		return errEnough
	}
	if a.tokens == a.most { // finish_reason and usage may still follow
		a.whole = true
	}
	return nil
}

// give passes words on. It returns false once yield has returned false.
func (a *answer) give(words string) bool {
	if words == "" || a.refused {
		return !a.refused
	}
	if a.yield == nil {
		a.text.WriteString(words)
		return true
	}
	a.refused = !a.yield(words)
	return !a.refused
}

// end passes on the part of the last token that was held back as a possible
// beginning of a secret.
func (a *answer) end() { a.give(a.words.End()) }

// completion returns the answer as far as it was read.
func (a *answer) completion(s *secrets) Completion {
	c := a.said
	c.Model, c.FinishReason = s.inAnswers.Replace(c.Model, redacted), s.inAnswers.Replace(c.FinishReason, redacted)
	c.Text = a.text.String()
	if c.FinishReason == "" && a.most > 0 && a.tokens >= a.most {
		c.FinishReason = "length"
	}
	return c
}

// told is an error that a server sends in place of content.
type told struct {
	status int // 0 if the error has none
	raw    []byte
}

func (t *told) Error() string { return ErrService.Error() }
func (t *told) Unwrap() error { return ErrService }

// toldIn returns the member error of an object, nil if there is none.
func toldIn(data []byte) *told {
	var m struct {
		Error json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(data, &m) // data that is not an object has no error member
	return toldOf(m.Error)
}

// toldOf reads the member error, which is an object or a text. Its code and its
// type are an HTTP status with some servers and a word with others.
func toldOf(raw json.RawMessage) *told {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", `""`, "{}", "false":
		return nil
	}
	t := &told{raw: raw}
	var m struct{ Code, Type any }
	if json.Unmarshal(raw, &m) != nil {
		return t
	}
	switch code := m.Code.(type) {
	case float64:
		if code >= 400 && code < 600 {
			t.status = int(code)
		}
	case string:
		if status, err := strconv.Atoi(code); err == nil && status >= 400 && status < 600 {
			t.status = status
		}
	}
	if t.status == 0 && m.Type == "invalid_request_error" {
		t.status = 400
	}
	return t
}

// limited reads up to a number of bytes. It fails with [ErrLimit] if there are more.
type limited struct {
	r    io.Reader
	most int64
	read int64
}

func (l *limited) Read(p []byte) (int, error) {
	if left := l.most - l.read; int64(len(p))-1 > left {
		p = p[:left+1] // the one extra byte detects an excess
	}
	n, err := l.r.Read(p)
	if l.read += int64(n); l.read > l.most {
		l.read = l.most // the next Read fails in the same way
		return 0, fmt.Errorf("%w: more than %d bytes", ErrLimit, l.most)
	}
	return n, err
}

// form is the encoding of an answer.
type form int

const (
	other  form = iota
	object      // one JSON object
	stream      // events
)

// formOf determines the form by the first byte after white space and a byte order
// mark, because servers send wrong content types.
func formOf(r *bufio.Reader) (form, error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return other, err
		}
		switch b {
		case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF: // the last three are the byte order mark
			continue
		}
		if err := r.UnreadByte(); err != nil {
			return other, err
		}
		switch b {
		case '{':
			return object, nil
		case ':', 'd', 'e', 'i', 'r': // a comment, data, event, id, retry
			return stream, nil
		}
		return other, nil
	}
}
