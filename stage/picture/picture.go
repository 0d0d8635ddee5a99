// Package picture draws the frames of a stage: as SVG, as images, as animated
// GIF, as contact sheets and comparisons, and as text for a terminal.
//
// [Draw] turns a [stage.Frame] into a [Drawing], a list of simple shapes. It alone
// determines the appearance of a picture. A drawing has two outputs, which paint the same
// shapes: [Drawing.AppendSVG] and [Drawing.Image]. [Sheet] and [Compare] make drawings of
// several frames; [Animate] makes a GIF of them; [Terminal] needs no drawing.
//
// # Appearance
//
// Each visible figure stands on its shadow, or flies above it. It is drawn as its look's
// figure (see [Figures]; an unknown name becomes a token with the first letter of the
// label) in the shades of its look's color, under its tint, turned about its middle. A tint
// leaves at least two fifths of these colors, so that a figure that flashes is recognised.
// Colors are CSS names or hexadecimal; anything else is grey. The states thinking, acting,
// waiting, done and error have a badge beside the head; idle has none; any other state is
// written after the label, if there is one. The speech is above the head, with its last
// lines, four at most. Beams go from the middle of one figure to the middle of the other. A sound
// is a note beside its figure, or in the lower left corner, for 600 milliseconds. Slots,
// waypoints and routes of the scene are shown on demand ([Options.Places]).
//
// Figures are drawn in the order of the frame, which is by layer and, within a layer,
// by y.
//
// # Places of texts
//
// A label is under its figure, a speech above the head, and the note of a sound beside its
// figure. A text whose place is taken by a figure, a badge or another text moves to the
// nearest free area: a label, the name of a place and a note stay as near to their figure or
// place as 40 of the picture's units at its natural width, a speech as near as 180, tied to
// its speaker. Labels take their places first, in the order of the figures, then the names
// of places, speeches, and notes.
//
// Figures side by side share their row: labels are shortened to fit between each other. A
// speech that would have to move becomes smaller instead, down to one line; if more than six
// figures speak, all bubbles are small.
//
// A text without a free area is left out and counted, so no text covers a figure or another
// text. An area counts as free if it is free and wider and higher than the text by two 256ths
// of the picture's width; one that is hardly larger than the text may not be found. The
// count is in the upper right corner, or at the nearest area without a figure.
// [Drawing.Boxes] has all areas.
//
// # Invariants
//
//   - The package reads no clock and keeps no state: the same frame and options give
//     the same drawing, and a drawing the same bytes of SVG on every machine. The tests
//     compare the bytes with stored documents. Images use the same exact arithmetic, but
//     a later version of the rasterizing library may paint edges differently.
//   - Any frame can be drawn. Elements at NaN or outside of the picture are not
//     drawn.
//   - Every document is well-formed XML, whatever the names and texts are, and refers
//     to nothing outside of itself.
//   - Texts are as wide as in the drawing in every viewer of a document: their letters are
//     outlines, with the text itself as the label of their group. A text with characters
//     that the built-in fonts lack is an element of its own, fitted to its width and
//     clipped to it.
//   - The name of a symbol is made of everything that determines its shapes, so that
//     several documents can be in one page.
//
// # Limits
//
// A picture has at most 10,000 figures, 500 beams and 300 speeches, and its figures cover
// at most the area of 24 pictures together. [Drawing.Omitted] counts the elements that are left
// out beyond these limits and the texts without room, and the picture shows the count.
// Texts are read up to 4 KiB, and cut where there is no room.
//
// Texts are set in the Go fonts, which have Latin, Greek and Cyrillic letters.
// Other characters become empty boxes in images, unless the rasterizer has a [Font] with
// them; [Drawing.Missing] lists them. SVG leaves texts with such characters, and terminals
// leave all texts, to the viewer's fonts. Combining marks for which there is no glyph are
// lost in images.
//
// docs/glossary.md has the nouns of all packages.
package picture
