package sajou_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/agents/view"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
)

type frameSink func(*stage.Frame)

func (f frameSink) Frame(frame *stage.Frame) { f(frame) }

func TestReadmeEmbedding(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	definitions := enginetest.Unjudged(t, `choreography {"on":"task_dispatch","steps":[{"action":"move","entity":"signal.to","to":"desk","duration":800}]}`)
	sig := enginetest.TaskSignal(1, 1000)
	sink, frames := new(choreography.RecordingSink), frameSink(func(*stage.Frame) {})

	eng, err := sajou.Open(dir, sajou.Config{})
	require.NoError(t, err)
	ses, err := eng.Session(ctx, "release-42")
	require.NoError(t, err)
	head, err := ses.Define(ctx, definitions...) // language.Parse makes them
	require.NoError(t, err)
	require.EqualValues(t, 2, head.Seq)
	live := ses.Attach(ctx, sink, 60) // commands to a choreography.CommandSink, 60 updates a second
	show := ses.Show(ctx, frames, 60) // or frames of the stage to a FrameSink of stage/live
	head, err = ses.Signal(ctx, sig)  // durable when it returns
	require.NoError(t, err)
	past, err := eng.Replay("release-42") // its states, addresses, cursors, searches
	require.NoError(t, err)
	state, err := past.At(ctx, replay.Moment{Seq: head.Seq})
	require.NoError(t, err)
	err = errors.Join(live.Close(), show.Close())
	require.NoError(t, err)
	err = eng.Close()
	require.NoError(t, err)
	if state.Head() != head || head.Seq != 3 {
		t.Errorf("the state stands at %v, the log at %v", state.Head(), head)
	}
}

// parrot stands for a language model.
type parrot struct{}

func (parrot) Generate(context.Context, generate.Prompt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		_ = yield("It is ", nil) && yield("dark.", nil)
	}
}

func TestReadmeAgents(t *testing.T) {
	ctx, ses := t.Context(), enginetest.BeginWorld(t, session.TimeManual)
	start := enginetest.Value(t, `{"entities": {"ann": {"type": "agent"}, "lamp": {"type": "lamp"}}}`)
	policy := enginetest.Value(t, `{"policy": "everything"}`)
	speak := func(text string) (agents.Intent, bool) {
		said, _ := json.Marshal(map[string]string{"text": text}) // a text is JSON
		payload, err := signal.ParseValue(said)
		return agents.Intent{Kind: agentworld.KindSpeak, Payload: payload}, err == nil
	}
	prompt := func(view.View) generate.Prompt { return generate.Prompt{} }
	lamp, model := enginetest.Value(t, `{"target_id": "lamp", "type": "light"}`), parrot{}
	var err error

	world := ses.Agents()
	err = world.Begin(ctx, start) // the entities and their relations
	require.NoError(t, err)
	ann, err := world.Register(ctx, "ann", policy) // what ann may see
	require.NoError(t, err)
	obs, err := ann.NextObservation(ctx) // first the full view, then changes
	require.NoError(t, err)
	out, err := ann.Submit(ctx, agents.Intent{Kind: agentworld.KindInteract, Payload: lamp, ReqID: "light", ContextSeq: obs.ViewSeq})
	require.NoError(t, err)
	said, err := generate.Run(ctx, ann, model, generate.Request{ReqID: "hello", Prompt: prompt, Intent: speak})
	require.NoError(t, err)
	view, err := world.Known(ctx, "ann") // the view that ann has been sent
	require.NoError(t, err)
	err = world.Settle(ctx) // everything is durable and delivered
	require.NoError(t, err)
	if out.GlobalSeq != 1 || said.Outcome.GlobalSeq != 2 || view.ViewSeq != 2 {
		t.Errorf("effects %d and %d, view %d", out.GlobalSeq, said.Outcome.GlobalSeq, view.ViewSeq)
	}
}

// TestReadme shows that the Go of README.md is what the tests above run, line
// by line but for what handles errors, and that each link leads to a file.
func TestReadme(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(text)
	}
	lines := func(text string) (all []string) {
		for line := range strings.Lines(text) {
			if line = strings.Join(strings.Fields(line), " "); line != "" {
				all = append(all, line)
			}
		}
		return all
	}
	handled := regexp.MustCompile(`(?m)^\s*require\..*\n`)
	run := lines(handled.ReplaceAllString(read("readme_test.go"), ""))
	page := read("README.md")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Errorf("%d blocks of Go", len(blocks))
	}
	for _, block := range blocks {
		want := lines(block[1])
		at := slices.Index(run, want[0])
		if at < 0 || at+len(want) > len(run) || !slices.Equal(run[at:at+len(want)], want) {
			t.Errorf("no test runs\n%s", block[1])
		}
	}
	for _, link := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(page, -1) {
		if strings.Contains(link[1], "://") {
			continue
		}
		if _, err := os.Stat(link[1]); err != nil {
			t.Errorf("a link leads nowhere: %v", err)
		}
	}
}
