package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strconv"

	"github.com/sajou-dev/sajou-go/signal"
)

// The bounds of what is held of a recording at once.
const (
	MaxLine     = 32 << 20  // bytes of one line
	MaxDocument = 512 << 20 // bytes of a file that can only be read whole
)

// ErrTooLarge reports a file that is longer than [MaxDocument] and cannot be read by lines.
var ErrTooLarge = fmt.Errorf("the file is longer than %d MiB, and its format can only be read whole", MaxDocument>>20)

// Recorded is the recording that a format reads.
type Recorded struct {
	FS   fs.FS
	Name string // of the main file, or of the folder

	mapping *Mapping
}

// NativeRecord is one native record.
type NativeRecord struct {
	Place Place
	Size  int // bytes of its text
	Value signal.Value
}

// Lines yields the records of a file that has one JSON value a line, and begins each in
// the mapping. Blank lines are passed over. A line that cannot be parsed is recorded as
// unreadable, unless it is the last one and has no end: that one is still being written,
// and is held back.
func (in *Recorded) Lines(name string) iter.Seq2[NativeRecord, error] {
	return func(yield func(NativeRecord, error) bool) {
		for line, err := range in.Text(name) {
			if err != nil {
				yield(NativeRecord{}, err)
				return
			}
			p := parseLine(line)
			read := in.begin(p)
			if in.mapping.Stopped() || read && !yield(p.rec, nil) {
				return
			}
		}
	}
}

// parsedLine is a line of a file of records that was parsed but not begun.
type parsedLine struct {
	line     TextLine
	rec      NativeRecord
	repaired bool
	err      error // the text is no JSON
}

func parseLine(line TextLine) parsedLine {
	p := parsedLine{line: line, rec: NativeRecord{Place: line.Place, Size: line.Size}}
	if line.Text != nil {
		p.rec.Value, p.repaired, p.err = ParseJSON(line.Text)
	}
	return p
}

// begin begins the record of a line in the mapping, and reports whether it can be read.
func (in *Recorded) begin(p parsedLine) bool {
	m := in.mapping
	m.Begin(p.rec)
	switch {
	case p.line.Text == nil:
		m.Unreadable(fmt.Sprintf("the line has %d bytes; %d are read", p.line.Size, MaxLine), nil)
	case p.err != nil && p.line.Torn && !m.options.Final:
		m.Hold()
		m.queue.torn = true
	case p.err != nil:
		m.Unreadable(p.err.Error(), p.line.Text)
	default:
		if p.repaired {
			m.balance.Repaired++
			m.AddMeta("repaired", signal.Bool(true))
		}
		return true
	}
	return false
}

// TextLine is one line of a text.
type TextLine struct {
	Place Place
	Size  int
	Text  []byte // without its end; nil if it is longer than [MaxLine]; valid until the next line
	Torn  bool   // it is the last one and has no end
}

// Text yields the lines of a file that are not blank. A byte order mark is passed over.
func (in *Recorded) Text(name string) iter.Seq2[TextLine, error] {
	return func(yield func(TextLine, error) bool) {
		file, err := in.openLines(name, 256<<10)
		if err != nil {
			yield(TextLine{}, err)
			return
		}
		defer file.close()
		for {
			line, err := file.next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(TextLine{}, err)
				}
				return
			}
			if !yield(line, nil) {
				return
			}
		}
	}
}

// lineFile is an open file of lines.
type lineFile struct {
	file  fs.File
	lines *bufio.Reader
	at    Place
	long  []byte
}

func (in *Recorded) openLines(name string, buffer int) (*lineFile, error) {
	file, err := in.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &lineFile{file: file, lines: bufio.NewReaderSize(file, buffer), at: Place{File: name}}, nil
}

func (f *lineFile) close() { f.file.Close() }

// next returns the next line that is not blank, and [io.EOF] after the last.
func (f *lineFile) next() (TextLine, error) {
	for {
		line, size, torn, err := readLine(f.lines, &f.long)
		if errors.Is(err, io.EOF) {
			return TextLine{}, io.EOF
		}
		if err != nil {
			return TextLine{}, fmt.Errorf("%s: %w", f.at.File, err)
		}
		f.at.Line++
		if f.at.Line == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		at := f.at
		f.at.Offset += int64(size)
		if line == nil {
			return TextLine{at, size, nil, torn}, nil
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return TextLine{at, size, line, torn}, nil
		}
	}
}

// readLine reads one line, at most MaxLine of it: the text of a longer one is nil.
func readLine(r *bufio.Reader, long *[]byte) (line []byte, size int, torn bool, err error) {
	*long = (*long)[:0]
	over := false
	for {
		part, err := r.ReadSlice('\n')
		size += len(part)
		switch {
		case err == nil && size == len(part):
			return part, size, false, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF):
			return nil, 0, false, err
		}
		if over = over || size > MaxLine; !over {
			*long = append(*long, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) && size == 0 {
			return nil, 0, false, io.EOF
		}
		torn = err != nil
		if over {
			// Free the memory of the part that was kept.
			*long = nil
			return nil, size, torn, nil
		}
		return *long, size, torn, nil
	}
}

// Document reads a file that is one JSON value. It begins no record: the records are
// parts of the value.
func (in *Recorded) Document(name string) (signal.Value, error) {
	text, err := in.ReadFile(name)
	if err != nil {
		return nil, err
	}
	v, repaired, err := ParseJSON(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	if err != nil {
		return nil, &PlaceError{Place{File: name}, err}
	}
	if repaired {
		in.mapping.balance.Repaired++
	}
	return v, nil
}

// Elements yields the elements of an array of a document, and begins each as a record.
// Pointer is the one of the array: "/steps", or "" if the document is the array. The
// pointer of an element is its native id, until the format sets another: it does not depend
// on the name of the file.
func (in *Recorded) Elements(name, pointer string, list signal.Value) iter.Seq2[int, NativeRecord] {
	return func(yield func(int, NativeRecord) bool) {
		i := 0
		for v := range list.Elements() {
			at := pointer + "/" + strconv.Itoa(i)
			if in.mapping.Stopped() || !yield(i, in.Part(name, at, v)) {
				return
			}
			i++
		}
	}
}

// Part begins a part of a document as a record, whose native id is its pointer.
func (in *Recorded) Part(name, pointer string, v signal.Value) NativeRecord {
	rec := NativeRecord{Place: Place{File: name, Pointer: pointer}, Size: len(v), Value: v}
	in.mapping.Begin(rec)
	in.mapping.SetNativeID(pointer)
	return rec
}

// ReadFile reads a file whole, at most [MaxDocument] of it.
func (in *Recorded) ReadFile(name string) ([]byte, error) {
	file, err := in.FS.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > MaxDocument {
		return nil, &PlaceError{Place{File: name}, ErrTooLarge}
	}
	return text, nil
}

// Files returns the names of the regular files in a folder of the recording, sorted. A
// folder that is absent has none.
func (in *Recorded) Files(dir string) ([]string, error) {
	entries, err := fs.ReadDir(in.FS, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Final reports whether the recording was declared complete.
func (in *Recorded) Final() bool { return in.mapping.options.Final }

// Head returns the beginning of a file, 64 KiB at most, for a format that has several
// forms. Of a file whose first line is a JSON value that is no more than this line needs:
// its writer may be at work, so Head does not wait for a second one.
func (in *Recorded) Head(name string) ([]byte, error) {
	file, err := in.FS.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	const most = 64 << 10
	head := make([]byte, 0, most)
	for len(head) < most {
		n, err := file.Read(head[len(head):most])
		head = head[:len(head)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if line, _, complete := bytes.Cut(bytes.TrimLeft(head, " \t\r\n\xef\xbb\xbf"), []byte("\n")); complete && json.Valid(line) {
			break
		}
	}
	return head, nil
}
