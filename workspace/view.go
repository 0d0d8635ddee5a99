package workspace

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog"
)

// Root returns the first directory that the recording names as that of its work, or "".
func (s *State) Root() string { return s.root }

// Hidden returns the number of calls whose input was left out of the recording.
func (s *State) Hidden() int { return s.hidden }

// Paths returns the paths of all files in order: deleted ones too, and those that a
// call without a result may have made.
func (s *State) Paths() []string {
	paths := slices.Clone(s.paths)
	for _, list := range s.pending {
		for _, c := range list {
			paths = append(paths, c.paths...)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// get returns the file of a path, also one that a call without a result may have made,
// or nil.
func (s *State) get(path string) *tracked {
	if f := s.files[path]; f != nil {
		return f
	}
	for _, list := range s.pending {
		for _, c := range list {
			if slices.Contains(c.paths, path) {
				return &tracked{document: unknownDocument(), path: path, exists: true}
			}
		}
	}
	return nil
}

// File returns the file of a path. The end of a path is enough, from a slash on, if one
// file alone has it; a file that exists is preferred to a deleted one. The error wraps
// [ErrNoFile] or [ErrAmbiguous].
func (s *State) File(path string) (*TrackedFile, error) {
	name := cleanPath(path)
	f := s.get(name)
	if f == nil && !isAbsolute(name) && s.root != "" {
		f = s.get(resolvePath(s.root, name))
	}
	if f != nil {
		return &TrackedFile{s, f}, nil
	}
	var found, gone []string
	for _, p := range s.Paths() {
		switch {
		case name == "" || name == "." || !endsIn(p, strings.TrimPrefix(name, "./")):
		case s.get(p).exists:
			found = append(found, p)
		default:
			gone = append(gone, p)
		}
	}
	if len(found) == 0 {
		found = gone
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%w: %q", ErrNoFile, path)
	case 1:
		return &TrackedFile{s, s.get(found[0])}, nil
	}
	const most = 8
	list := found
	if len(list) > most {
		list = append(slices.Clone(list[:most]), "…")
	}
	return nil, fmt.Errorf("%w: %q is the end of %s", ErrAmbiguous, path, strings.Join(list, ", "))
}

// TrackedFile is one file of a [State], which changes with it.
type TrackedFile struct {
	s *State
	f *tracked
}

// Path returns the path in its one spelling.
func (t *TrackedFile) Path() string { return t.f.path }

// Exists reports whether the file is there. It is sure unless a shell command may have
// made, moved or deleted the file.
func (t *TrackedFile) Exists() (exists, sure bool) { return t.f.exists, t.f.sure }

// Complete reports whether the text has no gap.
func (t *TrackedFile) Complete() bool { return t.f.complete() }

// Text returns the text, with [Gap] for each part that is unknown. The text of a file
// that was deleted for certain is empty.
func (t *TrackedFile) Text() string { return t.f.text }

// Forgotten reports whether text was forgotten because of [Limit].
func (t *TrackedFile) Forgotten() bool { return t.f.forgotten }

// By returns the Seq of the newest call that changed the file, or 0.
func (t *TrackedFile) By() eventlog.Seq { return t.f.by }

// Touched returns the Seq of the newest entry that changed or showed the file.
func (t *TrackedFile) Touched() eventlog.Seq { return t.f.touched }

// Pending returns the Seqs of the calls that may have changed the file and have no
// result, in order.
func (t *TrackedFile) Pending() []eventlog.Seq {
	var seqs []eventlog.Seq
	for _, c := range t.s.allPending() {
		for _, p := range c.paths {
			if p == t.f.path || strings.HasPrefix(t.f.path, strings.TrimSuffix(p, "/")+"/") {
				seqs = append(seqs, c.seq)
				break
			}
		}
	}
	return seqs
}

// CountLines returns the number of lines of the file, or false if it is not known.
func (t *TrackedFile) CountLines() (int, bool) {
	n := count(t.f.spans)
	return n, n != uncounted && !openLine(t.f.spans)
}

func openLine(spans []span) bool {
	for i := range spans {
		if spans[i].open != 0 {
			return true
		}
	}
	return false
}

// SourceLine is one line of a file, or a gap.
type SourceLine struct {
	Number    int    // from 1; 0 if it is not known
	Text      string // without its line end; Gap for a gap
	Certainty Certainty
	Lines     int          // 1; for a gap its number of lines, or -1
	By        eventlog.Seq // the call that wrote the line; 0: none that is recorded
	Seen      eventlog.Seq // the newest entry that showed the line; 0 for a gap
	Partial   bool         // the line may have more text than that
}

// Lines yields the lines and gaps in order.
func (t *TrackedFile) Lines() iter.Seq[SourceLine] {
	return func(yield func(SourceLine) bool) {
		number := 1
		for i := range t.f.spans {
			s := &t.f.spans[i]
			l := SourceLine{
				Number: number, Text: strings.TrimRight(s.text, "\r\n"), Certainty: s.kind, Lines: s.lines(),
				By: s.by, Seen: s.seen, Partial: s.open != 0,
			}
			if s.isGap() {
				l.Text = Gap
			}
			if !yield(l) {
				return
			}
			switch {
			case s.lines() == uncounted || s.open != 0:
				number = 0
			case number > 0:
				number += s.lines()
			}
		}
	}
}

// TextSpan is a stretch of lines of one certainty and one writer.
type TextSpan struct {
	From      int // the number of the first line; 0 if it is not known
	Lines     int // or -1
	Certainty Certainty
	By        eventlog.Seq
}

// Spans returns the stretches of the file in order.
func (t *TrackedFile) Spans() []TextSpan {
	var spans []TextSpan
	for l := range t.Lines() {
		n := len(spans) - 1
		if n >= 0 && l.Lines == 1 && spans[n].Lines > 0 && spans[n].Certainty == l.Certainty && spans[n].By == l.By && l.Certainty != Unknown &&
			(spans[n].From == 0) == (l.Number == 0) {
			spans[n].Lines++
			continue
		}
		spans = append(spans, TextSpan{l.Number, l.Lines, l.Certainty, l.By})
	}
	return spans
}

// Certainty returns the lowest certainty of the parts of the file.
func (t *TrackedFile) Certainty() Certainty {
	lowest := Known
	for i := range t.f.spans {
		lowest = min(lowest, t.f.spans[i].kind)
		if t.f.spans[i].open != 0 {
			lowest = Unknown
		}
	}
	return lowest
}

// Len, Names and Member let expressions read one file without a view of all. They
// implement Members of package replay/where.

// Len returns the number of files.
func (s *State) Len() int { return len(s.Paths()) }

// Names returns the paths of the files in order.
func (s *State) Names() []string { return s.Paths() }

// Member returns the file that [State.File] finds.
func (s *State) Member(name string) (any, bool) {
	f, err := s.File(name)
	if err != nil {
		return nil, false
	}
	return f, true
}

// View returns the files by their paths, each as an object with the members text,
// exists, sure, complete, certainty, lines (null if unknown), by, touched, forgotten,
// pending, and spans with from, lines, certainty and by.
func (s *State) View() any {
	view := make(map[string]any, len(s.paths))
	for _, p := range s.Paths() {
		view[p] = (&TrackedFile{s, s.get(p)}).View()
	}
	return view
}

var memberNames = []string{"by", "certainty", "complete", "exists", "forgotten", "lines", "pending", "spans", "sure", "text", "touched"}

// Len returns the number of members of a file.
func (t *TrackedFile) Len() int { return len(memberNames) }

// Names returns the names of the members of a file.
func (t *TrackedFile) Names() []string { return slices.Clone(memberNames) }

// View returns a file as [State.View] has it.
func (t *TrackedFile) View() map[string]any {
	view := make(map[string]any, len(memberNames))
	for _, name := range memberNames {
		view[name], _ = t.Member(name)
	}
	return view
}

// Member returns one member of a file.
func (t *TrackedFile) Member(name string) (any, bool) {
	switch name {
	case "by":
		return int64(t.f.by), true
	case "certainty":
		return t.Certainty().String(), true
	case "complete":
		return t.Complete(), true
	case "exists":
		return t.f.exists, true
	case "forgotten":
		return t.f.forgotten, true
	case "lines":
		if n, ok := t.CountLines(); ok {
			return int64(n), true
		}
		return nil, true
	case "pending":
		pending := []any{}
		for _, seq := range t.Pending() {
			pending = append(pending, int64(seq))
		}
		return pending, true
	case "spans":
		spans := []any{}
		for _, s := range t.Spans() {
			spans = append(spans, map[string]any{
				"from": int64(s.From), "lines": int64(s.Lines), "certainty": s.Certainty.String(), "by": int64(s.By),
			})
		}
		return spans, true
	case "sure":
		return t.f.sure, true
	case "text":
		return t.f.text, true
	case "touched":
		return int64(t.f.touched), true
	}
	return nil, false
}
