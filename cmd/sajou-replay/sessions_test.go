package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

const workshop = "../../docs/examples/scenes/workshop.json"

// Sessions without a choreography, on the default scene and in the workshop: at each
// entry every agent that a signal has named is visible within the picture, and render
// draws the session.
func TestSessionsShowTheirAgents(t *testing.T) {
	sessions, err := filepath.Glob("../../../shared/data/sajou-emitter/*.jsonl")
	require.NoError(t, err)
	sessions = append(sessions, "../../docs/examples/gallery/morning.jsonl")
	for _, recording := range sessions {
		for name, define := range map[string][]string{"default": nil, "workshop": {"--define", workshop}} {
			t.Run(strings.TrimSuffix(filepath.Base(recording), ".jsonl")+"/"+name, func(t *testing.T) {
				showsAgents(t, recording, define)
			})
		}
	}
}

func showsAgents(t *testing.T, recording string, define []string) {
	store := t.TempDir()
	command := func(args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if err := run(t.Context(), append(args, "-C", store), strings.NewReader(""), &stdout, &stderr); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, &stderr)
		}
	}
	command(append([]string{"import", recording, "--session", "it"}, define...)...)
	sheet := filepath.Join(t.TempDir(), "sheet.svg")
	command("render", "1..end", "--sheet", "-o", sheet)
	if svg, err := os.ReadFile(sheet); err != nil || !bytes.HasSuffix(bytes.TrimSpace(svg), []byte("</svg>")) {
		t.Errorf("the sheet is no SVG: %v", err)
	}

	eng, err := sajou.Open(store, sajou.Config{ReadOnly: true})
	require.NoError(t, err)
	defer func() { _ = eng.Close() }()
	log, err := eng.Log().Session("it")
	require.NoError(t, err)
	travel, err := eng.Replay("it")
	require.NoError(t, err)
	named := map[string]bool{}
	for e, err := range log.Entries(t.Context(), 1) {
		require.NoError(t, err)
		if e.Kind == eventlog.KindSignal {
			sig, err := signal.Decode(e.Data)
			require.NoError(t, err)
			for _, agent := range agentsOf(&sig) {
				named[agent] = true
			}
		}
		fold, err := travel.At(t.Context(), replay.Moment{Seq: e.Seq})
		require.NoError(t, err)
		frame := session.StageOf(fold).Frame()
		for agent := range named {
			if !isSeen(frame, agent) {
				t.Errorf("%s is not seen at %d", agent, e.Seq)
			}
		}
		if d := picture.Draw(frame, picture.Options{}); d.Omitted() > 0 {
			t.Errorf("the picture of %d lacks %d figures", e.Seq, d.Omitted())
		}
	}
	if len(named) < 2 {
		t.Errorf("only %d agents are named: the test looks for the wrong thing", len(named))
	}
}

// agentsOf returns the agents that a signal names.
func agentsOf(sig *signal.Signal) (agents []string) {
	paths := []string{"agentId"}
	if sig.Type == "task_dispatch" {
		paths = []string{"from", "to"}
	}
	for _, path := range paths {
		if v, ok := sig.Payload.Get(path); ok {
			if name, ok := v.Text(); ok {
				agents = append(agents, name)
			}
		}
	}
	return agents
}

// isSeen reports whether an agent has a figure within the picture.
func isSeen(f *stage.Frame, agent string) bool {
	for _, g := range f.Figures {
		if (g.ID == agent || g.Actor == agent) && g.Visible && g.Opacity > 0 && g.Scale > 0 &&
			g.X > 0 && g.X < f.Scene.Width && g.Y > 0 && g.Y < f.Scene.Height {
			return true
		}
	}
	return false
}
