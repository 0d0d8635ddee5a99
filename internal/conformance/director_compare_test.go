package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// unlooked marks a value that the set does not compare.
const unlooked = "\x00not compared"

// compare judges one step as the set's README says. It compares only the expected
// members. The error begins with the first path that differs.
func compare(expected signal.Value, got map[string]any) error {
	text, err := json.Marshal(got)
	if err != nil {
		return err
	}
	all, err := signal.ParseValue(text)
	if err != nil {
		return err
	}
	for name, want := range expected.Members() {
		v := given(all, name)
		if s, _ := v.Text(); s == unlooked || slices.Contains(remarks, name) {
			continue
		}
		var err error
		switch name {
		case "prompt_contains", "prompt_not_contains":
			err = comparePrompt(name, want, textAt(all, "prompt"))
		case "detected", "choice_pending", "flags":
			err = compareNames(name, want, v)
		case "statuses":
			err = compareStatuses(want, v)
		case "choice_point":
			err = compareEvent(want, v)
		case "detected_at_turn", "delivered_at_turn":
			// A subject that is not listed has not landed.
			if err = compareWithin(name, want, v); err == nil {
				err = compareWithin(name, v, want)
			}
		default:
			err = compareWithin(name, want, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func differs(path string, want, got signal.Value) error {
	written := func(v signal.Value) string {
		if v == nil {
			return "nothing"
		}
		return v.String()
	}
	return fmt.Errorf("%s: want %s, got %s", path, written(want), written(got))
}

// isEmpty reports whether a value says nothing: null, or nothing at all.
func isEmpty(v signal.Value) bool {
	return v.Kind() == signal.KindNull || v.Kind() == signal.KindAbsent
}

// compareWithin makes sure that got has what want has. Members beside them are
// ignored, null is as good as absent, numbers count by their value.
func compareWithin(path string, want, got signal.Value) error {
	switch {
	case isEmpty(want) && (isEmpty(got) || got.Kind() == signal.KindObject && got.Len() == 0):
		return nil
	case want.Kind() == signal.KindObject && (got.Kind() == signal.KindObject || isEmpty(got) && want.Len() == 0):
		for name, m := range want.Members() {
			if err := compareWithin(path+"."+name, m, given(got, name)); err != nil {
				return err
			}
		}
		return nil
	case want.Kind() == signal.KindArray && got.Kind() == signal.KindArray && want.Len() == got.Len():
		others := slices.Collect(got.Elements())
		i := 0
		for e := range want.Elements() {
			if err := compareWithin(fmt.Sprintf("%s[%d]", path, i), e, others[i]); err != nil {
				return err
			}
			i++
		}
		return nil
	case want.Kind().IsNumber() && got.Kind().IsNumber():
		a, _ := want.Float64()
		if b, _ := got.Float64(); a == b {
			return nil
		}
	case want.Kind() == got.Kind() && want.String() == got.String():
		return nil
	}
	return differs(path, want, got)
}

func comparePrompt(name string, want signal.Value, prompt string) error {
	texts := []signal.Value{want}
	if want.Kind() == signal.KindArray || isEmpty(want) {
		texts = slices.Collect(want.Elements())
	}
	for _, text := range texts {
		if s, ok := text.Text(); !ok || strings.Contains(prompt, s) != (name == "prompt_contains") {
			return fmt.Errorf("%s: %s, and the prompt section is\n%s", name, text, prompt)
		}
	}
	return nil
}

func compareNames(path string, want, got signal.Value) error {
	a, ok := nameSet(want)
	if b, _ := nameSet(got); !ok || !slices.Equal(a, b) {
		return differs(path, want, got)
	}
	return nil
}

// compareStatuses compares each status with the one that is wanted, or with
// those that are allowed.
func compareStatuses(want, got signal.Value) error {
	if want.Kind() != signal.KindObject && !isEmpty(want) {
		return differs("statuses", want, got)
	}
	for id, allowed := range want.Members() {
		status, is := given(got, id).Text()
		one, _ := allowed.Text()
		ok := is && status == one
		for e := range allowed.Elements() {
			s, _ := e.Text()
			ok = ok || is && status == s
		}
		if !ok {
			return differs("statuses."+id, allowed, given(got, id))
		}
	}
	return nil
}

// compareEvent compares an event that offers a choice. The choices are in order.
func compareEvent(want, got signal.Value) error {
	if isEmpty(want) != isEmpty(got) || want.Kind() != signal.KindObject && !isEmpty(want) {
		return differs("choice_point", want, got)
	}
	for name, m := range want.Members() {
		if name != "mode_not" {
			if err := compareWithin("choice_point."+name, m, given(got, name)); err != nil {
				return err
			}
		} else if s, ok := m.Text(); !ok || textAt(got, "mode") == s {
			return differs("choice_point.mode_not", m, given(got, "mode"))
		}
	}
	return nil
}
