package generate_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/session"
)

// A prompt that is recorded takes at most half of what an entry holds for it and the answer,
// and the answer the rest of the whole. A larger one is refused before it is sent. If
// prompts are not recorded, they have no bound, and the answer may fill the entry.
func TestRecordedPrompts(t *testing.T) {
	const (
		entry = 16 << 10
		text  = entry - 1024 - (4*256 + 768) // besides the record and the members of an attempt
	)
	for _, recorded := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			clock := &enginetest.StoppedClock{Now: enginetest.StoryBegin}
			eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem(), Now: clock.Read, AfterFunc: clock.AfterFunc, MaxEntry: entry, RecordPrompts: recorded})
			require.NoError(t, err)
			ses, err := eng.Begin(t.Context(), "world", session.TimeManual)
			require.NoError(t, err)
			g, err := ses.Agents().Register(t.Context(), "A", nil)
			require.NoError(t, err)
			asked := 0
			ask := func(size int, answer string) (generate.Result, *enginetest.Scripted, error) {
				asked++
				gen := enginetest.Saying(answer)
				r, err := generate.Run(t.Context(), g, gen, generate.Request{ReqID: fmt.Sprint(asked), Prompt: func(view.View) generate.Prompt {
					return generate.Prompt{Messages: []generate.ChatMessage{{Role: "user", Content: strings.Repeat("x", size)}}}
				}})
				return r, gen, err
			}
			long := strings.Repeat("y", entry)
			if !recorded {
				r, _, err := ask(entry, long)
				require.NoError(t, err)
				assert.Len(t, r.Text, text)
				assert.Empty(t, r.Attempts[0].Prompt)
				assert.NotEmpty(t, r.Attempts[0].PromptDigest)
				require.NoError(t, eng.Close())
				return
			}
			_, gen, err := ask(entry, "answer")
			require.ErrorIs(t, err, eventlog.ErrTooLarge)
			assert.Zero(t, gen.Asked, "it was not sent")
			m := regexp.MustCompile(`^eventlog: too large: generation "1" of "A": the prompt takes (\d+) bytes, and at most (\d+) can be recorded; shorten it, allow larger entries or do not record prompts$`).FindStringSubmatch(err.Error())
			require.NotNil(t, m, "%v", err)
			takes, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			assert.Equal(t, strconv.Itoa(text/2), m[2])
			besides := takes - entry
			for _, size := range []int{text/2 - besides + 1, text/2 - besides, 10} {
				r, gen, err := ask(size, long)
				if size > text/2-besides {
					require.ErrorContains(t, err, fmt.Sprintf("the prompt takes %d bytes, and at most %d can be recorded", text/2+1, text/2))
					assert.Zero(t, gen.Asked)
					continue
				}
				require.NoError(t, err)
				a := r.Attempts[0]
				assert.Equal(t, []generate.ChatMessage{{Role: "user", Content: strings.Repeat("x", size)}}, a.Prompt)
				assert.True(t, a.Cut)
				assert.InDelta(t, text-size, len(r.Text), float64(besides), "the answer has the rest")
			}
			require.NoError(t, eng.Close())
		})
	}
}
