package eventlog_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// promised holds the acknowledgements that callers had received when the machine
// stopped.
type promised struct {
	heads map[string]eventlog.Head // by session, the newest acknowledged
	keys  map[string]eventlog.Head // by "session/key", the outcome of the first use
}

func (p promised) clone() promised { return promised{maps.Clone(p.heads), maps.Clone(p.keys)} }

// image is the state of a disk after a crash, with the promises made before it.
type image struct {
	fs       *vfs.MemFS
	where    string
	promised promised
}

// crashLife is the life of a log that crashes are taken from: several
// sessions, batches of several sizes, some with keys, entries large enough to
// make the store turn its write-ahead log over, and a clean close and reopen
// in between.
func crashLife(t *testing.T, fs vfs.FS, told func(func(*promised))) {
	t.Helper()
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(1, 2))
	for life := range 3 {
		l, err := eventlog.Open("store", eventlog.Config{FS: fs})
		require.NoError(t, err)
		for i := range 16 {
			name := fmt.Sprintf("s%d", rng.IntN(3+life))
			s := session(t, l, name)
			b := eventlog.Batch{Drafts: drafts(int(s.Head().Seq)+1, 1+rng.IntN(5))}
			if i%5 == 4 {
				b.Drafts[0].Data = text(strings.Repeat("x", 150<<10))
			}
			if i%2 == 0 {
				b.Key = fmt.Sprintf("%d-%d", life, i)
			}
			head, err := s.Append(ctx, b)
			require.NoError(t, err)
			told(func(p *promised) {
				p.heads[name] = head
				if b.Key != "" {
					p.keys[name+"/"+b.Key] = head
				}
			})
		}
		require.NoError(t, l.Close())
	}
}

// The machine stops before every write operation of a log's life, with all, half or
// none of the unsynced writes on the disk. The log opened afterwards has everything
// that was acknowledged, without gaps, with intact chains and with keys that return
// their first outcome, and accepts further appends.
func TestCrashAtEveryWrite(t *testing.T) {
	mem := vfs.NewCrashableMem()
	rng := rand.New(rand.NewPCG(7, 7))
	var mu sync.Mutex
	now := promised{map[string]eventlog.Head{}, map[string]eventlog.Head{}}
	var images []image
	ops := 0
	disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		ops++
		if ops%stride(7) != 0 {
			return nil
		}
		for _, percent := range []int{0, 50, 100} {
			// Promises are recorded under mu: a promise made after this moment is not
			// in the image and need not be.
			images = append(images, image{
				mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}),
				fmt.Sprintf("operation %d (%v of %s), %d %% of what was not synced", ops, op.Kind, op.Path, percent),
				now.clone(),
			})
		}
		return nil
	}))
	crashLife(t, disk, func(note func(*promised)) {
		mu.Lock()
		defer mu.Unlock()
		note(&now)
	})
	t.Logf("%d write operations, %d images", ops, len(images))
	if ops < 100 {
		t.Errorf("only %d write operations", ops)
	}
	// Promises only grow: of the images with the same files the last one is held to all that
	// the others are.
	var kept []image
	seen := map[string]bool{}
	for _, im := range slices.Backward(images) {
		if files := digest(t, im.fs, "/"); !seen[files] {
			seen[files] = true
			kept = append(kept, im)
		}
	}
	t.Logf("%d of them differ", len(kept))
	for _, im := range slices.Backward(kept) {
		recovers(t, im)
		if t.Failed() {
			return
		}
	}
}

// digest returns one of all files below a directory.
func digest(t *testing.T, fs vfs.FS, dir string) string {
	t.Helper()
	names, err := fs.List(dir)
	require.NoError(t, err)
	slices.Sort(names)
	sum := sha256.New()
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		require.NoError(t, err)
		text := ""
		if info.IsDir() {
			text = digest(t, fs, path)
		} else {
			file, err := fs.Open(path)
			require.NoError(t, err)
			data, err := io.ReadAll(file)
			require.NoError(t, err)
			require.NoError(t, file.Close())
			text = string(data)
		}
		fmt.Fprintf(sum, "%q %t %d %s", name, info.IsDir(), len(text), text)
	}
	return string(sum.Sum(nil))
}

// recovers opens an image and checks it against the promises.
func recovers(t *testing.T, im image) {
	t.Helper()
	ctx := context.Background()
	l, err := eventlog.Open("store", eventlog.Config{FS: im.fs})
	if err != nil {
		t.Errorf("%s: open: %v", im.where, err)
		return
	}
	defer func() {
		assert.NoErrorf(t, l.Close(), "%s: close", im.where)
	}()
	holds(t, l, im.promised.heads, im.where)
	infos, err := l.Sessions()
	assert.NoErrorf(t, err, "%s", im.where)
	listed := map[string]bool{}
	for _, info := range infos {
		listed[info.Name] = true
		s, err := l.Session(info.Name)
		if err != nil || !s.Exists() {
			t.Errorf("%s: session %q is listed and has no entry: %v", im.where, info.Name, err)
			continue
		}
		// A batch is all or nothing: the keys in entries are exactly the keys with
		// records.
		for e, err := range s.Entries(ctx, 1) {
			if err != nil {
				t.Errorf("%s: %v", im.where, err)
				break
			}
			if e.Key == "" {
				continue
			}
			ticket, err := s.Stage(t.Context(), eventlog.Batch{Key: e.Key, Drafts: drafts(1, 1)})
			if err != nil || !ticket.Repeat() || ticket.First() != e.Seq {
				t.Errorf("%s: key %q of entry %d is not remembered: %v", im.where, e.Key, e.Seq, err)
				break
			}
			head, err := ticket.Wait(t.Context())
			if want, ok := im.promised.keys[info.Name+"/"+e.Key]; err != nil || ok && head != want {
				t.Errorf("%s: key %q leads to %v, %v; promised was %v", im.where, e.Key, head, err, want)
			}
		}
	}
	for name := range im.promised.heads {
		if !listed[name] {
			t.Errorf("%s: session %q is not listed", im.where, name)
		}
	}
	for place := range im.promised.keys {
		name, key, _ := strings.Cut(place, "/")
		s := session(t, l, name)
		before := s.Head()
		if _, err := s.Append(ctx, eventlog.Batch{Key: key, Drafts: drafts(1, 1)}); err != nil || s.Head() != before {
			t.Errorf("%s: key %q was forgotten: %v", im.where, key, err)
		}
	}
	s := session(t, l, "s0")
	want := s.Head().Seq + 2
	if head, err := s.Append(ctx, eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindBeat, At: s.At(), Data: text("on")}, {Kind: eventlog.KindBeat, At: s.At(), Data: text("on")}}}); err != nil || head.Seq != want {
		t.Errorf("%s: going on gives %v, %v; want entry %d", im.where, head, err, want)
	}
	if r, err := l.Verify(ctx, "s0", verify.Options{}); err != nil || r.Fault != nil {
		t.Errorf("%s: verify after going on: %+v, %v", im.where, r, err)
	}
}

// The directories on the way to a new store survive as well.
func TestCrashKeepsTheWayToTheStore(t *testing.T) {
	mem := vfs.NewCrashableMem()
	const dir = "some/where/deep/store"
	l, err := eventlog.Open(dir, eventlog.Config{FS: mem})
	require.NoError(t, err)
	head, err := session(t, l, "a").Append(context.Background(), eventlog.Batch{Drafts: drafts(1, 1)})
	require.NoError(t, err)
	left := mem.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, l.Close())
	l, err = eventlog.Open(dir, eventlog.Config{FS: left, ReadOnly: true})
	require.NoError(t, err)
	if got := session(t, l, "a").Head(); got != head {
		t.Errorf("head = %v, acknowledged was %v", got, head)
	}
	assert.NoError(t, l.Close())
}
