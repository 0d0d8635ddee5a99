package eventlog_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// A flipped bit in a large block is an error at once. Pebble alone would search for the
// bit for minutes.
func TestRotInALargeBlockIsFoundAtOnce(t *testing.T) {
	mem := vfs.NewMem()
	rng := rand.New(rand.NewPCG(5, 5))
	l := open(t, mem, eventlog.Config{})
	fill(t, l, rng, 5, 100)
	closeQuietly(t, l)
	l = open(t, mem, eventlog.Config{})
	b := eventlog.Batch{}
	for range 8 {
		b.Drafts = append(b.Drafts, eventlog.Draft{Kind: eventlog.KindSignal, Data: noise(rng, 900<<10)})
	}
	head := must(t, session(t, l, "large"), b)
	closeQuietly(t, l)
	flipped := false
	for name, content := range directoryOf(t, mem) {
		if strings.HasSuffix(name, ".sst") && len(content) > 1<<20 {
			content = slices.Clone(content)
			content[len(content)/2] ^= 4
			writeFile(t, mem, "store/"+name, content)
			flipped = true
		}
	}
	if !flipped {
		t.Fatal("no large table")
	}
	within(t, "reading a rotten store", func() {
		l, err := eventlog.Open("store", eventlog.Config{FS: mem, ReadOnly: true})
		if err != nil {
			t.Errorf("opened: %v", err)
			return
		}
		faults, err := l.Survey(context.Background())
		if err != nil || !slices.ContainsFunc(faults, func(f verify.StoreFault) bool { return f.Kind == verify.StoreUnreadable }) {
			t.Errorf("survey: %v, %v", faults, err)
		}
		report, err := l.Verify(context.Background(), "large", verify.Options{})
		if err == nil && (report.Whole() || report.Head == head) {
			t.Errorf("verified: %+v", report)
		}
		closeQuietly(t, l)
		if r, err := eventlog.Repair(context.Background(), "store", "copy", eventlog.Config{FS: mem}); err != nil || r.Whole() {
			t.Errorf("repaired: %+v, %v", r, err)
		}
	})
}

// Open refuses a killed store with a damaged table before it replays the write-ahead
// log, so nothing has changed.
func TestRefusedIsUnchanged(t *testing.T) {
	mem := vfs.NewCrashableMem()
	rng := rand.New(rand.NewPCG(6, 6))
	l := open(t, mem, eventlog.Config{})
	fill(t, l, rng, 40, 2<<10)
	closeQuietly(t, l)
	l = open(t, mem, eventlog.Config{})
	fill(t, l, rng, 10, 2<<10)
	files := directoryOf(t, killed(mem))
	closeQuietly(t, l)
	refused := 0
	for name, content := range files {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		for at := 0; at < len(content); at += 1009 {
			rotten := bytes.Clone(content)
			rotten[at] ^= 16
			changed := files.with(name, rotten)
			fs := changed.onDisk(t)
			l, err := eventlog.Open("store", eventlog.Config{FS: fs})
			if err == nil {
				closeQuietly(t, l)
				continue
			}
			refused++
			assert.ErrorIsf(t, err, eventlog.ErrCorrupt, "%s, byte %d: %v", name, at, err)
			if after := directoryOf(t, fs); !after.equal(changed) {
				t.Errorf("%s, byte %d: refused (%v), and the store was changed", name, at, err)
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}
