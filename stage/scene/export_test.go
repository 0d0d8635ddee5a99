package scene

import "github.com/sajou-dev/sajou-go/signal"

// Write returns what the importer would write for a scene.
func Write(s *Scene) signal.Value { return s.write() }

// Judge returns whether a value has errors that the schema can tell, and others.
func Judge(v signal.Value) (structural, beyond bool) {
	var r reader
	r.scene(&node{value: v})
	for _, f := range r.findings {
		structural = structural || !f.beyond
		beyond = beyond || f.beyond
	}
	return structural, beyond
}

// Matches is the rule of Rule.Match.
func Matches(pattern, text string) bool { return matches(pattern, text) }

// ColorNames are the names of colors.
func ColorNames() map[string]bool { return colorNames }
