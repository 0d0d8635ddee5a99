package episodecmd

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/sajou-dev/sajou-go/adapter/openai"
	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/play"
	"github.com/sajou-dev/sajou-go/director/script"
)

// maxWords is how many tokens a model's character may say in a turn, and
// maxAnswer how many bytes may come over the wire for it.
const (
	maxWords  = 400
	maxAnswer = 512 << 10
)

// The variables of the environment that hold keys. A key is sent to the server
// it is meant for, and to no other.
const (
	CharacterKey = "SAJOU_CHARACTER_KEY"
	JudgeKey     = "SAJOU_JUDGE_KEY"
)

func newModel(flag, url, name, variable string) (*openai.Client, error) {
	client, err := openai.New(openai.Config{BaseURL: url, Model: name, APIKey: openai.NewKey(os.Getenv(variable)), MaxBytes: maxAnswer})
	if err != nil {
		return nil, cli.Misuse("%s: %s", flag, strings.TrimPrefix(err.Error(), "openai: ")) // the URL itself may have a password in it
	}
	return client, nil
}

// cast is the actor and the judge of a play.
type cast struct {
	actor  play.Actor
	judge  play.JudgeOf // nil for none
	remark string       // what the user should know about them
	close  func()
}

// cast chooses the actor of an episode's character and its judge.
func (f *playFlags) cast(e *episode.Episode) (c cast, err error) {
	var clients []*openai.Client
	c.close = func() {
		for _, client := range clients {
			client.Close()
		}
	}
	written := func(s *script.Script) {
		actor := play.ScriptedActor{Script: s}
		c.actor, c.judge = actor, actor.JudgeOf
	}
	switch {
	case f.characterURL != "":
		client, err := newModel("--character-url", f.characterURL, f.model, CharacterKey)
		if err != nil {
			return c, err
		}
		clients = append(clients, client)
		c.actor = play.ModelActor{Complete: func(ctx context.Context, messages []generate.ChatMessage) (string, error) {
			done, err := client.Complete(ctx, openai.Request{Messages: messages, MaxTokens: maxWords})
			return done.Text, err
		}}
	case f.script != "":
		s, err := script.Parse(f.lines)
		if err == nil {
			err = s.Check(e)
		}
		if err != nil {
			return c, cli.Fail(cli.ExitNo, "%s: %w", f.script, err)
		}
		written(s)
	default:
		if s := play.BundledScript(e); s != nil {
			written(s)
		} else {
			c.actor, c.judge = play.StandIn{}, play.StandIn{}.JudgeOf
			c.remark = "the character has no lines: a stand-in says the director's instructions; name a script (--script) or a model (--character-url)"
		}
	}
	if f.judgeURL != "" {
		name, variable := f.judgeModel, JudgeKey
		if name == "" {
			name = f.model
		}
		if f.judgeURL == f.characterURL && os.Getenv(JudgeKey) == "" {
			variable = CharacterKey
		}
		client, err := newModel("--judge-url", f.judgeURL, name, variable)
		if err != nil {
			return c, err
		}
		clients = append(clients, client)
		c.judge = func(string) director.Judge { return client }
	}
	if c.judge == nil && play.NeedsJudge(e) {
		c.remark = "there is no judge: beats and objectives that need one will not land; name a judge with --judge-url"
	}
	return c, nil
}

// playFlags are what the flags of episode play say.
type playFlags struct {
	directions, beyond, manual bool
	begin                      bool // --new
	script                     string
	lines                      []byte // of the script, once it is read
	characterURL, model        string
	judgeURL, judgeModel       string
}

func (f *playFlags) check() error {
	switch {
	case f.characterURL != "" && f.script != "":
		return cli.Misuse("--script and --character-url are two ways to play the character; name one")
	case f.characterURL != "" && f.model == "":
		return cli.Misuse("--character-url needs a --model")
	case f.judgeURL != "" && f.model == "" && f.judgeModel == "":
		return cli.Misuse("--judge-url needs a --judge-model")
	case f.characterURL == "" && f.judgeURL == "" && (f.model != "" || f.judgeModel != ""):
		return cli.Misuse("a model needs a server: --character-url or --judge-url")
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
			line += fmt.Sprintf(" --%s %s", flag.name, cli.ShellWord(flag.value))
		}
	}
	return line
}
