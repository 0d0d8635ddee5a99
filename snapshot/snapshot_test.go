package snapshot_test

import (
	"bytes"
	stdcmp "cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// set is only compared by name and version here.
var set = projection.Set{{Name: "blob", Version: 1}}

// image returns an image whose one part has size bytes that do not compress.
func image(seq eventlog.Seq, size int) projection.Image {
	data := make([]byte, size)
	r := rand.New(rand.NewPCG(uint64(seq), 1))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return projection.Image{
		Head: eventlog.Head{Seq: seq, Hash: eventlog.Hash{byte(seq), byte(seq >> 8)}}, At: time.Duration(seq) * time.Millisecond,
		Parts: []projection.Part{{Name: "blob", Version: 1, Data: data}},
	}
}

func anyHead(eventlog.Head) bool { return true }

func open(t testing.TB, path string, cfg snapshot.Config) *snapshot.Store {
	t.Helper()
	s, err := snapshot.Open(path, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func put(t testing.TB, s *snapshot.Store, session string, imgs ...projection.Image) {
	t.Helper()
	for _, img := range imgs {
		require.NoError(t, s.Put(session, img))
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := snapshot.Open(filepath.Join(dir, "snapshots.db"), snapshot.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, seq := range []eventlog.Seq{1000, 2000, 3000} {
		if err := store.Put("release-42", image(seq, 100)); err != nil {
			fmt.Println(err)
		}
	}
	img, ok, err := store.Nearest("release-42", 2500, set, func(head eventlog.Head) bool {
		return head.Hash[0] == byte(head.Seq) // a real caller compares with the log
	})
	fmt.Println(img.Head.Seq, img.At, ok, err)
	fmt.Println(store.Close())
	// Output:
	// 2000 2s true <nil>
	// <nil>
}

func TestNearest(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{})
	other := image(30, 10)
	other.Parts[0].Version = 2
	put(t, s, "a", image(0, 1), image(10, 100_000), image(20, 10), other)
	put(t, s, "b", image(15, 10))
	not20 := func(h eventlog.Head) bool { return h.Seq != 20 }
	for _, tt := range []struct {
		session string
		seq     eventlog.Seq
		match   func(eventlog.Head) bool
		want    eventlog.Seq
		ok      bool
	}{
		{"a", 9, anyHead, 0, true},
		{"a", 10, anyHead, 10, true},
		{"a", 25, anyHead, 20, true},
		{"a", 1 << 63, anyHead, 20, true}, // 30 is of another version
		{"a", 25, not20, 10, true},
		{"a", 25, func(eventlog.Head) bool { return false }, 0, false},
		{"b", 14, anyHead, 0, false},
		{"b", 15, anyHead, 15, true},
		{"none", 15, anyHead, 0, false},
	} {
		img, ok, err := s.Nearest(tt.session, tt.seq, set, tt.match)
		if err != nil || ok != tt.ok || img.Head.Seq != tt.want {
			t.Errorf("Nearest(%s, %d) = %d, %v, %v, want %d, %v", tt.session, tt.seq, img.Head.Seq, ok, err, tt.want, tt.ok)
		}
		if ok && tt.want > 0 {
			if diff := cmp.Diff(image(tt.want, len(img.Parts[0].Data)), img); diff != "" {
				t.Errorf("image %d:\n%s", tt.want, diff)
			}
		}
	}
}

// Nearest skips a value with any changed byte, or under another key, and returns the
// one before.
func TestNearestSkipsDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path, snapshot.Config{})
	put(t, s, "a", image(10, 20), image(20, 20))
	require.NoError(t, s.Close())
	key := []byte{0, 0, 0, 0, 0, 0, 0, 20}
	var whole []byte
	store := func(k, v []byte) {
		t.Helper()
		db, err := bolt.Open(path, 0o644, &bolt.Options{NoSync: true})
		require.NoError(t, err)
		err = db.Update(func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte("sajou-snapshots/1")).Bucket([]byte("a"))
			if whole == nil {
				whole = bytes.Clone(b.Get(key))
			}
			return b.Put(k, v)
		})
		require.NoError(t, errors.Join(err, db.Close()))
	}
	check := func(what string) {
		t.Helper()
		s := open(t, path, snapshot.Config{ReadOnly: true})
		img, ok, err := s.Nearest("a", 100, set, anyHead)
		if err != nil || !ok || img.Head.Seq != 10 {
			t.Errorf("%s: got %d, %v, %v, want 10", what, img.Head.Seq, ok, err)
		}
		assert.NoError(t, s.Close())
	}
	store(key, []byte{})
	check("empty")
	for n := range whole {
		bad := bytes.Clone(whole)
		bad[n] ^= 0x40
		store(key, bad)
		check(fmt.Sprintf("byte %d changed", n))
		store(key, whole[:n])
		check(fmt.Sprintf("cut to %d", n))
	}
	store(key, []byte{})
	store([]byte{0, 0, 0, 0, 0, 0, 0, 30}, whole)
	check("another place")
	store([]byte("no seq"), whole)
	check("another key")
}

func TestListAndDrop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path, snapshot.Config{})
	put(t, s, "a", image(10, 20), image(20, 20), image(30, 20))
	put(t, s, "b", image(10, 20))
	if found, err := s.Drop("a", 20); !found || err != nil {
		t.Errorf("Drop = %v, %v", found, err)
	}
	if found, err := s.Drop("a", 20); found || err != nil {
		t.Errorf("second Drop = %v, %v", found, err)
	}
	list, err := s.List("a")
	if err != nil || len(list) != 2 || list[0].Seq != 10 || list[1].Seq != 30 || list[0].Bytes < 80 || list[0].Length < 60 {
		t.Errorf("List = %+v, %v", list, err)
	}
	if n, err := s.DropAll("a"); n != 2 || err != nil {
		t.Errorf("DropAll = %d, %v", n, err)
	}
	if n, err := s.DropAll("none"); n != 0 || err != nil {
		t.Errorf("DropAll of none = %d, %v", n, err)
	}
	names, err := s.Sessions()
	if diff := cmp.Diff([]string{"b"}, names); diff != "" || err != nil {
		t.Errorf("Sessions: %v\n%s", err, diff)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	if _, err := snapshot.Open(path, snapshot.Config{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: err = %v, want ErrNotExist", err)
	}
	if _, err := snapshot.Open(dir, snapshot.Config{}); !errors.Is(err, snapshot.ErrUnusable) {
		t.Errorf("directory: err = %v, want ErrUnusable", err)
	}
	s := open(t, path, snapshot.Config{})
	put(t, s, "a", image(1, 1))
	for _, readOnly := range []bool{false, true} {
		if _, err := snapshot.Open(path, snapshot.Config{ReadOnly: readOnly, Timeout: time.Millisecond}); !errors.Is(err, snapshot.ErrLocked) {
			t.Errorf("locked: err = %v, want ErrLocked", err)
		}
	}
	assert.NoError(t, s.Close())
	if _, err := s.List("a"); !errors.Is(err, snapshot.ErrClosed) {
		t.Errorf("closed: err = %v, want ErrClosed", err)
	}
	r1, r2 := open(t, path, snapshot.Config{ReadOnly: true}), open(t, path, snapshot.Config{ReadOnly: true})
	assert.ErrorIs(t, r1.Put("a", image(2, 1)), snapshot.ErrReadOnly, "read-only")
	if list, err := r2.List("a"); len(list) != 1 || err != nil {
		t.Errorf("List = %v, %v", list, err)
	}
}

// Open refuses an invalid configuration, names the invalid field and creates no file.
func TestConfigErrors(t *testing.T) {
	for word, cfg := range map[string]snapshot.Config{
		"Timeout": {Timeout: -1}, "Interval": {Interval: -1}, "Percent 101": {Percent: 101}, "Percent -1": {Percent: -1},
		"MaxImage 4294967296": {MaxImage: 1 << 32}, "MaxImage -1": {MaxImage: -1},
	} {
		path := filepath.Join(t.TempDir(), "s.db")
		if _, err := snapshot.Open(path, cfg); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%+v: err = %v", cfg, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: the file: %v", cfg, err)
		}
	}
	for _, cfg := range []snapshot.Config{{}, {Timeout: 1, Interval: 1, Percent: 1, MaxImage: 1}, {Percent: 100, MaxImage: 1<<32 - 1}} {
		s := open(t, filepath.Join(t.TempDir(), "s.db"), cfg)
		if want := stdcmp.Or(cfg.Interval, snapshot.DefaultInterval); s.Interval() != eventlog.Seq(want) {
			t.Errorf("%+v: an image every %d entries, want %d", cfg, s.Interval(), want)
		}
	}
}

// Each call on a store that is closed, and each change of one that was opened for reading,
// is refused with the call and the session, and does nothing.
func TestRefusedCalls(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	s := open(t, path, snapshot.Config{})
	put(t, s, "a", image(10, 20), image(20, 20))
	put(t, s, snapshot.ApartName("a", "sum", 1), image(10, 1))
	require.NoError(t, s.PutNotes(map[string][]byte{"a": []byte("note")}))
	require.NoError(t, s.Close())
	reader := open(t, path, snapshot.Config{ReadOnly: true})
	changes := map[string]func(s *snapshot.Store) error{
		"put a at seq 30":    func(s *snapshot.Store) error { return s.Put("a", image(30, 1)) },
		"drop a at seq 10":   func(s *snapshot.Store) error { found, err := s.Drop("a", 10); assert.False(t, found); return err },
		"drop all of a":      func(s *snapshot.Store) error { n, err := s.DropAll("a"); assert.Zero(t, n); return err },
		"thin a":             func(s *snapshot.Store) error { n, err := s.Thin("a", 1); assert.Zero(t, n); return err },
		"put notes":          func(s *snapshot.Store) error { return s.PutNotes(map[string][]byte{"a": nil}) },
		"supersede sum of a": func(s *snapshot.Store) error { return s.Supersede("a", "sum", 2, 10) },
	}
	for what, change := range changes {
		require.ErrorIs(t, change(reader), snapshot.ErrReadOnly, what)
		require.ErrorContains(t, change(reader), "snapshot: "+what)
	}
	list, err := reader.List("a")
	require.NoError(t, err)
	require.Len(t, list, 2)
	names, err := reader.Sessions()
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names)
	require.NoError(t, reader.Supersede("a", "sum", 1, 10), "there is nothing to drop")
	require.NoError(t, reader.Close())
	reads := map[string]func(s *snapshot.Store) error{
		"get a at seq 10": func(s *snapshot.Store) error { _, err := s.Get("a", 10); return err },
		"nearest of a to seq 10": func(s *snapshot.Store) error {
			_, ok, err := s.Nearest("a", 10, set, anyHead)
			assert.False(t, ok)
			return err
		},
		"list a":                  func(s *snapshot.Store) error { _, err := s.List("a"); return err },
		"list sessions":           func(s *snapshot.Store) error { _, err := s.Sessions(); return err },
		"note of a":               func(s *snapshot.Store) error { _, err := s.Note("a"); return err },
		"snapshot store is close": func(s *snapshot.Store) error { return s.Copy(filepath.Join(dir, "copy")) },
	}
	for what, read := range reads {
		require.ErrorIs(t, read(s), snapshot.ErrClosed, what)
		require.ErrorContains(t, read(s), what)
	}
	for what, change := range changes {
		if what != "thin a" { // it lists first
			require.ErrorContains(t, change(s), "snapshot: "+what)
		}
		require.ErrorIs(t, change(s), snapshot.ErrClosed, what)
	}
}

// An empty file becomes a store, and is none for a reader. A store that no session has
// written to is empty for a reader too, though it lacks the bucket.
func TestOpenEmpty(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err := snapshot.Open(path, snapshot.Config{ReadOnly: true})
	require.ErrorIs(t, err, snapshot.ErrUnusable)
	require.ErrorContains(t, err, "empty file")
	s := open(t, path, snapshot.Config{})
	put(t, s, "a", image(1, 10))

	bare := filepath.Join(dir, "bare.db")
	db, err := bolt.Open(bare, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	reader := open(t, bare, snapshot.Config{ReadOnly: true})
	names, err := reader.Sessions()
	require.NoError(t, err)
	require.Empty(t, names)
	list, err := reader.List("a")
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = reader.Get("a", 1)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, reader.Supersede("a", "sum", 2, 10))
	require.NoError(t, reader.Close())

	_, err = snapshot.Open(filepath.Join(dir, "missing", "s.db"), snapshot.Config{})
	require.ErrorContains(t, err, "no such file or directory")
}

// Images are thinned to their part of the log's size, and with no size not at all.
func TestWriterThins(t *testing.T) {
	for size, want := range map[uint64]int{0: 5, 1: 1, 1 << 20: 5} {
		s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{})
		w := snapshot.NewWriter(s, snapshot.WriterConfig{})
		for n := eventlog.Seq(1); n <= 5; n++ {
			w.Offer("a", size, image(n*1000, 100), image(n*1000, 100))
		}
		w.Close()
		for _, name := range []string{"a", snapshot.ApartName("a", "blob", 1)} {
			list, err := s.List(name)
			require.NoError(t, err)
			require.Len(t, list, want, "%s, a log of %d bytes", name, size)
		}
	}
}

// An error that is not a panic leaves the store usable.
func TestOrdinaryErrorsDoNotDisable(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{})
	assert.Error(t, s.Put("", image(10, 10)), "an image of no session is kept")
	put(t, s, "a", image(10, 10))
	if img, ok, err := s.Nearest("a", 100, set, anyHead); err != nil || !ok || img.Head.Seq != 10 {
		t.Errorf("nearest: %v, %v, %v", img.Head, ok, err)
	}
}

func TestOpenForeign(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	db, err := bolt.Open(path, 0o644, nil)
	require.NoError(t, err)
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("letters"))
		return err
	})
	require.NoError(t, errors.Join(err, db.Close()))
	if _, err := snapshot.Open(path, snapshot.Config{}); !errors.Is(err, snapshot.ErrUnusable) {
		t.Errorf("another's bbolt: err = %v, want ErrUnusable", err)
	}
	for _, text := range []string{"x", strings.Repeat("not bbolt ", 5000)} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		if _, err := snapshot.Open(path, snapshot.Config{}); !errors.Is(err, snapshot.ErrUnusable) {
			t.Errorf("%.10q: err = %v, want ErrUnusable", text, err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	big := open(t, path, snapshot.Config{})
	put(t, big, "a", image(10, 10), image(20, 1000))
	require.NoError(t, big.Close())
	s := open(t, path, snapshot.Config{MaxImage: 500})
	assert.ErrorIs(t, s.Put("a", image(30, 1000)), snapshot.ErrTooLarge, "Put")
	if img, ok, err := s.Nearest("a", 100, set, anyHead); img.Head.Seq != 10 || !ok || err != nil {
		t.Errorf("Nearest = %d, %v, %v, want 10", img.Head.Seq, ok, err)
	}
}

// After thinning, the total fits, the newest image remains, no image was added,
// thinning again drops nothing, and each gap left by a dropped image is at most twice
// as wide as its age, in whole intervals.
func TestThinProperty(t *testing.T) {
	dir := t.TempDir()
	var n int
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		s, err := snapshot.Open(path, snapshot.Config{Interval: 10})
		require.NoError(t, err)
		defer func() { _ = s.Close(); _ = os.Remove(path) }()
		count := rapid.IntRange(1, 40).Draw(t, "images")
		size := rapid.IntRange(1, 300).Draw(t, "size")
		var before []snapshot.ImageInfo
		for i := range count {
			require.NoError(t, s.Put("a", image(eventlog.Seq(10*(i+1)), size)))
		}
		if before, err = s.List("a"); err != nil {
			t.Fatal(err)
		}
		var sum, newest int64
		for _, info := range before {
			sum += info.Bytes
			newest = info.Bytes
		}
		logBytes := uint64(rapid.Int64Range(0, 5*sum).Draw(t, "log"))
		dropped, err := s.Thin("a", logBytes)
		require.NoError(t, err)
		after, err := s.List("a")
		require.NoError(t, err)
		if len(after)+dropped != len(before) || after[len(after)-1] != before[len(before)-1] {
			t.Fatalf("%d of %d left, %d dropped, last %v", len(after), len(before), dropped, after[len(after)-1])
		}
		var left int64
		for _, info := range after {
			left += info.Bytes
		}
		budget := int64(logBytes / 4)
		if left > max(budget, newest) {
			t.Fatalf("%d bytes left of a budget of %d", left, budget)
		}
		if sum <= budget && dropped > 0 {
			t.Fatalf("dropped %d though all fit", dropped)
		}
		if again, err := s.Thin("a", logBytes); again != 0 || err != nil {
			t.Fatalf("thinning again dropped %d, %v", again, err)
		}
		last := after[len(after)-1].Seq
		for i := 1; i < len(after); i++ {
			gap := after[i].Seq - after[i-1].Seq
			if age := last - after[i-1].Seq; gap > 2*age+20 {
				t.Fatalf("a gap of %d after %d, %d old", gap, after[i-1].Seq, age)
			}
		}
	})
}

// TestThinGaps shows the resulting gaps, oldest first.
func TestThinGaps(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{Interval: 1000})
	for n := eventlog.Seq(1); n <= 64; n++ {
		put(t, s, "a", image(n*1000, 100))
	}
	put(t, s, "a", image(64_500, 100), image(64_700, 100))
	list, err := s.List("a")
	require.NoError(t, err)
	each := uint64(list[0].Bytes)
	for _, tt := range []struct {
		images uint64 // that fit the budget
		want   string
	}{
		{70, "all"},
		{25, "1000 8000 16000 24000 32000 36000 40000 44000 48000 50000 52000 54000 56000 57000 58000 59000 60000 61000 62000 63000 64000 64700"},
		{12, "1000 32000 48000 56000 60000 62000 63000 64000 64700"},
		{1, "64700"},
		{0, "64700"},
	} {
		if _, err := s.Thin("a", 4*each*tt.images+200); err != nil {
			t.Fatal(err)
		}
		list, err := s.List("a")
		require.NoError(t, err)
		var seqs []string
		for _, info := range list {
			seqs = append(seqs, fmt.Sprint(info.Seq))
		}
		got := strings.Join(seqs, " ")
		if len(list) == 66 {
			got = "all"
		}
		if got != tt.want {
			t.Errorf("room for %d:\n got %s\nwant %s", tt.images, got, tt.want)
		}
	}
}

func TestWriter(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{})
	w := snapshot.NewWriter(s, snapshot.WriterConfig{})
	for n := eventlog.Seq(1); n <= 100; n++ {
		w.Offer("a", 2000, image(n*1000, 100))
	}
	w.Close()
	w.Close()
	w.Offer("a", 0, image(200_000, 100))
	list, err := s.List("a")
	if err != nil || len(list) == 0 || list[len(list)-1].Seq != 100_000 || len(list) > 3 {
		t.Errorf("List = %v, %v", list, err)
	}
}

func TestWriterLogsErrors(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{})
	require.NoError(t, s.Close())
	var log bytes.Buffer
	w := snapshot.NewWriter(s, snapshot.WriterConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	w.Offer("a", 0, image(1000, 1))
	w.Close()
	if !strings.Contains(log.String(), "store is closed") {
		t.Errorf("log = %q", log.String())
	}
}

// imageMetrics counts images.
type imageMetrics struct {
	stored, failed, dropped, bytes int
	took                           time.Duration
	begun, release                 chan struct{} // nil: the Writer is not held
}

func (m *imageMetrics) ImageDropped(string) { m.dropped++ }
func (m *imageMetrics) ImageStored(_ string, bytes int, took time.Duration, err error) {
	if m.bytes, m.took = bytes, took; err != nil {
		m.failed++
	} else {
		m.stored++
	}
	if m.begun != nil {
		m.begun <- struct{}{}
		<-m.release
		m.begun = nil
	}
}

// Images that are stored, dropped or fail are reported, and the error stays until an
// image is stored.
func TestWriterMetrics(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{})
	now := time.Unix(0, 0)
	clock := func() time.Time { now = now.Add(time.Millisecond); return now }
	m := &imageMetrics{begun: make(chan struct{}), release: make(chan struct{})}
	w := snapshot.NewWriter(s, snapshot.WriterConfig{Metrics: m, Now: clock})
	w.Offer("a", 0, image(1000, 100))
	<-m.begun // the Writer stands still until release
	for n := eventlog.Seq(2); n <= 12; n++ {
		w.Offer("a", 0, image(n*1000, 100))
	}
	close(m.release)
	w.Close()
	if m.stored != 9 || m.dropped != 3 || m.failed != 0 || m.bytes != 100 || m.took != time.Millisecond || w.Err() != nil {
		t.Errorf("%+v, %v", m, w.Err())
	}
	// The size is that of all parts. A clock that is set back gives no negative time.
	m = &imageMetrics{took: time.Hour}
	w = snapshot.NewWriter(s, snapshot.WriterConfig{Metrics: m, Now: func() time.Time { now = now.Add(-time.Second); return now }})
	two := image(12_500, 70)
	two.Parts = append(two.Parts, projection.Part{Name: "more", Version: 1, Data: []byte("thirty bytes of another state..")})
	w.Offer("a", 0, two)
	w.Close()
	assert.Equal(t, 70+len(two.Parts[1].Data), m.bytes)
	assert.Zero(t, m.took)
	require.NoError(t, s.Close())
	m = &imageMetrics{}
	w = snapshot.NewWriter(s, snapshot.WriterConfig{Metrics: m, Now: clock})
	w.Offer("a", 0, image(13_000, 100))
	w.Close()
	for range 2 { // asking leaves the error
		if m.failed != 1 || m.stored != 0 || w.Err() == nil {
			t.Errorf("after the store is closed: %+v, %v", m, w.Err())
		}
	}
}

// The error is that of the last image, of the session or of a projection apart.
func TestWriterErr(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{MaxImage: 500})
	small, big := image(1000, 1), image(2000, 1000)
	for _, c := range []struct {
		images []projection.Image // the first of the session, the others apart
		failed bool
	}{
		{[]projection.Image{big}, true},
		{[]projection.Image{small}, false},
		{[]projection.Image{small, big}, true},
		{[]projection.Image{big, small}, true},
		{[]projection.Image{small, big, small}, true},
		{[]projection.Image{small, small}, false},
	} {
		var log bytes.Buffer
		w := snapshot.NewWriter(s, snapshot.WriterConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		w.Offer("a", 0, big)
		w.Offer("a", 0, c.images[0], c.images[1:]...)
		w.Close()
		if !c.failed {
			require.NoError(t, w.Err())
			continue
		}
		require.ErrorIs(t, w.Err(), snapshot.ErrTooLarge)
		require.Equal(t, 2, strings.Count(log.String(), "snapshot not stored"), log.String())
	}
	list, err := s.List(snapshot.ApartName("a", "blob", 1))
	require.NoError(t, err)
	require.Len(t, list, 1, "those that can be stored are")
}

func TestDue(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{})
	for _, tt := range []struct {
		last, seq eventlog.Seq
		want      bool
	}{{0, 999, false}, {0, 1000, true}, {1000, 1999, false}, {1003, 2000, true}} {
		if got := s.Due(tt.last, tt.seq); got != tt.want {
			t.Errorf("Due(%d, %d) = %v", tt.last, tt.seq, got)
		}
	}
}

// The budget is exact to the byte, also for log sizes whose product with a percentage
// overflows; the images kept are within it.
func TestThinBudget(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{Interval: 10, Percent: 50})
	put(t, s, "a", image(10, 200), image(20, 200), image(30, 200))
	list, err := s.List("a")
	require.NoError(t, err)
	var sum uint64
	for _, info := range list {
		sum += uint64(info.Bytes)
	}
	if n, err := s.Thin("a", 1<<64-1); n != 0 || err != nil {
		t.Errorf("a log of all bytes there are: %d dropped, %v", n, err)
	}
	if n, err := s.Thin("a", 2*sum); n != 0 || err != nil {
		t.Errorf("room to the byte: %d dropped, %v", n, err)
	}
	if n, err := s.Thin("a", 2*sum-2); n == 0 || err != nil {
		t.Errorf("a byte too few: %d dropped, %v", n, err)
	}
	if n, err := s.Thin("none", 0); n != 0 || err != nil {
		t.Errorf("of no session: %d, %v", n, err)
	}
	require.NoError(t, s.Close())
	if _, err := s.Thin("a", 0); !errors.Is(err, snapshot.ErrClosed) {
		t.Errorf("closed: %v, want ErrClosed", err)
	}
}

// The Seqs of images may be as far apart as the type allows.
func TestThinFarApart(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"), snapshot.Config{Interval: 1})
	for _, seq := range []eventlog.Seq{0, 1, 1<<63 + 5, 1<<64 - 1} {
		img := image(seq, 100)
		img.At = 0
		put(t, s, "a", img)
	}
	list, err := s.List("a")
	require.NoError(t, err)
	each := uint64(list[3].Bytes)
	for _, left := range []uint64{3, 2, 1} {
		if _, err := s.Thin("a", 4*each*left+100); err != nil {
			t.Fatal(err)
		}
		list, err := s.List("a")
		if err != nil || len(list) == 0 || uint64(len(list)) > left || list[len(list)-1].Seq != 1<<64-1 {
			t.Errorf("room for %d: %v, %v", left, list, err)
		}
	}
}

// A reader has the answers of its store.
func TestReader(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "snapshots.db"), snapshot.Config{})
	put(t, s, "a", image(10, 4), image(20, 4))
	put(t, s, "b", image(5, 4))
	r := s.Reader()
	sessions, err := r.Sessions()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, sessions)
	list, err := r.List("a")
	require.NoError(t, err)
	want, err := s.List("a")
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, want, list)
	img, err := r.Get("a", 20)
	require.NoError(t, err)
	require.Equal(t, image(20, 4), img)
	_, err = r.Get("a", 15)
	_, wantErr := s.Get("a", 15)
	require.Error(t, err)
	require.Equal(t, wantErr, err)
	set := projection.Set{{Name: "blob", Version: 1}}
	img, ok, err := r.Nearest("a", 15, set, anyHead)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, image(10, 4), img)
	_, ok, err = r.Nearest("a", 20, set, func(eventlog.Head) bool { return false })
	require.NoError(t, err)
	require.False(t, ok)
}
