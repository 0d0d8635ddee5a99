package stagecmd

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// TestViewer shows the effect of keys, and that time passes at the rate.
func TestViewer(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	recordNotes(t, store, 5) // entries 2 to 6, a millisecond apart
	a := &cli.App{Store: store}
	target, err := a.OpenSession("")
	require.NoError(t, err)
	defer target.Close()
	s := target.Reel(nil)
	v, err := newViewer(t.Context(), s, replay.PlayerConfig{From: cli.MomentOf(1), To: cli.MomentOf(6)}, Pace{Rate: 0.001, fps: 20, Idle: time.Hour})
	require.NoError(t, err)
	now := time.Unix(0, 0)
	pass := func(d time.Duration) func() {
		return func() { now = now.Add(d); v.Update(frameMsg(now)) }
	}
	press := func(keys ...rune) func() {
		return func() {
			for _, k := range keys {
				v.Update(tea.KeyPressMsg{Code: k})
			}
		}
	}
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"a size", func() { v.Update(tea.WindowSizeMsg{Width: 100, Height: 5}) }, "▶ a  1  00:00.000  x0.001"},
		{"the first frame", pass(time.Second), "▶ a  2  00:00.000  x0.001"},
		{"1.5 s", pass(1500 * time.Millisecond), "▶ a  3+500µs  00:00.001  x0.001"},
		{"space", press(tea.KeySpace), "‖ a  3+500µs  00:00.001  x0.001"},
		{"a second that does not count", pass(time.Second), "‖ a  3+500µs  00:00.001  x0.001"},
		{"left", press(tea.KeyLeft), "‖ a  3  00:00.001  x0.001"},
		{"left", press(tea.KeyLeft), "‖ a  2  00:00.000  x0.001"},
		{"right twice", press(tea.KeyRight, tea.KeyRight), "‖ a  4  00:00.002  x0.001"},
		{"faster", press('+'), "‖ a  4  00:00.002  x0.125"},
		{"home", press(tea.KeyHome, tea.KeyLeft), "‖ a  1  00:00.000  x0.125"},
		{"space", press(tea.KeySpace), "▶ a  1  00:00.000  x0.125"},
		{"the time of the pause does not count", pass(time.Minute), "▶ a  2  00:00.000  x0.125"},
		{"the rest", pass(time.Minute), "■ a  6  00:00.004  x0.125"},
		{"space at the end", press(tea.KeySpace), "▶ a  1  00:00.000  x0.125"},
		{"end", press(tea.KeyEnd, tea.KeyRight), "■ a  6  00:00.004  x0.125"},
		{"a narrow window", func() { v.Update(tea.WindowSizeMsg{Width: 8, Height: 2}) }, "■ a  6  "},
		{"no window", func() { v.Update(tea.WindowSizeMsg{}) }, ""},
	} {
		step.do()
		content := v.View().Content
		lines := strings.Split(content, "\n")
		if got := lines[len(lines)-1]; !strings.HasPrefix(got, step.want) {
			t.Errorf("after %s the line is %q, want %q", step.what, got, step.want)
		}
		if len(lines) > max(v.rows, 1) && v.rows > 0 {
			t.Errorf("after %s there are %d lines in a window of %d", step.what, len(lines), v.rows)
		}
		if v.err != nil {
			t.Fatal(v.err)
		}
	}
}

// recordNotes records n signals, a millisecond apart, in the session a of a new
// store.
func recordNotes(t *testing.T, store string, n int) {
	t.Helper()
	engine, err := sajou.Open(store, sajou.Config{})
	require.NoError(t, err)
	session, err := engine.Session(t.Context(), "a")
	require.NoError(t, err)
	for i := range n {
		sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"s","type":"note","timestamp":%d,"source":"adapter:test","payload":{"n":%d}}`, 1000+i, i))
		require.NoError(t, err)
		if _, err := session.Signal(t.Context(), sig); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, engine.Close())
}
