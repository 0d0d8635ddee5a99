package eventlog_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// keysOf returns the keys and values of the store in dir, without those of the store
// itself, and closes it.
func keysOf(dir string, fs vfs.FS) (string, error) {
	l, err := eventlog.Open(dir, eventlog.Config{FS: fs, ReadOnly: true})
	if err != nil {
		return "", err
	}
	kept := map[string]string{}
	if err := l.Each(func(key, value []byte) { kept[string(key)] = string(value) }); err != nil {
		_ = l.Close()
		return "", err
	}
	delete(kept, "d")
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		fmt.Fprintf(&b, "%x %x\n", key, kept[key])
	}
	fmt.Fprintln(&b, l.Loss(), l.Doubts())
	return b.String(), l.Close()
}

// faultyWork is a call that a failing disk meets.
type faultyWork struct {
	files    directory
	readOnly bool
	step     int // from one operation that fails to the next: a prime
	// do returns all results; "" if they tell a doubt. Without the faults the disk is mem.
	do func(fs, mem vfs.FS) (string, error)
}

// Each operation on the disk fails in turn while a store is repaired, copied, read or
// changed. The call then returns an error, or has the result of a disk that does not fail; a
// repair may also report a doubt. A store that is only read is as it was.
func TestEveryOperationFails(t *testing.T) {
	opened := func(cfg eventlog.Config, do func(l *eventlog.Log) (string, error)) func(fs, mem vfs.FS) (string, error) {
		return func(fs, _ vfs.FS) (string, error) {
			cfg := cfg
			cfg.FS = fs
			l, err := eventlog.Open("store", cfg)
			if err != nil {
				return "", err
			}
			text, err := do(l)
			if other := l.Close(); err == nil {
				err = other
			}
			return text, err
		}
	}
	sessions := func(l *eventlog.Log) (string, error) {
		var b strings.Builder
		infos, err := l.Sessions()
		if err != nil {
			return "", err
		}
		for _, info := range infos {
			r, err := l.Verify(t.Context(), info.Name, verify.Options{Workers: 1})
			if err != nil {
				return "", err
			}
			if r.Fault != nil && r.Fault.Kind == verify.FaultUnreadable {
				return "", nil
			}
			fmt.Fprintln(&b, r.Session, r.Head, r.Fault, r.Keys)
		}
		if len(l.Doubts()) > 0 {
			return "", nil
		}
		faults, err := l.Survey(t.Context())
		fmt.Fprintln(&b, faults, l.Loss())
		return b.String(), err
	}
	disk, _ := threeSessions(t)
	closed := directoryOf(t, disk)
	killed := victimLife(t, "s", 2, 9, 0, byKill).files
	works := map[string]faultyWork{
		"read":                     {closed, true, 5, opened(eventlog.Config{ReadOnly: true}, sessions)},
		"read of a killed process": {killed, true, 5, opened(eventlog.Config{ReadOnly: true}, sessions)},
		"repair": {closed, true, 29, func(fs, mem vfs.FS) (string, error) {
			r, err := eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: fs})
			if err != nil || !r.Whole() {
				return "", err
			}
			return keysOf("copy", mem)
		}},
		"repair of a killed process": {killed, true, 29, func(fs, mem vfs.FS) (string, error) {
			r, err := eventlog.Repair(t.Context(), "store", "copy", eventlog.Config{FS: fs})
			if err != nil || !r.Whole() {
				return "", err
			}
			return keysOf("copy", mem)
		}},
		"write": {closed, false, 11, opened(eventlog.Config{}, func(l *eventlog.Log) (string, error) {
			s, err := l.Session("a")
			if err != nil {
				return "", err
			}
			head, err := s.Append(t.Context(), eventlog.Batch{Drafts: drafts(10, 2), Key: "k"})
			if err == nil {
				err = l.Flush()
			}
			return head.String(), err
		})},
		"backup": {closed, false, 11, opened(eventlog.Config{ReadOnly: true}, func(l *eventlog.Log) (string, error) {
			reports, err := l.Backup(t.Context(), "copy")
			return fmt.Sprint(reports), err
		})},
		"delete": {closed, false, 11, opened(eventlog.Config{}, func(l *eventlog.Log) (string, error) {
			tomb, err := l.Delete(t.Context(), "a", noon)
			return fmt.Sprint(tomb), err
		})},
	}
	for name, w := range works {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := w.files.onDisk(t)
			want, err := w.do(disk, disk)
			require.NoError(t, err)
			require.NotEmpty(t, want)
			for _, few := range []bool{false, true} {
				step := int64(1)
				if !few {
					step = int64(w.step)
				}
				at := int64(1)
				for w.fails(t, want, at, few) {
					at += step
				}
			}
		})
	}
}

// fails has one operation fail: that of a number among all, or among those of which there are
// few. It returns false if there are not so many.
func (w faultyWork) fails(t *testing.T, want string, at int64, few bool) bool {
	t.Helper()
	mem := w.files.onDisk(t)
	var n atomic.Int64
	var what atomic.Pointer[string]
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileClose:
			return nil
		case errorfs.OpList, errorfs.OpRename, errorfs.OpMkdirAll, errorfs.OpOpenDir:
		default:
			if few {
				return nil
			}
		}
		if n.Add(1) != at {
			return nil
		}
		text := fmt.Sprint(op.Kind, " ", op.Path)
		what.Store(&text)
		return errDisk
	}))
	var got string
	var err error
	within(t, t.Name(), func() { got, err = w.do(fs, mem) })
	if n.Load() < at {
		return false
	}
	switch {
	case err != nil:
		assert.ErrorContains(t, err, errDisk.Error(), "%d: %s", at, *what.Load())
	case got != "": // else there is a doubt
		assert.Equal(t, want, got, "%d: %s", at, *what.Load())
	}
	if w.readOnly {
		assert.True(t, directoryOf(t, mem).equal(w.files), "%d: %s: the store was changed", at, *what.Load())
	}
	l, err := eventlog.Open("store", eventlog.Config{FS: mem})
	if assert.NoError(t, err, "%d: %s: on the repaired disk", at, *what.Load()) {
		assert.NoError(t, l.Close())
	}
	return true
}
