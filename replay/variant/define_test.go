package variant_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
	scenes "github.com/sajou-dev/sajou-go/stage/scene"
)

// declaredIn returns the names and values of the declarations in force at the end.
func declaredIn(t *testing.T, src replay.Source) map[string]string {
	t.Helper()
	r := session.NewReplay(src, session.Projections(session.ProjectionConfig{}), nil)
	f, err := r.At(bg, replay.Moment{Seq: src.Head().Seq})
	require.NoError(t, err)
	m := map[string]string{}
	for d := range session.PerformancesOf(f).Scheduler().Catalog().All() {
		m[d.Word()+" "+d.Name()] = d.Value().String()
	}
	return m
}

func TestDefineReplaces(t *testing.T) {
	parent := song(t, "go", "stop")
	const walk = `{"id": "walk", "on": "go", "steps": [{"action": "pulse", "target": "signal.agentId", "duration": 40}]}`
	v, err := variant.New(bg, parent, variant.Edits{Define: parse(t, `[`+walk+`]`)})
	require.NoError(t, err)
	require.Equal(t, eventlog.Seq(2), v.Shared())
	require.Equal(t, parent.List[1], all(t, v, 1)[1])
	require.Contains(t, declaredIn(t, v)["choreography walk"], "pulse")
	require.Equal(t, parent.Head().Seq, v.Head().Seq)
}

// The second choreography without a name on a type replaces the second one.
func TestDefineWithoutName(t *testing.T) {
	parent := song(t, "stop")
	v, err := variant.New(bg, parent, variant.Edits{Define: parse(t, `[
		{"on": "stop", "interrupts": true, "steps": [{"action": "pulse", "target": "signal.agentId", "duration": 90}]},
		{"on": "stop", "steps": [{"action": "playSound", "sound": "gong"}]}]`)})
	require.NoError(t, err)
	require.Equal(t, eventlog.Seq(4), v.Shared())
	require.Contains(t, string(all(t, v, 5)[0].Data), "gong")
}

// What the session never had comes into force with its first entry, and every entry keeps
// its number.
func TestDefineAdds(t *testing.T) {
	parent := song(t, "go", "other")
	v, err := variant.New(bg, parent, variant.Edits{Define: parse(t, `[
		{"id": "extra", "on": "other", "steps": [{"action": "move", "entity": "signal.agentId", "to": "center", "duration": 500}]}]`)})
	require.NoError(t, err)
	require.Equal(t, eventlog.Seq(0), v.Shared())
	require.Equal(t, parent.Head().Seq, v.Head().Seq)
	require.Contains(t, declaredIn(t, v), "choreography extra")
	r := session.NewReplay(v, session.Projections(session.ProjectionConfig{}), nil)
	m, err := r.Resolve(bg, address(t, "perf:p-7-1"))
	require.NoError(t, err)
	require.Equal(t, replay.Moment{Seq: 7}, m)
}

func address(t *testing.T, text string) replay.Address {
	t.Helper()
	a, err := replay.ParseAddress(text)
	require.NoError(t, err)
	return a
}

// A new declaration and one that stands in front of what it refers to now come into force
// as if all had been declared in a fitting order.
func TestDefineRefers(t *testing.T) {
	parent := song(t, "go", "other")
	v, err := variant.New(bg, parent, variant.Edits{Define: parse(t, `[
		{"easing": "soft", "curve": "steps(4, start)"},
		{"sequence": "bow", "steps": [{"action": "flash", "target": "signal.agentId", "easing": "soft", "duration": 5}]},
		{"sequence": "shine", "steps": [{"action": "include", "sequence": "bow"}]},
		{"id": "extra", "on": "other", "steps": [{"action": "include", "sequence": "shine"}]}]`)})
	require.NoError(t, err)
	got := declaredIn(t, v)
	require.Contains(t, got["choreography extra"], `"easing":"soft"`)
	require.Contains(t, got["choreography walk"], `"easing":"soft"`)
	require.Contains(t, got["sequence bow"], "flash")

	missing := declaration(t, "choreography", `{"id": "walk", "on": "go", "steps": [{"action": "include", "sequence": "gone"}]}`)
	_, err = variant.New(bg, parent, variant.Edits{Define: []language.Declaration{missing}})
	require.ErrorIs(t, err, variant.ErrChange)
	require.ErrorContains(t, err, `choreography "walk"`)
	require.ErrorContains(t, err, `gone`)
}

// A changed sequence does not take from the session what refers to it.
func TestDefineTakesNothingAway(t *testing.T) {
	shine := parse(t, `[{"sequence": "shine", "params": ["who"], "steps": [{"action": "flash", "target": "param.who", "duration": 5}]}]`)
	_, err := variant.New(bg, song(t, "go"), variant.Edits{Define: shine})
	require.ErrorIs(t, err, variant.ErrChange)
	require.ErrorContains(t, err, `choreography "walk": `)
}

func declaration(t *testing.T, word, text string) language.Declaration {
	t.Helper()
	d, err := session.CompileDeclaration(word, enginetest.Value(t, text))
	require.NoError(t, err)
	return d
}

// A scene replaces the one of its name, and if there is none every scene. Without a scene
// it comes into force with the first entry.
func TestDefineScene(t *testing.T) {
	scene := func(name, title string) language.Declaration {
		return declaration(t, "scene", `{"sajou": "scene", "version": 1, "name": "`+name+`", "title": "`+title+`", "entities": [{"id": "`+title+`", "look": "person", "at": {"x": 1, "y": 2}}]}`)
	}
	titles := func(parent *tape, by language.Declaration) (list []string) {
		v, err := variant.New(bg, parent, variant.Edits{Define: []language.Declaration{by}})
		require.NoError(t, err)
		r := session.NewReplay(v, session.Projections(session.ProjectionConfig{}), nil)
		for seq := range v.Head().Seq {
			f, err := r.At(bg, replay.Moment{Seq: seq + 1})
			require.NoError(t, err)
			list = append(list, session.StageOf(f).Scene().Title)
		}
		return list
	}
	none := taped(func(d *session.Drafts) {
		d.Opened(0, session.TimeManual)
		d.Signal(0, sig("go", 0))
	})
	two := taped(func(d *session.Drafts) {
		d.Opened(0, session.TimeManual)
		d.Declaration(0, scene("yard", "old"))
		d.Declaration(0, scene("hall", "older"))
	})
	require.Equal(t, []string{"new", "new"}, titles(none, scene("yard", "new")))
	require.Equal(t, []string{scenes.Default().Title, "new", "older"}, titles(two, scene("yard", "new")))
	require.Equal(t, []string{scenes.Default().Title, "new", "new"}, titles(two, scene("cave", "new")))

	episode := declaration(t, "episode", `{"id": "e", "beats": [], "goal": "x"}`)
	_, err := variant.New(bg, none, variant.Edits{Define: []language.Declaration{episode}})
	require.ErrorIs(t, err, variant.ErrChange)
	require.ErrorContains(t, err, `no episode "e"`)
}

// The events of a replaced episode name the new one, so that its fold goes on. What
// happened to beats that the new one does not have is ignored.
func TestDefineEpisode(t *testing.T) {
	const beat = `{"id": "%s", "character_instruction": "Do.", "target_turn": 1, "detection_type": "automatic"}`
	story := func(beats ...string) language.Declaration {
		for i, id := range beats {
			beats[i] = fmt.Sprintf(beat, id)
		}
		return declaration(t, "episode", `{"id": "e", "beats": [`+strings.Join(beats, ", ")+`]}`)
	}
	recorded := story("a", "b").(*episode.Episode)
	parent := taped(func(d *session.Drafts) {
		d.Opened(0, session.TimeManual)
		d.Declaration(0, recorded)
		event := func(word, v string) { d.Record(eventlog.KindBeat, 0, word, enginetest.Value(t, v)) }
		event("episodeStarted", `{"episode": "e", "digest": "`+recorded.Digest().String()+`", "energy": "playful", "flags": []}`)
		event("flagSet", `{"turn": 0, "flag": "rain", "cause": "x"}`)
	})
	beats := func(src replay.Source) []string {
		r := session.NewReplay(src, session.Projections(session.ProjectionConfig{}), nil)
		f, err := r.At(bg, replay.Moment{Seq: src.Head().Seq})
		require.NoError(t, err)
		d := session.DirectorOf(f)
		require.NotNil(t, d.Episode())
		require.Contains(t, enginetest.Value(t, string(mustJSON(t, d.View()))).TextOf("digest"), d.Episode().Digest().String())
		var ids []string
		for _, b := range d.Episode().Beats {
			ids = append(ids, b.ID)
		}
		return ids
	}
	require.Equal(t, []string{"a", "b"}, beats(parent))
	v, err := variant.New(bg, parent, variant.Edits{Define: []language.Declaration{story("b", "c")}})
	require.NoError(t, err)
	require.Equal(t, []string{"b", "c"}, beats(v))
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}
