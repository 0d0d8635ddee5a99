package scene

import "strings"

// colorNames are the names of colors that CSS shares with SVG.
var colorNames = nameSet(`
	aliceblue antiquewhite aqua aquamarine azure beige bisque black blanchedalmond blue blueviolet
	brown burlywood cadetblue chartreuse chocolate coral cornflowerblue cornsilk crimson cyan darkblue
	darkcyan darkgoldenrod darkgray darkgreen darkgrey darkkhaki darkmagenta darkolivegreen darkorange
	darkorchid darkred darksalmon darkseagreen darkslateblue darkslategray darkslategrey darkturquoise
	darkviolet deeppink deepskyblue dimgray dimgrey dodgerblue firebrick floralwhite forestgreen
	fuchsia gainsboro ghostwhite gold goldenrod gray green greenyellow grey honeydew hotpink indianred
	indigo ivory khaki lavender lavenderblush lawngreen lemonchiffon lightblue lightcoral lightcyan
	lightgoldenrodyellow lightgray lightgreen lightgrey lightpink lightsalmon lightseagreen
	lightskyblue lightslategray lightslategrey lightsteelblue lightyellow lime limegreen linen magenta
	maroon mediumaquamarine mediumblue mediumorchid mediumpurple mediumseagreen mediumslateblue
	mediumspringgreen mediumturquoise mediumvioletred midnightblue mintcream mistyrose moccasin
	navajowhite navy oldlace olive olivedrab orange orangered orchid palegoldenrod palegreen
	paleturquoise palevioletred papayawhip peachpuff peru pink plum powderblue purple red rosybrown
	royalblue saddlebrown salmon sandybrown seagreen seashell sienna silver skyblue slateblue slategray
	slategrey snow springgreen steelblue tan teal thistle tomato turquoise violet wheat white
	whitesmoke yellow yellowgreen
`)

func nameSet(list string) map[string]bool {
	set := make(map[string]bool)
	for name := range strings.FieldsSeq(list) {
		set[name] = true
	}
	return set
}

// isColor reports whether text is #rgb, #rgba, #rrggbb, #rrggbbaa or the name of
// a color in lower case.
func isColor(text string) bool {
	digits, hex := strings.CutPrefix(text, "#")
	if !hex {
		return colorNames[text]
	}
	switch len(digits) {
	case 3, 4, 6, 8:
		return strings.Trim(digits, "0123456789abcdefABCDEF") == ""
	default:
		return false
	}
}
