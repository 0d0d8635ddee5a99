package stream_test

import (
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/server/stream"
)

// A position is an id and no event, and is left out where nothing but data is sent.
func TestPosition(t *testing.T) {
	for dataOnly, want := range map[bool]string{false: ": connected\n\nid: 7\n\n", true: ": connected\n\n"} {
		w := httptest.NewRecorder()
		s := stream.NewSSE(w, stream.SSEConfig{DataOnly: dataOnly, AfterFunc: func(time.Duration, func()) func() bool { return func() bool { return true } }})
		require.NoError(t, s.Position("7"))
		require.NoError(t, s.Close())
		assert.Equal(t, want, w.Body.String())
	}
}

// Streams share buffers, and never what is in them.
func TestStreamsShareBuffersOnly(t *testing.T) {
	cfg := stream.SSEConfig{AfterFunc: func(time.Duration, func()) func() bool { return func() bool { return true } }}
	answers := [2]*httptest.ResponseRecorder{httptest.NewRecorder(), httptest.NewRecorder()}
	var streams [2]*stream.SSE
	var want [2]string
	for i, w := range answers {
		streams[i], want[i] = stream.NewSSE(w, cfg), ": connected\n\n"
	}
	for round := range 20 {
		for i, s := range streams {
			require.NoError(t, s.Event("", []byte(strings.Repeat(strconv.Itoa(i), round+1))))
			want[i] += "data: " + strings.Repeat(strconv.Itoa(i), round+1) + "\n\n"
			if round%3 == i {
				require.NoError(t, s.Flush())
			}
		}
	}
	for i, s := range streams {
		require.NoError(t, s.Close())
		assert.Equal(t, want[i], answers[i].Body.String())
	}
}
