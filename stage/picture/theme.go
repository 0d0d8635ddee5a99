package picture

import "image/color"

// Theme selects the background of pictures.
type Theme string

// The themes. A theme replaces the background of a scene only if that is not of its kind:
// the dark theme keeps a dark scene as it is.
const (
	ThemeScene Theme = ""      // each scene has its own background, pages are dark
	ThemeDark  Theme = "dark"  // light text on a dark background
	ThemeLight Theme = "light" // dark text on a light background
)

// Themes returns the names of the themes that a user can choose.
func Themes() []Theme { return []Theme{ThemeDark, ThemeLight} }

// day is the background of the light theme.
var day = color.NRGBA{246, 244, 238, 255}

// ground returns the background of a scene under the theme.
func (t Theme) ground(own color.NRGBA) color.NRGBA {
	switch {
	case t == ThemeLight && !bright(own):
		return day
	case t == ThemeDark && bright(own):
		return night
	}
	return own
}

// inks are the colors of a page around pictures.
type inks struct{ ground, text, dim color.NRGBA }

// page returns the colors of pages.
func (t Theme) page() inks {
	if t == ThemeLight {
		return inks{ground: mix(day, white, .6), text: ink, dim: mix(neutral, ink, .45)}
	}
	return inks{ground: mix(night, black, .45), text: paper, dim: neutral}
}
