package answer

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/workspace"
)

// StateLimits bounds the part of a state that is shown.
type StateLimits struct {
	Each  int // members or elements of one object or list
	Total int // values in all
}

// ShownLimits bound a state that is shown.
func ShownLimits() StateLimits { return StateLimits{1000, 200_000} }

// ComparedLimits bound a state that is compared.
func ComparedLimits() StateLimits { return StateLimits{10_000, 1_000_000} }

// NoLimits bound nothing.
func NoLimits() StateLimits { return StateLimits{math.MaxInt, math.MaxInt} }

// NoMemberError is the error for a path that a state does not have. It is a
// [replay.ErrNoAddress].
type NoMemberError struct {
	Moment replay.Moment
	Path   string // with dots, up to the first missing member
	Has    string // the members there
}

func (e *NoMemberError) Error() string {
	return fmt.Sprintf("the state at %v has no %s%s", e.Moment, e.Path, e.Has)
}

// Unwrap returns [replay.ErrNoAddress].
func (e *NoMemberError) Unwrap() error { return replay.ErrNoAddress }

// State returns the view of a fold, which is at m, or the part of it at a path, within limits,
// and descriptions of the parts that the limits left out. A path has dots or is a JSON
// Pointer; the empty path is the whole state. The error is a [*NoMemberError].
func State(fold *projection.Fold, m replay.Moment, path string, limits StateLimits) (view any, left []string, err error) {
	whole := map[string]any{"seq": int64(fold.Head().Seq), "at": projection.Millis(fold.At())}
	for name, state := range fold.States() {
		whole[name] = state
		if _, ok := state.(where.Members); !ok {
			whole[name] = state.View()
		}
	}
	view = whole
	var names []string
	switch {
	case path == "":
	case strings.HasPrefix(path, "/"):
		for name := range strings.SplitSeq(path[1:], "/") {
			names = append(names, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
		}
	default:
		names = strings.Split(path, ".")
	}
	for i, name := range names {
		next, ok := jsonpointer.Member(view, name)
		if !ok {
			return nil, nil, &NoMemberError{m, strings.Join(names[:i+1], "."), namesOf(view)}
		}
		view = next
	}
	s := shower{limits: limits}
	view = s.show(strings.Join(names, "."), view)
	return view, s.left, nil
}

// Misspelt looks for names, the first of which is a projection, in the state of a fold. It
// returns the index of the first name that the state does not have, or -1, and the name
// there that is spelt nearly like it, if there is one.
func Misspelt(fold *projection.Fold, names []string) (missing int, nearest string) {
	state := fold.State(names[0])
	if state == nil {
		return 0, ""
	}
	var view any = state
	if _, ok := state.(where.Members); !ok {
		view = state.View()
	}
	for i, name := range names[1:] {
		next, ok := jsonpointer.Member(view, name)
		if !ok {
			nearest, _ = spelling.Nearest(name, membersOf(view))
			return i + 1, nearest
		}
		view = next
	}
	return -1, ""
}

// membersOf returns the sorted names of the members of a view.
func membersOf(view any) []string {
	switch v := view.(type) {
	case where.Members:
		return slices.Sorted(slices.Values(v.Names()))
	case map[string]any:
		return slices.Sorted(maps.Keys(v))
	}
	return nil
}

// shower copies a view, which is read member by member, into values for
// [Marshal], within limits.
type shower struct {
	limits StateLimits
	made   int
	left   []string // the parts that were left out
}

// room returns how many of the n members of the value at name are within the
// limits, and notes the others.
func (s *shower) room(name string, n int) int {
	most := min(n, s.limits.Each, max(0, s.limits.Total-s.made))
	s.made += most
	const mostNotes = 8
	if most < n && len(s.left) < mostNotes {
		if s.left = append(s.left, fmt.Sprintf("%d of %d of %s", most, n, termtext.Printable(termtext.Clip(cmp.Or(name, "the state"), 80)))); len(s.left) == mostNotes {
			s.left = append(s.left, "and more")
		}
	}
	return most
}

func (s *shower) show(name string, view any) any {
	below := func(member string) string { return strings.TrimPrefix(name+"."+member, ".") }
	switch v := view.(type) {
	case where.Members:
		names := v.Names()
		shown := make(map[string]any, min(len(names), s.limits.Each))
		for _, member := range names[:s.room(name, len(names))] {
			if m, ok := v.Member(member); ok {
				shown[member] = s.show(below(member), m)
			}
		}
		return shown
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		shown := make(map[string]any, min(len(names), s.limits.Each))
		for _, member := range names[:s.room(name, len(names))] {
			shown[member] = s.show(below(member), v[member])
		}
		return shown
	case []any:
		shown := make([]any, s.room(name, len(v)))
		for i := range shown {
			shown[i] = s.show(name, v[i])
		}
		return shown
	}
	return view
}

// namesOf lists the names that exist, for an error about one that does not.
func namesOf(view any) string {
	const most = 12
	list := membersOf(view)
	switch v := view.(type) {
	case where.Members, map[string]any:
	case []any:
		return fmt.Sprintf("; it is a list of %d, indexed from 0", len(v))
	default:
		return "; it has no members"
	}
	if len(list) == 0 {
		return "; it is empty"
	}
	if len(list) > most {
		list = append(list[:most], "…")
	}
	return "; it has " + strings.Join(list, ", ")
}

// DigestView is the digest of a projection.
type DigestView struct {
	Projection string `json:"projection"`
	Version    uint32 `json:"version"`
	Digest     string `json:"digest"`
}

// ViewDigest returns the view of a digest.
func ViewDigest(d projection.Digest) DigestView {
	return DigestView{d.Name, d.Version, fmt.Sprintf("%016x", d.Sum)}
}

// ViewFile returns the view of a file that agents worked on.
func ViewFile(f *workspace.TrackedFile) map[string]any {
	view := f.View()
	view["path"] = f.Path()
	return view
}

// ViewListedFile is [ViewFile] without the text.
func ViewListedFile(f *workspace.TrackedFile) map[string]any {
	view := ViewFile(f)
	delete(view, "text")
	delete(view, "spans")
	return view
}
