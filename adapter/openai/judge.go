package openai

import (
	"context"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/director"
)

var _ sajou.Judge = (*Client)(nil)

// Judge asks the service a question of a director's, with temperature 0 and as
// few tokens as the answer needs.
func (c *Client) Judge(ctx context.Context, q director.Question) (model, answer string, err error) {
	cold := 0.0
	done, err := c.Complete(ctx, Request{
		Messages:    []sajou.Message{{Role: "user", Content: q.Prompt}},
		MaxTokens:   int64(q.Tokens),
		Temperature: &cold,
	})
	return done.Model, done.Text, err
}
