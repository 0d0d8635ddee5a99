// Package snapshot keeps images of folds in one bbolt file, so that computing the
// state at any moment takes the nearest usable image and little folding.
//
// All contents are derived and may be deleted at any time. An image whose checksum,
// projections or Head do not match is skipped, never repaired, and a file that is
// damaged or not a store is [ErrUnusable]: the caller deletes it and lets it be
// filled again.
//
// # Format
//
// The file is a bbolt database. Its one root bucket, "sajou-snapshots/1", holds
// a bucket for each session, named like it; in there an image's key is its Seq
// as 8 bytes, big-endian, and its value is
//
//	| 1 (1B) | checksum (8B) | length (4B) | zstd frame |
//
// The images of a projection apart ([ApartName]) are in a bucket of their own, with the
// same keys and values. Its name is that of the session, a zero byte, the projection's
// name, a zero byte, and its version as 8 hexadecimal digits.
//
// Beside its images a session can have one note ([Store.PutNotes]). Its key is "note",
// and its value
//
//	| 1 (1B) | checksum (8B) | note |
//
// with xxhash64 of the session's name, a zero byte, the key, a zero byte and the note.
//
// Integers are big-endian. The length is that of the image before compression,
// in the layout of the projection package. The checksum is xxhash64 of the
// session's name, the key, the length and the frame, in that order, so a value in the
// wrong place fails its checksum too. The first byte is the version of this layout;
// values of another version are skipped.
//
// A length beyond 1 MiB + 256 × the frame's is refused, so that reading a value takes
// memory in proportion to its stored size; an image that compresses better is not
// stored. The frame is inflated in pieces and must hold exactly the declared length.
//
// # Thinning
//
// Images are taken every [Config.Interval] entries. [Store.Thin] keeps their
// total in a session at or below [Config.Percent] of the log's size. While the total fits,
// nothing is dropped. When it does not, the same rule is tried with smaller
// and smaller windows w = …, 8, 4, 2, 1 until it does: of the images up to w
// intervals old, the first one of each interval is kept; of those up to 2w old
// the first one of every 2 intervals; up to 4w, of every 4; and so on, so the
// gaps double as age doubles and old images are thinned first. The newest
// image is always kept, even when it is too big alone. The rule depends on
// nothing but the images' Seqs and sizes and the budget.
//
// # Durability
//
// Commits are not synced. A crash of the process loses nothing; a loss of
// power can tear the file. That costs one refolding, where a sync for each
// image would compete with the log's own syncs for as long as the session
// lives.
//
// A torn file must not crash the process. bbolt maps its file and trusts its pages: a
// bad page makes it panic, recurse without end, or fault. So [Open] first reads the
// structure of the file with plain reads (both meta pages, the whole page tree, every
// element's bounds, the free list) and refuses an inconsistent file. Later changes of
// the file under the mapping cause faults and panics, which the store turns into
// [ErrUnusable].
//
// # Limits
//
// Checksums find accidents. A process that can write the file can forge an image
// with the right Head. A key could not prevent that: it would lie beside the file,
// because every process that takes images needs it. [Store.Verify] folds a session
// and compares its images; with Config.NoSnapshots of the root package none is used.
// The file does not shrink: pages that thinning frees are used again. Until then they
// have the bytes of dropped images; [Store.Rewrite] writes the file without them.
//
// docs/glossary.md has the nouns of all packages.
package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/sajou-dev/sajou-go/eventlog"
)

var (
	// ErrUnusable says that the file is not a snapshot store, or that it is torn.
	// Its contents can be folded again: delete it.
	ErrUnusable = errors.New("unusable snapshot store")

	// ErrLocked says that another process holds the file.
	ErrLocked = errors.New("snapshot store is locked")

	// ErrReadOnly is returned for a change to a store that was opened for reading.
	ErrReadOnly = errors.New("snapshot store is read-only")

	// ErrClosed says that the store was closed before the call.
	ErrClosed = errors.New("snapshot store is closed")

	// ErrTooLarge says that an image exceeds [Config.MaxImage], or compresses better
	// than the format allows.
	ErrTooLarge = errors.New("image too large")

	// ErrDamaged says that a value is not an image.
	ErrDamaged = errors.New("damaged image")
)

// The defaults of [Config].
const (
	DefaultInterval = 1000
	DefaultPercent  = 25
	DefaultMaxImage = 256 << 20
	DefaultTimeout  = time.Second
)

// Config holds a store's options. The zero Config selects the defaults.
type Config struct {
	// ReadOnly opens an existing file without changing it. Several processes
	// may do so at once; none may while one writes.
	ReadOnly bool

	// Timeout bounds the wait for another process's lock on the file. Zero
	// means one second.
	Timeout time.Duration

	// Interval is the number of entries from one image to the next. Zero
	// means 1000.
	Interval int

	// Percent is the part of a session's log that its images may reach in
	// size, in percent from 1 to 100. Zero means 25.
	Percent int

	// MaxImage bounds an image before compression, in bytes, and with it what
	// reading one can allocate. Zero means 256 MiB; the layout ends at 4 GiB.
	MaxImage int
}

func (c Config) withDefaults() (Config, error) {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Interval == 0 {
		c.Interval = DefaultInterval
	}
	if c.Percent == 0 {
		c.Percent = DefaultPercent
	}
	if c.MaxImage == 0 {
		c.MaxImage = DefaultMaxImage
	}
	switch {
	case c.Timeout < 0:
		return c, fmt.Errorf("snapshot: negative Timeout %v", c.Timeout)
	case c.Interval < 0:
		return c, fmt.Errorf("snapshot: negative Interval %d", c.Interval)
	case c.Percent < 0 || c.Percent > 100:
		return c, fmt.Errorf("snapshot: Percent %d is not in 1..100", c.Percent)
	case c.MaxImage < 0 || uint64(c.MaxImage) >= 1<<32:
		return c, fmt.Errorf("snapshot: MaxImage %d is not in 1..4GiB", c.MaxImage)
	}
	return c, nil
}

// rootBucket names the layout; a bbolt file with other buckets is not ours.
const rootBucket = "sajou-snapshots/1"

// Store is an open snapshot file. It is safe for concurrent use.
type Store struct {
	path string // immutable
	cfg  Config // immutable, defaults filled in
	enc  *zstd.Encoder

	mu     sync.RWMutex // held for reading during each use of db, for writing by Close
	db     *bolt.DB     // guarded by mu; nil once closed
	broken error        // guarded by brokenMu; set once, by the first panic

	brokenMu sync.Mutex
}

// Open opens the store at path, and creates it unless cfg.ReadOnly is set; a
// missing file is then an [fs.ErrNotExist]. The error is [ErrUnusable] for a
// file that is torn or not a snapshot store, [ErrLocked] when another process holds
// it for longer than cfg.Timeout.
func Open(path string, cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, cfg: cfg}
	// The encoder starts no goroutine, because only EncodeAll is used.
	if s.enc, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false)); err != nil {
		return nil, fmt.Errorf("snapshot: open %s: %w", path, err)
	}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("snapshot: open %s: %w", path, err)
	}
	return s, nil
}

func (s *Store) open() error {
	info, err := os.Stat(s.path)
	fresh := errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
	switch {
	case err != nil && (!fresh || s.cfg.ReadOnly):
		return err
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%w: not a regular file", ErrUnusable)
	case fresh && s.cfg.ReadOnly:
		return fmt.Errorf("%w: empty file", ErrUnusable)
	case !fresh:
		// A read-only open takes the lock and reads only the meta pages, so it is safe
		// on any bytes. Under that lock no other process changes the file, and checkFile
		// sees the bytes that will be used.
		if err := s.openBolt(true); err != nil {
			return err
		}
		if err := checkFile(s.path); err != nil {
			return errors.Join(err, s.closeBolt())
		}
		if s.cfg.ReadOnly {
			return s.checkLayout()
		}
		if err := s.closeBolt(); err != nil {
			return err
		}
	}
	if err := s.openBolt(false); err != nil {
		return err
	}
	return s.checkLayout()
}

func (s *Store) openBolt(readOnly bool) error {
	return guard(func() error {
		db, err := bolt.Open(s.path, 0o644, &bolt.Options{
			Timeout:      s.cfg.Timeout,
			ReadOnly:     readOnly,
			NoSync:       true,
			NoGrowSync:   true,
			FreelistType: bolt.FreelistMapType,
			// bbolt stores the free list, because rebuilding it would walk the tree
			// in a goroutine whose panics guard cannot recover.
			NoFreelistSync: false,
			NoStatistics:   true,
		})
		switch {
		case errors.Is(err, bolterrors.ErrTimeout):
			return ErrLocked
		case errors.Is(err, fs.ErrPermission):
			return err
		case err != nil:
			return fmt.Errorf("%w: %v", ErrUnusable, err)
		}
		s.db = db
		return nil
	})
}

func (s *Store) closeBolt() error {
	db := s.db
	s.db = nil
	return guard(db.Close)
}

// checkLayout checks that the file has the root bucket of this package. It creates
// the bucket in an empty file.
func (s *Store) checkLayout() error {
	err := guard(func() error {
		var ours, foreign bool
		err := s.db.View(func(tx *bolt.Tx) error {
			ours = tx.Bucket([]byte(rootBucket)) != nil
			k, _ := tx.Cursor().First()
			foreign = !ours && k != nil
			return nil
		})
		switch {
		case err != nil || ours:
			return err
		case foreign:
			return fmt.Errorf("%w: a bbolt file of another program", ErrUnusable)
		case s.cfg.ReadOnly:
			return nil // readers treat a missing bucket as an empty one
		}
		return s.db.Update(func(tx *bolt.Tx) error {
			_, err := tx.CreateBucketIfNotExists([]byte(rootBucket))
			return err
		})
	})
	if err != nil {
		return errors.Join(err, s.closeBolt())
	}
	return nil
}

// guard runs f and returns its error. It turns a panic, or a fault in the mapped
// file, into [ErrUnusable].
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrUnusable, r)
		}
	}()
	return f()
}

// use runs f on the open database. After a panic the store stays broken, because the
// state of bbolt in memory is unknown.
func (s *Store) use(f func(db *bolt.DB) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db == nil {
		return ErrClosed
	}
	if err := s.brokenErr(); err != nil {
		return err
	}
	panicked := true
	err := guard(func() error {
		err := f(s.db)
		panicked = false
		return err
	})
	if panicked {
		s.brokenMu.Lock()
		s.broken = err
		s.brokenMu.Unlock()
	}
	return err
}

func (s *Store) brokenErr() error {
	s.brokenMu.Lock()
	defer s.brokenMu.Unlock()
	return s.broken
}

func (s *Store) update(f func(root *bolt.Bucket) error) error {
	if s.cfg.ReadOnly {
		return ErrReadOnly
	}
	return s.use(func(db *bolt.DB) error {
		return db.Update(func(tx *bolt.Tx) error {
			root, err := tx.CreateBucketIfNotExists([]byte(rootBucket))
			if err != nil {
				return err
			}
			return f(root)
		})
	})
}

// view runs f on a session's bucket, if there is one.
func (s *Store) view(session string, f func(b *bolt.Bucket) error) error {
	return s.use(func(db *bolt.DB) error {
		return db.View(func(tx *bolt.Tx) error {
			root := tx.Bucket([]byte(rootBucket))
			if root == nil {
				return nil
			}
			b := root.Bucket([]byte(session))
			if b == nil {
				return nil
			}
			return f(b)
		})
	})
}

// Close closes the file. Later calls return nil.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil
	}
	db := s.db
	s.db = nil
	if s.brokenErr() == nil {
		if err := guard(db.Close); err != nil {
			return fmt.Errorf("snapshot: close %s: %w", s.path, err)
		}
		return nil
	}
	// The call that panicked may hold bbolt's locks forever, so Close must not
	// wait for them.
	go func() { _ = guard(db.Close) }()
	return nil
}

// Copy writes the images as they are at one moment to a new file at path, while the store
// is in use. After an error the file at path may be incomplete.
func (s *Store) Copy(path string) error {
	return s.use(func(db *bolt.DB) error {
		return db.View(func(tx *bolt.Tx) error { return tx.CopyFile(path, 0o644) })
	})
}

// Interval returns the number of entries from one image to the next.
func (s *Store) Interval() eventlog.Seq { return eventlog.Seq(s.cfg.Interval) }

// Due reports whether an image is due at seq: whether an interval has begun since
// last, the Seq of the last image (zero for none).
func (s *Store) Due(last, seq eventlog.Seq) bool {
	return seq/s.Interval() > last/s.Interval()
}
