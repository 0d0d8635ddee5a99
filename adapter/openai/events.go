package openai

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// The bounds of one event.
const (
	maxLine  = 64 << 10 // bytes of a line, without its end
	maxEvent = 4 * maxLine
)

// events reads a stream of server-sent events: lines that end with LF, CRLF or
// CR, and events that end with an empty line.
//
//	: a comment
//	event: name
//	data: the first line
//	data: the second
//
// An event without data is skipped, and so are comments and blank lines, with which
// a server keeps a connection alive. The fields id and retry are ignored: the client
// does not reconnect. If a stream ends within an event or a line, that event counts,
// unlike in the standard (WHATWG HTML, server-sent events), because servers omit the
// last newline.
type events struct {
	r    *bufio.Reader
	line []byte
	data []byte // of the current event, with a newline after each line
	name string
	cr   bool // the last line ended with a CR: a following LF belongs to that end
}

// event is one event. Its data is valid until the next one is read.
type event struct {
	name string
	data []byte
}

// next returns the next event, io.EOF after the last, or an error that wraps
// [ErrLimit]. Other errors are the reader's.
func (s *events) next() (event, error) {
	s.data, s.name = s.data[:0], ""
	for {
		err := s.read()
		if err != nil && !errors.Is(err, io.EOF) {
			return event{}, err
		}
		if len(s.line) > 0 {
			if err := s.field(); err != nil {
				return event{}, err
			}
		}
		if len(s.line) > 0 && err == nil {
			continue
		}
		if data := bytes.TrimSuffix(s.data, []byte("\n")); len(bytes.TrimSpace(data)) > 0 {
			return event{s.name, data}, nil // the next call meets io.EOF again
		}
		if err != nil {
			return event{}, err
		}
		s.data, s.name = s.data[:0], ""
	}
}

// read reads the next line. With io.EOF, line is an unterminated one. It does not
// read past the end of a line, so an event is returned as soon as it has arrived.
func (s *events) read() error {
	s.line = s.line[:0]
	for {
		b, err := s.r.ReadByte()
		if err != nil {
			return err
		}
		cr := s.cr
		s.cr = b == '\r'
		switch {
		case b == '\n' && cr: // the second half of a CRLF
		case b == '\n' || b == '\r':
			return nil
		case len(s.line) == maxLine:
			return fmt.Errorf("%w: a line of more than %d bytes", ErrLimit, maxLine)
		default:
			s.line = append(s.line, b)
		}
	}
}

// field adds one line to the event.
func (s *events) field() error {
	name, value, _ := bytes.Cut(s.line, []byte(":")) // a comment has an empty name
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		s.name = string(value)
	case "data":
		if len(s.data)+len(value)+1 > maxEvent {
			return fmt.Errorf("%w: an event of more than %d bytes", ErrLimit, maxEvent)
		}
		s.data = append(append(s.data, value...), '\n')
	}
	return nil
}
