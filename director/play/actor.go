package play

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/script"
	"github.com/sajou-dev/sajou-go/session"
)

// Actor speaks for the character of an episode.
type Actor interface {
	// Name returns what the character is called.
	Name() string

	// Say returns the character's response in a turn, which is not empty.
	Say(ctx context.Context, p ActorTurn) (string, error)
}

// JudgeOf returns the judge of a response, or nil for none.
type JudgeOf func(response string) director.Judge

// ActorTurn holds the inputs of an [Actor]'s response.
type ActorTurn struct {
	Episode  *episode.Episode
	Guidance director.Guidance
	Chosen   string                  // the user's input if it was a choice: POINT/OPTION
	Messages []session.Utterance     // the latest ones; the user's input is the last of them
	Said     func(words string) bool // whether the character has said the words before
	Flag     func(name string) bool  // whether a flag is set
}

// unnamed is the name of a character without a name.
const unnamed = "Character"

// ScriptedActor says the lines of a script. Its judge gives the script's answers.
type ScriptedActor struct{ Script *script.Script }

// Name implements [Actor].
func (s ScriptedActor) Name() string {
	if s.Script.Character == "" {
		return unnamed
	}
	return s.Script.Character
}

// Say implements [Actor].
func (s ScriptedActor) Say(_ context.Context, p ActorTurn) (string, error) {
	return s.Script.Line(script.LineContext{
		Turn: p.Guidance.Turn, Directive: p.Guidance.Directive, Choice: p.Chosen, Flag: p.Flag, Said: p.Said,
	}), nil
}

// JudgeOf judges a response by the answers of the script.
func (s ScriptedActor) JudgeOf(response string) director.Judge {
	return fixedJudge{"script", func(subject string) string { return s.Script.Answer(response, subject) }}
}

// BundledScript returns the bundled script of an episode, nil if there is none or if it
// names parts that the episode does not have.
func BundledScript(e *episode.Episode) *script.Script {
	_, text, ok := script.Bundled(e.ID)
	if !ok {
		return nil
	}
	s, err := script.Parse(text)
	if err != nil || s.Check(e) != nil {
		return nil
	}
	return s
}

// StandIn plays a character without lines: it says the instruction of the director, and
// its judge accepts that.
type StandIn struct{}

// Name implements [Actor].
func (StandIn) Name() string { return unnamed }

// Say implements [Actor].
func (StandIn) Say(_ context.Context, p ActorTurn) (string, error) {
	d := p.Guidance.Directive
	if d == nil || d.Urgency < episode.Required {
		return "(The stand-in nods.)", nil
	}
	words := ""
	if i, ok := p.Episode.BeatIndex(d.Beat); ok && len(p.Episode.Beats[i].Keywords) > 0 {
		words = " " + p.Episode.Beats[i].Keywords[0]
	}
	return "(The stand-in plays " + d.Beat + ".) " + d.Instruction + words, nil
}

// JudgeOf judges a response of the stand-in.
func (StandIn) JudgeOf(response string) director.Judge {
	return fixedJudge{"stand-in", func(subject string) string {
		if strings.HasPrefix(response, "(The stand-in plays "+subject+".)") {
			return "YES"
		}
		return "NO"
	}}
}

// fixedJudge answers by the subject of a question alone.
type fixedJudge struct {
	model  string
	answer func(subject string) string
}

func (j fixedJudge) Judge(_ context.Context, q director.Question) (model, answer string, err error) {
	return j.model, j.answer(q.Subject.ID), nil
}

// maxMessages bounds the messages that an actor is given.
const maxMessages = 40

// ModelActor is a character that a language model plays.
type ModelActor struct {
	// Complete returns the model's answer to a conversation.
	Complete func(ctx context.Context, messages []generate.ChatMessage) (string, error)
}

// Name implements [Actor].
func (ModelActor) Name() string { return unnamed }

// Say implements [Actor].
func (m ModelActor) Say(ctx context.Context, p ActorTurn) (string, error) {
	messages := []generate.ChatMessage{{Role: "system", Content: p.Episode.Briefing() + "\n" + p.Guidance.Section() +
		"\nAnswer as the character, in a few sentences. Never speak or decide for the user.\n"}}
	remembered := p.Messages[max(0, len(p.Messages)-maxMessages):]
	if p.Episode.OpeningLine != "" && (len(remembered) == 0 || remembered[0].Turn == 1) {
		messages = append(messages, generate.ChatMessage{Role: "assistant", Content: p.Episode.OpeningLine})
	}
	for _, said := range remembered {
		role := "user"
		if said.Role == "character" {
			role = "assistant"
		}
		messages = append(messages, generate.ChatMessage{Role: role, Content: said.Text})
	}
	answer, err := m.Complete(ctx, messages)
	if err != nil {
		return "", err
	}
	if words := strings.TrimSpace(strings.ToValidUTF8(answer, "\uFFFD")); words != "" {
		return words, nil
	}
	return "", errors.New("the model's answer is empty")
}

// NeedsJudge reports whether a beat or objective of an episode needs a judge.
func NeedsJudge(e *episode.Episode) bool {
	semantic := func(b episode.Beat) bool { return b.Detection == episode.Semantic }
	judged := func(o episode.Objective) bool { return o.Success.Kind == episode.BySemantic }
	return slices.ContainsFunc(e.Beats, semantic) || slices.ContainsFunc(e.Objectives, judged)
}
