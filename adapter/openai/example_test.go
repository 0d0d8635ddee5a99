package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/adapter/openai"
	"github.com/sajou-dev/sajou-go/agents"
)

// An agent's words come one after the other; a judge waits for all of them.
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
	messages := []sajou.Message{{Role: "user", Content: "Greet me."}}
	for token, err := range client.Generate(ctx, sajou.Prompt{Messages: messages, MaxTokens: 8}) {
		switch {
		case errors.Is(err, agents.BreakerOpen):
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
