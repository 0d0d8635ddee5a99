package recording

import (
	"bufio"
	"bytes"
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
		m := in.mapping
		for line, err := range in.Text(name) {
			if err != nil {
				yield(NativeRecord{}, err)
				return
			}
			rec := NativeRecord{Place: line.Place, Size: line.Size}
			m.Begin(rec)
			if line.Text == nil {
				m.Unreadable(fmt.Sprintf("the line has %d bytes; %d are read", line.Size, MaxLine), nil)
				continue
			}
			v, repaired, err := ParseJSON(line.Text)
			if err != nil {
				if line.Torn && !m.options.Final {
					m.Hold()
					m.queue.torn = true
				} else {
					m.Unreadable(err.Error(), line.Text)
				}
			} else {
				rec.Value = v
				m.SetNative(v)
				if repaired {
					m.balance.Repaired++
					m.AddMeta("repaired", signal.Bool(true))
				}
			}
			if m.stopped || m.failed != nil || err == nil && !yield(rec, nil) {
				return
			}
		}
	}
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
		file, err := in.FS.Open(name)
		if err != nil {
			yield(TextLine{}, err)
			return
		}
		defer file.Close()
		lines := bufio.NewReaderSize(file, 256<<10)
		at := Place{File: name}
		var long []byte
		for {
			line, size, torn, err := readLine(lines, &long)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(TextLine{}, fmt.Errorf("%s: %w", name, err))
				}
				return
			}
			at.Line++
			if at.Line == 1 {
				line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
			}
			trimmed := bytes.TrimSpace(line)
			blank := line != nil && len(trimmed) == 0
			if line == nil {
				trimmed = nil
			}
			if !blank && !yield(TextLine{at, size, trimmed, torn}, nil) {
				return
			}
			at.Offset += int64(size)
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
