package ingest

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// TestLines shows that every line end is recognized, and that a line without an end
// takes a bounded amount of memory.
func TestLines(t *testing.T) {
	lines := newLineReader(strings.NewReader("\xef\xbb\xbfone\r\n\n  \n two \nthree"))
	for i, want := range []string{"one", "two", "three"} {
		got, err := lines.next()
		if err != nil || string(got) != want || lines.number != []int{1, 4, 5}[i] {
			t.Errorf("line %d is %q, %v, want %q", lines.number, got, err, want)
		}
	}
	if _, err := lines.next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	endless := newLineReader(zeros{})
	if _, err := endless.next(); !errors.Is(err, ErrLongLine) {
		t.Errorf("a line without an end: %v", err)
	}
	if n := cap(endless.long); n > 2*MaxLine {
		t.Errorf("a line without an end took %d bytes", n)
	}
	full := strings.Repeat("x", MaxLine-1)
	if got, err := newLineReader(strings.NewReader(full + "\n")).next(); err != nil || string(got) != full {
		t.Errorf("a line of %d bytes: %d bytes, %v", MaxLine, len(got), err)
	}
}

// zeros is a text of one line without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
