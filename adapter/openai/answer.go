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
)

// answer is one answer as far as it was read.
type answer struct {
	most, limit int64 // tokens that are wanted, 0 for all, and that may come
	yield       func(string) bool
	tokens      int64
	text        strings.Builder // if there is no yield
	said        Completion      // but its Text
	chosen      bool            // a choice was seen
	whole       bool            // nothing more is needed
}

// errEnough ends an answer of which no more is wanted.
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

// take takes in one object. Its errors wrap errEnough, [ErrLimit],
// [ErrMalformed], [ErrTruncated], or are a [*told].
func (a *answer) take(data []byte) error {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		if told := toldIn(data); told != nil { // its other members may be of any form
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
		a.said.Usage = u // a count that is none harms nobody
	}
	for _, c := range m.Choices {
		if c.Index != 0 {
			continue
		}
		a.chosen = true
		err := a.add(c.Delta.Content + c.Message.Content) // there is one or the other
		if err == nil && c.FinishReason != "" {
			a.said.FinishReason, a.whole = c.FinishReason, true
		}
		return err
	}
	return nil
}

// add takes in a token.
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
	if a.yield == nil {
		a.text.WriteString(token)
	} else if !a.yield(token) {
		return errEnough
	}
	if a.tokens == a.most { // what follows may still be its finish_reason and its usage
		a.whole = true
	}
	return nil
}

// completion returns what came.
func (a *answer) completion() Completion {
	c := a.said
	c.Text = a.text.String()
	if c.FinishReason == "" && a.most > 0 && a.tokens >= a.most {
		c.FinishReason = "length"
	}
	return c
}

// told is an error that a server puts where words belong.
type told struct {
	status int // 0 if it says none
	raw    []byte
}

func (t *told) Error() string { return ErrService.Error() }
func (t *told) Unwrap() error { return ErrService }

// toldIn reads an object that has an error in it, nil if there is none.
func toldIn(data []byte) *told {
	var m struct {
		Error json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(data, &m) // what is no object has none
	return toldOf(m.Error)
}

// toldOf reads the member error, which is an object or a text. Its code is a
// status with some servers and a word with others, as its type is.
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

// limited reads up to a number of bytes. More of them are [ErrLimit].
type limited struct {
	r    io.Reader
	most int64
	read int64
}

func (l *limited) Read(p []byte) (int, error) {
	if left := l.most - l.read; int64(len(p))-1 > left {
		p = p[:left+1] // one more shows that there are too many
	}
	n, err := l.r.Read(p)
	if l.read += int64(n); l.read > l.most {
		l.read = l.most // so that it says the same again
		return 0, fmt.Errorf("%w: more than %d bytes", ErrLimit, l.most)
	}
	return n, err
}

// form is how an answer comes.
type form int

const (
	other  form = iota
	object      // one JSON object
	stream      // events
)

// formOf looks at the first byte behind white space and a byte order mark.
func formOf(r *bufio.Reader) (form, error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return other, err
		}
		switch b {
		case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF: // no answer begins with any of these
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
