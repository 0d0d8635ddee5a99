package stage

import (
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// flagParam reads a boolean parameter. It is false if absent.
func (s *Stage) flagParam(param string) bool {
	v, ok := s.current.Param(param)
	if !ok {
		return false
	}
	b, _ := v.Bool()
	return b
}

// numberParam reads a numeric parameter, with otherwise as its default.
func (s *Stage) numberParam(param string, otherwise float64) float64 {
	v, ok := s.current.Param(param)
	if !ok {
		return otherwise
	}
	f, ok := finite(v)
	if !ok {
		s.report(noteValue, "", param)
		return otherwise
	}
	return f
}

// nameParam reads a parameter that is a name: a state, a color, a look.
func (s *Stage) nameParam(param, otherwise string) string {
	v, ok := s.current.Param(param)
	if !ok {
		return otherwise
	}
	return s.nameOf(v, param, otherwise)
}

func (s *Stage) nameOf(v signal.Value, param, otherwise string) string {
	name, ok := v.Text()
	switch {
	case !ok:
		s.report(noteValue, "", param)
		return otherwise
	case len(name) > MaxName:
		s.report(noteLimit, "", "name")
		return otherwise
	case name == "":
		return otherwise
	}
	return s.intern(name)
}

// textParam reads a parameter that is shown as text. Numbers and booleans are allowed.
func (s *Stage) textParam(param string) (string, bool) {
	v, ok := s.current.Param(param)
	if !ok {
		s.report(noteValue, "", param)
		return "", false
	}
	return s.textOf(v, param)
}

func (s *Stage) textOf(v signal.Value, param string) (string, bool) {
	t, ok := v.Text()
	switch kind := v.Kind(); {
	case ok:
	case kind.IsNumber(), kind == signal.KindBool:
		t = v.String()
	case kind == signal.KindNull:
	default:
		s.report(noteValue, "", param)
		return "", false
	}
	t, cut := clip(t, MaxText)
	if cut {
		s.report(noteLimit, "", "text")
	}
	return strings.Clone(t), true
}

// labelParam reads the label below a figure; an empty text removes it. It returns
// false if the parameter is absent or unusable.
func (s *Stage) labelParam() (string, bool) {
	v, ok := s.current.Param("label")
	if !ok {
		return "", false
	}
	if t, ok := v.Text(); ok && t == "" {
		return "", true
	}
	label := s.nameOf(v, "label", "")
	return label, label != ""
}

// layerParam reads a layer by name or number.
func (s *Stage) layerParam(v signal.Value, param string, otherwise int) int {
	if f, ok := finite(v); ok {
		return s.layerOf(f)
	}
	if name, ok := v.Text(); ok {
		if i := slices.Index(s.scene.Layers, name); i >= 0 {
			return i
		}
	}
	s.report(noteValue, "", param)
	return otherwise
}

// intern returns a copy of a name that does not keep the memory of its signal alive.
// Names are few and repeat, so copies are shared.
func (s *Stage) intern(name string) string {
	if known, ok := s.interned[name]; ok {
		return known
	}
	if len(s.interned) >= maxInterned {
		clear(s.interned)
	}
	name = strings.Clone(name)
	s.interned[name] = name
	return name
}

// maxInterned bounds the shared names; the set is cleared when it is full.
const maxInterned = 256
