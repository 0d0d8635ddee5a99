package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// MaxLine bounds one line of JSONL, in bytes. An entry is at most 1 MiB, and
// its JSON can be that much longer than its stored form.
const MaxLine = 4 << 20

// ErrLongLine reports a line that is longer than [MaxLine].
var ErrLongLine = fmt.Errorf("ingest: the line is longer than %d MiB", MaxLine>>20)

// JSONL reads signals of the protocol, one JSON object a line. Blank lines are
// skipped, and so is a byte order mark. With lenient, signals that break the
// schema are yielded too, with their Problem set. The sequence ends at the first
// error, which is a [recording.PlaceError] unless reading failed between lines. File is
// the name of the source in places. The caller closes r.
func JSONL(r io.Reader, file string, lenient bool) iter.Seq2[recording.Item, error] {
	return func(yield func(recording.Item, error) bool) {
		parse := signal.Parse
		if lenient {
			parse = signal.ParseLenient
		}
		lines := newLineReader(r)
		for {
			line, err := lines.next()
			if errors.Is(err, io.EOF) {
				return
			}
			at := recording.Place{File: file, Line: lines.number}
			var sig *signal.Signal
			if err == nil {
				sig, err = parse(line)
			}
			if err != nil {
				yield(recording.Item{}, &recording.PlaceError{Place: at, Err: err})
				return
			}
			if !yield(recording.Item{Signal: sig, Place: at, Size: len(line)}, nil) {
				return
			}
		}
	}
}

// lineReader reads the lines of a text that are not blank. It holds no more
// than MaxLine.
type lineReader struct {
	r      *bufio.Reader
	number int // of the line that next returned, from 1
	long   []byte
}

func newLineReader(r io.Reader) *lineReader { return &lineReader{r: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line that is not blank, without its end. It ends with
// io.EOF.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		if l.number == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")) // a byte order mark
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			// Signals are views of the text that they were parsed from.
			return bytes.Clone(line), nil
		}
	}
}

// line returns the next line, blank or not. It is valid until the next call.
func (l *lineReader) line() ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.long)+len(part) > MaxLine {
			l.number++
			return nil, ErrLongLine
		}
		switch {
		case err == nil && len(l.long) == 0:
			l.number++
			return part, nil
		case errors.Is(err, bufio.ErrBufferFull) || err == nil || errors.Is(err, io.EOF):
			l.long = append(l.long, part...)
		default:
			l.number++
			return nil, err
		}
		if err == nil || errors.Is(err, io.EOF) && len(l.long) > 0 {
			l.number++
			return l.long, nil
		}
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
	}
}
