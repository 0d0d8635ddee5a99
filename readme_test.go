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

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage"
)

// The Go of README.md, with its errors handled; TestReadme compares the two.

type frameSink func(*stage.Frame)

func (f frameSink) Frame(frame *stage.Frame) { f(frame) }

func TestReadmeEmbedding(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	definitions := unjudged(t, `choreography {"on":"task_dispatch","steps":[{"action":"move","entity":"signal.to","to":"desk","duration":800}]}`)
	sig := taskSignal(1, 1000)
	sink, frames := new(choreography.RecordingSink), frameSink(func(*stage.Frame) {})

	eng, err := sajou.Open(dir, sajou.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ses, err := eng.Session(ctx, "release-42")
	if err != nil {
		t.Fatal(err)
	}
	head, err := ses.Define(ctx, definitions...) // choreography.Parse makes them
	if err != nil {
		t.Fatal(err)
	}
	live := ses.Attach(ctx, sink, 60) // commands to a choreography.CommandSink, 60 updates a second
	show := ses.Show(ctx, frames, 60) // or what is seen, to a sajou.FrameSink
	head, err = ses.Signal(ctx, sig)  // durable when it returns
	if err != nil {
		t.Fatal(err)
	}
	state, err := eng.Replay("release-42").At(ctx, head.Seq)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(live.Close(), show.Close())
	if err != nil {
		t.Fatal(err)
	}
	err = eng.Close()
	if err != nil {
		t.Fatal(err)
	}
	if state.Head() != head || head.Seq != 3 {
		t.Errorf("the state stands at %v, the log at %v", state.Head(), head)
	}
}

// parrot stands for a language model.
type parrot struct{}

func (parrot) Generate(context.Context, sajou.Prompt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		_ = yield("It is ", nil) && yield("dark.", nil)
	}
}

func TestReadmeAgents(t *testing.T) {
	ctx, ses := t.Context(), beginWorld(t, sajou.TimeManual)
	start := value(t, `{"entities": {"ann": {"type": "agent"}, "lamp": {"type": "lamp"}}}`)
	policy := value(t, `{"policy": "everything"}`)
	speak := func(text string) (agents.Intent, bool) {
		said, _ := json.Marshal(map[string]string{"text": text}) // a text is JSON
		payload, err := signal.ParseValue(said)
		return agents.Intent{Kind: agents.KindSpeak, Payload: payload}, err == nil
	}
	prompt := func(agents.View) sajou.Prompt { return sajou.Prompt{} }
	lamp, model := value(t, `{"target_id": "lamp", "type": "light"}`), parrot{}
	var err error

	world := ses.Agents()
	err = world.Begin(ctx, start) // who is there, and who knows whom
	if err != nil {
		t.Fatal(err)
	}
	ann, err := world.Register(ctx, "ann", policy) // what of it she may see
	if err != nil {
		t.Fatal(err)
	}
	obs, err := ann.NextObservation(ctx) // the whole first, then what changes
	if err != nil {
		t.Fatal(err)
	}
	out, err := ann.Submit(ctx, agents.Intent{Kind: agents.KindInteract, Payload: lamp, ReqID: "light", ContextSeq: obs.ViewSeq})
	if err != nil {
		t.Fatal(err)
	}
	said, err := ann.Generate(ctx, model, sajou.GenerateRequest{ReqID: "hello", Prompt: prompt, Intent: speak})
	if err != nil {
		t.Fatal(err)
	}
	view, err := world.View(ctx, "ann")
	if err != nil {
		t.Fatal(err)
	}
	err = world.Settle(ctx) // all of it is durable, and told
	if err != nil {
		t.Fatal(err)
	}
	if out.GlobalSeq != 1 || said.Outcome.GlobalSeq != 2 || view.ViewSeq != 2 {
		t.Errorf("effects %d and %d, view %d", out.GlobalSeq, said.Outcome.GlobalSeq, view.ViewSeq)
	}
}

// TestReadme shows that the Go of README.md is what the tests above run, line
// by line but for what handles errors, and that each link leads to a file.
func TestReadme(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
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
	handled := regexp.MustCompile(`(?m)^\s*if err != nil \{\n\s*t\.Fatal\(err\)\n\s*\}\n`)
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
