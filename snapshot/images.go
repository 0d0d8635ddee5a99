package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
	bolt "go.etcd.io/bbolt"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

const (
	valueVersion = 1
	valueHeader  = 1 + 8 + 4
)

// Put stores img under its session and Seq and replaces an earlier image there. When
// Put returns, the image is written, though not synced.
func (s *Store) Put(session string, img projection.Image) error {
	value, err := s.encode(session, img)
	if err != nil {
		return fmt.Errorf("snapshot: put %s at seq %d: %w", session, img.Head.Seq, err)
	}
	err = s.update(func(root *bolt.Bucket) error {
		b, err := root.CreateBucketIfNotExists([]byte(session))
		if err != nil {
			return err
		}
		return b.Put(seqKey(img.Head.Seq), value)
	})
	if err != nil {
		return fmt.Errorf("snapshot: put %s at seq %d: %w", session, img.Head.Seq, err)
	}
	return nil
}

// Nearest returns the image with the greatest Seq at or below seq that is intact, has
// exactly the projections of set, and whose Head match confirms. It skips all others
// and reports false if none is left. The caller owns the image.
func (s *Store) Nearest(
	session string, seq eventlog.Seq, set projection.Set, match func(eventlog.Head) bool,
) (projection.Image, bool, error) {
	for {
		at, value, err := s.atOrBelow(session, seq)
		if err != nil {
			return projection.Image{}, false, fmt.Errorf("snapshot: nearest of %s to seq %d: %w", session, seq, err)
		}
		if value == nil {
			return projection.Image{}, false, nil
		}
		// match is called with no transaction open: it may take its time and
		// use the store.
		if img, err := s.decode(session, at, value); err == nil && img.Of(set) && match(img.Head) {
			return img, true, nil
		}
		if at == 0 {
			return projection.Image{}, false, nil
		}
		seq = at - 1
	}
}

// Get returns the image at seq. The error is [ErrDamaged] for a value that is not an
// image, and [fs.ErrNotExist] if there is no value. The caller owns the image.
func (s *Store) Get(session string, seq eventlog.Seq) (projection.Image, error) {
	at, value, err := s.atOrBelow(session, seq)
	if err == nil && (value == nil || at != seq) {
		err = fs.ErrNotExist
	}
	var img projection.Image
	if err == nil {
		img, err = s.decode(session, at, value)
	}
	if err != nil {
		return projection.Image{}, fmt.Errorf("snapshot: get %s at seq %d: %w", session, seq, err)
	}
	return img, nil
}

// atOrBelow returns a copy of the last value at or below seq, nil for none.
func (s *Store) atOrBelow(session string, seq eventlog.Seq) (at eventlog.Seq, value []byte, err error) {
	err = s.view(session, func(b *bolt.Bucket) error {
		c := b.Cursor()
		k, v := c.Seek(seqKey(seq))
		if k == nil {
			k, v = c.Last()
		}
		for k != nil {
			if n, ok := keySeq(k); ok && v != nil && n <= seq {
				at, value = n, append([]byte{}, v...)
				return nil
			}
			k, v = c.Prev()
		}
		return nil
	})
	return at, value, err
}

// ImageInfo describes one stored image.
type ImageInfo struct {
	Seq    eventlog.Seq
	Bytes  int64 // stored, with its key
	Length int64 // before compression, as declared; zero for a value that is not an image
}

// List returns a session's images by ascending Seq. It does not decode them.
func (s *Store) List(session string) ([]ImageInfo, error) {
	var list []ImageInfo
	err := s.view(session, func(b *bolt.Bucket) error {
		list = listBucket(b)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("snapshot: list %s: %w", session, err)
	}
	return list, nil
}

func listBucket(b *bolt.Bucket) []ImageInfo {
	var list []ImageInfo
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		n, ok := keySeq(k)
		if !ok || v == nil {
			continue
		}
		info := ImageInfo{Seq: n, Bytes: int64(len(k) + len(v))}
		if len(v) >= valueHeader && v[0] == valueVersion {
			info.Length = int64(binary.BigEndian.Uint32(v[9:]))
		}
		list = append(list, info)
	}
	return list
}

// Sessions returns the names of the sessions that have images, sorted.
func (s *Store) Sessions() ([]string, error) {
	var names []string
	err := s.use(func(db *bolt.DB) error {
		return db.View(func(tx *bolt.Tx) error {
			root := tx.Bucket([]byte(rootBucket))
			if root == nil {
				return nil
			}
			return root.ForEachBucket(func(k []byte) error {
				if !isApart(k) {
					names = append(names, string(k))
				}
				return nil
			})
		})
	})
	if err != nil {
		return nil, fmt.Errorf("snapshot: list sessions: %w", err)
	}
	return names, nil
}

// Drop deletes the image at seq, and reports whether there was one.
func (s *Store) Drop(session string, seq eventlog.Seq) (bool, error) {
	var found bool
	err := s.update(func(root *bolt.Bucket) error {
		b := root.Bucket([]byte(session))
		if b == nil {
			return nil
		}
		found = b.Get(seqKey(seq)) != nil
		return b.Delete(seqKey(seq))
	})
	if err != nil {
		return false, fmt.Errorf("snapshot: drop %s at seq %d: %w", session, seq, err)
	}
	return found, nil
}

// DropAll deletes all images of a session, those of projections apart too, and its
// note. It returns how many images there were.
func (s *Store) DropAll(session string) (int, error) {
	var n int
	err := s.update(func(root *bolt.Bucket) error {
		var err error
		if n, err = dropApart(root, session); err != nil {
			return err
		}
		b := root.Bucket([]byte(session))
		if b == nil {
			return nil
		}
		n += len(listBucket(b))
		return root.DeleteBucket([]byte(session))
	})
	if err != nil {
		return 0, fmt.Errorf("snapshot: drop all of %s: %w", session, err)
	}
	return n, nil
}

func seqKey(seq eventlog.Seq) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(seq))
}

func keySeq(k []byte) (eventlog.Seq, bool) {
	if len(k) != 8 {
		return 0, false
	}
	return eventlog.Seq(binary.BigEndian.Uint64(k)), true
}

func (s *Store) encode(session string, img projection.Image) ([]byte, error) {
	plain, err := projection.AppendImage(nil, img)
	if err != nil {
		return nil, err
	}
	if len(plain) > s.cfg.MaxImage {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, len(plain))
	}
	value := make([]byte, valueHeader, valueHeader+len(plain)/4+64)
	value[0] = valueVersion
	binary.BigEndian.PutUint32(value[9:], uint32(len(plain)))
	value = s.enc.EncodeAll(plain, value)
	if frame := len(value) - valueHeader; !plausible(uint64(len(plain)), frame) {
		return nil, fmt.Errorf("%w: %d bytes in a frame of %d", ErrTooLarge, len(plain), frame)
	}
	binary.BigEndian.PutUint64(value[1:], checksum(session, img.Head.Seq, value))
	return value, nil
}

// An image may be maxRatio times as long as its frame, and freeLength longer. A
// frame of zstd can claim thousands of times its length; states of long sessions
// stay below forty.
const (
	maxRatio   = 256
	freeLength = 1 << 20
)

// plausible reports whether a frame can hold an image of that length. The check bounds
// the memory for reading a value by its stored size.
func plausible(length uint64, frame int) bool {
	return length <= freeLength+maxRatio*uint64(frame)
}

// decode returns the image in a value, or an error if any check fails. Callers skip
// the value for any error.
func (s *Store) decode(session string, seq eventlog.Seq, value []byte) (projection.Image, error) {
	if len(value) < valueHeader || value[0] != valueVersion {
		return projection.Image{}, ErrDamaged
	}
	if binary.BigEndian.Uint64(value[1:]) != checksum(session, seq, value) {
		return projection.Image{}, ErrDamaged
	}
	length := uint64(binary.BigEndian.Uint32(value[9:]))
	frame := value[valueHeader:]
	if length > uint64(s.cfg.MaxImage) || !plausible(length, len(frame)) {
		return projection.Image{}, ErrDamaged
	}
	plain, err := inflate(frame, int(length))
	if err != nil {
		return projection.Image{}, ErrDamaged
	}
	img, err := projection.DecodeImage(plain)
	if err != nil || img.Head.Seq != seq {
		return projection.Image{}, ErrDamaged
	}
	return img, nil
}

// maxWindow bounds the memory that a frame can demand of the decoder besides its
// content. The encoder's windows are not larger.
const maxWindow = 8 << 20

// decoders is a pool, because making a decoder takes longer than inflating a small
// image. With a concurrency of 1 a decoder has no goroutine, so the pool may drop it
// without closing it.
var decoders = sync.Pool{New: func() any {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic("snapshot: " + err.Error()) // the options are constants
	}
	return dec
}}

// inflate returns the content of a frame, which must be exactly length bytes long. It
// reads the content in pieces: a shorter frame costs no more than its content, and
// for a longer one inflate stops at the first excess byte.
func inflate(frame []byte, length int) ([]byte, error) {
	dec := decoders.Get().(*zstd.Decoder)
	if err := dec.Reset(bytes.NewReader(frame)); err != nil {
		return nil, err
	}
	defer func() {
		if dec.Reset(nil) == nil { // lets go of the frame
			decoders.Put(dec)
		}
	}()
	const first = 64 << 10
	plain := make([]byte, 0, min(length, first))
	for {
		if len(plain) == cap(plain) {
			if len(plain) == length {
				break
			}
			plain = append(make([]byte, 0, min(4*cap(plain), length)), plain...)
		}
		n, err := dec.Read(plain[len(plain):cap(plain)])
		plain = plain[:len(plain)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(plain) != length {
		return nil, io.ErrUnexpectedEOF
	}
	var more [1]byte
	if n, err := dec.Read(more[:]); n != 0 || !errors.Is(err, io.EOF) {
		return nil, ErrDamaged
	}
	return plain, nil
}

func checksum(session string, seq eventlog.Seq, value []byte) uint64 {
	d := xxhash.New()
	_, _ = d.WriteString(session)
	_, _ = d.Write(seqKey(seq))
	_, _ = d.Write(value[9:])
	return d.Sum64()
}

// ImageReader reads the images of a store: it neither changes nor closes it.
type ImageReader struct{ store *Store }

// Reader returns a reader of the store's images.
func (s *Store) Reader() *ImageReader { return &ImageReader{s} }

// Sessions is [Store.Sessions].
func (r *ImageReader) Sessions() ([]string, error) { return r.store.Sessions() }

// List is [Store.List].
func (r *ImageReader) List(session string) ([]ImageInfo, error) { return r.store.List(session) }

// Get is [Store.Get].
func (r *ImageReader) Get(session string, seq eventlog.Seq) (projection.Image, error) {
	return r.store.Get(session, seq)
}

// Nearest is [Store.Nearest].
func (r *ImageReader) Nearest(
	session string, seq eventlog.Seq, set projection.Set, match func(eventlog.Head) bool,
) (projection.Image, bool, error) {
	return r.store.Nearest(session, seq, set, match)
}
