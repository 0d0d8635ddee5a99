package statecmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
)

// blameState shows the last setting of a value of the state, or all of them.
func blameState(ctx context.Context, a *cli.App, t *cli.OpenedSession, address, text string, all bool) error {
	m, err := t.Resolve(ctx, address)
	if err != nil {
		return err
	}
	path, err := provenance.ParsePath(text)
	if err != nil {
		return cli.Misuse("%w", err)
	}
	if all {
		return blameHistory(ctx, a, t, path, m)
	}
	b, err := provenance.Blame(ctx, t.Travel, path, m)
	if err != nil {
		return neverSet(err, &b)
	}
	var s strings.Builder
	value, moving := "not there", ""
	if b.Has {
		value = shortValue(b.Value)
	}
	if b.Moving {
		moving = ", still changing"
	}
	fmt.Fprintf(&s, "%s at %v: %s%s\n", termtext.Printable(path.String()), m, value, moving)
	s.WriteString(settingText(&b.Setting) + "\n")
	for i := range b.Setter.Candidates {
		s.WriteString("         candidate " + setterText(&b.Setter.Candidates[i]) + "\n")
	}
	return a.Output().One(s.String(), answer.ViewBlamed(&b))
}

// neverSet returns the error about a value that has no setting, with its exit code.
func neverSet(err error, b *provenance.Blamed) error {
	switch {
	case errors.Is(err, provenance.ErrNever) && b.Has:
		return cli.Fail(cli.ExitNo, "no entry up to %v has set %v: it is %s from the beginning", b.Moment, b.Path, shortValue(b.Value))
	case errors.Is(err, provenance.ErrNever):
		return cli.Fail(cli.ExitNotFound, "the state up to %v never had %v; see its members with: sajou-replay state %v", b.Moment, b.Path, b.Moment)
	case errors.Is(err, provenance.ErrPath):
		return cli.Fail(cli.ExitNotFound, "%w", err)
	}
	return err
}

func blameHistory(ctx context.Context, a *cli.App, t *cli.OpenedSession, path provenance.StatePath, to replay.Moment) error {
	o := a.Output()
	for s, err := range provenance.History(ctx, t.Travel, path, to) {
		if err != nil {
			return err
		}
		if err := o.ItemOf(settingText(&s), answer.ViewSetting(&s)); err != nil {
			return err
		}
	}
	if err := o.End(); err != nil {
		return err
	}
	if o.Items == 0 {
		b, err := provenance.Blame(ctx, t.Travel, path, to)
		return neverSet(err, &b)
	}
	return nil
}

// settingText is one setting as a line.
func settingText(s *provenance.Setting) string {
	old, now := "none", "none"
	if s.Had {
		old = shortValue(s.Old)
	}
	if s.Has {
		now = shortValue(s.New)
	}
	change := old + " → " + now
	if before, ok := s.Old.(map[string]any); ok {
		if after, ok := s.New.(map[string]any); ok {
			change = membersText(before, after)
		}
	} else if old == now {
		change = now + ", and a new course from there"
	}
	return fmt.Sprintf("%8v  %s  %s: %s", s.Moment, cli.ClockText(s.At), setterText(&s.Setter), change)
}

// membersText lists the members in which two objects differ.
func membersText(before, after map[string]any) string {
	const most = 4
	var list []string
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, now := shortValue(before[name]), shortValue(after[name])
		if old != now {
			list = append(list, termtext.Printable(name)+" "+old+" → "+now)
		}
	}
	if len(list) == 0 {
		return "a new course"
	}
	if len(list) > most {
		list = append(list[:most], "…")
	}
	return strings.Join(list, ", ")
}

// setterText describes an event in words.
func setterText(o *provenance.Setter) string {
	act := termtext.Printable(fmt.Sprintf("%s step %s of %s, %s", o.Performance, o.Step, o.Definition, strings.TrimSpace(o.Action+" "+o.Entity)))
	switch o.Kind {
	case provenance.ByEntry:
		return fmt.Sprintf("entry %d", o.Entry)
	case provenance.ByInterrupt:
		return fmt.Sprintf("entry %d interrupted %s", o.Entry, o.Performance)
	case provenance.ByTime:
		return "time passed"
	default:
		return fmt.Sprintf("%s %s", o.Kind, act)
	}
}

// shortValue is a value as JSON on one line, clipped.
func shortValue(v any) string {
	data, err := cli.Marshal(v)
	if err != nil {
		return "?"
	}
	return termtext.Clip(termtext.Printable(string(data)), 60)
}
