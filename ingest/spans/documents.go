package spans

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// Documents yields the JSON values of a file: one value a line, or the file as one value. It
// begins no record; a line that cannot be read goes to the collection. Is reports whether
// a value is one of the format: a file whose first line is not whole is read by lines only if
// another of its first lines is.
func (c *Collection) Documents(in *recording.Recorded, name string, is func(signal.Value) bool) iter.Seq2[recording.NativeRecord, error] {
	return func(yield func(recording.NativeRecord, error) bool) {
		byLine, err := linewise(in, name, is)
		if err != nil {
			yield(recording.NativeRecord{}, err)
			return
		}
		if !byLine {
			text, err := in.ReadFile(name)
			if err != nil {
				yield(recording.NativeRecord{}, err)
				return
			}
			rec := recording.NativeRecord{Place: recording.Place{File: name}, Size: len(text)}
			v, _, err := recording.ParseJSON(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
			if err != nil {
				yield(rec, &recording.PlaceError{Place: rec.Place, Err: err})
				return
			}
			rec.Value = v
			yield(rec, nil)
			return
		}
		for line, err := range in.Text(name) {
			if err != nil {
				yield(recording.NativeRecord{}, err)
				return
			}
			rec := recording.NativeRecord{Place: line.Place, Size: line.Size}
			if line.Text == nil {
				c.Unreadable(rec, fmt.Sprintf("the line has %d bytes; %d are read", line.Size, recording.MaxLine), nil)
				continue
			}
			v, _, err := recording.ParseJSON(line.Text)
			if err != nil {
				c.Unreadable(rec, err.Error(), line.Text)
				continue
			}
			rec.Value = v
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// linewise reports whether a file has one value a line. A file of one line counts as one that has.
func linewise(in *recording.Recorded, name string, is func(signal.Value) bool) (bool, error) {
	const some = 20
	n := 0
	for line, err := range in.Text(name) {
		if err != nil {
			return false, err
		}
		if n++; n > some {
			break
		}
		if line.Text == nil {
			continue
		}
		if v, _, err := recording.ParseJSON(line.Text); err == nil && is(v) {
			return true, nil
		}
	}
	return false, nil
}

// Within returns the record of a part of a document. The first part has the size of the text.
func Within(doc *recording.NativeRecord, pointer string, v signal.Value) recording.NativeRecord {
	rec := recording.NativeRecord{Place: doc.Place, Size: doc.Size, Value: v}
	rec.Place.Pointer = pointer
	doc.Size = 0
	return rec
}

// IsObject reports whether a value is an object, for formats of which each object is a record.
func IsObject(v signal.Value) bool { return v.Kind() == signal.KindObject }
