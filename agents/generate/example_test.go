package generate_test

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// parrot stands for a language model. It yields a word at a time, and stops when its
// caller or its context does.
type parrot struct{}

func (parrot) Generate(ctx context.Context, p generate.Prompt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for word := range strings.SplitAfterSeq(p.Messages[0].Content, " ") {
			if ctx.Err() != nil || !yield(word, nil) {
				return
			}
		}
	}
}

// Run prompts a model with what an agent sees, and submits what it answers.
func ExampleRun() {
	if err := answer(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// It |is |dark.| stop, accepted
}

func answer(ctx context.Context) error {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Session(ctx, "a")
	if err != nil {
		return err
	}
	start, err := signal.ParseValue([]byte(`{"entities": {"ann": {"type": "agent"}}}`))
	if err != nil {
		return err
	}
	if err := ses.Agents().Begin(ctx, start); err != nil {
		return err
	}
	ann, err := ses.Agents().Register(ctx, "ann", nil) // nil is the default policy
	if err != nil {
		return err
	}
	said, err := generate.Run(ctx, ann, parrot{}, generate.Request{
		ReqID: "look",
		Prompt: func(view.View) generate.Prompt { // of the view that ann has been sent
			return generate.Prompt{Messages: []generate.ChatMessage{{Role: "user", Content: "It is dark."}}}
		},
		Token: func(_ int, token string) { fmt.Print(token, "|") }, // as they come
		Intent: func(text string) (agents.Intent, bool) {
			return agents.Intent{Kind: world.KindSpeak, Payload: signal.NewObject(1).Text("text", text).Value()}, true
		},
	})
	if err != nil {
		return err
	}
	fmt.Printf(" %s, %s\n", said.Finish, said.Outcome.Status)
	return nil
}
