package stagecmd

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/debugger"
)

// desk runs the commands of a debugView at once, without those that wait for the clock.
type desk struct {
	t *testing.T
	v *debugView
}

func (d *desk) do(cmd tea.Cmd) {
	d.t.Helper()
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil, frameMsg, tea.QuitMsg:
	case tea.BatchMsg:
		for _, one := range msg[1:] { // the first of a batch is the tick
			d.do(one)
		}
	default:
		_, next := d.v.Update(msg)
		d.do(next)
	}
}

func (d *desk) tell(msg tea.Msg) {
	d.t.Helper()
	_, cmd := d.v.Update(msg)
	d.do(cmd)
}

func openDesk(t *testing.T, travel *replay.Replay, to replay.Moment) *desk {
	t.Helper()
	dbg, err := debugger.New(t.Context(), travel, debugger.Config{To: to, Rate: 0.001, Frame: time.Second / 20, Idle: time.Hour})
	require.NoError(t, err)
	dbg.Play()
	d := &desk{t, newDebugView(t.Context(), dbg, 0)}
	d.tell(tea.WindowSizeMsg{Width: 120, Height: 5})
	return d
}

// status is the last line of the window.
func (d *desk) status() string {
	lines := strings.Split(d.v.View().Content, "\n")
	return lines[len(lines)-1]
}

// TestDebugView shows that the time of frames passes at the rate, that keys reach the
// debugger, and that its end waits for work.
func TestDebugView(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	recordNotes(t, store, 5) // entries 2 to 6, a millisecond apart
	target, err := (&cli.App{Store: store}).OpenSession("")
	require.NoError(t, err)
	defer target.Close()
	d := openDesk(t, target.Travel, cli.MomentOf(6))
	now := time.Unix(0, 0)
	pass := func(span time.Duration) { now = now.Add(span); d.tell(frameMsg(now)) }
	d.do(d.v.Init())
	assert.Contains(t, d.status(), "▶ a  0  00:00.000  x0.001")
	pass(time.Second)
	assert.Contains(t, d.status(), "▶ a  2  00:00.000  x0.001")
	pass(1500 * time.Millisecond)
	assert.Contains(t, d.status(), "▶ a  3+500µs  00:00.001")
	d.tell(tea.KeyPressMsg{Code: tea.KeySpace})
	pass(time.Second)
	assert.Contains(t, d.status(), "‖ a  3+500µs  00:00.001", "the time of a pause does not count")
	d.tell(tea.KeyPressMsg{Code: tea.KeyLeft})
	d.tell(tea.KeyPressMsg{Code: tea.KeyLeft})
	assert.Contains(t, d.status(), "‖ a  2  ")
	d.tell(tea.KeyPressMsg{Code: '+'})
	assert.Contains(t, d.status(), "x0.125")

	// Escape ends long work, and nothing else.
	_, cmd := d.v.Update(tea.KeyPressMsg{Code: tea.KeyEnd})
	require.NotNil(t, cmd)
	d.tell(tea.KeyPressMsg{Code: tea.KeyEsc})
	d.do(cmd)
	assert.Contains(t, d.status(), "‖ a  2  ")
	assert.Contains(t, d.status(), "stopped: go to 6")

	d.tell(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	assert.True(t, d.v.interrupted)
	d.v.end()
	assert.Nil(t, d.v.run(&debugger.Work{})(), "work after the end")
}

// TestFollow shows that entries of another process appear, also those that came while the
// store was locked, and that the position and the pause stay.
func TestFollow(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	recordNotes(t, store, 2)
	a := &cli.App{Store: store}
	target, err := a.OpenSession("")
	require.NoError(t, err)
	live, travel, err := followLog(t.Context(), a, target)
	require.NoError(t, err)
	d := openDesk(t, travel, cli.MomentOf(3))
	d.v.following = live
	now := time.Unix(0, 0)
	pass := func(span time.Duration) { now = now.Add(span); d.tell(frameMsg(now)) }
	pass(time.Second)
	pass(time.Hour)
	assert.Contains(t, d.status(), "■ a  3  ")

	engine, err := sajou.Open(store, sajou.Config{})
	require.NoError(t, err)
	session, err := engine.Session(t.Context(), "a")
	require.NoError(t, err)
	sig, err := signal.Parse([]byte(`{"id":"x","type":"note","timestamp":5000,"source":"adapter:test","payload":{}}`))
	require.NoError(t, err)
	_, err = session.Signal(t.Context(), sig)
	require.NoError(t, err)
	pass(time.Second)
	assert.Contains(t, d.status(), "■ a  3  ", "the store is locked")
	require.NoError(t, engine.Close())
	pass(time.Second)
	assert.Contains(t, d.status(), "▶ a  3  ", "there is more now")
	pass(time.Second)
	pass(time.Hour)
	assert.Contains(t, d.status(), "■ a  4  ")
	d.v.end()
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
