package eventlog_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// A session is one object while anybody refers to it, and none afterwards. Its claim
// ends with the last reference to its appender.
func TestUnusedSessionsAreLetGo(t *testing.T) {
	log, err := eventlog.Open("store", eventlog.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }()
	one := eventlog.Batch{Drafts: []eventlog.Draft{{Kind: eventlog.KindSignal, Data: msgp.AppendInt(nil, 1)}}}
	kept, err := log.Session("kept")
	require.NoError(t, err)
	reader := &kept.SessionReader
	appender, err := kept.Claim()
	require.NoError(t, err)
	_, err = kept.Append(t.Context(), one)
	require.ErrorIs(t, err, eventlog.ErrClaimed)
	runtime.KeepAlive(appender) // the last use of the claim and of kept
	const n = 100
	for i := range n {
		s, err := log.Session(fmt.Sprint("s", i))
		require.NoError(t, err)
		_, err = s.Append(t.Context(), one)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		return log.Cached() == 1
	}, time.Minute, time.Millisecond)
	again, err := log.Session("kept")
	require.NoError(t, err)
	_, err = again.Append(t.Context(), one) // the claim has ended
	require.NoError(t, err)
	require.Equal(t, eventlog.Seq(1), reader.Head().Seq) // it is the same session
	s, err := log.Session("s7")
	require.NoError(t, err)
	require.Equal(t, eventlog.Seq(1), s.Head().Seq)
	head, err := s.Append(t.Context(), one)
	require.NoError(t, err)
	require.Equal(t, eventlog.Seq(2), head.Seq)
}
