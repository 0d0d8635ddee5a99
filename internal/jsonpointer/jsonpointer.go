// Package jsonpointer writes, splits and follows JSON pointers (RFC 6901).
package jsonpointer

import (
	"strconv"
	"strings"
)

// Escape returns a member's name as a segment of a pointer: ~0 for a tilde, ~1
// for a slash.
func Escape(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// Unescape returns the name that a segment stands for. A tilde that begins
// part of neither escape is kept.
func Unescape(segment string) string {
	if !strings.Contains(segment, "~") {
		return segment
	}
	return strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
}

// Join returns the pointer that follows names and indexes from the root.
func Join(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteByte('/')
		b.WriteString(Escape(name))
	}
	return b.String()
}

// Split returns the names and indexes of a pointer, nil for the empty pointer.
// A first segment need not follow a slash.
func Split(pointer string) []string {
	if pointer == "" {
		return nil
	}
	names := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := range names {
		names[i] = Unescape(names[i])
	}
	return names
}

// Member returns the member of a view with a name, or its element with an index in decimal
// digits. A view is a map, a slice, or has a method Member, as views that are read
// member by member have. It returns false if there is none.
func Member(view any, name string) (any, bool) {
	switch v := view.(type) {
	case interface {
		Member(name string) (any, bool)
	}:
		return v.Member(name)
	case map[string]any:
		next, ok := v[name]
		return next, ok
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		return v[i], true
	}
	return nil, false
}
