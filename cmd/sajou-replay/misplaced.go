package main

import (
	"bytes"

	"github.com/sajou-dev/sajou-go/signal"
)

// misplaced says of a file that a command cannot read what it seems to be
// instead, and which command reads it, to go after a message; "" where that
// cannot be told, and where it is what the command reads.
func misplaced(command, name string, text []byte) string {
	v, err := signal.ParseValue(text)
	lines := err != nil
	if lines {
		line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
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
		return "; it is an array of signals, and a recording has one signal a line, without an array around them"
	case has("type") && has("payload"):
		what, reader = "a recording", "import"
	}
	if reader == "" || reader == command {
		return ""
	}
	return "; it is " + what + ", for: sajou-replay " + reader + " " + shellWord(name)
}
