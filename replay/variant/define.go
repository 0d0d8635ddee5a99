package variant

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// identities gives declarations the identity by which one replaces another: word and
// name, and of a choreography without a name its signal type and its number among those.
type identities map[string]int

func (n identities) of(d language.Declaration) string {
	id := d.Word() + "\x00" + d.Name()
	if c, ok := d.(*definition.Definition); ok && d.Name() == "" {
		id += "\x00" + c.On()
		n[id]++
		id += fmt.Sprintf("\x00%d", n[id])
	}
	return id
}

// recorded is a declaration of the parent.
type recorded struct {
	seq   eventlog.Seq
	at    time.Duration
	was   language.Declaration
	now   language.Declaration // was, or the given one
	early bool                 // no signal is in front of it
}

// define replaces the declarations of the parent by those of c.
func (b *builder) define(ctx context.Context, c *Edits) error {
	if len(c.Define) == 0 {
		return nil
	}
	given := map[string]language.Declaration{}
	var order []string
	ids := identities{}
	for i, d := range c.Define {
		compiled, err := session.CompileDeclaration(d.Word(), d.Value())
		if err != nil {
			return impossible("declaration %d: %w", i+1, err)
		}
		id := ids.of(compiled)
		if given[id] == nil {
			order = append(order, id)
		}
		given[id] = compiled
	}
	list, had, err := b.recorded(ctx, given)
	if err != nil {
		return err
	}
	if err := b.renameEpisodes(ctx, list); err != nil {
		return err
	}
	var added []language.Declaration
	for _, id := range order {
		if had[id] {
			continue
		}
		if _, ok := given[id].(*scene.Scene); ok && b.replaceScenes(list, given[id]) {
			continue
		}
		added = append(added, given[id])
	}
	first, err := b.entry(ctx, 1)
	if err != nil {
		return err
	}
	if reason := inForce(added, list); reason != nil {
		// A declaration refers to one that comes into force behind it. Those in front of the
		// first signal come into force together then.
		if added, err = arranged(added, list); err != nil {
			return impossible("%w", err)
		}
		if reason = inForce(added, list); reason != nil {
			return impossible("%w", reason)
		}
	}
	if len(added) > 0 {
		p, err := b.change(1)
		if err != nil {
			return err
		}
		data, err := session.WithDeclarations(&first, added)
		if err != nil {
			return impossible("%w", err)
		}
		p.set = &eventlog.Draft{Kind: first.Kind, At: first.At, Data: data}
	}
	return nil
}

// recorded returns the declarations of the parent in their order, and the identities that
// they have. It replaces those that are given.
func (b *builder) recorded(ctx context.Context, given map[string]language.Declaration) (list []recorded, had map[string]bool, err error) {
	had, ids, early := map[string]bool{}, identities{}, true
	for e, err := range b.parent.Entries(ctx, 1) {
		if err != nil {
			return nil, nil, fmt.Errorf("variant: read the declarations: %w", err)
		}
		if e.Seq > b.last {
			break
		}
		early = early && e.Kind != eventlog.KindSignal
		if e.Kind != eventlog.KindDefine {
			continue
		}
		was, err := session.DeclarationOf(&e)
		if err != nil {
			continue // it has no effect in the parent either
		}
		id := ids.of(was)
		now := given[id]
		had[id] = had[id] || now != nil
		if p := b.points[e.Seq]; p != nil && (p.drop || p.set != nil) {
			continue
		}
		if now == nil || bytes.Equal(was.Value(), now.Value()) {
			now = was
		} else {
			b.point(e.Seq).set = &eventlog.Draft{Kind: e.Kind, At: e.At, Data: session.AppendWord(nil, now.Word(), now.Value())}
		}
		list = append(list, recorded{e.Seq, e.At, was, now, early})
	}
	return list, had, ctx.Err()
}

// replaceScenes replaces all scenes of the parent by one whose name none of them has,
// because the stage shows one scene at a time. It reports whether there were any.
func (b *builder) replaceScenes(list []recorded, by language.Declaration) (found bool) {
	for i := range list {
		r := &list[i]
		if _, ok := r.was.(*scene.Scene); !ok || r.now != r.was {
			continue
		}
		r.now, found = by, true
		b.point(r.seq).set = &eventlog.Draft{Kind: eventlog.KindDefine, At: r.at, Data: session.AppendWord(nil, by.Word(), by.Value())}
	}
	return found
}

// inForce returns why a declaration does not come into force in the variant that came into
// force in the parent, or that is given.
func inForce(added []language.Declaration, list []recorded) error {
	parent, changed := &language.Catalog{}, &language.Catalog{}
	for _, d := range added {
		next, err := changed.With(d)
		if err != nil {
			return fmt.Errorf("%s: %w", title(d), err)
		}
		changed = next
	}
	for _, r := range list {
		was, problem := parent.With(r.was)
		if problem == nil {
			parent = was
		}
		now, err := changed.With(r.now)
		switch {
		case err == nil:
			changed = now
		case problem == nil || r.now != r.was:
			return fmt.Errorf("%s, which entry %d declares: %w", title(r.now), r.seq, err)
		}
	}
	return nil
}

func title(d language.Declaration) string {
	if d.Name() == "" {
		return d.Word() + " without a name"
	}
	return fmt.Sprintf("%s %q", d.Word(), d.Name())
}

// arranged returns added in an order in which each can come into force, with all
// declarations to which others can refer that the session has in front of its first
// signal. Declaring them again at their own entries changes nothing, because nothing is
// performed before.
func arranged(added []language.Declaration, list []recorded) ([]language.Declaration, error) {
	waiting := append([]language.Declaration(nil), added...)
	for _, r := range list {
		if !r.early || r.now.Name() == "" {
			continue
		}
		switch r.now.(type) {
		case *definition.Definition, *language.Sequence, *language.Easing, *language.Binding:
			waiting = append(waiting, r.now)
		}
	}
	var order []language.Declaration
	catalog := &language.Catalog{}
	for len(waiting) > 0 {
		var left []language.Declaration
		var reason error
		for _, d := range waiting {
			next, err := catalog.With(d)
			if err != nil {
				if reason == nil {
					reason = fmt.Errorf("%s: %w", title(d), err)
				}
				left = append(left, d)
				continue
			}
			catalog, order = next, append(order, d)
		}
		if len(left) == len(waiting) {
			return nil, reason
		}
		waiting = left
	}
	return order, nil
}
