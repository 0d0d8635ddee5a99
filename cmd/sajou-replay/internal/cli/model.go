package cli

import (
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sajou-dev/sajou-go/adapter/openai"
)

// The variables of the environment that hold keys. A key is sent to the server
// it is meant for, and to no other.
const (
	CharacterKey = "SAJOU_CHARACTER_KEY"
	JudgeKey     = "SAJOU_JUDGE_KEY"
)

// MaxWords is how many tokens a model's character may say in a turn, and maxAnswer how
// many bytes may come over the wire for it.
const (
	MaxWords  = 400
	maxAnswer = 512 << 10
)

// NewModel returns the client of a model that a flag names.
func NewModel(flag, url, name, variable string) (*openai.Client, error) {
	client, err := openai.New(openai.Config{BaseURL: url, Model: name, APIKey: openai.NewKey(os.Getenv(variable)), MaxBytes: maxAnswer})
	if err != nil {
		return nil, Misuse("%s: %s", flag, strings.TrimPrefix(err.Error(), "openai: ")) // the URL itself may have a password in it
	}
	return client, nil
}

// ModelFlags name the models that play a character and that judge it.
type ModelFlags struct {
	CharacterURL, Model  string
	JudgeURL, JudgeModel string
}

// Add adds the flags.
func (f *ModelFlags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.CharacterURL, "character-url", "", "chat completions API of the character's model, up to /v1")
	flags.StringVar(&f.Model, "model", "", "name of the character's model")
	flags.StringVar(&f.JudgeURL, "judge-url", "", "chat completions API of the judge's model")
	flags.StringVar(&f.JudgeModel, "judge-model", "", "name of the judge's model; by default that of --model")
}

// Check refuses a server without a model, and a model without a server.
func (f *ModelFlags) Check() error {
	switch {
	case f.CharacterURL != "" && f.Model == "":
		return Misuse("--character-url needs a --model")
	case f.JudgeURL != "" && f.Model == "" && f.JudgeModel == "":
		return Misuse("--judge-url needs a --judge-model")
	case f.CharacterURL == "" && f.JudgeURL == "" && (f.Model != "" || f.JudgeModel != ""):
		return Misuse("a model needs a server: --character-url or --judge-url")
	}
	return nil
}

// Character returns the client of the character's model, nil if none is named.
func (f *ModelFlags) Character() (*openai.Client, error) {
	if f.CharacterURL == "" {
		return nil, nil
	}
	return NewModel("--character-url", f.CharacterURL, f.Model, CharacterKey)
}

// Judge returns the client of the judge's model, nil if none is named.
func (f *ModelFlags) Judge() (*openai.Client, error) {
	if f.JudgeURL == "" {
		return nil, nil
	}
	name, variable := f.JudgeModel, JudgeKey
	if name == "" {
		name = f.Model
	}
	if f.JudgeURL == f.CharacterURL && os.Getenv(JudgeKey) == "" {
		variable = CharacterKey
	}
	return NewModel("--judge-url", f.JudgeURL, name, variable)
}
