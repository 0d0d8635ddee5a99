package main

import (
	"bufio"
	"bytes"
	"context"
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

// interruptible reads from r until ctx ends. A read from a terminal or a pipe
// cannot be called off, so each has a goroutine; the one that still waits when
// ctx ends is left behind, and ends with the process or with its next byte.
type interruptible struct {
	ctx     context.Context // a reader's calls have none; it lives as long as one import
	r       io.Reader
	done    chan readResult // holds one, so that nobody waits to deliver it
	reading bool
	left    []byte // read and not handed out yet
	err     error
}

type readResult struct {
	data []byte
	err  error
}

func newInterruptible(ctx context.Context, r io.Reader) *interruptible {
	return &interruptible{ctx: ctx, r: r, done: make(chan readResult, 1)}
}

func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	if len(i.left) == 0 && i.err == nil {
		if !i.reading {
			i.reading = true
			go func() {
				b := make([]byte, 64<<10)
				n, err := i.r.Read(b)
				i.done <- readResult{b[:n], err}
			}()
		}
		select {
		case got := <-i.done:
			i.reading, i.left, i.err = false, got.data, got.err
		case <-i.ctx.Done():
			return 0, i.ctx.Err()
		}
	}
	n := copy(p, i.left)
	i.left = i.left[n:]
	if len(i.left) == 0 && i.err != nil {
		return n, i.err
	}
	return n, nil
}
