package live_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
)

// logLines keeps the lines of a log.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A verdict that comes after its question was given up is recorded if it has an answer. One
// that cannot be recorded is a warning, unless the engine has closed.
func TestLateVerdicts(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		err    error
		before func(eng *sajou.Engine, disk *enginetest.Disk) // what happens in front of it
		kept   bool
		warns  string
	}{
		"an answer":            {"YES", nil, nil, true, ""},
		"an answer, an error":  {"YES", errors.New("boom"), nil, true, ""},
		"no answer":            {"", nil, nil, false, ""},
		"no answer, an error":  {"", errors.New("boom"), nil, false, ""},
		"behind the end":       {"YES", nil, func(eng *sajou.Engine, _ *enginetest.Disk) { _ = eng.Close() }, false, ""},
		"on a disk that fails": {"YES", nil, func(_ *sajou.Engine, disk *enginetest.Disk) { disk.Fail(enginetest.ErrFull) }, false, `level=WARN msg="a late verdict is lost" session=dinner err=`},
	} {
		synctest.Test(t, func(t *testing.T) {
			lines, disk, clock := &logLines{}, enginetest.NewDisk(), &enginetest.StoppedClock{Now: enginetest.StoryBegin}
			eng, err := sajou.Open("store", sajou.Config{
				FS: disk, Now: clock.Read, AfterFunc: clock.AfterFunc, JudgeTimeout: time.Second,
				Logger: slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelWarn})),
			})
			require.NoError(t, err)
			defer func() { _ = eng.Close() }()
			ses := enginetest.BeginManual(t, eng, "dinner")
			release := make(chan struct{})
			d := ses.Director().With(enginetest.JudgeFunc(func(context.Context, director.Question) (string, error) {
				<-release
				return tt.answer, tt.err
			}))
			require.NoError(t, d.Start(t.Context(), enginetest.Authored(t, `{"id":"asked","policy":{"judge_retries":0},
				"beats":[{"id":"toast","character_instruction":"Raise your glass.","target_turn":1,"detection_criteria":"she proposes a toast"}]}`), director.Opening{}))
			_, err = d.Guide(t.Context(), director.TurnInput{Turn: 1, Text: "Hello."})
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() {
				_, err := d.Respond(t.Context(), director.Response{Turn: 1, Text: "Sit."})
				done <- err
			}()
			synctest.Wait()
			clock.Pass(time.Second)
			require.NoError(t, <-done)
			head := ses.Head()
			if tt.before != nil {
				tt.before(eng, disk)
			}
			close(release)
			synctest.Wait()
			want := head.Seq
			if tt.kept {
				want++
			}
			assert.Equal(t, want, ses.Head().Seq, name)
			if tt.warns == "" {
				assert.NotContains(t, lines.String(), "verdict", name)
			} else {
				assert.Contains(t, lines.String(), tt.warns, name)
			}
		})
	}
}
