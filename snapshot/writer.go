package snapshot

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sajou-dev/sajou-go/projection"
)

// queueLen bounds the images that wait for a [Writer]: enough for one slow commit,
// few enough to bound the memory of large states.
const queueLen = 8

// Writer stores images in the background, so that a caller that folds does not wait
// for compression and disk. Images are disposable: a full queue drops its oldest
// image, and an image that cannot be stored is logged and dropped.
type Writer struct {
	store *Store
	cfg   WriterConfig  // immutable
	wake  chan struct{} // capacity 1: the queue changed
	done  chan struct{} // closed when run has returned

	mu      sync.Mutex
	queue   []job     // guarded by mu, at most queueLen
	storing string    // the session whose images are being stored, "" for none; guarded by mu
	stored  sync.Cond // signalled when storing becomes ""
	closed  bool      // guarded by mu
	err     error     // of the last attempt to store; guarded by mu
}

// WriterConfig holds the options of a [Writer]. The zero value is a good default.
type WriterConfig struct {
	// Logger receives notes on images that are not stored. Nil discards them.
	Logger *slog.Logger

	// Metrics receives measurements. With nil, nothing is measured.
	Metrics ImageMetrics

	// Now is the clock of Metrics; required with Metrics and otherwise never called.
	Now func() time.Time
}

// ImageMetrics receives measurements of a [Writer]. Its methods are called one after the
// other for a session, must not wait, must not call the Writer, and must not panic.
type ImageMetrics interface {
	// ImageStored: an image of so many bytes, before compression, was stored and the
	// session's images were thinned; or that failed. It is called by the goroutine of
	// the Writer.
	ImageStored(session string, bytes int, took time.Duration, err error)
	// ImageDropped: an image was dropped, because too many waited for the disk. It is
	// called by the goroutine that offered a newer one, under the lock of its fold.
	ImageDropped(session string)
}

type job struct {
	session  string
	img      projection.Image
	apart    []projection.Image
	logBytes uint64
}

// NewWriter starts a writer on store. The caller must [Writer.Close] it before it closes
// the store.
func NewWriter(store *Store, cfg WriterConfig) *Writer {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Writer{store: store, cfg: cfg, wake: make(chan struct{}, 1), done: make(chan struct{})}
	w.stored.L = &w.mu
	go w.run()
	return w
}

// Offer queues img, and with it those of the projections apart, which must not change
// any more, and never blocks. After storing them, the writer thins the session, and each
// projection apart, to its part of logBytes, the size of its log; zero means no
// thinning. After Close, Offer does nothing.
func (w *Writer) Offer(session string, logBytes uint64, img projection.Image, apart ...projection.Image) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if len(w.queue) == queueLen {
		w.cfg.Logger.Debug("snapshot dropped: too many waiting", slog.String("session", w.queue[0].session), slog.Uint64("seq", uint64(w.queue[0].img.Head.Seq)))
		if w.cfg.Metrics != nil {
			w.cfg.Metrics.ImageDropped(w.queue[0].session)
		}
		w.queue[0] = job{}
		w.queue = w.queue[1:]
	}
	w.queue = append(w.queue, job{session, img, apart, logBytes})
	w.notify()
}

// Close stores what is queued, stops the writer and waits for it. It may be
// called again.
func (w *Writer) Close() {
	w.mu.Lock()
	w.closed = true
	w.notify()
	w.mu.Unlock()
	<-w.done
}

func (w *Writer) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Writer) run() {
	defer close(w.done)
	for range w.wake {
		for {
			j, ok, closed := w.next()
			if !ok {
				if closed {
					return
				}
				break
			}
			w.write(j)
		}
	}
}

func (w *Writer) next() (j job, ok, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return job{}, false, w.closed
	}
	j, w.queue[0] = w.queue[0], job{}
	w.queue = w.queue[1:]
	w.storing = j.session
	return j, true, w.closed
}

// Discard drops the images of a session that are queued, and waits for those that are
// being stored. Images that are offered later are stored.
func (w *Writer) Discard(session string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = slices.DeleteFunc(w.queue, func(j job) bool { return j.session == session })
	for w.storing == session {
		w.stored.Wait()
	}
}

// write stores the images of a job.
func (w *Writer) write(j job) {
	err := w.image(&j, j.session, j.img)
	for _, img := range j.apart {
		err = errors.Join(err, w.image(&j, ApartName(j.session, img.Parts[0].Name, img.Parts[0].Version), img))
	}
	w.mu.Lock()
	w.err, w.storing = err, ""
	w.stored.Broadcast()
	w.mu.Unlock()
}

// image stores one image of a job under a name, and tells the metrics.
func (w *Writer) image(j *job, name string, img projection.Image) error {
	if w.cfg.Metrics == nil {
		return w.put(j, name, img)
	}
	began := w.cfg.Now()
	err := w.put(j, name, img)
	size := 0
	for _, p := range img.Parts {
		size += len(p.Data)
	}
	w.cfg.Metrics.ImageStored(j.session, size, max(w.cfg.Now().Sub(began), 0), err)
	return err
}

// put stores an image and thins the images of the same name.
func (w *Writer) put(j *job, name string, img projection.Image) error {
	seq := uint64(img.Head.Seq)
	if err := w.store.Put(name, img); err != nil {
		w.cfg.Logger.Warn("snapshot not stored", slog.String("session", j.session), slog.Uint64("seq", seq), slog.Any("err", err))
		return err
	}
	if j.logBytes == 0 {
		return nil
	}
	if _, err := w.store.Thin(name, j.logBytes); err != nil {
		w.cfg.Logger.Warn("snapshots not thinned", slog.String("session", j.session), slog.Uint64("seq", seq), slog.Any("err", err))
		return err
	}
	return nil
}

// Err returns why the last image was not stored or not thinned, nil if it was.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
