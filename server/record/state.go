package record

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// sharedState is the state that a scene-builder has pushed. It is not recorded: it is the
// builder's own, and the reference server forgets it too.
type sharedState struct {
	mu   sync.Mutex
	data signal.Value // guarded by mu
	at   time.Time    // of the last push; guarded by mu
}

func (s *sharedState) get() (data signal.Value, pushed signal.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.data == nil {
		return signal.Null(), signal.Null()
	}
	return s.data, signal.Int(s.at.UnixMilli()).Value()
}

func answer(w http.ResponseWriter, status int, o *signal.Object) error {
	w.Header()["Content-Type"] = jsonType
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(o.Value().AppendJSON(nil))
	return nil
}

// fullState answers with what a scene-builder has pushed. Null as lastPushAt means that
// the reader uses its own state.
func (rv *Receiver) fullState(w http.ResponseWriter, _ *http.Request) error {
	data, pushed := rv.shared.get()
	return answer(w, http.StatusOK, signal.NewObject(3).Bool("ok", true).Add("lastPushAt", pushed).Add("data", data))
}

// pushState keeps a state.
func (rv *Receiver) pushState(w http.ResponseWriter, r *http.Request) error {
	body, release, err := readBody(r, rv.cfg.MaxBody)
	if err != nil {
		return err
	}
	defer release()
	v, err := signal.ParseValue(body)
	if err != nil {
		v, err = mend(body)
	}
	if err != nil {
		return err
	}
	now := rv.cfg.Now()
	rv.shared.mu.Lock()
	rv.shared.data, rv.shared.at = v, now
	rv.shared.mu.Unlock()
	return answer(w, http.StatusOK, signal.NewObject(2).Bool("ok", true).Int("receivedAt", now.UnixMilli()))
}

// tap installs or removes the hooks of Claude Code, if the configuration allows it.
func (rv *Receiver) tap(install bool) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if rv.cfg.Hooks == nil {
			return answer(w, http.StatusForbidden, signal.NewObject(2).Bool("ok", false).
				Text("error", "the server may not change the settings of Claude Code; start it with --allow-hooks, or use: sajou-replay hooks install"))
		}
		if err := rv.cfg.Hooks(r.Context(), install); err != nil {
			return answer(w, http.StatusInternalServerError, signal.NewObject(2).Bool("ok", false).Text("error", err.Error()))
		}
		return answer(w, http.StatusOK, signal.NewObject(1).Bool("ok", true))
	}
}

// discover lists the sources that clients of the reference server know. Only the stream of
// this server is available: the server connects to nothing.
func (rv *Receiver) discover(w http.ResponseWriter, _ *http.Request) error {
	var services []signal.Value
	for _, s := range []struct {
		id, label, protocol, url string
		available, key           bool
	}{
		{"local:claude-code", "Claude Code", "sse", "/__signals__/stream", true, false},
		{"local:openclaw", "OpenClaw", "websocket", "ws://127.0.0.1:18789", false, true},
		{"local:lm-studio", "LM Studio", "openai", "http://localhost:1234", false, false},
		{"local:ollama", "Ollama", "openai", "http://localhost:11434", false, false},
		{"local:codex", "Codex", "sse", "/__signals__/stream", false, false},
	} {
		o := signal.NewObject(7).Text("id", s.id).Text("label", s.label).Text("protocol", s.protocol).Text("url", s.url).Bool("available", s.available)
		if s.key {
			o.Bool("needsApiKey", true)
		}
		services = append(services, o.Add("models", signal.Array()).Value())
	}
	return answer(w, http.StatusOK, signal.NewObject(1).Add("services", signal.Array(services...)))
}

// current returns the session that a request is about.
func (rv *Receiver) current(r *http.Request) (*sajou.Session, error) {
	name, err := route.NamedSession(r)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = rv.cfg.Session
	}
	return rv.open(r.Context(), access.ScopeRead, name)
}

// sceneState answers with the members of a scene-builder's state: those that were pushed,
// and otherwise those of the session's stage at its newest entry.
func (rv *Receiver) sceneState(w http.ResponseWriter, r *http.Request) error {
	ses, err := rv.current(r)
	if err != nil {
		return err
	}
	state, pushed := rv.shared.get()
	data := signal.NewObject(12)
	if scene, has := state.Get("scene"); has && scene.Kind() == signal.KindObject {
		state = scene
	}
	seen, err := seenScene(r, ses)
	if err != nil {
		return err
	}
	for _, name := range []string{"dimensions", "background", "layers", "entities", "positions", "routes", "zoneTypes", "lighting", "particles", "mode", "viewMode"} {
		v := state.Member(name)
		if v.Kind() == signal.KindAbsent {
			v = seen.Member(name)
		}
		if v.Kind() == signal.KindAbsent {
			v = signal.Null()
		}
		data.Add(name, v)
	}
	return answer(w, http.StatusOK, signal.NewObject(3).Bool("ok", true).Add("lastPushAt", pushed).Add("data", data.Value()))
}

// seenScene returns the scene of a session as far as its stage knows it.
func seenScene(r *http.Request, ses *sajou.Session) (signal.Value, error) {
	fold, err := ses.State(r.Context())
	if err != nil {
		return nil, err
	}
	f := session.StageOf(fold).Frame()
	o := signal.NewObject(8)
	o.Add("dimensions", signal.NewObject(2).Float("width", f.Scene.Width).Float("height", f.Scene.Height).Value())
	o.Text("background", f.Scene.Background)
	var layers, entities, positions []signal.Value
	for _, name := range f.Scene.Layers {
		layers = append(layers, signal.NewObject(1).Text("id", name).Value())
	}
	for i := range f.Figures {
		e := &f.Figures[i]
		entities = append(entities, signal.NewObject(6).Text("id", e.ID).Float("x", e.X).Float("y", e.Y).Bool("visible", e.Visible).
			Text("layer", f.Scene.Layers[min(e.Layer, len(f.Scene.Layers)-1)]).Text("state", e.State).Value())
	}
	for _, slot := range f.Scene.Slots {
		positions = append(positions, signal.NewObject(3).Text("id", slot.Name).Float("x", slot.At.X).Float("y", slot.At.Y).Value())
	}
	o.Add("layers", signal.Array(layers...)).Add("entities", signal.Array(entities...)).Add("positions", signal.Array(positions...))
	var routes []signal.Value
	for _, name := range slices.Sorted(maps.Keys(f.Scene.Routes)) {
		var points []signal.Value
		for _, p := range f.Scene.Routes[name].Points {
			points = append(points, signal.NewObject(2).Float("x", p.X).Float("y", p.Y).Value())
		}
		routes = append(routes, signal.NewObject(3).Text("id", name).Add("points", signal.Array(points...)).Bool("closed", f.Scene.Routes[name].Closed).Value())
	}
	return o.Add("routes", signal.Array(routes...)).Value(), nil
}

// choreographies lists the choreographies in force.
func (rv *Receiver) choreographies(w http.ResponseWriter, r *http.Request) error {
	ses, err := rv.current(r)
	if err != nil {
		return err
	}
	fold, err := ses.State(r.Context())
	if err != nil {
		return err
	}
	list := []signal.Value{}
	for _, d := range session.PerformancesOf(fold).Scheduler().Definitions() {
		list = append(list, d.Value())
	}
	return answer(w, http.StatusOK, signal.NewObject(2).Bool("ok", true).Add("choreographies", signal.Array(list...)))
}
