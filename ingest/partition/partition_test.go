package partition_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/ingest/partition"
	"github.com/sajou-dev/sajou-go/signal"
)

func ExampleSplit_Part() {
	id := "3f2a/../x"
	sig := &signal.Signal{Source: "adapter:tap", CorrelationID: &id}
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, s := range append(partition.Splits(), partition.SplitNone) {
		fmt.Println(s.Part("live", sig, now))
	}
	// Output:
	// live.3f2a____x
	// live.adapter_tap
	// live.2026-11-23
	// live
}

// Every word of a sender gives a name that a session can have, below the configured one.
func TestPartNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := partition.PartName("live", rapid.String().Draw(t, "word"))
		require.NoError(t, chain.CheckName(name))
		assert.True(t, strings.HasPrefix(name, "live.") && !strings.Contains(name[5:], "."), name)
	})
}

func TestCheck(t *testing.T) {
	require.NoError(t, partition.SplitNone.Check(strings.Repeat("x", chain.MaxName)))
	require.Error(t, partition.SplitDay.Check(strings.Repeat("x", chain.MaxName)))
	require.ErrorContains(t, partition.Split("week").Check("live"), "want native-session, source or day")
	require.Error(t, partition.SplitNone.Check(""))
}

// The id in the metadata counts more than the correlation id, which may name a turn.
func TestNativeSession(t *testing.T) {
	turn := "turn-1"
	sig := &signal.Signal{CorrelationID: &turn, Metadata: signal.NewObject(1).Text("sessionId", "s").Value()}
	assert.Equal(t, "live.s", partition.SplitNative.Part("live", sig, time.Time{}))
	sig.Metadata = nil
	assert.Equal(t, "live.turn-1", partition.SplitNative.Part("live", sig, time.Time{}))
	sig.CorrelationID = nil
	assert.Equal(t, "live.unknown", partition.SplitNative.Part("live", sig, time.Time{}))
}
