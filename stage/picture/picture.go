// Package picture draws the frames of a stage: as SVG, as images, as animated
// GIF, as contact sheets and comparisons, and as text for a terminal.
//
// [Draw] makes of a [stage.Frame] a [Drawing], a list of simple shapes. All that
// a picture looks like is decided there. A drawing has two outputs, which paint
// the same shapes: [Drawing.AppendSVG] and [Drawing.Image]. [Sheet] and
// [Compare] make drawings of several frames; [Animate] makes a GIF of them;
// [Terminal] needs no drawing.
//
// # What one sees
//
// Each visible figure stands on its shadow, or flies above it, drawn as its look's figure (see
// [Figures]; what is not known becomes a token with the first letter of the
// label) in the shades of its look's color, under its tint, turned about its
// middle. Colors are CSS names or hexadecimal; what is neither is grey. The
// states thinking, acting, waiting, done and error have a badge beside the head;
// idle has none; any other state stands behind the label, if there is one. Above the head is the
// speech, four lines at most, of which the last are kept. Beams go from the
// middle of one figure to the middle of the other. A sound is a note beside its
// figure, or in the lower left corner, for 600 milliseconds.
//
// Layers, and y within a layer, have decided the order of the frame's figures
// before; they are drawn in the order in which they come.
//
// # Invariants
//
//   - Nothing here reads a clock or keeps a state: the same frame and options
//     give the same drawing, and a drawing the same bytes of SVG on every
//     machine. The tests hold the latter against stored documents. Images are made of
//     the same exact arithmetic, but what a later version of the rasterizing
//     library makes of an edge is its own business.
//   - Any frame can be drawn. What is no number, or lies outside of the picture,
//     is not drawn.
//   - Every document is well-formed XML, whatever the names and texts are, and refers
//     to nothing outside of itself.
//   - Symbols are named after everything that they are made of, so that several
//     documents can stand in one page.
//
// # Limits
//
// A picture has at most 10,000 figures, 500 beams and 300 speeches, and figures
// only as long as they cover no more than 24 pictures together; what is left out
// is counted in [Drawing.Omitted] and shown in the upper right corner. Texts are
// read up to 4 KiB, and cut where there is no room.
//
// Images are set in the Go fonts, which have Latin, Greek and Cyrillic letters.
// Other characters become empty boxes in images; SVG and terminals leave them to the
// viewer's fonts. Combining marks for which there is no glyph are lost in images.
package picture
