package aider

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
)

// textLine is one line with its white space, which means something in Markdown.
type textLine struct {
	place recording.Place
	size  int
	text  string // without its end; valid UTF-8
	torn  bool   // it is the last one and has no end
}

// maxLine is how much is read of one line.
const maxLine = 1 << 20

type lineReader struct {
	in *bufio.Reader
	at recording.Place
}

func newLineReader(in io.Reader, name string) *lineReader {
	return &lineReader{bufio.NewReaderSize(in, 64<<10), recording.Place{File: name}}
}

// next returns the next line, and [io.EOF] after the last.
func (r *lineReader) next() (textLine, error) {
	var text []byte
	size := 0
	for {
		part, err := r.in.ReadSlice('\n')
		size += len(part)
		if size <= maxLine {
			text = append(text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return textLine{}, fmt.Errorf("%s: %w", r.at.File, err)
		}
		if err != nil && size == 0 {
			return textLine{}, io.EOF
		}
		r.at.Line++
		if r.at.Line == 1 {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		}
		line := textLine{place: r.at, size: size, torn: err != nil, text: strings.ToValidUTF8(strings.TrimRight(string(text), "\r\n"), "\uFFFD")}
		r.at.Offset += int64(size)
		return line, nil
	}
}
