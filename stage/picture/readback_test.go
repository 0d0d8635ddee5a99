package picture

import (
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"
	"strings"
)

// readSVG reads the documents that AppendSVG writes with an XML parser, to shapes that the
// rasterizer can paint. So the two outputs of a drawing can be compared.
func readSVG(data []byte) (*Drawing, error) {
	d := xml.NewDecoder(strings.NewReader(string(data)))
	r := &svgReader{symbols: map[string]*symbol{}, letters: map[string][]segment{}}
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			if r.root == nil {
				return nil, errors.New("no svg element")
			}
			return r.root, nil
		}
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if err := r.start(t); err != nil {
				return nil, err
			}
		case xml.EndElement:
			r.end(t.Name.Local)
		case xml.CharData:
			if r.text != nil {
				r.text.text += string(t)
			}
		}
	}
}

type svgReader struct {
	root    *Drawing
	symbols map[string]*symbol
	open    []*[]shape // the lists that elements go to, innermost last
	closing []func()
	text    *shape
	letters map[string][]segment
	label   *shape // the group of letters that is open
	inDefs  bool
}

// numbers returns the arguments of each function of a transformation.
func numbers(transform string) map[string][]float64 {
	values, name := map[string][]float64{}, ""
	for _, w := range strings.Fields(strings.NewReplacer("(", " ", ")", " ").Replace(transform)) {
		if v, err := strconv.ParseFloat(w, 64); err == nil {
			values[name] = append(values[name], v)
		} else {
			name = w
		}
	}
	return values
}

func (r *svgReader) start(e xml.StartElement) error {
	at := map[string]string{}
	for _, a := range e.Attr {
		at[a.Name.Local] = a.Value
	}
	var bad error
	num := func(name string, otherwise float64) float64 {
		s, ok := at[name]
		if !ok {
			return otherwise
		}
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			bad = fmt.Errorf("%s %s=%q", e.Name.Local, name, s)
		}
		return v
	}
	paint := func(name string) color.NRGBA {
		s, ok := at[name]
		if !ok || s == "none" {
			return color.NRGBA{}
		}
		c := parseColor(s, color.NRGBA{1, 2, 3, 4})
		c.A = uint8(math.Round(num(name+"-opacity", 1) * 255))
		return c
	}
	s := shape{fill: paint("fill"), stroke: paint("stroke"), pen: num("stroke-width", 0), opacity: num("opacity", 1)}
	add := func(s shape) { *r.open[len(r.open)-1] = append(*r.open[len(r.open)-1], s) }
	descend := func(list *[]shape, closing func()) {
		r.open, r.closing = append(r.open, list), append(r.closing, closing)
	}
	switch e.Name.Local {
	case "svg":
		var x, y, w, h float64
		if _, err := fmt.Sscan(at["viewBox"], &x, &y, &w, &h); err != nil {
			return err
		}
		d := &Drawing{width: w, height: h}
		if r.root == nil {
			r.root = d
			descend(&d.shapes, func() {})
			break
		}
		add(shape{kind: panel, x: num("x", 0), y: num("y", 0), w: num("width", 0), h: num("height", 0), inner: d})
		descend(&d.shapes, func() {})
	case "defs":
		r.inDefs = true
	case "g":
		if id, ok := at["id"]; ok {
			y := &symbol{name: id, x: -200, y: -200, w: 400, h: 400}
			r.symbols[id] = y
			descend(&y.shapes, func() {})
			break
		}
		if label, ok := at["aria-label"]; ok {
			// All letters are one path, as in the drawing.
			f := numbers(at["transform"])
			r.label = &shape{kind: outline, text: label, x: f["translate"][0], y: f["translate"][1], size: f["scale"][0], fill: s.fill}
			into := r.open[len(r.open)-1]
			descend(into, func() { *into = append(*into, *r.label); r.label = nil })
			break
		}
		group := shape{kind: group, opacity: s.opacity, x: -1e6, y: -1e6, w: 2e6, h: 2e6}
		into := r.open[len(r.open)-1]
		children := &[]shape{}
		descend(children, func() { group.children = *children; *into = append(*into, group) })
	case "rect":
		s.kind, s.x, s.y, s.w, s.h, s.r = rect, num("x", 0), num("y", 0), num("width", 0), num("height", 0), num("rx", 0)
		add(s)
	case "circle":
		s.kind, s.x, s.y, s.w, s.h = ellipse, num("cx", 0), num("cy", 0), num("r", 0), num("r", 0)
		add(s)
	case "ellipse":
		s.kind, s.x, s.y, s.w, s.h = ellipse, num("cx", 0), num("cy", 0), num("rx", 0), num("ry", 0)
		add(s)
	case "line":
		s.kind, s.x, s.y, s.w, s.h = line, num("x1", 0), num("y1", 0), num("x2", 0), num("y2", 0)
		add(s)
	case "path":
		s.kind = outline
		s.path = path(at["d"])
		if id, ok := at["id"]; ok {
			r.letters[id] = s.path
			break
		}
		add(s)
	case "text":
		s.kind, s.x, s.y, s.w, s.size = text, num("x", 0), num("y", 0), num("textLength", 0), num("font-size", 0)
		s.bold = at["font-weight"] == "bold"
		into := r.open[len(r.open)-1]
		r.text = &s
		r.closing = append(r.closing, func() { *into = append(*into, *r.text); r.text = nil })
		r.open = append(r.open, into)
	case "use":
		if l := r.label; l != nil {
			letter := r.letters[strings.TrimPrefix(at["href"], "#")]
			if letter == nil {
				return fmt.Errorf("use of %q before its definition", at["href"])
			}
			for _, s := range letter {
				for i := range s.p {
					s.p[i] = point{l.x + (s.p[i].x+num("x", 0))*l.size, l.y + s.p[i].y*l.size}
				}
				l.path = append(l.path, s)
			}
			break
		}
		y := r.symbols[strings.TrimPrefix(at["href"], "#")]
		if y == nil {
			return fmt.Errorf("use of %q before its definition", at["href"])
		}
		s.kind, s.symbol = use, y
		values := numbers(at["transform"])
		s.x, s.y, s.size = values["translate"][0], values["translate"][1], values["scale"][0]
		if turn := values["rotate"]; turn != nil {
			s.turn = turn[0]
			if len(turn) == 3 {
				y.pivot = turn[2] / s.size
			}
		}
		add(s)
	default:
		return fmt.Errorf("unknown element %s", e.Name.Local)
	}
	return bad
}

func (r *svgReader) end(name string) {
	switch name {
	case "defs":
		r.inDefs = false
	case "svg", "g", "text":
		n := len(r.open) - 1
		r.closing[n]()
		r.open, r.closing = r.open[:n], r.closing[:n]
	}
}
