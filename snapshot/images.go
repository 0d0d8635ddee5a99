package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
	bolt "go.etcd.io/bbolt"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

const (
	valueVersion = 1
	valueHeader  = 1 + 8 + 4
)

// Put keeps img under its session and Seq, in place of an earlier one there.
// It is on disk, though not synced, when Put returns.
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

// Nearest returns the image with the greatest Seq at or below seq that is
// whole, that is of exactly the projections of set, and whose Head match
// confirms. Images that are not are passed over. It reports false when none
// is left. The image belongs to the caller.
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

// Info describes one stored image.
type Info struct {
	Seq    eventlog.Seq
	Bytes  int64 // stored, with its key
	Length int64 // before compression, as declared; zero for a value that is none
}

// List returns a session's images by ascending Seq. It does not decode them.
func (s *Store) List(session string) ([]Info, error) {
	var list []Info
	err := s.view(session, func(b *bolt.Bucket) error {
		list = listBucket(b)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("snapshot: list %s: %w", session, err)
	}
	return list, nil
}

func listBucket(b *bolt.Bucket) []Info {
	var list []Info
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		n, ok := keySeq(k)
		if !ok || v == nil {
			continue
		}
		info := Info{Seq: n, Bytes: int64(len(k) + len(v))}
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
				names = append(names, string(k))
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

// DropAll deletes all images of a session and returns how many there were.
func (s *Store) DropAll(session string) (int, error) {
	var n int
	err := s.update(func(root *bolt.Bucket) error {
		b := root.Bucket([]byte(session))
		if b == nil {
			return nil
		}
		n = len(listBucket(b))
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
	binary.BigEndian.PutUint64(value[1:], checksum(session, img.Head.Seq, value))
	return value, nil
}

var errDamaged = errors.New("damaged image")

// decode returns the image in a value, or an error for anything that does not
// hold; the caller passes over it whatever the reason.
func (s *Store) decode(session string, seq eventlog.Seq, value []byte) (projection.Image, error) {
	if len(value) < valueHeader || value[0] != valueVersion {
		return projection.Image{}, errDamaged
	}
	if binary.BigEndian.Uint64(value[1:]) != checksum(session, seq, value) {
		return projection.Image{}, errDamaged
	}
	length := uint64(binary.BigEndian.Uint32(value[9:]))
	if length > uint64(s.cfg.MaxImage) {
		return projection.Image{}, errDamaged
	}
	// The decoder writes no further than this capacity.
	plain, err := s.dec.DecodeAll(value[valueHeader:], make([]byte, 0, length))
	if err != nil || uint64(len(plain)) != length {
		return projection.Image{}, errDamaged
	}
	img, err := projection.DecodeImage(plain)
	if err != nil || img.Head.Seq != seq {
		return projection.Image{}, errDamaged
	}
	return img, nil
}

func checksum(session string, seq eventlog.Seq, value []byte) uint64 {
	d := xxhash.New()
	_, _ = d.WriteString(session)
	_, _ = d.Write(seqKey(seq))
	_, _ = d.Write(value[9:])
	return d.Sum64()
}
