package mcp

import (
	"context"
	"encoding/json"
	"sort"
	"strconv"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/film"
)

type momentArgs struct {
	Session string `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	At      string `json:"at,omitempty" jsonschema:"the address of the moment; default end"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"the cursor of the answer before"`
}

type mapSignalsArgs struct {
	Session string `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	At      string `json:"at,omitempty" jsonschema:"the address of the moment; default end"`
	Type    string `json:"type,omitempty" jsonschema:"only this type of signals"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"the cursor of the answer before"`
}

func sceneTools() []*tool {
	return []*tool{
		newTool("get_scene_state", "Scene state",
			"Return the figures on the stage at a moment: id, position, visibility, look, state, speech; with the size and the background of the scene.",
			sceneState),
		newTool("describe_scene", "Describe the scene",
			"Return the scene in force at a moment as it was declared: size, layers, looks, slots, waypoints, routes, figures.",
			describeScene),
		newTool("get_choreographies", "List choreographies",
			"List the choreographies in force at a moment: the type of signals that starts each, its condition (when), the number of its steps, whether it interrupts, and its declaration.",
			getChoreographies),
		newTool("map_signals", "Map signals to choreographies",
			"Return for each type of signals the choreographies that it starts, with their conditions.",
			mapSignals),
	}
}

// figureView is a figure on the stage.
type figureView struct {
	ID       string       `json:"id"`
	Label    string       `json:"label,omitempty"`
	Look     string       `json:"look,omitempty"`
	State    string       `json:"state,omitempty"`
	Text     string       `json:"text,omitempty"`
	Position positionView `json:"position"`
	Visible  bool         `json:"visible"`
}

type positionView struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

type sceneStateView struct {
	Seq        uint64         `json:"seq"`
	At         float64        `json:"at"`
	Dimensions dimensionsView `json:"dimensions"`
	Background string         `json:"background"`
	Layers     []string       `json:"layers"`
	Entities   []figureView   `json:"entities"`
}

type dimensionsView struct {
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

func sceneState(ctx context.Context, c *call, args momentArgs) (*reply, error) {
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	fold, m, err := s.fold(ctx, args.At)
	if err != nil {
		return nil, err
	}
	frame, err := film.FrameOf(fold)
	if err != nil {
		return nil, err
	}
	entities, _, err := answer.State(fold, m, session.ProjectionStage+".entities", answer.ShownLimits())
	if err != nil {
		return nil, err
	}
	view := sceneStateView{
		Seq: uint64(m.Seq), At: projection.Millis(fold.At()), Background: frame.Scene.Background, Layers: frame.Scene.Layers,
		Dimensions: dimensionsView{frame.Scene.Width, frame.Scene.Height}, Entities: []figureView{},
	}
	members, _ := entities.(map[string]any)
	for id, v := range members {
		e, _ := v.(map[string]any)
		f := figureView{ID: id}
		f.Label, _ = e["label"].(string)
		f.Look, _ = e["look"].(string)
		f.State, _ = e["state"].(string)
		f.Text, _ = e["text"].(string)
		f.Visible, _ = e["visible"].(bool)
		f.Position = positionView{number(e["x"]), number(e["y"])}
		view.Entities = append(view.Entities, f)
	}
	sort.Slice(view.Entities, func(i, j int) bool { return view.Entities[i].ID < view.Entities[j].ID })
	return c.whole(view, args.Cursor)
}

func number(v any) float64 {
	switch n := v.(type) {
	case float64:
		return n
	case int64:
		return float64(n)
	}
	return 0
}

func describeScene(ctx context.Context, c *call, args momentArgs) (*reply, error) {
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	fold, _, err := s.fold(ctx, args.At)
	if err != nil {
		return nil, err
	}
	sc := session.StageOf(fold).Scene()
	if sc == nil || sc.Value() == nil {
		return nil, refuse(problem.NoMoment, "The stage has its default scene; get_scene_state has the figures.", "no scene was declared by then")
	}
	return c.whole(verbatim(sc.Value().AppendJSON(nil)), args.Cursor)
}

// choreographyView is a choreography in force.
type choreographyView struct {
	ID          string          `json:"id"`
	On          string          `json:"on"`
	When        json.RawMessage `json:"when,omitempty"`
	Interrupts  bool            `json:"interrupts,omitempty"`
	Description string          `json:"description,omitempty"`
	Steps       int             `json:"steps"`
	Signals     []string        `json:"signals"` // the types that start it
	Declaration json.RawMessage `json:"declaration,omitempty"`
}

func viewChoreography(d *definition.Definition) choreographyView {
	value := d.Value()
	steps, _ := value.Get("steps")
	v := choreographyView{ID: d.Name(), On: d.On(), Interrupts: d.Interrupts(), Description: value.TextOf("description"), Steps: steps.Len(), Signals: []string{d.On()}}
	if when, ok := value.Get("when"); ok {
		v.When = when.AppendJSON(nil)
	}
	return v
}

// inForce calls visit for the choreographies in force at a moment, until it returns false.
func (s *opened) inForce(ctx context.Context, address string, visit func(*definition.Definition) (bool, error)) error {
	m, err := s.moment(ctx, address)
	if err != nil {
		return err
	}
	fold, err := s.travel.At(ctx, replay.Moment{Seq: m.Seq})
	if err != nil {
		return err
	}
	for d := range session.PerformancesOf(fold).Scheduler().Catalog().All() {
		def, ok := d.(*definition.Definition)
		if !ok {
			continue
		}
		if more, err := visit(def); err != nil || !more {
			return err
		}
	}
	return nil
}

func getChoreographies(ctx context.Context, c *call, args momentArgs) (*reply, error) {
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	first, err := c.number(args.Cursor, 0)
	if err != nil {
		return nil, err
	}
	list := items{c: c}
	n, place := uint64(0), ""
	err = s.inForce(ctx, args.At, func(d *definition.Definition) (bool, error) {
		if n++; n <= first {
			return true, nil
		}
		brief := viewChoreography(d)
		full := brief
		full.Declaration = d.Value().AppendJSON(nil)
		ok, err := list.add(full, brief)
		if !ok {
			place = strconv.FormatUint(n-1, 10)
		}
		return ok, err
	})
	if err != nil {
		return nil, err
	}
	return list.reply(place), nil
}

// mappedView is a type of signals with the choreographies that it starts.
type mappedView struct {
	Type           string             `json:"type"`
	Choreographies []choreographyView `json:"choreographies"`
}

func mapSignals(ctx context.Context, c *call, args mapSignalsArgs) (*reply, error) {
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	byType := map[string]*mappedView{}
	err = s.inForce(ctx, args.At, func(d *definition.Definition) (bool, error) {
		if args.Type != "" && d.On() != args.Type {
			return true, nil
		}
		if byType[d.On()] == nil {
			byType[d.On()] = &mappedView{Type: d.On()}
		}
		byType[d.On()].Choreographies = append(byType[d.On()].Choreographies, viewChoreography(d))
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	views := []*mappedView{}
	for _, v := range byType {
		views = append(views, v)
	}
	sort.Slice(views, func(i, j int) bool { return views[i].Type < views[j].Type })
	return c.whole(views, args.Cursor)
}
