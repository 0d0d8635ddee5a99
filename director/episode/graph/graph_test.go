package graph_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/director/episode/graph"
	"github.com/sajou-dev/sajou-go/internal/golden"
)

// Episodes drawn as text and as pictures.
func TestGolden(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		e, diagnostics := episode.Parse(in[0].Name, in[0].Data)
		if e == nil {
			t.Fatal(diagnostics)
		}
		g := graph.Of(e)
		return []txtar.File{{Name: "told", Data: []byte(g.Text())}, {Name: "picture.svg", Data: g.AppendSVG(nil)}}
	})
}

// crowd returns an episode of many beats that require beats and flags.
func crowd(t *rapid.T, n int) string {
	name := rapid.StringN(0, 40, 60)
	turn := rapid.IntRange(0, 200)
	var b strings.Builder
	b.WriteString(`{"turn_budget": 40, "beats": [`)
	for i := range n {
		if i > 0 {
			b.WriteString(",\n")
			if j := rapid.IntRange(-1, i-1).Draw(t, "requires"); j >= 0 {
				fmt.Fprintf(&b, `{"requires_beat": "b%d", `, j)
			} else {
				b.WriteString("{")
			}
		} else {
			b.WriteString("{")
		}
		target := turn.Draw(t, "target")
		fmt.Fprintf(&b, `"id": "b%d", "description": %s, "character_instruction": "x", "target_turn": %d, "deadline_turn": %d, "requires_flag": "f%d",
			"choice_point": {"id": "p%d", "prompt": %s, "choices": [{"id": "o", "label": "l%s", "sets_flag": "f%d"}]}}`,
			i, quoted("d"+name.Draw(t, "text")), target, target+turn.Draw(t, "window")/20, rapid.IntRange(0, n).Draw(t, "flag"),
			i, quoted(name.Draw(t, "text")), strings.Trim(quoted(name.Draw(t, "text")), `"`), rapid.IntRange(0, n).Draw(t, "sets"))
	}
	b.WriteString("]}")
	return b.String()
}

func quoted(s string) string {
	b := new(strings.Builder)
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "?") {
		fmt.Fprintf(b, "%s", map[bool]string{true: string(r), false: fmt.Sprintf("\\u%04x", r&0xd7ff)}[r >= ' ' && r != '"' && r != '\\' && r != 0x7f])
	}
	b.WriteByte('"')
	return b.String()
}

// In drawings of a hundred beats no text and no bar overlaps another, no two lines
// share a part of a lane, and the output is XML.
func TestNothingOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := crowd(t, rapid.SampledFrom([]int{1, 7, 100}).Draw(t, "beats"))
		e, diagnostics := episode.Parse("x", []byte(text))
		if e == nil {
			t.Fatalf("%v\n%s", diagnostics, text)
		}
		g := graph.Of(e)
		if a, b, found := g.Overlaps(); found {
			t.Fatalf("%v overlaps %v", a, b)
		}
		if g.Crossed() {
			t.Fatal("two nets are in one lane")
		}
		svg := g.AppendSVG(nil)
		held(t, svg)
		if again := g.AppendSVG(nil); !bytes.Equal(svg, again) {
			t.Fatal("drawn again, it differs")
		}
	})
}

// held reads a document, and checks that each text is clipped to a box within the picture,
// and fitted to it: the viewer's font may be wider.
func held(t *rapid.T, svg []byte) {
	type box struct{ x, y, w, h int }
	var open []box
	texts := 0
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			require.Positive(t, texts)
			return
		}
		require.NoError(t, err, "%s", svg)
		switch e := token.(type) {
		case xml.StartElement:
			at := map[string]int{}
			for _, a := range e.Attr {
				at[a.Name.Local], _ = strconv.Atoi(a.Value)
			}
			switch e.Name.Local {
			case "svg":
				open = append(open, box{at["x"], at["y"], at["width"], at["height"]})
				all, b := open[0], open[len(open)-1]
				require.True(t, b.x >= 0 && b.y >= 0 && b.x+b.w <= all.w && b.y+b.h <= all.h, "%v is not within %v", b, all)
			case "text":
				require.Len(t, open, 2, "a text is not clipped")
				require.Equal(t, open[1].w, at["textLength"], "a text is not fitted to its box")
				texts++
			}
		case xml.EndElement:
			if e.Name.Local == "svg" {
				open = open[:len(open)-1]
			}
		}
	}
}

// FuzzDraw checks that every valid episode can be drawn.
func FuzzDraw(f *testing.F) {
	for _, name := range []string{"interview", "house"} {
		archive, err := txtar.ParseFile("testdata/" + name + ".txtar")
		require.NoError(f, err)
		f.Add(archive.Files[0].Data)
	}
	f.Add([]byte(`{"beats": [{"id": "far", "character_instruction": "x", "target_turn": 0, "deadline_turn": 1073741824, "detection_type": "automatic"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, _ := episode.Parse("x", text)
		if e == nil {
			return
		}
		g := graph.Of(e)
		if g.Text() == "" || len(g.AppendSVG(nil)) == 0 {
			t.Fatal("nothing is drawn")
		}
		if _, _, found := g.Overlaps(); found {
			t.Fatal("something overlaps")
		}
	})
}
