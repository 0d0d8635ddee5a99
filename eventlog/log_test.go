package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// drafts makes n signal entries, one a millisecond from the given Seq on.
func drafts(from, n int) []eventlog.Draft {
	ds := make([]eventlog.Draft, n)
	for i := range ds {
		ds[i] = eventlog.Draft{
			Kind: eventlog.KindSignal,
			At:   time.Duration(from+i) * time.Millisecond,
			Data: msgp.AppendString(nil, fmt.Sprintf("entry %d", from+i)),
		}
	}
	return ds
}

func open(t *testing.T, fs vfs.FS, cfg eventlog.Config) *eventlog.Log {
	t.Helper()
	cfg.FS = fs
	l, err := eventlog.Open("store", cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, l.Close())
	})
	return l
}

func session(t *testing.T, l *eventlog.Log, name string) *eventlog.Session {
	t.Helper()
	s, err := l.Session(name)
	require.NoError(t, err)
	return s
}

// Appended entries are read back from any Seq, across batch borders, before and after
// the log is closed.
func TestAppendThenRead(t *testing.T) {
	ctx := context.Background()
	fs := vfs.NewMem()
	l := open(t, fs, eventlog.Config{})
	s := session(t, l, "a")
	if s.Exists() {
		t.Error("a session exists before its first append")
	}
	next := 1
	for _, n := range []int{1, 3, 1, 1000, 2} {
		head, err := s.Append(ctx, eventlog.Batch{Drafts: drafts(next, n)})
		require.NoError(t, err)
		next += n
		if head.Seq != eventlog.Seq(next-1) || head != s.Head() {
			t.Fatalf("head = %v, session's = %v, want Seq %d", head, s.Head(), next-1)
		}
	}
	check := func(s *eventlog.Session) {
		t.Helper()
		for _, from := range []int{0, 1, 2, 4, 5, 500, next - 1, next} {
			want := max(from, 1)
			for e, err := range s.Entries(ctx, eventlog.Seq(from)) {
				require.NoError(t, err)
				if e.Seq != eventlog.Seq(want) || string(e.Data[1:]) != fmt.Sprintf("entry %d", want) && want < 100 {
					t.Fatalf("from %d: got entry %d with %q, want %d", from, e.Seq, e.Data, want)
				}
				if e.At != time.Duration(want)*time.Millisecond {
					t.Fatalf("entry %d at %v", e.Seq, e.At)
				}
				want++
			}
			if want != next {
				t.Fatalf("from %d: iteration ended before %d, want %d", from, want, next)
			}
		}
	}
	check(s)
	head := s.Head()
	require.NoError(t, l.Close())
	l = open(t, fs, eventlog.Config{ReadOnly: true})
	s = session(t, l, "a")
	if s.Head() != head {
		t.Fatalf("reopened at %v, want %v", s.Head(), head)
	}
	check(s)
	if _, err := s.Append(ctx, eventlog.Batch{Drafts: drafts(next, 1)}); !errors.Is(err, eventlog.ErrReadOnly) {
		t.Errorf("append to a read-only log: %v, want ErrReadOnly", err)
	}
	r, err := l.Verify(ctx, "a", verify.Options{Expect: head})
	if err != nil || r.Fault != nil || r.Head != head {
		t.Errorf("verify: %+v, %v", r, err)
	}
}

// text makes the data of an entry.
func text(s string) []byte { return msgp.AppendString(nil, s) }

// textOf decodes the data that text made.
func textOf(e eventlog.Entry) string {
	s, _, err := msgp.ReadStringBytes(e.Data)
	if err != nil {
		return err.Error()
	}
	return s
}
