package read

import (
	"bufio"
	"net/http"
)

// stream writes the body of an answer that is sent while it is read.
type stream struct {
	q     *request
	b     *bufio.Writer
	begun bool
}

// stream returns the body of the answer.
func (q *request) stream() *stream {
	s := &stream{q: q}
	s.b = bufio.NewWriterSize(sender{s}, 32<<10)
	return s
}

// Write implements [io.Writer]. Its error ends what reads the log: the caller is gone.
func (s *stream) Write(p []byte) (int, error) {
	if err := s.q.ctx.Err(); err != nil {
		return 0, err
	}
	return s.b.Write(p)
}

// sender notes that a part of the body was sent.
type sender struct{ s *stream }

func (w sender) Write(p []byte) (int, error) {
	w.s.begun = true
	return w.s.q.w.Write(p)
}

// end ends the body. An error before a part of it was sent is that of the request. An
// error after that breaks the connection off: otherwise the caller would take a part for
// the whole.
func (s *stream) end(err error) error {
	if err != nil && !s.begun {
		return err
	}
	if err == nil {
		err = s.b.Flush()
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}
