package scene

import "github.com/sajou-dev/sajou-go/signal"

// Write returns the value that the importer writes for a scene.
func Write(s *Scene) signal.Value { return s.write() }

// Judge reports whether a value has errors that the schema can express, and others.
func Judge(v signal.Value) (structural, beyond bool) {
	var r reader
	r.scene(&node{value: v})
	return len(r.List()) > r.beyond, r.beyond > 0
}

// ColorNames are the names of colors.
func ColorNames() map[string]bool { return colorNames }
