package sajou_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/agents/view"
	agentworld "github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/signal"
)

// echo stands for a language model.
type echo struct{}

func (echo) Generate(_ context.Context, p generate.Prompt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for word := range strings.SplitAfterSeq("I see the "+p.Messages[0].Content, " ") {
			if !yield(word, nil) {
				return
			}
		}
	}
}

// An agent is asked what it sees, and says it in the world.
func Example_generate() {
	if err := lookAround(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// I|see|the|door|
	// stop: effect 1
}

func lookAround(ctx context.Context) error {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer eng.Close()
	ses, err := eng.Session(ctx, "example")
	if err != nil {
		return err
	}
	world := ses.Agents()
	for _, id := range []string{"door", "scout"} {
		if _, err := world.Broadcast(ctx, enginetest.Draft("EntityCreated", "author", fmt.Sprintf(`{"entity_id":%q,"entity_data":{}}`, id))); err != nil {
			return err
		}
	}
	scout, err := world.Register(ctx, "scout", nil)
	if err != nil {
		return err
	}
	answer, err := generate.Run(ctx, scout, echo{}, generate.Request{
		ReqID: "look-around",
		Prompt: func(v view.View) generate.Prompt {
			var prompt generate.Prompt
			for id := range v.VisibleEntities.Members() {
				prompt.Messages = append(prompt.Messages, generate.ChatMessage{Role: "user", Content: id})
			}
			return prompt
		},
		Token: func(_ int, token string) { fmt.Print(strings.TrimSpace(token), "|") },
		Intent: func(text string) (agents.Intent, bool) {
			said, _ := json.Marshal(map[string]string{"text": text}) // text is UTF-8
			payload, err := signal.ParseValue(said)
			return agents.Intent{Kind: agentworld.KindSpeak, Payload: payload, Unprioritized: true}, err == nil
		},
	})
	if err != nil {
		return err
	}
	fmt.Printf("\n%s: effect %d\n", answer.Finish, answer.Outcome.GlobalSeq)
	return nil
}
