package settings

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/signal"
)

// ErrSettings is wrapped by the errors about a value or a file of settings.
var ErrSettings = errors.New("a setting is refused")

// Given are the values that were given, by their source.
type Given struct {
	// Flags has the values of the flags that were given, by name.
	Flags map[string][]string

	// Variable returns a variable of the environment. Nil means that there are none.
	Variable func(name string) (value string, ok bool)

	// File is the name of the file, and Text its text. Nil means that there is none.
	File string
	Text []byte
}

// ResolvedSetting is the value of a setting, and where it was given.
type ResolvedSetting struct {
	Setting ServerSetting
	Texts   []string // as given, one by one; empty for an empty list
	Source  string   // such as "default", "--listen", "SAJOU_LISTEN" or "serve.yaml:3:9"
}

// Resolve finds the value of every setting, and checks each. The values are in the order
// of [All]. The errors wrap [ErrSettings]; the one about a file lists all its mistakes.
func Resolve(given Given) (*ServerSettings, []ResolvedSetting, error) {
	file, err := given.file()
	if err != nil {
		return nil, nil, err
	}
	s := &ServerSettings{}
	values := make([]ResolvedSetting, 0, len(all))
	for _, setting := range all {
		v := ResolvedSetting{Setting: setting, Texts: setting.split(setting.Default), Source: "default"}
		if fromFile, ok := file[setting.Name]; ok {
			v = fromFile
		}
		if given.Variable != nil {
			if text, ok := given.Variable(setting.Variable()); ok {
				v = ResolvedSetting{setting, setting.split(text), setting.Variable()}
			}
		}
		if texts, ok := given.Flags[setting.Name]; ok {
			v = ResolvedSetting{setting, texts, "--" + setting.Name}
		}
		if err := v.apply(s); err != nil {
			return nil, nil, fmt.Errorf("%w: %s (%s): %w", ErrSettings, setting.Name, v.Source, err)
		}
		values = append(values, v)
	}
	if err := s.check(); err != nil {
		return nil, nil, err
	}
	return s, values, nil
}

// apply checks a value and sets it. An empty text leaves a setting that has no default as
// it is.
func (v *ResolvedSetting) apply(s *ServerSettings) error {
	if v.Setting.Form == FormText && v.Setting.Default == "" && v.Texts[0] == "" {
		return nil
	}
	return v.Setting.set(s, v.Texts)
}

// split returns the values in a text.
func (s ServerSetting) split(text string) []string {
	if s.Form != FormList {
		return []string{text}
	}
	texts := []string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			texts = append(texts, part)
		}
	}
	return texts
}

// file reads the file: an object with a member for each setting it gives. A file of
// comments alone gives none.
func (g *Given) file() (map[string]ResolvedSetting, error) {
	if commented(g.Text) {
		return nil, nil
	}
	t, refused := authored.ReadYAML(g.File, g.Text)
	if refused != nil {
		return nil, refused.Err(ErrSettings)
	}
	r := reader{text: t, found: map[string]ResolvedSetting{}}
	r.read(authored.Located{Value: t.Value})
	if r.Refused() {
		return nil, t.Placed(r.Diagnostics(g.File, t.JSON)).Err(ErrSettings)
	}
	return r.found, nil
}

// commented reports whether a YAML text has nothing but comments and blank lines.
func commented(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// reader reads the file of settings.
type reader struct {
	authored.Remarks
	text  *authored.Text
	found map[string]ResolvedSetting
}

func (r *reader) read(at authored.Located) {
	if at.Value.Kind() != signal.KindObject {
		r.Errorf(at.Location, "must be an object with a member for each setting")
		return
	}
	for name, member := range at.Members {
		i := slices.IndexFunc(all, func(s ServerSetting) bool { return s.Name == name })
		if i < 0 {
			hint := ""
			if nearest, ok := spelling.Nearest(name, names()); ok {
				hint = "; did you mean " + nearest + "?"
			}
			r.Errorf(member.Location.Key(), "there is no setting %q%s", name, hint)
			continue
		}
		if texts, ok := r.texts(all[i], member); ok {
			v := ResolvedSetting{all[i], texts, r.place(member)}
			if err := v.apply(&ServerSettings{}); err != nil {
				r.Errorf(member.Location, "%v", err)
				continue
			}
			r.found[name] = v
		}
	}
}

// texts returns the values of a member as they would be written on the command line.
func (r *reader) texts(s ServerSetting, at authored.Located) ([]string, bool) {
	if at.Value.Kind() == signal.KindArray && s.Form == FormList {
		texts := []string{}
		for _, element := range at.Elements {
			text, ok := r.scalar(element)
			if !ok {
				return nil, false
			}
			texts = append(texts, text)
		}
		return texts, true
	}
	text, ok := r.scalar(at)
	return s.split(text), ok
}

// scalar returns a text, a number or a boolean as it would be written.
func (r *reader) scalar(at authored.Located) (string, bool) {
	switch at.Value.Kind() {
	case signal.KindString:
		text, _ := at.Value.Text()
		return text, true
	case signal.KindBool, signal.KindInt, signal.KindUint, signal.KindFloat:
		return string(at.Value.AppendJSON(nil)), true
	default:
		r.Errorf(at.Location, "must be a text, a number, true, false, or a list where the setting takes several values")
		return "", false
	}
}

// place returns the place of a member in the file.
func (r *reader) place(at authored.Located) string {
	offsets := authored.Locate(r.text.JSON, []*authored.Location{at.Location})
	line, column := r.text.Place(offsets[0])
	return fmt.Sprintf("%s:%d:%d", r.text.File, line, column)
}

func names() []string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Name
	}
	return names
}
