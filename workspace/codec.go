package workspace

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/statecodec"
)

// errVersion says that a state has a layout that this program does not know.
var errVersion = errors.New("workspace: unknown version of a state")

// layout is the version of the canonical bytes. They are one msgpack array:
//
//	| layout | root | hidden | agents: [name, directory] … | files … | open calls … |
//
// The agents and the files are in the order of their names and paths, the calls in
// that of the log. A file is
//
//	| path | exists | sure | forgotten | by | touched | spans: [kind, open, by, seen, text] … |
//
// where a gap has its number of lines, or -1, in the place of the text and is [kind,
// lines]. A call is [seq, call id or name, tool, directory, input].
const layout = 1

// Append implements [projection.State].
func (s *State) Append(dst []byte) []byte {
	b := msgp.AppendArrayHeader(dst, 6)
	b = msgp.AppendInt64(b, layout)
	b = msgp.AppendString(b, s.root)
	b = msgp.AppendInt64(b, int64(s.hidden))
	b = msgp.AppendArrayHeader(b, uint32(len(s.dirs)))
	for _, agent := range slices.Sorted(maps.Keys(s.dirs)) {
		b = msgp.AppendArrayHeader(b, 2)
		b = msgp.AppendString(b, agent)
		b = msgp.AppendString(b, s.dirs[agent])
	}
	b = msgp.AppendArrayHeader(b, uint32(len(s.paths)))
	for _, path := range s.paths {
		b = s.files[path].append(b)
	}
	calls := s.allPending()
	b = msgp.AppendArrayHeader(b, uint32(len(calls)))
	for _, c := range calls {
		b = msgp.AppendArrayHeader(b, 5)
		b = msgp.AppendUint64(b, uint64(c.seq))
		b = msgp.AppendString(b, c.key)
		b = msgp.AppendString(b, c.tool)
		b = msgp.AppendString(b, c.dir)
		if c.input == nil {
			b = msgp.AppendNil(b)
		} else {
			b = append(b, c.input...)
		}
	}
	return b
}

func (f *tracked) append(b []byte) []byte {
	b = msgp.AppendArrayHeader(b, 7)
	b = msgp.AppendString(b, f.path)
	b = msgp.AppendBool(b, f.exists)
	b = msgp.AppendBool(b, f.sure)
	b = msgp.AppendBool(b, f.forgotten)
	b = msgp.AppendUint64(b, uint64(f.by))
	b = msgp.AppendUint64(b, uint64(f.touched))
	b = msgp.AppendArrayHeader(b, uint32(len(f.spans)))
	for i := range f.spans {
		sp := &f.spans[i]
		if sp.isGap() {
			b = msgp.AppendArrayHeader(b, 2)
			b = msgp.AppendInt64(b, int64(Unknown))
			b = msgp.AppendInt64(b, int64(sp.gap))
			continue
		}
		b = msgp.AppendArrayHeader(b, 5)
		b = msgp.AppendInt64(b, int64(sp.kind))
		b = msgp.AppendInt64(b, int64(sp.open))
		b = msgp.AppendUint64(b, uint64(sp.by))
		b = msgp.AppendUint64(b, uint64(sp.seen))
		b = msgp.AppendString(b, sp.text)
	}
	return b
}

// restore reads canonical bytes, which are untrusted.
func restore(data []byte, limit int) (*State, error) {
	s := newState(limit)
	r := &statecodec.Reader{Rest: data}
	r.Begin(layout, 6, errVersion)
	s.root = r.Text()
	s.hidden = int(r.Between(0, 1<<62, "a count of hidden calls of"))
	for range r.Array() {
		r.Fields(2, "an agent")
		name := r.Text()
		s.dirs[name] = r.Text()
	}
	for range r.Array() {
		f := readFile(r)
		if r.Err != nil {
			break
		}
		s.files[f.path] = f
		s.paths = append(s.paths, f.path)
		s.measure(f)
	}
	if !slices.IsSorted(s.paths) || len(s.paths) != len(s.files) {
		r.Fail("files out of order")
	}
	for range r.Array() {
		r.Fields(5, "an open call")
		c := &openCall{seq: eventlog.Seq(r.Uint()), key: r.Text(), tool: r.Text(), dir: r.Text()}
		if !r.None() {
			c.input = slices.Clone(r.Value())
		}
		if r.Err != nil {
			break
		}
		c.findPaths()
		s.addPending(c)
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	return s, statecodec.Canonical(data, s.Append)
}

func readFile(r *statecodec.Reader) *tracked {
	r.Fields(7, "a file")
	f := &tracked{path: r.Text(), exists: r.Bool(), sure: r.Bool(), forgotten: r.Bool()}
	f.by, f.touched = eventlog.Seq(r.Uint()), eventlog.Seq(r.Uint())
	for range r.Array() {
		var sp span
		switch n := r.Array(); n {
		case 2:
			r.Between(int64(Unknown), int64(Unknown), "a gap of the kind")
			sp.gap = int(r.Between(uncounted, 1<<40, "a gap of lines"))
			if sp.gap == 0 {
				r.Fail("a gap of no lines")
			}
		case 5:
			sp.kind = Certainty(r.Between(int64(Guessed), int64(Known), "a line of the kind"))
			sp.open = uint8(r.Between(0, openStart|openEnd, "a line open at"))
			sp.by, sp.seen = eventlog.Seq(r.Uint()), eventlog.Seq(r.Uint())
			sp.text = r.Text()
			if sp.text == "" || strings.Contains(strings.TrimSuffix(sp.text, "\n"), "\n") {
				r.Fail("a line that is none")
			}
		default:
			r.Fail("a span of %d fields", n)
		}
		if r.Err != nil {
			return f
		}
		f.spans = append(f.spans, sp)
	}
	f.pack()
	return f
}
