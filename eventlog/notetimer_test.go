package eventlog_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// noteEvents records what happens to the noted heads: a timer begins ("+"), is stopped ("-")
// or runs ("!"), and the file is synced ("s").
type noteEvents struct {
	mu     sync.Mutex
	events strings.Builder
	timer  func() // nil: none runs
}

func (n *noteEvents) add(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events.WriteString(s)
}

func (n *noteEvents) after(_ time.Duration, f func()) (stop func() bool) {
	n.add("+")
	n.timer = f
	return func() bool {
		n.add("-")
		n.timer = nil
		return true
	}
}

func (n *noteEvents) fire() {
	f := n.timer
	n.timer = nil
	n.add("!")
	f()
}

// take returns the events since the last call.
func (n *noteEvents) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.events.Reset()
	return n.events.String()
}

// The notes are synced when half of the bound is not synced or when the time is over, which
// runs from the first note that is not synced. A sync stops the timer, and one timer runs at
// most. Close syncs what is left.
func TestNotesAreSynced(t *testing.T) {
	const fire = -1
	for _, tt := range []struct {
		bound int
		steps []int // entries of an append, or fire
		want  string
	}{
		{8, nil, ""},
		{8, []int{1}, "+ -s"},
		{8, []int{1, 1, 1}, "+   -s"},
		{8, []int{1, 2, 1}, "+  -s "},
		{8, []int{3, 1}, "+ -s "},
		{8, []int{3, 1, 1, 3}, "+ -s + -s "},
		{8, []int{4}, "s "},
		{8, []int{100}, "s "},
		{8, []int{4, 4, 3}, "s s + -s"},
		{8, []int{1, fire}, "+ !s "},
		{8, []int{1, fire, 1}, "+ !s + -s"},
		{8, []int{1, fire, 4, 1, fire}, "+ !s s + !s "},
		{9, []int{3, 1}, "+ -s "},
		{10, []int{4, 1}, "+ -s "},
		{10, []int{4}, "+ -s"},
		{2, []int{1, 1}, "s s "},
		{1, []int{1, 1}, "s s "},
		{3, []int{1, 2}, "s s "},
		{4, []int{1, 1}, "+ -s "},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &noteEvents{}
			fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind == errorfs.OpFileSyncData && op.Path == "store/"+eventlog.HeadsFile {
					n.add("s")
				}
				return nil
			}))
			l, err := eventlog.Open("store", eventlog.Config{FS: fs, NoteEntries: tt.bound, AfterFunc: n.after})
			require.NoError(t, err)
			s := session(t, l, "a")
			var got []string
			at := 1
			for _, entries := range tt.steps {
				if entries == fire {
					n.fire()
				} else {
					_, err := s.Append(context.Background(), eventlog.Batch{Drafts: drafts(at, entries)})
					require.NoError(t, err)
					at += entries
				}
				synctest.Wait()
				got = append(got, n.take())
			}
			require.NoError(t, l.Close())
			got = append(got, n.take())
			assert.Equal(t, tt.want, strings.Join(got, " "), fmt.Sprint(tt.bound, tt.steps))
			if n.timer != nil {
				t.Error("a timer runs behind Close")
			}
		})
	}
}
