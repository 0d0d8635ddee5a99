package ingest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/session"
)

// RawConfig configures [Raw].
type RawConfig struct {
	// Session is the name of the session, for [Entries]; Raw reads it from its export.
	Session string

	// File is the name of the source in places.
	File string

	// Behind says that the first entry of the export is the one behind the newest entry of
	// the session, from which its hash must follow.
	Behind bool

	// Progress, unless nil, is called after each write that has become durable, with the
	// number of entries recorded so far.
	Progress func(entries int)
}

// RawTally is the outcome of [Raw].
type RawTally struct {
	Session string
	Entries int           // recorded
	Skipped int           // that the session had already
	Head    eventlog.Head // of the session; zero before the first line was read
}

// Raw records a session from its raw export ([session.ExportRaw]), entry by entry as it
// was, so that it has the same chain and the same Head. It recomputes the chain first: an
// entry that does not follow from those before it ends the import, with its place and an
// [*eventlog.EntryError], and nothing from it on is recorded.
//
// The session has the name that the export has, because the chain begins with it. If the
// store has entries of it, they must be those of the export, which then adds the rest; so
// an import that was interrupted is completed by another one. If they differ, the error is
// a [*MismatchError] and nothing is recorded. The session must not be open; see
// [sajou.Engine.Restore] for this and for other errors. A deleted session is refused.
//
// An export of before batches were written into it gives every entry a batch of its own.
// A repeat of an idempotency key is then answered with the first entry of its batch.
//
// The chain proves that the entries belong together, not where they come from: compare the
// Head with one that was kept elsewhere. The caller closes r.
func Raw(ctx context.Context, engine *sajou.Engine, r io.Reader, cfg RawConfig) (RawTally, error) {
	i := &rawImport{engine: engine, cfg: cfg, lines: newLineReader(r)}
	i.parse = i.parseRaw
	return i.all(ctx)
}

// Entries records a session from an export of its entries ([session.ExportEntries]), as
// [Raw] does from a raw one: the entries are the same, and so are the chain and the Head.
// Cfg.Session is the name of the session, which the export does not have; another name gives
// other hashes, so that the first entry is refused. The export must begin with the first entry.
// It does not have the ends of batches: every entry gets a batch of its own.
func Entries(ctx context.Context, engine *sajou.Engine, r io.Reader, cfg RawConfig) (RawTally, error) {
	i := &rawImport{engine: engine, cfg: cfg, lines: newLineReader(r), named: true}
	i.parse = i.parseEntry
	return i.all(ctx)
}

func (i *rawImport) all(ctx context.Context) (RawTally, error) {
	err := i.run(ctx)
	if err != nil && i.left > 0 { // the batch is incomplete, because reading has stopped
		i.batches = i.batches[:len(i.batches)-1]
	}
	err = errors.Join(i.write(context.WithoutCancel(ctx)), err)
	return i.tally, err
}

// rawLine is a line of a raw export: the first has Genesis, and the others what is behind
// it.
type rawLine struct {
	Session string `json:"session"`
	Genesis string `json:"genesis"`

	Seq   eventlog.Seq `json:"seq"`
	Hash  string       `json:"hash"`
	Entry []byte       `json:"entry"`
	Batch int          `json:"batch"`
}

// The entries of one write, in bytes, are about maxRawBytes or one batch, which a log does
// not make larger than maxRawBatch.
const (
	maxRawBytes = 4 << 20
	maxRawBatch = 32 << 20
)

// rawImport is one call of [Raw].
type rawImport struct {
	engine *sajou.Engine
	cfg    RawConfig
	lines  *lineReader
	parse  func(text []byte) (rawLine, error)
	tally  RawTally

	named bool // by the configuration, and not by the first line

	log  *eventlog.SessionReader
	have eventlog.Head // of the session, before
	at   eventlog.Head // of the newest entry that was read

	batches []eventlog.Batch // behind have, read and not recorded
	left    int              // entries that the last batch still lacks
	size    int              // of the entries in batches
}

func (i *rawImport) run(ctx context.Context) error {
	line, err := i.first()
	if errors.Is(err, io.EOF) {
		err = &recording.PlaceError{Place: recording.Place{File: i.cfg.File, Line: 1}, Err: fmt.Errorf("%w: the text is empty", eventlog.ErrInvalid)}
	}
	if err != nil {
		return err
	}
	if err := i.begin(&line); err != nil {
		return i.place(err)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := i.next()
		if errors.Is(err, io.EOF) {
			return i.checkEnd(ctx)
		}
		if err != nil {
			return err
		}
		if err := i.entry(&line); err != nil {
			return i.place(err)
		}
		if i.size >= maxRawBytes && i.left == 0 {
			if err := i.write(ctx); err != nil {
				return err
			}
		}
	}
}

func (i *rawImport) place(err error) error {
	return &recording.PlaceError{Place: recording.Place{File: i.cfg.File, Line: i.lines.number}, Err: err}
}

// first returns the line with the name of the session.
func (i *rawImport) first() (rawLine, error) {
	if i.named {
		return rawLine{Session: i.cfg.Session, Genesis: eventlog.Genesis(i.cfg.Session).String()}, nil
	}
	return i.next()
}

func (i *rawImport) parseRaw(text []byte) (line rawLine, err error) {
	if err = json.Unmarshal(text, &line); err != nil {
		err = fmt.Errorf("%w: not a line of a raw export: %w", eventlog.ErrInvalid, err)
	}
	return line, err
}

// parseEntry makes the raw line of an entry in JSON. A session time that JSON does not have
// exactly is the one that the hash is of.
func (i *rawImport) parseEntry(text []byte) (rawLine, error) {
	e, err := session.ParseEntryJSON(text)
	if err != nil {
		return rawLine{}, fmt.Errorf("%w: %w", eventlog.ErrInvalid, err)
	}
	line := rawLine{Session: i.tally.Session, Seq: e.Seq, Hash: e.Hash}
	const most = 1 << 10
	for blur := time.Duration(0); blur <= min(e.Blur, most); blur++ {
		for _, at := range [...]time.Duration{e.At + blur, e.At - blur} {
			sealed, head := chain.AppendBatch(nil, i.at, []eventlog.Draft{{Kind: e.Kind, At: at, Data: e.Data}}, e.Key)
			if blur > 0 && head.Hash.String() != e.Hash {
				continue
			}
			batch, err := chain.OpenBatch(sealed)
			if err != nil {
				return line, err
			}
			stored, _, _, err := batch.Next()
			if line.Entry = bytes.Clone(stored); err != nil || head.Hash.String() == e.Hash {
				return line, err
			}
		}
	}
	return line, nil // its hash is wrong, which the check of the entry says
}

// next reads the next line.
func (i *rawImport) next() (line rawLine, err error) {
	text, err := i.lines.next()
	if errors.Is(err, io.EOF) {
		return line, err
	}
	if err == nil {
		line, err = i.parse(text)
	}
	if err != nil {
		return line, i.place(err)
	}
	return line, nil
}

// begin reads the first line.
func (i *rawImport) begin(line *rawLine) error {
	if line.Session == "" {
		return fmt.Errorf("%w: not a raw export: its first line names no session", eventlog.ErrInvalid)
	}
	if err := eventlog.CheckName(line.Session); err != nil {
		return err
	}
	genesis := eventlog.Genesis(line.Session)
	if line.Genesis != genesis.String() {
		return fmt.Errorf("%w: the first line of a raw export has the name of a session and its genesis hash, %v for %q", eventlog.ErrInvalid, genesis, line.Session)
	}
	log, err := i.engine.Log().Session(line.Session)
	if err != nil {
		return err
	}
	i.log, i.have, i.at = log, log.Head(), eventlog.Head{Hash: genesis}
	if i.cfg.Behind && i.have.Seq > 0 {
		i.at = i.have
	}
	i.tally.Session, i.tally.Head = line.Session, i.have
	return nil
}

// entry checks an entry, and adds it to the batches unless the session has it.
func (i *rawImport) entry(line *rawLine) error {
	seq := i.at.Seq + 1
	bad := func(class error, format string, args ...any) error {
		return &eventlog.EntryError{Seq: seq, Op: "import", Err: fmt.Errorf("%w: %s", class, fmt.Sprintf(format, args...))}
	}
	switch {
	case line.Session != i.tally.Session:
		return bad(eventlog.ErrCorrupt, "the line is of session %q", line.Session)
	case line.Seq != seq:
		return bad(eventlog.ErrCorrupt, "the line is of entry %d", line.Seq)
	case line.Batch < 0 || line.Batch > eventlog.MaxBatchEntries:
		return bad(eventlog.ErrCorrupt, "a batch of %d entries", line.Batch)
	}
	length, n := binary.Uvarint(line.Entry)
	if n <= 0 || length != uint64(len(line.Entry)-n) {
		return bad(eventlog.ErrCorrupt, "it is not as long as it says")
	}
	hash := chain.Link(i.at.Hash, line.Entry)
	if line.Hash != hash.String() {
		return bad(eventlog.ErrCorrupt, "its hash does not follow from the entry before it and its bytes")
	}
	var e eventlog.Entry
	if err := chain.DecodeBody(&e, line.Entry[n:]); err != nil {
		return bad(err, "it is not an entry")
	}
	draft := eventlog.Draft{Kind: e.Kind, At: e.At, Data: e.Data}
	before := i.at
	if _, i.at = chain.AppendBatch(nil, before, []eventlog.Draft{draft}, e.Key); i.at.Hash != hash {
		i.at = before
		return bad(eventlog.ErrCorrupt, "its bytes are not in the form of an entry that a log has written")
	}
	switch {
	case seq < i.have.Seq:
		i.tally.Skipped++
		return nil
	case seq == i.have.Seq && i.at != i.have:
		return &MismatchError{Reason: fmt.Sprintf("entry %d of the session is another one", seq)}
	case seq == i.have.Seq:
		i.tally.Skipped++
		return nil
	}
	if i.left == 0 {
		i.batches = append(i.batches, eventlog.Batch{Expect: before, Key: e.Key})
		i.left = max(line.Batch, 1)
	} else if e.Key != "" {
		i.at = before
		return bad(eventlog.ErrCorrupt, "it carries a key, and is not the first of its batch")
	}
	if i.size += len(line.Entry); i.size > maxRawBytes+maxRawBatch {
		i.at = before
		return bad(eventlog.ErrTooLarge, "its batch has more than %d MiB", maxRawBatch>>20)
	}
	last := &i.batches[len(i.batches)-1]
	last.Drafts = append(last.Drafts, draft)
	i.left--
	return nil
}

// checkEnd checks an export that ends before the session does.
func (i *rawImport) checkEnd(ctx context.Context) error {
	if i.at.Seq >= i.have.Seq || i.at.Seq == 0 {
		return nil
	}
	e, err := i.log.Entry(ctx, i.at.Seq)
	if err == nil && e.Hash != i.at.Hash {
		err = i.place(&MismatchError{Reason: fmt.Sprintf("entry %d of the session is another one", i.at.Seq)})
	}
	return err
}

// write records the batches, in one write.
func (i *rawImport) write(ctx context.Context) error {
	if len(i.batches) == 0 {
		return nil
	}
	batches := i.batches
	i.batches, i.left, i.size = nil, 0, 0
	head, err := i.engine.Restore(ctx, i.tally.Session, batches...)
	if err != nil {
		return err
	}
	want := batches[0].Expect.Seq
	for _, b := range batches {
		want += eventlog.Seq(len(b.Drafts))
	}
	if head.Seq != want {
		return fmt.Errorf("%w: an idempotency key stands in two batches", eventlog.ErrCorrupt)
	}
	i.tally.Entries += int(head.Seq - batches[0].Expect.Seq)
	i.tally.Head = head
	if i.cfg.Progress != nil {
		i.cfg.Progress(i.tally.Entries)
	}
	return nil
}
