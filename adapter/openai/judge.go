package openai

import (
	"context"

	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/director"
)

var _ director.Judge = (*Client)(nil)

// Judge implements [director.Judge]: it asks with temperature 0, so that the same
// question gets the same answer, and with the question's own limit of tokens.
func (c *Client) Judge(ctx context.Context, q director.Question) (model, answer string, err error) {
	cold := 0.0
	done, err := c.Complete(ctx, Request{
		Messages:    []generate.ChatMessage{{Role: "user", Content: q.Prompt}},
		MaxTokens:   int64(q.Tokens),
		Temperature: &cold,
	})
	return done.Model, done.Text, err
}
