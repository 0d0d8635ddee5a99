package scene

import (
	"strings"
	"unicode"
)

// figureWords tells which figure stands for an image, by the words of its name
// and tags.
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

// figureFor returns the figure for an image that cannot be shown: what one of
// the names says, else a box.
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

// paints are the colors of looks that have none, one after the other.
var paints = [...]string{"#7dd3c0", "#f2b84b", "#5aa9e6", "#e58fb1", "#6fcf97", "#f08a6c", "#9d8df1", "#d9c76a"}
