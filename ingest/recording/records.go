package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"github.com/sajou-dev/sajou-go/signal"
)

// Records yields the records of a file whose form is not fixed, and begins each in the
// mapping: one JSON value a line, the elements of one array, or one value alone. The
// beginning of the file tells which.
func (in *Recorded) Records(name string) iter.Seq2[NativeRecord, error] {
	return func(yield func(NativeRecord, error) bool) {
		document, err := in.IsDocument(name)
		if err != nil {
			yield(NativeRecord{}, err)
			return
		}
		if !document {
			in.Lines(name)(yield)
			return
		}
		doc, err := in.Document(name)
		switch {
		case err != nil:
			yield(NativeRecord{}, err)
		case doc.Kind() != signal.KindArray:
			yield(in.Part(name, "", doc), nil)
		default:
			for _, rec := range in.Elements(name, "", doc) {
				if !yield(rec, nil) {
					return
				}
			}
		}
	}
}

// IsDocument reports whether a file is one JSON value of several lines or an array, and not one
// object a line. A first line that is damaged, or that is still being written, does not make
// it a document.
func (in *Recorded) IsDocument(name string) (bool, error) {
	file, err := in.FS.Open(name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(io.LimitReader(file, SampleBytes), 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		text := bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
		switch {
		case len(text) > 0 && text[0] == '[':
			return true, nil
		case len(text) > 0:
			// A line that ends within a value goes on in the next one.
			var v any
			cut := json.NewDecoder(bytes.NewReader(text)).Decode(&v)
			return err == nil && errors.Is(cut, io.ErrUnexpectedEOF), nil
		case err != nil:
			return false, nil
		}
	}
}
