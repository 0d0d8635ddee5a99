package eventlog_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/attack"
)

// Repair copies a store with one damaged file. It reports the copy as complete only if
// the copy has everything that was acknowledged. The source does not change.
func TestAttackRepair(t *testing.T) {
	ctx := context.Background()
	cuts := attack.Rounds(1, 40)
	for i, v := range victims(t) {
		if !attack.Long() && i%3 != 1 {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			counts := map[string]int{}
			for _, name := range slices.Sorted(maps.Keys(v.files)) {
				for what, b := range damages(t, v, name, cuts) {
					changed := v.files.with(name, b)
					fs := changed.onDisk(t)
					r, err := eventlog.Repair(ctx, "store", "copy", eventlog.Config{FS: fs})
					if after := directoryOf(t, fs); !after.equal(changed) {
						t.Errorf("%s %s: the source was changed", name, what)
					}
					if err != nil {
						if !errors.Is(err, eventlog.ErrForeign) && !errors.Is(err, eventlog.ErrVersion) {
							t.Errorf("%s %s: %v", name, what, err)
						}
						counts["refused"]++
						continue
					}
					outcome := "nothing"
					if len(r.Sessions) > 0 {
						l, err := eventlog.Open("copy", eventlog.Config{FS: fs})
						if err != nil {
							t.Errorf("%s %s: the copy: %v", name, what, err)
							continue
						}
						outcome = v.whole(t, l)
						assert.NoError(t, l.Close())
					}
					bounded := strings.HasSuffix(name, ".log") && (v.legacy || v.lags)
					if r.Whole() && outcome != "whole" && !bounded {
						t.Errorf("%s %s: called whole, and is %q; found was %v", name, what, outcome, r.Found)
					}
					if !strings.HasSuffix(name, ".log") && !strings.HasSuffix(name, ".sst") && outcome != "whole" {
						t.Errorf("%s %s: the copy is %q", name, what, outcome)
					}
					if r.Whole() {
						outcome += ", called whole"
					}
					counts[outcome]++
				}
			}
			t.Logf("%v", counts)
		})
	}
}

// The markers, SAJOU and FILES are rebuilt without loss, each alone and all together.
func TestRepairRebuilds(t *testing.T) {
	v := victimLife(t, "s", 2, 20, 0, byKill)
	for name := range v.files {
		if strings.HasPrefix(name, "marker.") || name == "SAJOU" || name == "FILES" || name == "LOCK" {
			delete(v.files, name)
		}
	}
	fs := v.files.onDisk(t)
	r, err := eventlog.Repair(context.Background(), "store", "copy", eventlog.Config{FS: fs})
	require.NoError(t, err)
	if !r.Whole() || r.Found == nil || len(r.Rebuilt) != 3 {
		t.Errorf("%+v", r)
	}
	l, err := eventlog.Open("copy", eventlog.Config{FS: fs})
	require.NoError(t, err)
	if got := v.whole(t, l); got != "whole" {
		t.Errorf("the copy is %q", got)
	}
	must(t, session(t, l, "s0"), eventlog.Batch{Drafts: drafts(10_000, 1)})
	require.NoError(t, l.Close())
}

// Repair copies only to an absent or empty directory outside of the source.
func TestRepairRefuses(t *testing.T) {
	ctx := context.Background()
	v := victimLife(t, "s", 1, 3, 0, byClose)
	fs := v.files.onDisk(t)
	require.NoError(t, errors.Join(fs.MkdirAll("full", 0o755), fs.MkdirAll("empty", 0o755)))
	writeFile(t, fs, "full/notes.txt", []byte("precious"))
	for _, tt := range []struct {
		from, to string
		want     error
	}{
		{"store", "store", eventlog.ErrInvalid},
		{"store", "store/copy", eventlog.ErrInvalid},
		{"store", "full", eventlog.ErrForeign},
		{"full", "copy", eventlog.ErrForeign},
		{"nowhere", "copy", eventlog.ErrNoStore},
		{"empty", "copy", eventlog.ErrNoStore},
	} {
		before := filesOf(t, fs, "")
		if _, err := eventlog.Repair(ctx, tt.from, tt.to, eventlog.Config{FS: fs}); !errors.Is(err, tt.want) {
			t.Errorf("from %s to %s: %v, want %v", tt.from, tt.to, err, tt.want)
		}
		if after := filesOf(t, fs, ""); !maps.Equal(before, after) {
			t.Errorf("from %s to %s: changed", tt.from, tt.to)
		}
	}
	locked, err := eventlog.Open("store", eventlog.Config{FS: fs})
	require.NoError(t, err)
	if _, err := eventlog.Repair(ctx, "store", "copy", eventlog.Config{FS: fs}); !errors.Is(err, eventlog.ErrLocked) {
		t.Errorf("a store in use: %v, want ErrLocked", err)
	}
	require.NoError(t, locked.Close())
}
