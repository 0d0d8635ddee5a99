package snapshot

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
	bolt "go.etcd.io/bbolt"
)

// noteKey is the key of a session's note. It is shorter than those of images.
const noteKey = "note"

const (
	noteVersion = 1
	noteHeader  = 1 + 8

	// maxNote bounds a note, in bytes.
	maxNote = 4 << 10
)

// PutNotes stores a note for each session, by name, in one commit, and replaces the
// session's earlier one. A note is a few bytes that its writer needs when it opens the
// session again; like an image it may be lost. At most 4 KiB.
func (s *Store) PutNotes(notes map[string][]byte) error {
	if len(notes) == 0 {
		return nil
	}
	err := s.update(func(root *bolt.Bucket) error {
		for session, note := range notes {
			if len(note) > maxNote {
				return fmt.Errorf("%w: the note of %q has %d bytes, at most %d are allowed", ErrTooLarge, session, len(note), maxNote)
			}
			b, err := root.CreateBucketIfNotExists([]byte(session))
			if err != nil {
				return err
			}
			value := binary.BigEndian.AppendUint64([]byte{noteVersion}, noteSum(session, note))
			if err := b.Put([]byte(noteKey), append(value, note...)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("snapshot: put notes: %w", err)
	}
	return nil
}

// Note returns a session's note, or nil if there is none or it is damaged. The caller
// owns it.
func (s *Store) Note(session string) ([]byte, error) {
	var note []byte
	err := s.view(session, func(b *bolt.Bucket) error {
		v := b.Get([]byte(noteKey))
		if len(v) < noteHeader || len(v) > noteHeader+maxNote || v[0] != noteVersion {
			return nil
		}
		if binary.BigEndian.Uint64(v[1:]) == noteSum(session, v[noteHeader:]) {
			note = append([]byte{}, v[noteHeader:]...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("snapshot: note of %s: %w", session, err)
	}
	return note, nil
}

func noteSum(session string, note []byte) uint64 {
	d := xxhash.New()
	_, _ = d.WriteString(session)
	_, _ = d.WriteString("\x00" + noteKey + "\x00")
	_, _ = d.Write(note)
	return d.Sum64()
}
