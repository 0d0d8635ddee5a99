package snapshot

import (
	"log/slog"
	"sync"

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
	log   *slog.Logger
	wake  chan struct{} // capacity 1: the queue changed
	done  chan struct{} // closed when run has returned

	mu     sync.Mutex
	queue  []job // guarded by mu, at most queueLen
	closed bool  // guarded by mu
}

type job struct {
	session  string
	img      projection.Image
	apart    []projection.Image
	logBytes uint64
}

// NewWriter starts a writer on store. A nil logger discards. The caller must
// [Writer.Close] it before it closes the store.
func NewWriter(store *Store, logger *slog.Logger) *Writer {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	w := &Writer{store: store, log: logger, wake: make(chan struct{}, 1), done: make(chan struct{})}
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
		w.log.Debug("snapshot dropped: too many waiting", slog.String("session", w.queue[0].session), slog.Uint64("seq", uint64(w.queue[0].img.Head.Seq)))
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
			w.write(j.session, j.img, j.logBytes)
			for _, img := range j.apart {
				w.write(ApartName(j.session, img.Parts[0].Name, img.Parts[0].Version), img, j.logBytes)
			}
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
	return j, true, w.closed
}

func (w *Writer) write(session string, img projection.Image, logBytes uint64) {
	seq := uint64(img.Head.Seq)
	if err := w.store.Put(session, img); err != nil {
		w.log.Warn("snapshot not stored", slog.String("session", session), slog.Uint64("seq", seq), slog.Any("err", err))
		return
	}
	if logBytes == 0 {
		return
	}
	if _, err := w.store.Thin(session, logBytes); err != nil {
		w.log.Warn("snapshots not thinned", slog.String("session", session), slog.Uint64("seq", seq), slog.Any("err", err))
	}
}
