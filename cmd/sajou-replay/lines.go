package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// maxLine bounds one line of JSONL, in bytes. An entry is at most 1 MiB, and
// JSON can be that much longer than what is stored of it.
const maxLine = 4 << 20

// errLongLine says that a line is longer than maxLine.
var errLongLine = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)

// lineReader reads the lines of a text that are not blank. It holds no more
// than maxLine.
type lineReader struct {
	r      *bufio.Reader
	number int // of the line that next returned, from 1
	long   []byte
}

func newLineReader(r io.Reader) *lineReader { return &lineReader{r: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line that is not blank, without its end; it is good
// until the call after. It ends with io.EOF.
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
			// Signals are views of what they were parsed from.
			return bytes.Clone(line), nil
		}
	}
}

func (l *lineReader) line() ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.long)+len(part) > maxLine {
			l.number++
			return nil, errLongLine
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

// meter shows progress in one line of a terminal, a few times a second; on
// anything else it is silent.
type meter struct {
	w     io.Writer // nil: silent
	last  time.Time
	shown bool
}

func newMeter(w io.Writer) *meter {
	if isTerminal(w) {
		return &meter{w: w}
	}
	return &meter{}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (m *meter) show(text string) {
	if m.w == nil || time.Since(m.last) < 100*time.Millisecond {
		return
	}
	m.last, m.shown = time.Now(), true
	fmt.Fprintf(m.w, "\r\x1b[K%s", text)
}

func (m *meter) clear() {
	if m.w != nil && m.shown {
		fmt.Fprint(m.w, "\r\x1b[K")
	}
}
