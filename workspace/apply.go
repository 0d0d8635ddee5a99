package workspace

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// file returns the record of a path, and makes one if there is none.
func (s *State) file(path string) *tracked {
	f := s.files[path]
	if f == nil {
		f = &tracked{document: unknownDocument(), path: strings.Clone(path), exists: true, sure: true}
		s.files[f.path] = f
		i, _ := slices.BinarySearch(s.paths, f.path)
		s.paths = slices.Insert(s.paths, i, f.path)
		s.measure(f)
	}
	return f
}

// apply applies one act.
func (s *State) apply(a *act, c cause) {
	switch a.verb {
	case remove:
		if a.failed {
			s.doubt(a.path, c)
			return
		}
		for _, f := range s.below(a.path, true) {
			f.gone(a.certain, c)
			s.measure(f)
		}
		return
	case rename, duplicate:
		if a.failed {
			s.doubt(a.path, c)
			s.doubt(a.to, c)
			return
		}
		s.transfer(a, c)
		return
	case doubt:
		for _, f := range s.below(a.path, a.certain && !a.folder) {
			f.guess()
			f.touched = c.seen
			if a.certain && f.path == a.path {
				f.by = c.by // a tool changed it, in a way that is not known
			}
			s.measure(f)
		}
		return
	default:
	}
	f := s.file(a.path)
	s.work += f.cost() * max(1, len(a.edits)+len(a.hunks))
	if s.work > maxWork {
		f.document, f.forgotten = unknownDocument(), true
		f.touched = c.seen
		if !a.readsOnly() {
			f.by = c.by
		}
	} else {
		f.apply(a, c)
	}
	s.measure(f)
}

// doubt notes that files may have changed, or may be gone.
func (s *State) doubt(path string, c cause) {
	for _, f := range s.below(path, false) {
		f.guess()
		f.sure, f.touched = false, c.seen
	}
}

// gone notes that the file was deleted, perhaps.
func (f *tracked) gone(certain bool, c cause) {
	if certain {
		f.document = document{}
	} else {
		f.guess()
	}
	f.exists, f.sure = false, certain
	f.by, f.touched, f.forgotten = c.by, c.seen, false
}

// apply applies an act that concerns one file.
func (f *tracked) apply(a *act, c cause) {
	f.touched = c.seen
	if !a.readsOnly() {
		f.by = c.by
	}
	if !f.exists && !f.sure {
		f.document = unknownDocument() // whether it was deleted is not known
	}
	there := f.exists || !f.sure
	f.exists, f.sure = true, f.sure && f.exists || a.certain || a.readsOnly()
	if a.verb != write && a.verb != show && a.verb != touch && !there {
		f.document = unknownDocument()
	}
	f.changed = f.by
	if a.before != nil {
		f.show(*a.before, Known, c)
	}
	kind := Known
	if !a.certain {
		kind = Guessed
	}
	switch a.verb {
	case write:
		f.write(a.text, kind, c)
		f.forgotten = false
	case touch:
		f.document = unknownDocument()
	case show:
		f.show(a.text, Known, c)
		f.forgotten = false
		if n := len(f.spans); a.trimmed && n > 0 {
			f.spans[n-1].kind = Guessed
		}
	case list:
		f.listed(a, c)
	case extend:
		f.appendText(a.text, kind, c)
	case insert:
		f.insert(a.start, a.text, c)
	case patch:
		f.patch(a.hunks, c)
	case patchAt:
		f.patchAt(a.hunks, c)
	case edit:
		f.edits(a, c)
	default:
	}
	if !a.certain && !a.readsOnly() {
		f.guess()
	}
}

// listed takes over the lines of a listing.
func (f *tracked) listed(a *act, c cause) {
	texts, rest := a.lines, a.rest
	if n := len(texts); n > 0 && texts[n-1] == "" && rest == uncounted && !a.last {
		// It is an empty line, or nothing behind the last line: tools that split at line
		// ends number that too.
		texts = texts[:n-1]
		if f.complete() && len(f.spans) == a.start+n-2 {
			rest = 0
		}
	}
	old, lines := shownLines(texts, a.last)
	if len(lines) > 0 {
		f.put(a.start, old, lines, rest, c)
	}
}

// edits applies the edits of an act. If their places are not known from the text, but
// from the result, that is used.
func (f *tracked) edits(a *act, c cause) {
	if len(a.hunks) > 0 && len(a.edits) == 1 && len(f.find(a.edits[0].old)) == 0 && a.edits[0].old != "" && !f.complete() {
		f.patchAt(a.hunks, c)
		for _, h := range a.hunks {
			for _, l := range h.lines {
				if strings.HasPrefix(l.text, "  ") {
					f.guess() // the result may have spaces for tabs
					return
				}
			}
		}
		return
	}
	for _, e := range a.edits {
		if e.old == "" && len(f.spans) == 1 && f.spans[0].gap == uncounted {
			f.write(e.text, Known, c) // an edit of nothing makes a new file
			continue
		}
		f.edit(e.old, e.text, e.which, c)
	}
}

// below returns the file of a path, and those below it, in the order of their paths.
// If it knows none and make is true, it makes a record of the path.
func (s *State) below(path string, makes bool) []*tracked {
	var found []*tracked
	if f := s.files[path]; f != nil {
		found = append(found, f)
	}
	folder := strings.TrimSuffix(path, "/") + "/"
	i, _ := slices.BinarySearch(s.paths, folder)
	for _, p := range s.paths[i:] {
		if !strings.HasPrefix(p, folder) {
			break
		}
		found = append(found, s.files[p])
	}
	if path == "." {
		for _, p := range s.paths {
			if !isAbsolute(p) {
				found = append(found, s.files[p])
			}
		}
	}
	if len(found) == 0 && makes {
		found = append(found, s.file(path))
	}
	return found
}

// transfer moves or copies a file, or a folder. It is never certain: where it went may
// be a folder.
func (s *State) transfer(a *act, c cause) {
	if a.path == a.to || a.path == "." || a.path == "/" || strings.HasPrefix(a.to, a.path+"/") {
		return
	}
	to := a.to
	if folder := s.below(to, false); !a.certain && len(folder) > 0 && folder[0].path != to {
		to += "/" + a.path[strings.LastIndexByte(a.path, '/')+1:]
	}
	for _, from := range s.below(a.path, true) {
		if from.path != a.path && !from.exists {
			continue
		}
		if s.work += from.cost(); s.work > maxWork {
			return
		}
		target := s.file(to + strings.TrimPrefix(from.path, a.path))
		target.document = *from.clone()
		if !a.certain {
			target.guess()
		}
		target.exists, target.sure, target.forgotten = true, a.certain, from.forgotten
		target.by, target.touched = c.by, c.seen
		s.measure(target)
		if a.verb == rename {
			from.gone(a.certain, c)
			s.measure(from)
		}
	}
}

// measure counts the size of a file anew.
func (s *State) measure(f *tracked) {
	s.held -= f.size
	f.size = f.cost()
	s.held += f.size
}

func (f *tracked) cost() int { return len(f.text) + len(f.spans)*spanCost + len(f.path) + fileCost }

// forget keeps the state within its limit: the texts of the files that were not touched
// for the longest time go, and if that is not enough, their records.
func (s *State) forget() {
	if s.held <= s.limit && len(s.files) <= maxFiles {
		return
	}
	files := make([]*tracked, 0, len(s.files))
	for _, f := range s.files {
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b *tracked) int {
		return cmp.Or(cmp.Compare(a.touched, b.touched), cmp.Compare(a.path, b.path))
	})
	enough := s.limit - s.limit/4
	for _, f := range files {
		if s.held <= enough {
			break
		}
		if f.nothingKnown() {
			continue
		}
		f.document, f.forgotten = unknownDocument(), true
		s.measure(f)
	}
	for _, f := range files {
		if s.held <= enough && len(s.files) <= maxFiles-maxFiles/4 {
			break
		}
		s.held -= f.size
		delete(s.files, f.path)
	}
	s.paths = slices.Sorted(maps.Keys(s.files))
}

// nothingKnown reports whether there is no text to forget.
func (f *tracked) nothingKnown() bool { return countKnown(f.spans) == 0 }
