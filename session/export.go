package session

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// ExportFormat says what an export has of a session, as JSONL.
type ExportFormat string

// The formats of exports.
const (
	// ExportSignals has the signals alone, in the form that package ingest reads:
	// importing them gives the same values. Of a fork, the metadata of the first one has
	// the label in addition, as [MetadataFork].
	ExportSignals ExportFormat = "signals"

	// ExportEntries has every entry, in the form of [Lateness.AppendEntryJSON].
	ExportEntries ExportFormat = "entries"

	// ExportRaw has the bytes that the hashes cover, so that another program can
	// recompute the chain. The first line has session, the name, and genesis, the hash
	// before entry 1. Every other line has session, seq, hash and entry: in base64, the
	// length of the body as a uvarint, and the body. The hash of an entry is the SHA-256
	// of the hash before it followed by these bytes; see [eventlog.Entry]. The first entry of
	// a batch of several has batch, their number, which no hash covers. Package ingest
	// imports it.
	ExportRaw ExportFormat = "raw"
)

// Export writes the durable entries from one Seq to another, or to the end if to is 0, to
// w. A raw export begins at entry 1, because the first link is checked from there.
// Errors: [eventlog.ErrNoSession], [eventlog.ErrInvalid] for another format or a raw
// export from a later entry, [*eventlog.EntryError] for a signal that cannot be decoded,
// and those of reading, of ctx and of w.
func Export(ctx context.Context, w io.Writer, log *eventlog.SessionReader, format ExportFormat, from, to eventlog.Seq) error {
	out := bufio.NewWriterSize(w, 64<<10)
	for line, err := range ExportLines(ctx, log, format, from, to) {
		if err != nil {
			return err
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
		if err := out.WriteByte('\n'); err != nil {
			return err
		}
	}
	return out.Flush()
}

// ExportLines returns the lines of [Export], without their line feeds. A line is valid
// until the next one. An error is the last element.
func ExportLines(ctx context.Context, log *eventlog.SessionReader, format ExportFormat, from, to eventlog.Seq) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		switch {
		case !log.Exists():
			yield(nil, fmt.Errorf("%w: %q", eventlog.ErrNoSession, log.Name()))
			return
		case format != ExportSignals && format != ExportEntries && format != ExportRaw:
			yield(nil, fmt.Errorf("%w: no format of exports %q: want %q, %q or %q", eventlog.ErrInvalid, format, ExportSignals, ExportEntries, ExportRaw))
			return
		case format == ExportRaw && from > 1:
			yield(nil, fmt.Errorf("%w: a raw export begins at entry 1, because the first link of the chain is checked from there", eventlog.ErrInvalid))
			return
		}
		if to == 0 {
			to = log.Head().Seq
		}
		var line []byte
		label := ""
		if format == ExportSignals {
			switch f, err := ReadFork(ctx, log); {
			case err != nil:
				yield(nil, err)
				return
			case f != nil:
				label = f.String()
			}
		}
		if format == ExportRaw {
			line = AppendRawHeader(nil, log.Name())
			if !yield(line, nil) {
				return
			}
		}
		late := NewLateness(log.Entries)
		for e, err := range log.Entries(ctx, from) {
			if err == nil && e.Seq > to {
				break
			}
			switch {
			case err != nil:
			case format == ExportEntries:
				line, err = late.AppendEntryJSON(ctx, line[:0], &e)
			default:
				line, err = appendExported(line[:0], log.Name(), &e, format, &label)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if len(line) > 0 && !yield(line, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// appendExported appends the line of an entry, or nothing if the format omits it. The first
// signal that has metadata, or can have them, takes the label.
func appendExported(dst []byte, name string, e *eventlog.Entry, format ExportFormat, label *string) ([]byte, error) {
	switch {
	case format == ExportRaw:
		return AppendRaw(dst, name, e), nil
	case e.Kind != eventlog.KindSignal:
		return dst, nil
	}
	sig, err := signal.Decode(e.Data)
	if err != nil {
		return nil, &eventlog.EntryError{Seq: e.Seq, Op: "export", Err: err}
	}
	if *label != "" && sig.Raw == nil {
		metadata := signal.ObjectOf(sig.Metadata)
		metadata.Set(MetadataFork, signal.Text(*label))
		sig.Metadata, *label = metadata.Value(), ""
	}
	return sig.AppendJSON(dst), nil
}

// AppendRawHeader appends the first line of a raw export, without its line feed; see
// [ExportRaw].
func AppendRawHeader(dst []byte, name string) []byte {
	dst = appendString(append(dst, `{"session":`...), name)
	dst = appendString(append(dst, `,"genesis":`...), eventlog.Genesis(name).String())
	return append(dst, '}')
}

// AppendRaw appends the line of an entry in a raw export, without its line feed; see
// [ExportRaw].
func AppendRaw(dst []byte, name string, e *eventlog.Entry) []byte {
	stored := append(binary.AppendUvarint(nil, uint64(len(e.Body))), e.Body...)
	dst = appendString(append(dst, `{"session":`...), name)
	dst = strconv.AppendUint(append(dst, `,"seq":`...), uint64(e.Seq), 10)
	dst = appendString(append(dst, `,"hash":`...), e.Hash.String())
	if e.Batch > 1 {
		dst = strconv.AppendInt(append(dst, `,"batch":`...), int64(e.Batch), 10)
	}
	dst = append(dst, `,"entry":"`...)
	return append(base64.StdEncoding.AppendEncode(dst, stored), '"', '}')
}
