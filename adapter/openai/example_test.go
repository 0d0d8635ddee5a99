package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/sajou-dev/sajou-go/adapter/openai"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/generate"
)

// Generate streams the tokens of an agent; Complete waits for the whole answer.
func ExampleClient() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `data: {"model": "small", "choices": [{"delta": {"content": "Hel"}}]}

data: {"choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]}

data: [DONE]

`)
	}))
	defer server.Close()

	client, err := openai.New(openai.Config{BaseURL: server.URL + "/v1", Model: "small", APIKey: openai.NewKey("secret")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx := context.Background()
	messages := []generate.ChatMessage{{Role: "user", Content: "Greet me."}}
	for token, err := range client.Generate(ctx, generate.Prompt{Messages: messages, MaxTokens: 8}) {
		switch {
		case errors.Is(err, agents.ErrBreakerOpen):
			fmt.Println("later")
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println(token)
		}
	}
	answer, err := client.Complete(ctx, openai.Request{Messages: messages})
	fmt.Println(answer.Text, answer.Model, answer.FinishReason, err)
	// Output:
	// Hel
	// lo
	// Hello small stop <nil>
}
