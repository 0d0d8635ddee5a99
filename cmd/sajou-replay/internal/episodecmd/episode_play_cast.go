package episodecmd

import (
	"context"
	"fmt"

	"github.com/sajou-dev/sajou-go/adapter/openai"
	"github.com/sajou-dev/sajou-go/agents/generate"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/play"
	"github.com/sajou-dev/sajou-go/director/script"
)

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
	case f.CharacterURL != "":
		client, err := f.Character()
		if err != nil {
			return c, err
		}
		clients = append(clients, client)
		c.actor = play.ModelActor{Complete: func(ctx context.Context, messages []generate.ChatMessage) (string, error) {
			done, err := client.Complete(ctx, openai.Request{Messages: messages, MaxTokens: cli.MaxWords})
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
	if f.JudgeURL != "" {
		client, err := f.Judge()
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
	cli.ModelFlags
}

func (f *playFlags) check() error {
	if f.CharacterURL != "" && f.script != "" {
		return cli.Misuse("--script and --character-url are two ways to play the character; name one")
	}
	return f.Check()
}

// again returns the flags with which the same cast is called in again.
func (f *playFlags) again() string {
	line := ""
	for _, flag := range []struct{ name, value string }{
		{"script", f.script}, {"character-url", f.CharacterURL}, {"model", f.Model}, {"judge-url", f.JudgeURL}, {"judge-model", f.JudgeModel},
	} {
		if flag.value != "" {
			line += fmt.Sprintf(" --%s %s", flag.name, cli.ShellWord(flag.value))
		}
	}
	return line
}
