package workspace

import "github.com/sajou-dev/sajou-go/projection"

// NewState returns a state with a limit of its own.
func NewState(limit int) *State { return newState(limit) }

// Restore reads canonical bytes.
func Restore(data []byte) (projection.State, error) { return restore(data, Limit) }

// Held returns the bytes that count against the limit, counted anew.
func (s *State) Held() (counted, again int) {
	for _, f := range s.files {
		again += f.cost()
	}
	return s.held, again
}

// PendingCalls returns the number of open calls.
func (s *State) PendingCalls() int { return s.pendingCalls }

// Match is match.
var Match = match

// ParseFormats reads a text in each format that tools have for changes.
func ParseFormats(text string) {
	for _, c := range append(parsePatch(text), parseUnified(text)...) {
		d := unknownDocument()
		d.patch(c.hunks, cause{1, 2})
		d.patchAt(c.hunks, cause{1, 2})
		d.write(c.text, Known, cause{1, 2})
		d.patch(c.hunks, cause{3, 4})
	}
	for _, b := range parseSearchReplace(text) {
		d := unknownDocument()
		d.edit(b.old, b.text, first, cause{1, 2})
		d.write(text, Known, cause{1, 2})
		d.edit(b.old, b.text, every, cause{3, 4})
	}
	numbered(text)
}
