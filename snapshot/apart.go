package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// ApartName returns the name under which the images of a projection apart are kept: to
// the methods of [Store] it is that of a session. No session's own name holds a zero
// byte.
func ApartName(session, projection string, version uint32) string {
	return fmt.Sprintf("%s%08x", apartPrefix(session, projection), version)
}

func apartPrefix(session, projection string) string { return session + "\x00" + projection + "\x00" }

// isApart reports whether a bucket holds the images of a projection apart.
func isApart(bucket []byte) bool { return bytes.IndexByte(bucket, 0) >= 0 }

// Supersede drops the images of lower versions of a projection apart, in one commit,
// once this version has been folded up to seq and no image of theirs is of a later
// entry. Until then both stay, so that a program of either version finds its own.
func (s *Store) Supersede(session, projection string, version uint32, seq eventlog.Seq) error {
	prefix, own := []byte(apartPrefix(session, projection)), []byte(ApartName(session, projection, version))
	old := func(root *bolt.Bucket) (names [][]byte) {
		c := root.Cursor()
		for k, v := c.Seek(prefix); v == nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
			if bytes.Compare(k, own) >= 0 {
				break
			}
			if last, _ := root.Bucket(k).Cursor().Last(); len(last) != 8 || eventlog.Seq(binary.BigEndian.Uint64(last)) <= seq {
				names = append(names, bytes.Clone(k))
			}
		}
		return names
	}
	var some bool
	err := s.use(func(db *bolt.DB) error {
		return db.View(func(tx *bolt.Tx) error {
			root := tx.Bucket([]byte(rootBucket))
			some = root != nil && len(old(root)) > 0
			return nil
		})
	})
	if err == nil && some {
		err = s.update(func(root *bolt.Bucket) error {
			for _, name := range old(root) {
				if err := root.DeleteBucket(name); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("snapshot: supersede %s of %s: %w", projection, session, err)
	}
	return nil
}

// dropApart deletes the images of all projections apart of a session.
func dropApart(root *bolt.Bucket, session string) (n int, err error) {
	prefix := []byte(session + "\x00")
	var names [][]byte
	c := root.Cursor()
	for k, v := c.Seek(prefix); v == nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		names = append(names, bytes.Clone(k))
	}
	for _, name := range names {
		n += len(listBucket(root.Bucket(name)))
		if err := root.DeleteBucket(name); err != nil {
			return n, err
		}
	}
	return n, nil
}
