package enginetest

import (
	"context"
	"iter"
	"strings"

	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/agents/view"
)

// Scripted is a generator that does what a test says, each time it is asked.
type Scripted struct {
	Asked   int
	Prompts []generate.Prompt
	Act     func(s *Scripted, ctx context.Context, say func(string) bool) error
}

// Name returns the name of the model.
func (s *Scripted) Name() string { return "scripted" }

// Generate records the prompt and follows the script.
func (s *Scripted) Generate(ctx context.Context, p generate.Prompt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		s.Asked++
		s.Prompts = append(s.Prompts, p)
		if err := s.Act(s, ctx, func(token string) bool { return yield(token, nil) }); err != nil {
			yield("", err)
		}
	}
}

// Saying answers with tokens.
func Saying(tokens ...string) *Scripted {
	return &Scripted{Act: func(_ *Scripted, _ context.Context, say func(string) bool) error {
		for _, token := range tokens {
			if !say(token) {
				break
			}
		}
		return nil
	}}
}

// Stalling says some words and then nothing, and heeds its context or not.
func Stalling(heed bool, release <-chan struct{}, tokens ...string) *Scripted {
	return &Scripted{Act: func(_ *Scripted, ctx context.Context, say func(string) bool) error {
		for _, token := range tokens {
			if !say(token) {
				return nil
			}
		}
		if heed {
			<-ctx.Done()
			return ctx.Err()
		}
		<-release
		return nil
	}}
}

// Request asks with the ids of the view for a prompt.
func Request(reqID string) generate.Request {
	return generate.Request{ReqID: reqID, Prompt: func(v view.View) generate.Prompt {
		var ids []string
		for id := range v.VisibleEntities.Members() {
			ids = append(ids, strings.Clone(id))
		}
		return generate.Prompt{Messages: []generate.ChatMessage{{Role: "user", Content: strings.Join(ids, " ")}}}
	}}
}
