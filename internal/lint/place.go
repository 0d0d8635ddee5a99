package lint

import (
	"slices"
	"strconv"

	"github.com/sajou-dev/sajou-go/internal/jsonplace"
)

// spot leads from the root of a JSON text to one of its values. Nil is the root.
type spot struct {
	parent  *spot
	segment string // the name of a member, or an index
	key     bool   // the member's name is meant, not its value
}

func (s *spot) at(name string) *spot   { return &spot{parent: s, segment: name} }
func (s *spot) name(name string) *spot { return &spot{parent: s, segment: name, key: true} }
func (s *spot) element(i int) *spot    { return s.at(strconv.Itoa(i)) }

func (s *spot) segments() []string {
	var segments []string
	for ; s != nil; s = s.parent {
		segments = append(segments, s.segment)
	}
	slices.Reverse(segments)
	return segments
}

func (s *spot) pointer() string { return jsonplace.Pointer(s.segments()) }

func (s *spot) mark() *jsonplace.Mark {
	return &jsonplace.Mark{Segments: s.segments(), AtName: s != nil && s.key}
}
