package scene

import (
	"strings"
	"unicode"
)

// builtIn are the looks that every scene has unless it declares others of the same
// name. They are named after the figures that package picture draws.
var builtIn = map[string]Look{
	"person":   {"person", "#8aa4c8", defaultSize},
	"robot":    {"robot", "#7dd3c0", defaultSize},
	"bird":     {"bird", "#e5e7eb", 36},
	"building": {"building", "#64748b", 96},
	"house":    {"house", "#b08968", 84},
	"box":      {"box", "#c69c6d", 44},
	"gear":     {"gear", "#94a3b8", 44},
	"tool":     {"gear", "#94a3b8", 44},
	"star":     {"star", "#fbbf24", 40},
	"document": {"document", "#e2e8f0", 40},
	"screen":   {"screen", "#60a5fa", defaultSize},
	"database": {"database", "#a78bfa", defaultSize},
	"cloud":    {"cloud", "#bae6fd", defaultSize},
	"tree":     {"tree", "#4d9f6b", 84},
	"flag":     {"flag", "#f87171", 60},
	"dot":      {"dot", "#cbd5e1", 20},
	"lens":     {"lens", "#9d8df1", defaultSize},
	"pencil":   {"pencil", "#f08a6c", defaultSize},
	"flask":    {"flask", "#e58fb1", defaultSize},
	"token":    {"token", "#8aa4c8", 48},
}

// figureWords maps the words in the name and tags of an image to a figure.
var figureWords = figureTable(`
	person: person human user worker peon people villager farmer king queen knight warrior pawn guard character unit npc actor hero wizard wanderer
	robot: robot bot agent assistant droid mech mechanical humanoid
	bird: bird pigeon crow raven owl messenger plane drone flying
	house: house hut home cottage forge smithy barn shop
	building: building tower castle office oracle temple factory gate wall bridge market
	gear: gear cog tool wrench anvil hammer machine engine
	document: document scroll letter email mail invoice paper book file note
	screen: screen terminal computer monitor desk
	database: database server rack barrel storage disk archive
	cloud: cloud smoke fog
	tree: tree bush forest plant pine oak
	flag: flag banner
	star: star gold coin flash crash explosion spark
	dot: dot point marker orb ball
`)

func figureTable(table string) map[string]string {
	words := map[string]string{}
	for line := range strings.Lines(table) {
		figure, list, _ := strings.Cut(strings.TrimSpace(line), ":")
		for word := range strings.FieldsSeq(list) {
			words[word] = figure
		}
	}
	return words
}

// figureFor returns the figure for an image, chosen by the words of its names, or a box.
func figureFor(names ...string) string {
	for _, name := range names {
		for word := range strings.FieldsFuncSeq(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) }) {
			if figure, ok := figureWords[word]; ok {
				return figure
			}
		}
	}
	return "box"
}

// paints are the colors of looks without one, used in turn.
var paints = [...]string{"#7dd3c0", "#f2b84b", "#5aa9e6", "#e58fb1", "#6fcf97", "#f08a6c", "#9d8df1", "#d9c76a"}

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
