package eventlog_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// Session time that goes back between two entries, whose hashes fit, is found at the later
// one: inside a batch, between two batches, and where a stretch of verification begins (entry
// 1025), with a time that only the last entry of the batch before is later than. Equal times
// are in order.
func TestSessionTimeGoesBack(t *testing.T) {
	const perBatch, entries = 8, 1040
	for _, at := range []eventlog.Seq{10, 17, 1017, 1024, 1025, 1026, 1032, 1033} {
		for _, back := range []time.Duration{0, time.Millisecond} {
			l := open(t, vfs.NewMem(), eventlog.Config{})
			var head eventlog.Head
			for first := eventlog.Seq(1); first <= entries; first += perBatch {
				var ds []eventlog.Draft
				for seq := first; seq < first+perBatch; seq++ {
					d := eventlog.Draft{Kind: eventlog.KindSignal, At: time.Duration(seq) * 10 * time.Millisecond, Data: text("x")}
					if seq == at {
						d.At -= 10*time.Millisecond + back // that of the entry before, or less
					}
					ds = append(ds, d)
				}
				if first == 1 {
					head = must(t, session(t, l, "a"), eventlog.Batch{Drafts: ds})
					continue
				}
				var sealed []byte
				sealed, head = chain.AppendBatch(nil, head, ds, "")
				require.NoError(t, l.Put(keyspace.BatchKey(nil, 1, first), sealed))
			}
			r := verified(t, l, "a", eventlog.Head{})
			if back == 0 {
				require.Nil(t, r.Fault, "entry %d has the time of the one before", at)
				require.Equal(t, head, r.Head)
				continue
			}
			require.NotNil(t, r.Fault, "entry %d is earlier than the one before", at)
			require.Equal(t, verify.FaultInvalid, r.Fault.Kind)
			require.Equal(t, at, r.Fault.Seq)
			require.Equal(t, at-1, r.Head.Seq)
		}
	}
}
