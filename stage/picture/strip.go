package picture

// Strip writes several drawings as parts of one SVG document. What more than one of
// them uses, such as a figure or a letter, is defined once. The zero Strip is ready for
// use.
type Strip struct{ w svg }

// Append returns the parts of the next drawing: the elements of its definitions that no
// drawing before had, for the defs of the document, and its shapes. Each element begins
// on a line of its own. The slices are valid until the next call.
func (s *Strip) Append(d *Drawing) (definitions, shapes []byte) {
	if s.w.known == nil {
		s.w.known, s.w.glyphs = map[string]bool{}, map[letter]bool{}
	}
	s.w.b = s.w.b[:0]
	s.w.define(d.shapes)
	n := len(s.w.b)
	s.w.shapes(d.shapes)
	return s.w.b[:n:n], s.w.b[n:]
}
