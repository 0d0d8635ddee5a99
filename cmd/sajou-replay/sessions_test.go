package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

const workshop = "../../docs/examples/scenes/workshop.json"

// Sessions of an emitter, without any choreography, on the default scene and in
// the workshop: at each entry every agent that a signal has named is seen, in the
// picture's bounds, and the command draws the whole.
func TestSessionsShowTheirAgents(t *testing.T) {
	sessions, err := filepath.Glob("../../../shared/data/sajou-emitter/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	sessions = append(sessions, "../../docs/examples/gallery/morning.jsonl")
	for _, session := range sessions {
		for name, define := range map[string][]string{"default": nil, "workshop": {"--define", workshop}} {
			t.Run(strings.TrimSuffix(filepath.Base(session), ".jsonl")+"/"+name, func(t *testing.T) {
				showsAgents(t, session, define)
			})
		}
	}
}

func showsAgents(t *testing.T, session string, define []string) {
	store := t.TempDir()
	command := func(args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if err := run(t.Context(), append(args, "-C", store), strings.NewReader(""), &stdout, &stderr); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, &stderr)
		}
	}
	command(append([]string{"import", session, "--session", "it"}, define...)...)
	sheet := filepath.Join(t.TempDir(), "sheet.svg")
	command("render", "1..end", "--sheet", "-o", sheet)
	if svg, err := os.ReadFile(sheet); err != nil || !bytes.HasSuffix(bytes.TrimSpace(svg), []byte("</svg>")) {
		t.Errorf("the sheet is no SVG: %v", err)
	}

	eng, err := sajou.Open(store, sajou.Config{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = eng.Close() }()
	log, err := eng.Log().Session("it")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for e, err := range log.Entries(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == eventlog.KindSignal {
			sig, err := signal.Decode(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			for _, agent := range agentsOf(&sig) {
				named[agent] = true
			}
		}
		fold, err := eng.Replay("it").At(t.Context(), e.Seq)
		if err != nil {
			t.Fatal(err)
		}
		frame := sajou.FrameOf(fold)
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

// agentsOf returns the agents that a signal is about.
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

// isSeen reports whether an agent has a figure that is on the picture.
func isSeen(f *stage.Frame, agent string) bool {
	for _, g := range f.Figures {
		if (g.ID == agent || g.Actor == agent) && g.Visible && g.Opacity > 0 && g.Scale > 0 &&
			g.X > 0 && g.X < f.Scene.Width && g.Y > 0 && g.Y < f.Scene.Height {
			return true
		}
	}
	return false
}
