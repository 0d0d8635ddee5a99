package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/snapshot"
)

// sampleFile returns the bytes of a store with branch pages, overflow pages,
// an inline bucket and a free list.
func sampleFile(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := snapshot.Open(path, snapshot.Config{})
	require.NoError(t, err)
	for n := range eventlog.Seq(60) {
		put(t, s, "long", image(n*1000, 300))
	}
	put(t, s, "big", image(1000, 20_000))
	put(t, s, "small", image(1000, 10))
	for n := range eventlog.Seq(20) {
		if _, err := s.Drop("long", n*1000); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, s.Close())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// tryTorn opens a damaged file and uses it in every way. Each call must return an
// error or intact images.
func tryTorn(t *testing.T, path string, data []byte, readOnly bool) (usable bool) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, data, 0o644))
	s, err := snapshot.Open(path, snapshot.Config{ReadOnly: readOnly})
	if err != nil {
		if !errors.Is(err, snapshot.ErrUnusable) && len(data) > 0 {
			t.Errorf("err = %v, want ErrUnusable", err)
		}
		return false
	}
	for _, session := range []string{"long", "big", "small"} {
		img, ok, err := s.Nearest(session, 1<<62, set, anyHead)
		if err == nil && ok {
			if want := image(img.Head.Seq, len(img.Parts[0].Data)); !bytes.Equal(want.Parts[0].Data, img.Parts[0].Data) {
				t.Errorf("a damaged image of %s at %d was returned", session, img.Head.Seq)
			}
		}
		_, _ = s.List(session)
		if !readOnly {
			_ = s.Put(session, image(70_000, 5000))
			_, _ = s.Thin(session, 1000)
			_, _ = s.DropAll(session)
		}
	}
	_, _ = s.Sessions()
	if err := s.Close(); err != nil && !errors.Is(err, snapshot.ErrUnusable) {
		t.Errorf("Close: %v", err)
	}
	return true
}

func TestTornByTruncation(t *testing.T) {
	whole := sampleFile(t)
	path := filepath.Join(t.TempDir(), "torn.db")
	if !tryTorn(t, path, whole, false) {
		t.Fatal("the whole file is unusable")
	}
	for n := 1; n < len(whole); n += 509 {
		tryTorn(t, path, whole[:n], n%2 == 0)
	}
}

// TestTornByFlips changes each byte of the structure that bbolt trusts once: the meta
// pages, and the header and first elements of every page.
func TestTornByFlips(t *testing.T) {
	whole := sampleFile(t)
	path := filepath.Join(t.TempDir(), "torn.db")
	page := os.Getpagesize()
	r := rand.New(rand.NewPCG(1, 2))
	var tried, refused int
	for at := 0; at < len(whole); at += page {
		for n := range 80 {
			if at+n >= len(whole) || testing.Short() && n%4 != 0 {
				continue
			}
			torn := bytes.Clone(whole)
			torn[at+n] ^= 1 << r.IntN(8)
			tried++
			if !tryTorn(t, path, torn, n%3 != 0) {
				refused++
			}
		}
	}
	if refused == 0 || refused == tried {
		t.Errorf("%d of %d refused", refused, tried)
	}
}

// TestTornByPages swaps whole pages or fills them with zeros, as a loss of power may.
func TestTornByPages(t *testing.T) {
	whole := sampleFile(t)
	path := filepath.Join(t.TempDir(), "torn.db")
	page := os.Getpagesize()
	pages := len(whole) / page
	r := rand.New(rand.NewPCG(3, 4))
	for i := range pages {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			torn := bytes.Clone(whole)
			clear(torn[i*page : (i+1)*page])
			tryTorn(t, path, torn, false)
			torn = bytes.Clone(whole)
			j := r.IntN(pages)
			copy(torn[i*page:(i+1)*page], whole[j*page:(j+1)*page])
			tryTorn(t, path, torn, false)
		})
	}
}

// Pages of a tree that point at each other are refused, not walked forever.
func TestTornIntoALoop(t *testing.T) {
	whole := sampleFile(t)
	path := filepath.Join(t.TempDir(), "torn.db")
	page := os.Getpagesize()
	var branches int
	for at := 0; at < len(whole); at += page {
		if whole[at+8] != 1 { // flags: a branch
			continue
		}
		branches++
		torn := bytes.Clone(whole)
		copy(torn[at+16+8:], torn[at:at+8]) // the first child is the page itself
		tryTorn(t, path, torn, true)
	}
	if branches == 0 {
		t.Error("the sample has no branch pages")
	}
}

// The file shrinks under the mapping: reading the lost part faults, and the store
// must return an error.
func TestTornWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "torn.db")
	require.NoError(t, os.WriteFile(path, sampleFile(t), 0o644))
	s, err := snapshot.Open(path, snapshot.Config{})
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, int64(2*os.Getpagesize())))
	if _, _, err := s.Nearest("long", 1<<62, set, anyHead); !errors.Is(err, snapshot.ErrUnusable) {
		t.Errorf("Nearest: err = %v, want ErrUnusable", err)
	}
	assert.ErrorIs(t, s.Put("long", image(1, 1)), snapshot.ErrUnusable, "Put")
	assert.ErrorIs(t, s.Rewrite(), snapshot.ErrUnusable, "Rewrite")
	assert.NoFileExists(t, path+".rewrite")
	assert.NoError(t, s.Close())
	assert.ErrorIs(t, s.Put("long", image(1, 1)), snapshot.ErrClosed)
}

// A rewrite that meets a damaged page leaves the file and removes what it has written.
func TestTornBeforeTheRewrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "torn.db")
	whole := sampleFile(t)
	require.NoError(t, os.WriteFile(path, whole, 0o644))
	s, err := snapshot.Open(path, snapshot.Config{})
	require.NoError(t, err)
	torn := bytes.Clone(whole)
	for at := 4 * os.Getpagesize(); at < len(torn); at++ {
		torn[at] = 0xff
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(torn, 0)
	require.NoError(t, errors.Join(err, f.Close()))
	require.ErrorIs(t, s.Rewrite(), snapshot.ErrUnusable)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(torn, after), "the file has changed")
	require.NoFileExists(t, path+".rewrite")
	_ = s.Close() // it may be unusable by now
}
