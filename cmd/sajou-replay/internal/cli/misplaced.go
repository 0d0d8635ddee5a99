package cli

import (
	"bytes"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/signal"
)

// Misplaced recognizes a file that was given to the wrong command. It returns the
// end of a message that names the kind of the file and the command that reads it,
// or "" if the kind is unknown or the command is right.
func Misplaced(command, name string, text []byte) string {
	var v signal.Value
	t, refused := authored.Read(name, text)
	lines := refused != nil
	if !lines {
		v = t.Value
	} else {
		line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
		var err error
		if v, err = signal.ParseValue(line); err != nil {
			return ""
		}
	}
	array := v.Kind() == signal.KindArray
	if array {
		for e := range v.Elements() {
			v = e
			break
		}
	}
	has := func(member string) bool {
		_, ok := v.Get(member)
		return ok
	}
	sajou, _ := v.Get("sajou")
	word, _ := sajou.Text()
	what, reader := "", ""
	switch {
	case word == "simulation":
		what, reader = "a scenario of agents", "sim"
	case word == "episode":
		what, reader = "an episode", "episode play"
	case word == "scene":
		what, reader = "a scene", "define add"
	case has("on") && has("steps"), has("sequence") && has("steps"), has("easing") && has("curve"):
		what, reader = "choreographies", "define add"
	case has("script") && !lines:
		what, reader = "a scenario of signals", "rehearse"
	case has("type") && has("payload") && array:
		return "; the file is an array of signals; write one signal a line, without the array"
	case has("type") && has("payload"):
		what, reader = "a recording", "import"
	}
	if reader == "" || reader == command {
		return ""
	}
	return "; the file looks like " + what + ", which is read by: sajou-replay " + reader + " " + ShellWord(name)
}
