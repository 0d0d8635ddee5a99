package stage

import (
	"slices"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/signal"
)

// stageMembers are the members of a view, in their order.
var stageMembers = []string{"size", "scene", "impressions", "entities", "beams", "sounds", "diagnostics"}

// entityMembers are the members of an entity's view, in their order. Only an entity with
// a home has the member home, and only a flying one has height.
var (
	entityMembers = []string{
		"actor", "label", "look", "x", "y", "visible", "opacity", "tint", "strength", "scale", "rotation",
		"layer", "state", "text", "textOpacity", "moving", "conflicted",
	}
	atHome  = append(slices.Clip(entityMembers), "home")
	inAir   = append(slices.Clip(entityMembers), "height")
	homeAir = append(slices.Clip(atHome), "height")
)

// View returns the stage for readers and expressions: size, scene (its title),
// impressions (whether signals make them), entities by id, beams, sounds and
// diagnostics, all at the current instant. Times are milliseconds of session
// time.
func (s *Stage) View() any {
	view := make(map[string]any, len(stageMembers))
	for _, name := range stageMembers {
		view[name], _ = s.Member(name)
	}
	entities := make(map[string]any, s.count)
	for e := s.first; e != nil; e = e.next {
		entities[e.id] = s.entityView(e)
	}
	view["entities"] = entities
	return view
}

// Len, Names and Member let expressions read a part of the view without building all
// of it. They implement Members of package replay/where.

// Len returns the number of members.
func (s *Stage) Len() int { return len(stageMembers) }

// Names returns the names of the members.
func (s *Stage) Names() []string { return stageMembers }

// Member returns one member of the view. The member entities is itself read member by
// member, and changes with the stage.
func (s *Stage) Member(name string) (any, bool) {
	switch name {
	case "size":
		return map[string]any{"width": s.scene.Width, "height": s.scene.Height}, true
	case "scene":
		return s.scene.Title, true
	case "impressions":
		return s.Impressed(), true
	case "entities":
		return entityList{s}, true
	case "beams":
		return s.beamsView(), true
	case "sounds":
		sounds := make([]any, len(s.sounds))
		for i, sound := range s.sounds {
			sounds[i] = map[string]any{"at": millis(sound.At), "sound": sound.Sound, "entity": sound.Entity}
		}
		return sounds, true
	case "diagnostics":
		return s.diagnostics.view(), true
	}
	return nil, false
}

// entityList is the entities by id, read one by one.
type entityList struct{ s *Stage }

// Len returns how many entities there are.
func (l entityList) Len() int { return l.s.count }

// Names returns the ids of the entities in their order.
func (l entityList) Names() []string {
	names := make([]string, 0, l.s.count)
	for e := l.s.first; e != nil; e = e.next {
		names = append(names, e.id)
	}
	return names
}

// Member returns one entity.
func (l entityList) Member(id string) (any, bool) {
	for _, e := range l.s.names[id] {
		if e.id == id {
			return entityView{l.s, e}, true
		}
	}
	return nil, false
}

// entityView is one entity, read member by member.
type entityView struct {
	s *Stage
	e *entity
}

// Len returns the number of members.
func (v entityView) Len() int { return len(v.Names()) }

// Names returns the names of the members.
func (v entityView) Names() []string {
	home, air := v.e.home != "", v.e.height(v.s.now) != 0
	switch {
	case home && air:
		return homeAir
	case home:
		return atHome
	case air:
		return inAir
	default:
		return entityMembers
	}
}

// Member returns one member.
func (v entityView) Member(name string) (any, bool) {
	m, ok := v.s.member(v.e, name, v.s.now)
	return m, ok && (name != "height" || m != 0.0)
}

func (s *Stage) entityView(e *entity) map[string]any {
	names := entityView{s, e}.Names()
	view := make(map[string]any, len(names))
	for _, name := range names {
		view[name], _ = s.member(e, name, s.now)
	}
	return view
}

// member returns one member of an entity's view at an instant. Unlike the view, it has a
// height for every entity.
func (s *Stage) member(e *entity, name string, at time.Duration) (any, bool) {
	switch name {
	case "actor":
		return e.actor, true
	case "label":
		return e.shownLabel(), true
	case "look":
		return s.lookName(e), true
	case "x":
		return e.value(channelX, at), true
	case "y":
		return e.value(channelY, at), true
	case "visible":
		return e.visible, true
	case "opacity":
		return e.value(chOpacity, at), true
	case "tint":
		color, _ := e.tinted(at)
		return color, true
	case "strength":
		_, strength := e.tinted(at)
		return strength, true
	case "scale":
		return e.value(chScale, at), true
	case "rotation":
		return e.value(chRotation, at), true
	case "layer":
		return int64(s.layerOf(float64(e.layer))), true
	case "state":
		return e.state, true
	case "text":
		text, _ := e.text(at)
		return text, true
	case "textOpacity":
		_, opacity := e.text(at)
		return opacity, true
	case "moving":
		return e.movingView(at), true
	case "conflicted":
		return e.conflicted(at), true
	case "height":
		return e.height(at), true
	case "home":
		return e.home, e.home != ""
	}
	return nil, false
}

// movingView lists the members of e's view that change without a further event.
func (e *entity) movingView(at time.Duration) []any {
	moving := []any{}
	for ch := range channel(channels) {
		o := e.owner[ch]
		switch {
		case o != nil && o.mask == position && ch == channelY:
			continue // listed with x
		case o != nil && o.mask == position:
			moving = append(moving, position.String())
		case o != nil, ch == chTint && e.glow.strength(at) > 0,
			ch == chText && e.words.speech && e.words.text != "" && e.words.end() > at:
			moving = append(moving, channelNames[ch])
		}
	}
	return moving
}

// conflicted reports whether an act has taken a channel of e from an act of another
// performance, and both would still be running.
func (e *entity) conflicted(at time.Duration) bool {
	for _, o := range e.owner {
		if o != nil && o.contested > at {
			return true
		}
	}
	return false
}

func (s *Stage) beamsView() []any {
	frames := s.frameBeams()
	beams := make([]any, len(frames))
	for i, b := range frames {
		beams[i] = map[string]any{
			"from": b.From, "to": b.To, "fromX": b.FromX, "fromY": b.FromY, "toX": b.ToX, "toY": b.ToY,
			"color": b.Color, "width": b.Width, "opacity": b.Opacity,
		}
	}
	return beams
}

func (d *diagnostics) view() map[string]any {
	view := make(map[string]any, noteKinds+3)
	total := uint64(0)
	for k, n := range d.totals {
		view[totalNames[k]] = int64(n)
		total += n
	}
	recent := make([]any, len(d.recent))
	for i := range d.recent {
		n := &d.recent[i]
		recent[i] = map[string]any{
			"at": millis(n.at), "kind": kindNames[n.kind], "entity": n.entity, "channel": n.channel,
			"performance": n.performance.String(), "with": n.with.String(), "message": n.message(),
		}
	}
	references := make([]any, len(d.unresolved))
	for i, u := range d.unresolved {
		references[i] = map[string]any{
			"at": millis(u.at), "performance": u.performance.String(), "definition": u.definition,
			"action": u.action, "member": u.member, "reference": u.reference,
		}
	}
	view["unresolved"] = references
	view["total"], view["recent"] = int64(total)+int64(len(d.unresolved)), recent
	return view
}

// millis returns d in milliseconds, as views have it.
func millis(d time.Duration) float64 { return float64(d) / 1e6 }

// exact returns a member of a view as an exact value.
func exact(v any) (signal.Value, bool) {
	switch v := v.(type) {
	case string:
		return msgp.AppendString(nil, v), true
	case bool:
		return msgp.AppendBool(nil, v), true
	case int64:
		return msgp.AppendInt64(nil, v), true
	case float64:
		return signal.Float(v).Append(nil), true
	case []any:
		b := msgp.AppendArrayHeader(nil, uint32(len(v)))
		for _, e := range v {
			text, _ := e.(string)
			b = msgp.AppendString(b, text)
		}
		return b, true
	default:
		return nil, false
	}
}
