package scene_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// parsed returns the scene of a text that must be one.
func parsed(t testing.TB, text string) *scene.Scene {
	t.Helper()
	s, diagnostics := scene.Parse("scene.json", []byte(text))
	if len(diagnostics) > 0 {
		t.Fatalf("%s\n%v", text, diagnostics)
	}
	return s
}

// same fails unless two scenes have the same content.
func same(t rapid.TB, a, b *scene.Scene) {
	// The values may differ, since one scene can be written in many ways. All other
	// fields must be equal.
	if x, y := fmt.Sprintf("%+v", plain(a)), fmt.Sprintf("%+v", plain(b)); x != y {
		t.Fatalf("the scenes differ:\n%s\n%s", x, y)
	}
}

func plain(s *scene.Scene) scene.Scene {
	c := scene.Scene{
		Title: s.Title, Width: s.Width, Height: s.Height, Background: s.Background, Layers: s.Layers, Looks: s.Looks,
		Slots: s.Slots, Waypoints: s.Waypoints, Routes: s.Routes, Entities: s.Entities, Agents: s.Agents,
		Stranger: s.Stranger, Impressions: s.Impressions,
	}
	return c
}

// A scene's value compiles to an equal scene, and so does the value that the importer
// writes for it.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, err := signal.ParseValue([]byte(genSound(t)))
		require.NoError(t, err)
		s, err := scene.Compile(v)
		require.NoErrorf(t, err, "%s", v)
		again, err := scene.Compile(s.Value())
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Fatalf("%s: %v", v, err)
		}
		written, err := scene.Compile(scene.Write(s))
		require.NoErrorf(t, err, "%s\n%s", v, scene.Write(s))
		same(t, s, written)
		if !bytes.Equal(scene.Write(s), scene.Write(written)) {
			t.Fatalf("%s is written in two ways", v)
		}
	})
}

// genSound draws a scene without dangling references.
func genSound(t *rapid.T) string {
	count := func(name string, least int) int { return rapid.IntRange(least, 4).Draw(t, name) }
	list := func(n int, item func(i int) string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = item(i)
		}
		return strings.Join(items, ",")
	}
	one := func(letter string, of int) string {
		return fmt.Sprintf(`"%s%d"`, letter, rapid.IntRange(0, of-1).Draw(t, letter))
	}
	point := func() string { return `{"x":` + genNumber(t) + `,"y":` + genNumber(t) + `}` }
	looks, layers, slots, waypoints := count("looks", 1), count("layers", 1), count("slots", 1), count("waypoints", 1)
	place := func() string {
		return rapid.OneOf(rapid.Just(one("s", slots)), rapid.Just(one("w", waypoints)), rapid.Just(point())).Draw(t, "place")
	}
	entities := count("entities", 1)
	return `{"sajou":"scene","version":1,"name":` + genName(t) + `,"size":{"width":960,"height":540.5},` +
		`"layers":[` + list(layers, func(i int) string { return fmt.Sprintf(`"l%d"`, i) }) + `],` +
		`"looks":{` + list(looks, func(i int) string {
		return fmt.Sprintf(`"k%d":{"figure":"robot","color":%s,"size":%d}`, i, rapid.SampledFrom([]string{`"gold"`, `"#123"`}).Draw(t, "color"), i+1)
	}) + `},` +
		`"slots":{` + list(slots, func(i int) string { return fmt.Sprintf(`"s%d":%s`, i, point()) }) + `},` +
		`"waypoints":{` + list(waypoints, func(i int) string { return fmt.Sprintf(`"w%d":%s`, i, point()) }) + `},` +
		`"routes":{` + list(count("routes", 0), func(i int) string {
		return fmt.Sprintf(`"r%d":{"points":[%s],"closed":%s}`, i, list(count("points", 2), func(int) string { return place() }), genBool(t))
	}) + `},` +
		`"entities":[` + list(entities, func(i int) string {
		return fmt.Sprintf(`{"id":"e%d","at":%s,"actor":%s,"look":%s,"layer":%s,"hidden":%s,"opacity":0.5,"scale":2,"rotation":%s,"label":""}`,
			i, place(), one("a", 2), one("k", looks), one("l", layers), genBool(t), genNumber(t))
	}) + `],` +
		`"agents":[` + list(count("rules", 0), func(i int) string {
		return fmt.Sprintf(`{"match":"agent-%d*","look":%s,"slot":%s}`, i, one("k", looks), one("s", slots))
	}) + `],"stranger":` + one("k", looks) + `,"impressions":` + genBool(t) + `}`
}

// Compile takes values from logs, so it must check everything itself.
func TestCompileRefuses(t *testing.T) {
	good := parsed(t, `{"sajou":"scene","version":1,"slots":{"a":{"x":1,"y":2}}}`).Value()
	for name, v := range map[string]signal.Value{
		"absent":             nil,
		"not a value":        {0xc1},
		"a nil behind it":    append(slices.Clone(good), 0xc0),
		"two values":         append(slices.Clone(good), good...),
		"no object":          {0x90},
		"one byte too few":   good[:len(good)-1],
		"a key twice":        {0x82, 0xa1, 'a', 0xc0, 0xa1, 'a', 0xc0},
		"a float of 32 bits": {0x81, 0xa1, 'a', 0xca, 0, 0, 0, 0},
	} {
		if s, err := scene.Compile(v); s != nil || !errors.Is(err, definition.ErrInvalid) {
			t.Errorf("%s: got %v, %v", name, s, err)
		}
	}
	// The value is copied: its owner may write to the bytes.
	v := slices.Clone(good)
	s, err := scene.Compile(v)
	require.NoError(t, err)
	clear(v)
	if s.Slots[0].Name != "a" || !bytes.Equal(s.Value(), good) {
		t.Errorf("the scene changed with the bytes it was made of: %+v", s.Slots)
	}
}

// A list of MaxItems is read. One that is longer is refused, and what is beyond is not judged.
func TestMaxItems(t *testing.T) {
	for name, c := range map[string]struct{ before, item, after string }{
		"layers":        {`"layers":[`, `"l#"`, `]`},
		"slots":         {`"slots":[`, `{"name":"s#","x":1,"y":2}`, `]`},
		"entities":      {`"entities":[`, `{"id":"e#","at":{"x":1,"y":1}}`, `]`},
		"agents":        {`"agents":[`, `{"match":"m#"}`, `]`},
		"points":        {`"routes":{"r":{"points":[`, `{"x":#,"y":1}`, `]}}`},
		"looks":         {`"looks":{`, `"l#":{}`, `}`},
		"slots by name": {`"slots":{`, `"s#":{"x":1,"y":2}`, `}`},
		"waypoints":     {`"waypoints":{`, `"w#":{"x":1,"y":2}`, `}`},
		"routes":        {`"routes":{`, `"r#":{"points":[{"x":1,"y":2},{"x":3,"y":4}]}`, `}`},
	} {
		items := make([]string, scene.MaxItems)
		for i := range items {
			items[i] = strings.ReplaceAll(c.item, "#", fmt.Sprint(i))
		}
		text := func(items ...string) []byte {
			return []byte(`{"sajou":"scene","version":1,` + c.before + strings.Join(items, ",") + c.after + `}`)
		}
		s, remarks := scene.Parse("many.json", text(items...))
		if s == nil || remarks.Refused() {
			t.Errorf("%s: %v", name, remarks)
		}
		// The one too many has a mistake of its own.
		wrong := "7"
		if strings.HasPrefix(c.item, `"`) && strings.Contains(c.item, `":`) {
			wrong = `"last":7`
		}
		s, remarks = scene.Parse("many.json", text(append(items, wrong)...))
		if errs := remarks.Only(authored.SeverityError); s != nil || len(errs) != 1 || !strings.Contains(errs[0].Message, "holds more than 10000") {
			t.Errorf("%s and one more: %v", name, remarks)
		}
	}
}

// A message offers up to twelve names, and of more the first twelve.
func TestOffersAreFew(t *testing.T) {
	for n, want := range map[int]string{1: "l10", 12: "l10, l11, l12, l13, l14, l15, l16, l17, l18, l19, l20, l21", 13: "l10, l11, l12, l13, l14, l15, l16, l17, l18, l19, l20, l21, …"} {
		var layers []string
		for i := range n {
			layers = append(layers, fmt.Sprintf(`"l%d"`, 10+i))
		}
		_, remarks := scene.Parse("s.json", []byte(`{"sajou":"scene","version":1,"layers":[`+strings.Join(layers, ",")+`],"entities":[{"id":"e","at":{"x":0,"y":0},"layer":"none"}]}`))
		if want := `there is no layer "none"; there are ` + want; len(remarks) != 1 || remarks[0].Message != want {
			t.Errorf("of %d: %v, want %q", n, remarks, want)
		}
	}
}

// Numbers of a file of the scene-builder are clamped to their bounds, with a warning for
// those beyond.
func TestImportedNumbers(t *testing.T) {
	for value, want := range map[string]struct {
		opacity, scale, x float64
		warned            int
	}{
		"0": {0, 0, 0, 0}, "1": {1, 1, 1, 0}, "0.25": {0.25, 0.25, 0.25, 0}, "1.5": {1, 1.5, 1.5, 1}, "-1": {0, 1, -1, 2}, "1000001": {1, 1_000_000, 1_000_000, 3},
	} {
		s, remarks := scene.Parse("scene.json", []byte(`{"dimensions": {"width": 100, "height": 50}, "entities": [{"id": "a", "entityId": "robot", "opacity": `+value+`, "scale": `+value+`, "x": `+value+`, "y": 0}]}`))
		if s == nil || len(s.Entities) != 1 {
			t.Fatalf("%s: %v", value, remarks)
		}
		warned := 0
		for _, r := range remarks {
			if strings.Contains(r.Message, "the nearest is taken") || strings.Contains(r.Message, "not mirrored") {
				warned++
			}
		}
		if e := s.Entities[0]; e.Opacity != want.opacity || e.Scale != want.scale || e.At.X != want.x || warned != want.warned {
			t.Errorf("%s: opacity %v, scale %v, x %v, %d warnings, want %+v: %v", value, e.Opacity, e.Scale, e.At.X, warned, want, remarks)
		}
	}
}

// Numbers, names and titles at their bounds are accepted, and those just beyond are not.
func TestBounds(t *testing.T) {
	quoted := func(s string, n int) string { return strconv.Quote(strings.Repeat(s, n)) }
	for member, c := range map[string]struct{ accepted, refused []string }{
		`"size":{"width":#,"height":9}`:                           {[]string{"1", "1000000"}, []string{"0.999", "1000000.5"}},
		`"size":{"width":9,"height":#}`:                           {[]string{"1", "1000000"}, []string{"0.999", "1000000.5"}},
		`"waypoints":{"w":{"x":#,"y":0}}`:                         {[]string{"-1000000", "1000000"}, []string{"-1000000.5", "1000000.5"}},
		`"waypoints":{"w":{"x":0,"y":#}}`:                         {[]string{"-1000000", "1000000"}, []string{"-1000000.5", "1000000.5"}},
		`"looks":{"l":{"size":#}}`:                                {[]string{"1", "1000000"}, []string{"0.5", "1000000.5"}},
		`"entities":[{"id":"e","at":{"x":0,"y":0},"opacity":#}]`:  {[]string{"0", "1"}, []string{"-0.001", "1.001"}},
		`"entities":[{"id":"e","at":{"x":0,"y":0},"scale":#}]`:    {[]string{"0", "1000000"}, []string{"-0.001", "1000000.5"}},
		`"entities":[{"id":"e","at":{"x":0,"y":0},"rotation":#}]`: {[]string{"-1000000", "1000000"}, []string{"-1000000.5", "1000000.5"}},
		`"layers":[#]`:                  {[]string{quoted("a", 256), quoted("é", 128)}, []string{quoted("a", 257), quoted("é", 129), `""`}},
		`"waypoints":{#:{"x":0,"y":0}}`: {[]string{quoted("a", 256), quoted("é", 128)}, []string{quoted("a", 257), quoted("é", 129), `""`}},
		`"title":#`:                     {[]string{quoted("é", 1024), `""`}, []string{quoted("é", 1025)}},
		`"entities":[{"id":"e","at":{"x":0,"y":0},"label":#}]`: {[]string{quoted("é", 1024), `""`}, []string{quoted("é", 1025)}},
		`"routes":{"r":{"points":#}}`:                          {[]string{`[{"x":0,"y":0},{"x":1,"y":1}]`}, []string{`[{"x":0,"y":0}]`, `[]`}},
	} {
		for i, values := range [][]string{c.accepted, c.refused} {
			for _, v := range values {
				s, remarks := scene.Parse("s.json", []byte(`{"sajou":"scene","version":1,`+strings.Replace(member, "#", v, 1)+`}`))
				if accepted := s != nil && !remarks.Refused(); accepted != (i == 0) {
					t.Errorf("%s with %.40s: accepted %v, %v", member, v, accepted, remarks)
				}
			}
		}
	}
}

const yard = `{
  "sajou": "scene", "version": 1, "name": "yard",
  "layers": ["ground", "sky"],
  "looks": {"smith": {"figure": "person", "color": "tomato"}},
  "slots": [{"name": "left", "x": 1, "y": 2}, {"name": "right", "x": 3, "y": 4}],
  "waypoints": {"forge": {"x": 5, "y": 6}},
  "routes": {"r": {"points": ["left", {"x": 7, "y": 8, "name": "bend"}, "forge"]}},
  "entities": [
    {"id": "one", "actor": "smith", "at": "forge"},
    {"id": "smith", "at": {"x": 9, "y": 9}, "label": "", "look": "smith"},
    {"id": "two", "actor": "smith", "at": "left", "layer": "sky"}
  ],
  "agents": [{"match": "agent-*", "look": "bird", "slot": "right", "layer": "sky"}, {"match": "*-smith", "entity": "smith"}, {"match": "agent-x"}]
}`

func TestLookups(t *testing.T) {
	s := parsed(t, yard)
	for name, want := range map[string]scene.Point{"left": {X: 1, Y: 2}, "forge": {X: 5, Y: 6}} {
		if p, ok := s.Place(name); !ok || p != want {
			t.Errorf("place %s: got %v, %t", name, p, ok)
		}
	}
	if _, ok := s.Place("one"); ok {
		t.Error("an entity is a place")
	}
	if got := s.Figures("smith"); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("figures of smith: got %v", got)
	}
	if got := s.Figures("two"); !slices.Equal(got, []int{2}) {
		t.Errorf("figures of two: got %v", got)
	}
	if got := s.Figures("nobody"); got != nil {
		t.Errorf("figures of nobody: got %v", got)
	}
	for agent, want := range map[string]scene.Rule{
		"agent-x":       {Match: "agent-*", Look: "bird", Slot: "right", Layer: 1},
		"agent-a-smith": {Match: "agent-*", Look: "bird", Slot: "right", Layer: 1},
		"a-smith":       {Match: "*-smith", Entity: "smith"},
	} {
		if r, ok := s.Rule(agent); !ok || r != want {
			t.Errorf("rule for %s: got %+v, %t", agent, r, ok)
		}
	}
	if r, ok := s.Rule("agent"); ok {
		t.Errorf("rule for agent: got %+v", r)
	}
	if got := s.LookNamed("smith"); got != (scene.Look{Figure: "person", Color: "tomato", Size: 56}) {
		t.Errorf("look smith: got %+v", got)
	}
	if got := s.LookNamed("no such look"); got != s.Looks["robot"] {
		t.Errorf("unknown look: got %+v", got)
	}
	if s.Entities[0].Label != "one" || s.Entities[1].Label != "" || s.Entities[0].Look != "robot" {
		t.Errorf("got %+v", s.Entities)
	}
	r, ok := s.Route("r")
	if i, found := r.Index("bend"); !ok || !found || i != 1 {
		t.Errorf("route: got %+v", r)
	}
	if _, found := r.Index(""); found {
		t.Error("the empty name is a point's")
	}
	if s.Name() != "yard" || s.Word() != "scene" {
		t.Errorf("got %s %s", s.Word(), s.Name())
	}
}

// The scene in the package comment is valid.
func TestPackageComment(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "scene.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	require.NoError(t, err)
	_, text, _ := strings.Cut(docText(file), "\n\t{")
	text, _, ok := strings.Cut(text, "\n\t}")
	if !ok {
		t.Fatal("there is no example")
	}
	s := parsed(t, "{"+text+"}")
	if s.Name() != "yard" || len(s.Entities) != 1 || len(s.Agents) != 2 {
		t.Errorf("got %+v", s)
	}
}

func docText(f *ast.File) string { return f.Doc.Text() }

// Every agent has room in the default scene, and no two places are near each other.
func TestDefault(t *testing.T) {
	s := scene.Default()
	if s != scene.Default() || s.Value() != nil || !s.Impressions {
		t.Errorf("got %+v", s)
	}
	if len(s.Slots) != 12 {
		t.Errorf("got %d slots", len(s.Slots))
	}
	for i, a := range s.Slots {
		if a.At.X < 60 || a.At.X > s.Width-60 || a.At.Y < 120 || a.At.Y > s.Height-50 {
			t.Errorf("slot %s is at the edge: %v", a.Name, a.At)
		}
		for _, b := range s.Slots[:i] {
			if d := scene.Distance(a.At, b.At); d < 120 {
				t.Errorf("slots %s and %s are %.0f apart", a.Name, b.Name, d)
			}
		}
	}
	for agent, look := range map[string]string{
		"orchestrator": "orchestrator", "user": "user", "pigeon": "bird", "agent-solver": "coder", "agent-analyst": "analyst",
		"code-reviewer": "reviewer", "agent-7": "",
	} {
		if r, ok := s.Rule(agent); ok != (look != "") || r.Look != look {
			t.Errorf("%s: got %+v, %t, want look %q", agent, r, ok, look)
		}
	}
}

// All JSON in the reference and all example files are scenes without a remark.
func TestDocs(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	text, err := os.ReadFile(filepath.Join(docs, "scenes.md"))
	require.NoError(t, err)
	blocks := strings.Split(string(text), "```json\n")[1:]
	if len(blocks) == 0 {
		t.Error("scenes.md has no example")
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		parsed(t, block)
	}
	files, err := filepath.Glob(filepath.Join(docs, "examples", "scenes", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		parsed(t, string(text))
	}
}

// The workshop places the agents of the recorded sessions.
func TestWorkshop(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", "scenes", "workshop.json"))
	require.NoError(t, err)
	s := parsed(t, string(text))
	for _, agent := range []string{"orchestrator", "agent-solver", "agent-analyst"} {
		if len(s.Figures(agent)) != 1 {
			t.Errorf("%s is not placed", agent)
		}
	}
	for _, place := range []string{"forge", "desk"} {
		if _, ok := s.Place(place); !ok {
			t.Errorf("there is no %s", place)
		}
	}
}

func ExampleParse() {
	s, diagnostics := scene.Parse("yard.json", []byte(`{
  "sajou": "scene", "version": 1,
  "slots": {"left": {"x": 240, "y": 330}},
  "entities": [{"id": "smith", "at": "lift"}]
}`))
	fmt.Println(s == nil)
	fmt.Println(diagnostics)
	// Output:
	// true
	// yard.json:4:38: error: there is no slot or waypoint "lift" (/entities/0/at)
}

func ExampleScene_Rule() {
	s, _ := scene.Parse("yard.json", []byte(`{
  "sajou": "scene", "version": 1,
  "agents": [{"match": "agent-*", "look": "robot"}, {"match": "*", "look": "dot"}]
}`))
	for _, agent := range []string{"agent-7", "scout"} {
		r, _ := s.Rule(agent)
		fmt.Println(agent, s.LookNamed(r.Look).Figure)
	}
	// Output:
	// agent-7 robot
	// scout dot
}
