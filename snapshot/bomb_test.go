package snapshot_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/attack"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// value returns a stored image of session "a" in the layout of the package comment, with any frame.
func value(seq eventlog.Seq, length uint32, frame []byte) []byte {
	v := append(make([]byte, 13), frame...)
	v[0] = 1
	binary.BigEndian.PutUint32(v[9:], length)
	binary.BigEndian.PutUint64(v[1:], snapshot.Checksum("a", uint64(seq), v))
	return v
}

// forge writes a value into the bbolt file of a store.
func forge(t testing.TB, path, session string, seq eventlog.Seq, v []byte) {
	t.Helper()
	db, err := bolt.Open(path, 0o644, &bolt.Options{NoSync: true})
	require.NoError(t, err)
	err = db.Update(func(tx *bolt.Tx) error {
		root, err := tx.CreateBucketIfNotExists([]byte("sajou-snapshots/1"))
		if err != nil {
			return err
		}
		b, err := root.CreateBucketIfNotExists([]byte(session))
		if err != nil {
			return err
		}
		return b.Put(binary.BigEndian.AppendUint64(nil, uint64(seq)), v)
	})
	require.NoError(t, errors.Join(err, db.Close()))
}

// deflate compresses size bytes: head, then zeros.
func deflate(t testing.TB, head []byte, size int) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	require.NoError(t, err)
	return enc.EncodeAll(append(head, make([]byte, size-len(head))...), nil)
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// An image of some kilobytes costs no more memory than its stored size allows, for
// any declared length and any contents.
func TestAttackBombs(t *testing.T) {
	whole, err := projection.AppendImage(nil, image(20, 10))
	require.NoError(t, err)
	size := attack.Rounds(64, 256) << 20
	bomb := deflate(t, bytes.Clone(whole), size)
	small := deflate(t, bytes.Clone(whole), len(whole))
	many := bytes.Repeat(deflate(t, nil, 1<<20), 200) // frames behind one another
	var window []byte                                 // a frame that asks for a window of 2 GiB
	window = append(window, 0x28, 0xb5, 0x2f, 0xfd, 0x00, 21<<3, 0x01, 0x00, 0x00)
	for name, tt := range map[string]struct {
		length uint32
		frame  []byte
		bound  uint64
	}{
		"zeros, as declared":          {uint32(size), bomb, 1 << 20},
		"zeros, declared as few":      {uint32(len(whole)), bomb, 32 << 20},
		"zeros, declared as half":     {uint32(size / 2), bomb, 32 << 20},
		"little, declared as much":    {900_000, small, 4 << 20},
		"little, declared as 256 MiB": {256 << 20, small, 1 << 20},
		"little, declared as 4 GiB":   {1<<32 - 1, small, 1 << 20},
		"many frames":                 {200 << 20, many, 1 << 20},
		"a large window":              {1 << 20, window, 4 << 20},
		"nothing":                     {0, nil, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			s := open(t, path, snapshot.Config{})
			put(t, s, "a", image(10, 20))
			require.NoError(t, s.Close())
			forge(t, path, "a", 20, value(20, tt.length, tt.frame))
			s = open(t, path, snapshot.Config{ReadOnly: true})
			cost := allocated(func() {
				if img, ok, err := s.Nearest("a", 100, set, anyHead); err != nil || !ok || img.Head.Seq != 10 {
					t.Errorf("nearest: %d, %v, %v, want 10", img.Head.Seq, ok, err)
				}
			})
			// The value itself is copied out of the file once.
			if bound := tt.bound + 4*uint64(len(tt.frame)); cost > bound {
				t.Errorf("%d bytes of frame cost %d bytes, want at most %d", len(tt.frame), cost, bound)
			}
			if _, err := s.Get("a", 20); !errors.Is(err, snapshot.ErrDamaged) {
				t.Errorf("get: %v, want ErrDamaged", err)
			}
		})
	}
}

// Put refuses an image that a read would refuse.
func TestPutRefusesWhatCompressesTooWell(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{})
	img := image(10, 1)
	img.Parts[0].Data = make([]byte, 900_000)
	put(t, s, "a", img)
	if got, err := s.Get("a", 10); err != nil || len(got.Parts[0].Data) != 900_000 {
		t.Errorf("900,000 zeros: %v", err)
	}
	img.Head.Seq, img.Parts[0].Data = 20, make([]byte, 60<<20)
	assert.ErrorIs(t, s.Put("a", img), snapshot.ErrTooLarge, "60 MiB of zeros")
	if _, err := s.Get("a", 20); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("get: %v, want ErrNotExist", err)
	}
	if _, err := s.Get("a", 11); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("get between two: %v, want ErrNotExist", err)
	}
}

// A value is valid only under its own session and Seq.
func TestImagesBelongToTheirSession(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path, snapshot.Config{})
	put(t, s, "a", image(10, 20))
	require.NoError(t, s.Close())
	plain, err := projection.AppendImage(nil, image(10, 20))
	require.NoError(t, err)
	v := value(10, uint32(len(plain)), deflate(t, plain, len(plain)))
	for _, tt := range []struct {
		session string
		seq     eventlog.Seq
		ok      bool
	}{{"a", 10, true}, {"b", 10, false}, {"", 10, false}, {"a", 11, false}} {
		if tt.session != "" {
			forge(t, path, tt.session, tt.seq, v)
		}
		s := open(t, path, snapshot.Config{ReadOnly: true})
		if _, err := s.Get(tt.session, tt.seq); (err == nil) != tt.ok {
			t.Errorf("the image of a at 10 as that of %q at %d: %v", tt.session, tt.seq, err)
		}
		assert.NoError(t, s.Close())
	}
}

// The layout of a stored image is that of the package comment, also for one whose length
// has all four bytes.
func TestLayoutOfAnImage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path, snapshot.Config{})
	small, large := image(1<<40+7, 20), image(3, 1<<24+5)
	put(t, s, "a", small, large)
	require.NoError(t, s.Close())
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		for _, img := range []projection.Image{small, large} {
			key := binary.BigEndian.AppendUint64(nil, uint64(img.Head.Seq))
			v := tx.Bucket([]byte("sajou-snapshots/1")).Bucket([]byte("a")).Get(key)
			plain, err := projection.AppendImage(nil, img)
			require.NoError(t, err)
			require.Equal(t, byte(1), v[0])
			require.Equal(t, xxhash.Sum64(append(append([]byte("a"), key...), v[9:]...)), binary.BigEndian.Uint64(v[1:9]))
			require.Equal(t, uint32(len(plain)), binary.BigEndian.Uint32(v[9:13]))
			dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
			require.NoError(t, err)
			got, err := dec.DecodeAll(v[13:], nil)
			dec.Close()
			require.NoError(t, err)
			require.True(t, bytes.Equal(plain, got))
		}
		return nil
	}))
}

// A value with a valid checksum is refused if it does not hold an image, or holds the image of
// another entry. The number 0 is refused too: no image has it.
func TestValuesThatHoldNoImage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	for _, seq := range []eventlog.Seq{0, 10} {
		other, err := projection.AppendImage(nil, image(seq+1, 20))
		require.NoError(t, err)
		for what, plain := range map[string][]byte{"the image of another entry": other, "no image": []byte("no image"), "nothing": {}} {
			forge(t, path, "a", seq, value(seq, uint32(len(plain)), deflate(t, bytes.Clone(plain), len(plain))))
			s := open(t, path, snapshot.Config{ReadOnly: true})
			_, err = s.Get("a", seq)
			require.ErrorIs(t, err, snapshot.ErrDamaged, "%s at %d", what, seq)
			_, ok, err := s.Nearest("a", seq, nil, anyHead)
			require.NoError(t, err)
			require.False(t, ok, "%s at %d", what, seq)
			require.NoError(t, s.Close())
		}
	}
}

// A frame holds exactly the declared length and nothing behind it.
func TestInflateWholeFrame(t *testing.T) {
	plain := bytes.Repeat([]byte("some content, "), 10_000) // more than the first piece of the buffer
	for _, n := range []int{0, 1, 40, 64 << 10, 64<<10 + 1, len(plain)} {
		frame := deflate(t, bytes.Clone(plain[:n]), n)
		got, err := snapshot.Inflate(frame, n)
		require.NoError(t, err, "%d bytes", n)
		require.Equal(t, plain[:n], got)
		for _, other := range []int{n - 1, n + 1} {
			if other >= 0 {
				_, err = snapshot.Inflate(frame, other)
				require.Error(t, err, "%d bytes, declared as %d", n, other)
			}
		}
		for what, behind := range map[string][]byte{"zeros": make([]byte, 9), "text": []byte("behind it"), "another frame": deflate(t, []byte("x"), 1), "half of one": frame[:4]} {
			_, err = snapshot.Inflate(append(bytes.Clone(frame), behind...), n)
			require.Error(t, err, "%s behind %d bytes", what, n)
		}
		if len(frame) > 0 {
			_, err = snapshot.Inflate(frame[:len(frame)-1], n)
			require.Error(t, err, "%d bytes, a frame without its last byte", n)
		}
	}
}

// Any frame either inflates to exactly the declared length or fails, and never costs
// more than that length.
func FuzzInflate(f *testing.F) {
	plain := []byte("some content, some content, some content")
	f.Add(deflate(f, plain, len(plain)), uint32(len(plain)))
	f.Add(deflate(f, nil, 1<<20), uint32(1<<16))
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x01, 0x00, 0x00}, uint32(10))
	f.Fuzz(func(t *testing.T, frame []byte, length uint32) {
		length %= 1 << 22
		got, err := snapshot.Inflate(frame, int(length))
		if err == nil && len(got) != int(length) {
			t.Errorf("%d bytes declared, %d inflated", length, len(got))
		}
		if err != nil && got != nil {
			t.Errorf("%d bytes beside the error %v", len(got), err)
		}
	})
}

// Random values with a valid checksum are either read as images or skipped.
func TestAttackValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path, snapshot.Config{})
	put(t, s, "a", image(10, 20))
	require.NoError(t, s.Close())
	rng := rand.New(rand.NewPCG(1, 13))
	plain, err := projection.AppendImage(nil, image(20, 30))
	require.NoError(t, err)
	for range attack.Rounds(40, 4000) {
		p := bytes.Clone(plain)
		for range 1 + rng.IntN(3) {
			p[rng.IntN(len(p))] = byte(rng.Uint32())
		}
		frame := deflate(t, p, len(p))
		if rng.IntN(2) == 0 {
			frame[rng.IntN(len(frame))] ^= 1 << rng.IntN(8)
		}
		forge(t, path, "a", 20, value(20, uint32(len(p)+rng.IntN(2)*rng.IntN(100)), frame[:len(frame)-rng.IntN(2)*rng.IntN(8)]))
		s := open(t, path, snapshot.Config{ReadOnly: true})
		img, ok, err := s.Nearest("a", 100, set, anyHead)
		if err != nil || !ok || img.Head.Seq != 10 && img.Head.Seq != 20 || img.At < 0 {
			t.Errorf("%x: %v, %v, %v", p, img, ok, err)
		}
		assert.NoError(t, s.Close())
	}
}
