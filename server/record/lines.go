package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/server/limit"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/signal"
)

// The bounds of a batch of an NDJSON stream. They are a part of what an idempotency key
// means: the same stream is cut at the same places.
const (
	maxBatchSignals = 1000
	maxBatchBytes   = 1 << 20
)

// The bounds of the batches of a stream that are read and not durable, beside the one that
// is being read.
const (
	maxQueued = 1
	maxPlaced = 2
)

// recordLines records a stream of signals, one a line, in batches. A batch is recorded when
// it is full, and, unless the request has an idempotency key, when no further line has
// arrived. The next batch is read while those before it get their places and become durable;
// few of them are under way, so that a stream is read no faster than it is recorded.
func (rv *Receiver) recordLines(w http.ResponseWriter, r *http.Request, in *intake) (intakeReceipt, error) {
	body, err := limit.Expand(r, rv.maxStream(r))
	if err != nil {
		return intakeReceipt{}, err
	}
	defer body.Close()
	paced := rv.paced(w, r, body)
	defer paced.end()
	c := newLineCommitter(rv, in, paced.giveUp)
	// Lines that have arrived are recorded, also if their sender is gone.
	go c.run(context.WithoutCancel(r.Context()))
	defer c.finish() // also after a panic, which the server survives
	b := &lineBatches{lines: newChunkedLines(paced), in: in, committer: c}
	err = b.all()
	number := b.lines.number
	switch {
	case err != nil && paced.stopped:
		err = problem.ErrStopping
	case err != nil && paced.stalled:
		err = os.ErrDeadlineExceeded
	}
	// The lines that the committer has are before the one at which reading ended.
	if failed := c.finish(); failed != nil {
		err, number = failed.err, failed.number
		if paced.interrupted {
			w.Header().Set("Connection", "close") // nothing more can be read from it
		}
	}
	if err == nil {
		return c.receipt, nil
	}
	p := *problem.Of(err)
	recorded, unreadable := signal.ParseValue(c.receipt.AppendJSON(nil))
	_ = p.With("line", signal.Int(int64(number)).Value())
	if unreadable == nil { // a receipt is JSON
		_ = p.With("recorded", recorded)
	}
	if line, ok := errors.AsType[*lineError](err); ok {
		_ = p.With("line", signal.Int(int64(line.number)).Value())
		if _, told := errors.AsType[*problem.Details](err); !told {
			p.Detail = fmt.Sprintf("line %d: %s", line.number, p.Detail)
		}
	}
	return intakeReceipt{}, &p
}

// maxStream bounds an NDJSON stream: one without a coding costs its sender what it costs
// the server.
func (rv *Receiver) maxStream(r *http.Request) int64 {
	if r.Header.Get("Content-Encoding") == "" {
		return 1 << 62
	}
	return rv.cfg.MaxExpanded
}

// lineError is an error about one line of a stream.
type lineError struct {
	number int
	err    error
}

func (e *lineError) Error() string { return e.err.Error() }
func (e *lineError) Unwrap() error { return e.err }

// lineBatches reads the lines of one stream, and hands them to its committer in batches.
type lineBatches struct {
	in        *intake
	lines     *chunkedLines
	committer *lineCommitter

	batch lineBatch // of the lines that are read and not handed over
	bytes int       // of these lines
}

// lineBatch are lines that are recorded together.
type lineBatch struct {
	signals []*signal.Signal
	numbers []int // the lines of the signals
	last    int   // the last line that was read before the batch ended
}

// all reads all lines. It ends early, without an error, when the committer has failed.
func (b *lineBatches) all() error {
	for {
		// The sender may take its time: what it has sent is made durable.
		if !b.lines.ready() && b.in.key == "" && !b.hand() {
			return nil
		}
		line, err := b.lines.next()
		switch {
		case errors.Is(err, io.EOF):
			b.hand()
			return nil
		case err == nil:
			err = b.add(line)
		}
		if err != nil {
			// With a key a part of a batch would stand for the whole one at the next attempt.
			if b.in.key == "" {
				b.hand()
			}
			return err
		}
		if (len(b.batch.signals) >= maxBatchSignals || b.bytes >= maxBatchBytes) && !b.hand() {
			return nil
		}
	}
}

// add adds the signal of a line to the batch.
func (b *lineBatches) add(line []byte) error {
	sig, err := b.in.parse(line)
	if err != nil {
		return &lineError{b.lines.number, err}
	}
	b.batch.signals, b.batch.numbers = append(b.batch.signals, sig), append(b.batch.numbers, b.lines.number)
	b.bytes += len(line)
	return nil
}

// hand hands the batch over, unless it is empty. It waits while the committer has enough to
// do, and returns false if the committer has failed.
func (b *lineBatches) hand() bool {
	if len(b.batch.signals) == 0 {
		return true
	}
	full := b.batch
	full.last = b.lines.number
	b.batch, b.bytes = lineBatch{make([]*signal.Signal, 0, len(full.signals)), make([]int, 0, len(full.numbers)), 0}, 0
	select {
	case b.committer.queue <- full:
		return true
	case <-b.committer.failed:
		return false
	}
}

// lineCommitter gives the batches of one stream their places in the log and waits until they
// are durable, on a goroutine of its own.
type lineCommitter struct {
	rv     *Receiver
	in     *intake
	giveUp func() // ends the reading

	queue  chan lineBatch // closed by finish
	ended  sync.Once      // closes queue
	failed chan struct{}  // closed with the first failure
	done   chan struct{}  // closed when run has returned

	// These belong to run until done is closed.
	placed  []placedBatch
	batches int // that were given their place
	receipt intakeReceipt
	lost    bool         // a batch with a place did not become durable: the receipt ends before it
	failure *lineFailure // the first one
}

// placedBatch is a batch that is not known to be durable yet.
type placedBatch struct {
	pending *sajou.Pending
	signals []*signal.Signal
	last    int
}

// lineFailure is why a batch was not recorded as a whole, and the last line of that batch.
type lineFailure struct {
	err    error
	number int
}

func newLineCommitter(rv *Receiver, in *intake, giveUp func()) *lineCommitter {
	return &lineCommitter{
		rv: rv, in: in, giveUp: giveUp, queue: make(chan lineBatch, maxQueued), failed: make(chan struct{}), done: make(chan struct{}),
		receipt: intakeReceipt{Session: in.ses.Name(), Head: in.ses.Head()},
	}
}

// run records the batches of the queue, in order, until it is closed or one fails.
func (c *lineCommitter) run(ctx context.Context) {
	defer close(c.done)
	for c.failure == nil {
		var batch lineBatch
		var more bool
		if len(c.placed) == 0 {
			batch, more = <-c.queue
		} else {
			select {
			case batch, more = <-c.queue:
			default: // only who waits for a batch makes it durable
				c.settle(ctx)
				continue
			}
		}
		if !more {
			break
		}
		c.record(ctx, batch)
	}
	for len(c.placed) > 0 {
		c.settle(ctx)
	}
}

// finish waits until the batches of the queue are durable, and returns the failure.
func (c *lineCommitter) finish() *lineFailure {
	c.ended.Do(func() { close(c.queue) })
	<-c.done
	return c.failure
}

// fail notes the first failure, and ends the reading.
func (c *lineCommitter) fail(err error, last int) {
	if c.failure == nil {
		c.failure = &lineFailure{err, last}
		close(c.failed)
		c.giveUp()
	}
}

// record gives a batch its place in the log. If the log refuses it because of one of its
// signals, the signals before that one are recorded, unless the stream has a key.
func (c *lineCommitter) record(ctx context.Context, batch lineBatch) {
	err := c.place(ctx, batch.signals, batch.last)
	switch {
	case err == nil:
	case !refused(err):
		c.fail(err, batch.last)
	case c.in.key != "" || len(batch.signals) == 1:
		i := 0
		if e, ok := errors.AsType[*sajou.SignalError](err); ok {
			i = e.Index
		}
		c.fail(&lineError{batch.numbers[i], err}, batch.last)
	default:
		for i := range batch.signals {
			if c.failure != nil {
				return
			}
			if err := c.place(ctx, batch.signals[i:i+1], batch.last); err != nil {
				if refused(err) {
					err = &lineError{batch.numbers[i], err}
				}
				c.fail(err, batch.last)
			}
		}
	}
}

// place gives signals their place as one batch, and waits while too many have theirs.
func (c *lineCommitter) place(ctx context.Context, signals []*signal.Signal, last int) error {
	a := sajou.Addition{Signals: signals, Lenient: c.in.lenient}
	if c.batches == 0 {
		a.Expect = c.in.expect
	}
	if c.in.key != "" {
		a.Key = c.in.key + "/" + strconv.Itoa(c.batches)
	}
	p, err := c.in.ses.RecordAsync(ctx, a)
	if err != nil {
		return err
	}
	c.batches++
	c.placed = append(c.placed, placedBatch{p, signals, last})
	if len(c.placed) > maxPlaced {
		c.settle(ctx)
	}
	return nil
}

// settle waits for the oldest batch.
func (c *lineCommitter) settle(ctx context.Context) {
	oldest := c.placed[0]
	c.placed = c.placed[1:]
	out, err := oldest.pending.Wait(ctx)
	if err == nil && !c.lost {
		err = c.rv.recorded(ctx, c.in.ses, out, oldest.signals, &c.receipt)
	}
	if err != nil {
		c.lost = true
		c.fail(err, oldest.last)
	}
}

// pacedBody is a body that ends with an error when nothing of it arrives for a while, and
// when the server stops.
type pacedBody struct {
	r                io.Reader
	rv               *Receiver
	rc               *http.ResponseController
	stopping         <-chan struct{}
	quit             chan struct{}
	gone             chan struct{}
	stalled, stopped bool

	mu          sync.Mutex
	reading     bool // a Read is under way; guarded by mu
	over        bool // giveUp was called; guarded by mu
	interrupted bool // by giveUp; guarded by mu
}

func (rv *Receiver) paced(w http.ResponseWriter, r *http.Request, body io.Reader) *pacedBody {
	p := &pacedBody{r: body, rv: rv, rc: http.NewResponseController(w), stopping: route.Stopping(r.Context()), quit: make(chan struct{}), gone: make(chan struct{})}
	_ = p.rc.SetReadDeadline(time.Time{})  // that of the server is for bodies that end soon
	_ = p.rc.SetWriteDeadline(time.Time{}) // and so is that of the answer
	go func() {
		defer close(p.gone)
		select {
		case <-p.stopping:
			p.interrupt()
		case <-p.quit:
		}
	}()
	return p
}

// interrupt ends a read that is under way: a deadline in the past has no clock.
func (p *pacedBody) interrupt() { _ = p.rc.SetReadDeadline(time.Unix(1, 0)) }

// errGivenUp is the error of a body that is not read to its end.
var errGivenUp = errors.New("the rest of the body is not wanted")

// giveUp ends the reading, that which is under way included. A connection that nothing is
// read from must not be interrupted: a request that follows on it would be.
func (p *pacedBody) giveUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.reading {
		p.interrupted = true
		p.interrupt()
	}
}

// begin notes that a read begins, and returns false after giveUp.
func (p *pacedBody) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = !p.over
	return p.reading
}

func (p *pacedBody) Read(b []byte) (int, error) {
	if !p.begin() {
		return 0, errGivenUp
	}
	defer func() {
		p.mu.Lock()
		p.reading = false
		p.mu.Unlock()
	}()
	fired := make(chan struct{})
	stop := p.rv.cfg.AfterFunc(p.rv.cfg.Stall, func() {
		close(fired)
		p.interrupt()
	})
	n, err := p.r.Read(b)
	if !stop() && err != nil {
		select {
		case <-fired:
			p.stalled = true
		default:
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		select {
		case <-p.stopping:
			p.stopped = true
		default:
		}
	}
	return n, err
}

// end releases the body.
func (p *pacedBody) end() {
	close(p.quit)
	<-p.gone
}

// chunkedLines reads the lines of a stream that are not blank. Lines are parts of large
// chunks, which are used again.
type chunkedLines struct {
	r      io.Reader
	chunk  []byte
	at     int // of what is not returned yet
	number int // of the line that next returned, from 1
	err    error
}

const chunkSize = 128 << 10

func newChunkedLines(r io.Reader) *chunkedLines {
	return &chunkedLines{r: r, chunk: make([]byte, 0, chunkSize)}
}

// ready reports whether next returns without waiting for the sender.
func (l *chunkedLines) ready() bool {
	return l.err != nil || bytes.IndexByte(l.chunk[l.at:], '\n') >= 0
}

// next returns the next line without its end, until the next call. It ends with [io.EOF].
func (l *chunkedLines) next() ([]byte, error) {
	for {
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		if l.number == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

func (l *chunkedLines) line() ([]byte, error) {
	searched := l.at
	for {
		if i := bytes.IndexByte(l.chunk[searched:], '\n'); i >= 0 {
			line := l.chunk[l.at : searched+i]
			l.at = searched + i + 1
			l.number++
			if len(line) > ingest.MaxLine {
				return nil, l.long()
			}
			return line, nil
		}
		searched = len(l.chunk)
		if l.err != nil {
			line := l.chunk[l.at:]
			l.at = len(l.chunk)
			if !errors.Is(l.err, io.EOF) {
				l.number++
				return nil, l.err // the line is not whole
			}
			if len(line) == 0 {
				return nil, io.EOF
			}
			l.number++
			return line, nil
		}
		if len(l.chunk)-l.at > ingest.MaxLine {
			l.number++
			return nil, l.long()
		}
		searched -= l.at // fill moves the rest to the front
		l.fill()
	}
}

// long is the error about a line that is too long.
func (l *chunkedLines) long() error {
	return &lineError{l.number, fmt.Errorf("%w: %w", eventlog.ErrTooLarge, ingest.ErrLongLine)}
}

// fill reads more behind what is not returned yet.
func (l *chunkedLines) fill() {
	if l.at > 0 {
		n := copy(l.chunk, l.chunk[l.at:])
		l.chunk, l.at = l.chunk[:n], 0
	}
	if len(l.chunk) == cap(l.chunk) {
		l.chunk = append(make([]byte, 0, 2*cap(l.chunk)), l.chunk...)
	}
	n, err := l.r.Read(l.chunk[len(l.chunk):cap(l.chunk)])
	l.chunk = l.chunk[:len(l.chunk)+n]
	l.err = err
}
