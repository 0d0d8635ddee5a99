package forward

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/internal/privatefile"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrWaiting reports that an object is in the spool and will be delivered later.
var ErrWaiting = errors.New("the object waits in the spool")

// ErrSpoolFull reports that the spool has reached its bound.
var ErrSpoolFull = errors.New("the spool is full, so the object is lost unless the server takes it now")

const (
	spoolMagic  = "sajou-hooks/1 "
	headerBytes = len(spoolMagic) + 20 + 1 + 13 + 1

	// maxItem bounds a line of the spool: one object gives at most three signals of less than
	// 1 MiB, whose JSON is at most six times as long.
	maxItem = 20 << 20
)

// The bounds of waiting.
const (
	// lockPatience is how long a hook waits for another one that delivers. That one
	// delivers the item too, unless its deadline comes first.
	lockPatience = 100 * time.Millisecond
	lockPause    = 2 * time.Millisecond

	// After a server that did not answer in time, hooks do not try for this long, so that only
	// one of them is delayed.
	silentPause = 5 * time.Second
	maxPause    = time.Minute
)

// spool is the spool of one server. Its file is locked while it is read or written, and a
// second file while items are delivered.
type spool struct {
	cfg  Config
	path string
	file *os.File
}

// spoolPath returns the file of a server's spool.
func spoolPath(dir, server string) string {
	digest := sha256.Sum256([]byte(server))
	return filepath.Join(dir, "spool-"+hex.EncodeToString(digest[:6])+".jsonl")
}

func openSpool(cfg Config) (*spool, error) {
	if cfg.Dir == "" {
		return nil, errors.New("there is no directory for the spool; name one with SAJOU_HOOK_DIR")
	}
	path := spoolPath(cfg.Dir, cfg.Server)
	file, err := openPrivate(path)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(cfg.Dir, 0o700); err == nil {
			file, err = openPrivate(path)
		}
	}
	if err != nil {
		return nil, err
	}
	return &spool{cfg: cfg, path: path, file: file}, nil
}

// openPrivate opens a file for reading and writing that only its owner can read.
func openPrivate(path string) (*os.File, error) {
	f, err := privatefile.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = f.Chmod(0o600)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (s *spool) close() { _ = s.file.Close() }

// header is the first line of a spool.
type header struct {
	next  int64 // offset of the next item
	until time.Time
}

func (h header) line() []byte {
	ms := h.until.UnixMilli()
	if h.until.IsZero() || ms < 0 {
		ms = 0
	}
	return fmt.Appendf(nil, "%s%020d %013d\n", spoolMagic, h.next, ms)
}

// readHeader reads the header of a spool of a size. A spool without one that can be read
// begins at its first line.
func (s *spool) readHeader(size int64) header {
	text := make([]byte, headerBytes)
	if _, err := s.file.ReadAt(text, 0); err != nil {
		return header{next: min(size, int64(headerBytes))}
	}
	rest, ours := strings.CutPrefix(string(text), spoolMagic)
	offset, wait, _ := strings.Cut(strings.TrimSuffix(rest, "\n"), " ")
	next, err := strconv.ParseInt(offset, 10, 64)
	ms, err2 := strconv.ParseInt(wait, 10, 64)
	if !ours || err != nil || err2 != nil || next < int64(headerBytes) || next > size {
		s.cfg.Note(fmt.Errorf("%s has a damaged header; all its items are delivered again", s.path))
		return header{next: int64(headerBytes)}
	}
	h := header{next: next}
	if ms > 0 {
		h.until = time.UnixMilli(ms)
	}
	return h
}

// waiting is a line of the spool.
type waiting struct {
	item  *HookItem // nil if the line is none
	end   int64     // the offset behind it
	until time.Time // delivery waits until then
}

// line returns the line of an item. The signals are in it as they are sent, so that a
// repeat sends the same bytes.
func (i HookItem) line() []byte {
	line := signal.Text(i.Session).AppendJSON([]byte(`{"session":`))
	line = signal.Text(i.Key).AppendJSON(append(line, `,"key":`...))
	line = append(append(line, `,"signals":`...), i.Signals...)
	return append(line, '}', '\n')
}

// append adds an item, or nothing. Only is the item if it is the only one in the spool.
func (s *spool) append(item HookItem) (only *waiting, err error) {
	line := item.line()
	if len(line) > maxItem {
		return nil, ErrTooLong
	}
	if err := privatefile.Lock(s.file); err != nil {
		return nil, err
	}
	defer privatefile.Unlock(s.file)
	size, err := s.file.Seek(0, io.SeekEnd)
	if err == nil && size < int64(headerBytes) {
		size, err = 0, s.file.Truncate(0) // a header that was cut off
	}
	if err != nil {
		return nil, err
	}
	if size+int64(len(line)) > s.cfg.MaxSpool {
		return nil, ErrSpoolFull
	}
	if size == 0 {
		line = append(header{next: int64(headerBytes)}.line(), line...)
		only = &waiting{item: &item, end: int64(len(line))}
	} else {
		// A line that was cut off must not swallow this one.
		var last [1]byte
		if _, err := s.file.ReadAt(last[:], size-1); err == nil && last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if _, err := s.file.WriteAt(line, size); err != nil {
		return nil, errors.Join(err, s.file.Truncate(size))
	}
	return only, nil
}

// send puts an item into the spool and delivers what is there. A process that delivers
// alone does not read its own item again.
func (s *spool) send(ctx context.Context, to *target, item HookItem) error {
	delivering, lockErr := openPrivate(s.path + ".lock")
	alone := false
	if lockErr == nil {
		defer func() { _ = delivering.Close() }() // and unlock it
		alone, lockErr = privatefile.TryLock(delivering)
	}
	only, err := s.append(item)
	switch {
	case err != nil:
		return errors.Join(err, to.post(ctx, item))
	case lockErr != nil:
		return errors.Join(ErrWaiting, lockErr)
	case !alone:
		if err := lockWithin(ctx, delivering, lockPatience); err != nil {
			return errors.Join(ErrWaiting, err)
		}
		only = nil // it may have been delivered
	}
	_, err = s.deliver(ctx, to, only)
	return err
}

// drain delivers items, the oldest first, until none is left, the server does not take one,
// or ctx ends. It returns how many were delivered. If other processes deliver for
// longer than patience, they are left to it.
func (s *spool) drain(ctx context.Context, to *target, patience time.Duration) (delivered int, err error) {
	delivering, err := openPrivate(s.path + ".lock")
	if err != nil {
		return 0, errors.Join(ErrWaiting, err)
	}
	defer func() { _ = delivering.Close() }() // and unlock it
	if err := lockWithin(ctx, delivering, patience); err != nil {
		return 0, errors.Join(ErrWaiting, err)
	}
	return s.deliver(ctx, to, nil)
}

// deliver is drain with the lock of delivery. Next is the oldest item, or nil if it has to be
// read.
func (s *spool) deliver(ctx context.Context, to *target, next *waiting) (delivered int, err error) {
	for empty := false; !empty; next = nil {
		if next == nil {
			if next, err = s.peek(); err != nil {
				return delivered, errors.Join(ErrWaiting, err)
			}
		}
		now := s.cfg.Now()
		switch {
		case next == nil:
			return delivered, nil
		case now.Before(next.until) && next.until.Sub(now) <= maxPause:
			return delivered, fmt.Errorf("%w: the server did not answer a while ago", ErrWaiting)
		}
		if next.item != nil {
			err = to.post(ctx, *next.item)
			if refused, ok := errors.AsType[*UndeliverableError](err); ok {
				// Waiting would keep all that follows from being delivered.
				s.cfg.Note(refused)
				err = nil
			} else if err == nil {
				delivered++
			}
		}
		if err != nil {
			pause := time.Duration(0)
			if busy, ok := errors.AsType[*BusyError](err); ok {
				pause = min(busy.RetryAfter, maxPause)
			} else if ctx.Err() != nil {
				pause = silentPause
			}
			if pause > 0 {
				s.wait(s.cfg.Now().Add(pause))
			}
			return delivered, fmt.Errorf("%w: %w", ErrWaiting, err)
		}
		if empty, err = s.advance(next.end); err != nil {
			// The server has it: a repeat does no harm.
			return delivered, err
		}
	}
	return delivered, nil
}

// peek returns the next line, nil if there is none.
func (s *spool) peek() (*waiting, error) {
	if err := privatefile.Lock(s.file); err != nil {
		return nil, err
	}
	defer privatefile.Unlock(s.file)
	size, err := s.file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return nil, err
	}
	h := s.readHeader(size)
	if h.next >= size {
		return nil, s.file.Truncate(0)
	}
	r := bufio.NewReaderSize(io.NewSectionReader(s.file, h.next, size-h.next), 64<<10)
	line, n, err := readLine(r)
	if err != nil {
		return nil, err
	}
	next := &waiting{item: new(HookItem), end: h.next + n, until: h.until}
	if err := json.Unmarshal(line, next.item); err != nil || next.item.Session == "" || next.item.Key == "" {
		if n > 1 { // the line before was cut off, and this one ends it
			s.cfg.Note(fmt.Errorf("%s: the line at byte %d is not an item and was skipped", s.path, h.next))
		}
		next.item = nil
	}
	return next, nil
}

// readLine reads a line and returns its bytes, none if it is too long, and its length.
func readLine(r *bufio.Reader) (line []byte, n int64, err error) {
	for {
		part, err := r.ReadSlice('\n')
		n += int64(len(part))
		if n <= maxItem+1 {
			line = append(line, part...)
		} else {
			line = nil
		}
		switch {
		case err == nil, errors.Is(err, io.EOF):
			return line, n, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, n, err
		}
	}
}

// advance takes the items before an offset out of the spool, and reports whether it is
// empty then.
func (s *spool) advance(next int64) (empty bool, err error) {
	if err := privatefile.Lock(s.file); err != nil {
		return false, err
	}
	defer privatefile.Unlock(s.file)
	size, err := s.file.Seek(0, io.SeekEnd)
	if err != nil {
		return false, err
	}
	if next >= size {
		return true, s.file.Truncate(0)
	}
	_, err = s.file.WriteAt(header{next: next}.line(), 0)
	return false, err
}

// wait notes that no hook should try until a time. It is a hint: an error does not matter.
func (s *spool) wait(until time.Time) {
	if privatefile.Lock(s.file) != nil {
		return
	}
	defer privatefile.Unlock(s.file)
	if size, err := s.file.Seek(0, io.SeekEnd); err == nil && size > 0 {
		_, _ = s.file.WriteAt(header{next: s.readHeader(size).next, until: until}.line(), 0)
	}
}

// errBusy reports that other processes deliver.
var errBusy = errors.New("another hook delivers")

// lockWithin takes a lock that other processes have for short times.
func lockWithin(ctx context.Context, f *os.File, patience time.Duration) error {
	for waited := time.Duration(0); ; waited += lockPause {
		switch free, err := privatefile.TryLock(f); {
		case err != nil:
			return err
		case free:
			return nil
		case waited >= patience:
			return errBusy
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPause):
		}
	}
}
