package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/adapter/openai"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episodes"
)

// actor speaks for the character of an episode.
type actor interface {
	name() string
	// say returns what the character says, which is not empty.
	say(ctx context.Context, p prompt) (string, error)
}

// prompt is what an actor goes by.
type prompt struct {
	episode  *director.Episode
	guidance director.Guidance
	chosen   string                  // the user's input if it was chosen: POINT/OPTION
	messages []sajou.Said            // the last of them, and of these the user's comes last
	said     func(words string) bool // by the character, before
	flag     func(name string) bool
}

// scripted says what is written down.
type scripted struct{ script *episodes.Script }

func (s scripted) name() string {
	if s.script.Character == "" {
		return unnamed
	}
	return s.script.Character
}

// unnamed is what a character is called whose name nobody has said.
const unnamed = "Character"

func (s scripted) say(_ context.Context, p prompt) (string, error) {
	return s.script.Line(episodes.Moment{
		Turn: p.guidance.Turn, Directive: p.guidance.Directive, Choice: p.chosen, Flag: p.flag, Said: p.said,
	}), nil
}

func (s scripted) judge(response string) sajou.Judge {
	return writtenJudge{"script", func(subject string) string { return s.script.Answer(response, subject) }}
}

// standIn walks through the part when nobody plays it: it says what the director
// tells it, and is believed.
type standIn struct{}

func (standIn) name() string { return unnamed }

func (standIn) say(_ context.Context, p prompt) (string, error) {
	d := p.guidance.Directive
	if d == nil || d.Urgency < director.Required {
		return "(The stand-in nods.)", nil
	}
	words := ""
	if i, ok := p.episode.BeatIndex(d.Beat); ok && len(p.episode.Beats[i].Keywords) > 0 {
		words = " " + p.episode.Beats[i].Keywords[0]
	}
	return "(The stand-in plays " + d.Beat + ".) " + d.Instruction + words, nil
}

func (standIn) judge(response string) sajou.Judge {
	return writtenJudge{"stand-in", func(subject string) string {
		if strings.HasPrefix(response, "(The stand-in plays "+subject+".)") {
			return "YES"
		}
		return "NO"
	}}
}

// writtenJudge knows its answers before it is asked.
type writtenJudge struct {
	model  string
	answer func(subject string) string
}

func (j writtenJudge) Judge(_ context.Context, q director.Question) (model, answer string, err error) {
	return j.model, j.answer(q.Subject.ID), nil
}

// maxWords is how many tokens a model's character may say in a turn, and
// maxAnswer how many bytes may come over the wire for it.
const (
	maxWords  = 400
	maxAnswer = 512 << 10
)

// model is a character played by a language model.
type model struct{ client *openai.Client }

func (model) name() string { return unnamed }

func (m model) say(ctx context.Context, p prompt) (string, error) {
	messages := []sajou.Message{{Role: "system", Content: p.episode.Briefing() + "\n" + p.guidance.Section() +
		"\nAnswer as the character, in a few sentences. Never speak or decide for the user.\n"}}
	remembered := p.messages[max(0, len(p.messages)-maxMessages):]
	if p.episode.OpeningLine != "" && (len(remembered) == 0 || remembered[0].Turn == 1) {
		messages = append(messages, sajou.Message{Role: "assistant", Content: p.episode.OpeningLine})
	}
	for _, said := range remembered {
		role := "user"
		if said.Role == "character" {
			role = "assistant"
		}
		messages = append(messages, sajou.Message{Role: role, Content: said.Text})
	}
	done, err := m.client.Complete(ctx, openai.Request{Messages: messages, MaxTokens: maxWords})
	if err != nil {
		return "", err
	}
	if words := strings.TrimSpace(strings.ToValidUTF8(done.Text, "\uFFFD")); words != "" {
		return words, nil
	}
	return "", errors.New("the model has said nothing")
}

// The variables of the environment that hold keys. A key is sent to the server
// it is meant for, and to no other.
const (
	characterKey = "SAJOU_CHARACTER_KEY"
	judgeKey     = "SAJOU_JUDGE_KEY"
)

func newModel(flag, url, name, variable string) (*openai.Client, error) {
	client, err := openai.New(openai.Config{BaseURL: url, Model: name, APIKey: openai.NewKey(os.Getenv(variable)), MaxBytes: maxAnswer})
	if err != nil {
		return nil, misuse("%s: %s", flag, strings.TrimPrefix(err.Error(), "openai: ")) // the URL itself may have a password in it
	}
	return client, nil
}

// cast is who plays beside the user.
type cast struct {
	actor  actor
	judge  func(response string) sajou.Judge // nil for nobody
	remark string                            // what the user should know of it
	close  func()
}

// cast finds who plays the character of an episode, and who judges.
func (f *playFlags) cast(e *director.Episode) (c cast, err error) {
	var clients []*openai.Client
	c.close = func() {
		for _, client := range clients {
			client.Close()
		}
	}
	switch {
	case f.characterURL != "":
		client, err := newModel("--character-url", f.characterURL, f.model, characterKey)
		if err != nil {
			return c, err
		}
		clients = append(clients, client)
		c.actor = model{client}
	case f.script != "":
		text, err := readBounded(f.script, episodes.MaxScript)
		if err != nil {
			return c, err
		}
		script, err := episodes.ParseScript(text)
		if err == nil {
			err = script.Check(e)
		}
		if err != nil {
			return c, fail(exitNo, "%s: %w", f.script, err)
		}
		c.actor, c.judge = scripted{script}, scripted{script}.judge
	default:
		c.actor, c.judge = standIn{}, standIn{}.judge
		if script := bundledScript(e); script != nil {
			c.actor, c.judge = scripted{script}, scripted{script}.judge
		} else {
			c.remark = "nobody plays the character: a stand-in says what is directed; name a script (--script) or a model (--character-url)"
		}
	}
	if f.judgeURL != "" {
		name, variable := f.judgeModel, judgeKey
		if name == "" {
			name = f.model
		}
		if f.judgeURL == f.characterURL && os.Getenv(judgeKey) == "" {
			variable = characterKey
		}
		client, err := newModel("--judge-url", f.judgeURL, name, variable)
		if err != nil {
			return c, err
		}
		clients = append(clients, client)
		c.judge = func(string) sajou.Judge { return client }
	}
	if c.judge == nil && judged(e) {
		c.remark = "nobody judges: beats and objectives that need a judge will not land; name one with --judge-url"
	}
	return c, nil
}

// bundledScript returns the script that comes with the program for an episode,
// nil if there is none that knows it.
func bundledScript(e *director.Episode) *episodes.Script {
	_, text, ok := episodes.Text(e.ID)
	if !ok {
		return nil
	}
	script, err := episodes.ParseScript(text)
	if err != nil || script.Check(e) != nil {
		return nil
	}
	return script
}

// judged reports whether anything in an episode needs a judge.
func judged(e *director.Episode) bool {
	for i := range e.Beats {
		if e.Beats[i].Detection == director.Semantic {
			return true
		}
	}
	for i := range e.Objectives {
		if e.Objectives[i].Success.Kind == director.BySemantic {
			return true
		}
	}
	return false
}

// playFlags are what the flags of episode play say.
type playFlags struct {
	directions, beyond, manual bool
	script                     string
	characterURL, model        string
	judgeURL, judgeModel       string
}

func (f *playFlags) check() error {
	switch {
	case f.characterURL != "" && f.script != "":
		return misuse("--script and --character-url are two ways to play the character; name one")
	case f.characterURL != "" && f.model == "":
		return misuse("--character-url needs a --model")
	case f.judgeURL != "" && f.model == "" && f.judgeModel == "":
		return misuse("--judge-url needs a --judge-model")
	case f.characterURL == "" && f.judgeURL == "" && (f.model != "" || f.judgeModel != ""):
		return misuse("a model needs a server: --character-url or --judge-url")
	}
	return nil
}

// again returns the flags with which the same cast is called in again.
func (f *playFlags) again() string {
	line := ""
	for _, flag := range []struct{ name, value string }{
		{"script", f.script}, {"character-url", f.characterURL}, {"model", f.model}, {"judge-url", f.judgeURL}, {"judge-model", f.judgeModel},
	} {
		if flag.value != "" {
			line += fmt.Sprintf(" --%s %s", flag.name, shellWord(flag.value))
		}
	}
	return line
}
