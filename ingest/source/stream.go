package source

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/formats"
	"github.com/sajou-dev/sajou-go/ingest/recording"
)

// ErrReadOnce reports that a stream was to be read a second time.
var ErrReadOnce = errors.New("a stream can be read once; save it to a file")

// streamName returns the name of a stream as a file has it.
func streamName(name string) string {
	if base := path.Base(strings.ReplaceAll(name, `\`, "/")); fs.ValidPath(base) && base != "." {
		return base
	}
	return "stream"
}

// stream lists what a stream holds.
func (o *opening) stream(ctx context.Context, name string, in io.Reader) error {
	text, compressed, err := expand(in, o.config)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	o.keep(text)
	r := bufio.NewReaderSize(text, 64<<10)
	head, err := archiveHead(r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch {
	case isZip(head) && compressed:
		return fmt.Errorf("%s is a compressed zip archive; expand it first", name)
	case isZip(head), isTar(head):
		data, err := o.spool(ctx, r)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if isZip(head) {
			return o.zip(ctx, data, name)
		}
		return o.tar(ctx, data, name)
	}
	sample, err := o.streamSample(name, r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	l := Listed{Name: name, Path: name, Session: sessionName(name), Size: -1}
	o.named(l, sample)
	listed := &o.list.Recordings[0]
	rest := io.MultiReader(bytes.NewReader(sample.Head), r)
	files := newPacked()
	if listed.Recognized() && listed.Format.Grows {
		// What grows is read by lines, once.
		once := &readOnce{rest: rest}
		files.add(&packedFile{name: name, size: -1, open: once.open})
	} else {
		data, err := o.spool(ctx, rest)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		listed.Size = data.Size()
		open := func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(data, 0, data.Size())), nil }
		files.add(&packedFile{name: name, size: data.Size(), open: open})
	}
	listed.FS = files
	return nil
}

// archiveHead returns the first block of a stream if it may be that of an archive. It
// does not wait for a block of text, whose sender may be slow.
func archiveHead(r *bufio.Reader) ([]byte, error) {
	head, err := r.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if trimmed := bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n"); len(trimmed) == 0 || trimmed[0] == '{' || trimmed[0] == '[' || isZip(head) {
		return head, nil
	}
	if head, err = r.Peek(tarBlock); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head, nil
}

// streamSample reads as much of a stream as tells its format. Of a stream with one JSON
// object a line that is the lines up to the first that a format recognizes: its
// sender may still be at work.
func (o *opening) streamSample(name string, r *bufio.Reader) (*recording.Sample, error) {
	var head []byte
	lines, byLines := 0, true
	for len(head) < recording.SampleBytes && byLines {
		from := len(head)
		for len(head) < recording.SampleBytes {
			part, err := r.ReadSlice('\n')
			head = append(head, part...)
			if errors.Is(err, io.EOF) {
				return recording.NewSample(name, head, true), nil
			}
			if err == nil {
				break
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return nil, err
			}
		}
		if o.config.Format != "" {
			return recording.NewSample(name, head, false), nil
		}
		line := bytes.TrimSpace(head[from:])
		if len(line) == 0 {
			continue
		}
		if lines == 0 {
			byLines = bytes.HasPrefix(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")), []byte("{")) && json.Valid(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
		}
		if lines++; byLines && lines <= sampleLines && len(formats.Detect(recording.NewSample(name, head, false))) > 0 {
			return recording.NewSample(name, head, false), nil
		}
		byLines = byLines && lines <= sampleLines
	}
	if len(head) >= recording.SampleBytes {
		return recording.NewSample(name, head, false), nil
	}
	head, whole, err := readHead(r, head, recording.SampleBytes)
	return recording.NewSample(name, head, whole), err
}

// readOnce is a stream that can be read once. Its beginning can be read again, for
// formats that look at it first: as long as no more than a sample was read.
type readOnce struct {
	rest io.Reader
	kept []byte // what was read
	over bool   // more than a sample was read
}

func (o *readOnce) open() (io.ReadCloser, error) {
	if o.over {
		return nil, ErrReadOnce
	}
	return io.NopCloser(&onceReader{stream: o}), nil
}

// onceReader is one pass over the stream; only the newest may be read.
type onceReader struct {
	stream *readOnce
	at     int
}

func (r *onceReader) Read(p []byte) (int, error) {
	o := r.stream
	if r.at < len(o.kept) {
		n := copy(p, o.kept[r.at:])
		r.at += n
		return n, nil
	}
	n, err := o.rest.Read(p)
	if o.over = o.over || len(o.kept)+n > recording.SampleBytes; o.over {
		o.kept = nil
		r.at = 0
	} else {
		o.kept = append(o.kept, p[:n]...)
		r.at += n
	}
	return n, err
}
