package sajou

import (
	"context"
	"iter"
)

// Generator makes the words of an agent: a language model, or something that
// stands for one.
type Generator interface {
	// Generate begins one generation and yields its tokens in order, each as
	// soon as it is there. An error ends it. It ends soon after ctx does, also
	// while it waits for a token that does not come; whoever asked does not
	// wait for that.
	Generate(ctx context.Context, p Prompt) iter.Seq2[string, error]
}

// Prompt is what a generation goes by.
type Prompt struct {
	Messages []Message
	// MaxTokens is how many tokens are wanted at most; 0 leaves it to the
	// generator.
	MaxTokens int64
}

// Message is one message of a conversation.
type Message struct {
	Role    string // system, user or assistant
	Content string
}
