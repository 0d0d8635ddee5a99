package source

import (
	"path"
	"strings"
	"unicode"
)

// extensions are the ends of names that say nothing of a recording. An expanded file is
// without .gz and .zst already.
var extensions = []string{".jsonl", ".ndjson", ".json", ".traj", ".md", ".txt", ".log", ".pb", ".binpb", ".trace", ".messages"}

// maxSession is the longest name that is suggested; a log allows more.
const maxSession = 128

// sessionName suggests the name of a session for a recording: its path in what was
// opened, without extensions and without characters that do not print.
func sessionName(p string) string {
	dir, base := path.Split(p)
	base = strings.TrimLeft(base, ".")
	for range 2 { // session.traj.json
		for _, end := range extensions {
			if short, cut := strings.CutSuffix(base, end); cut && short != "" {
				base = short
				break
			}
		}
	}
	name := strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(dir+base, "_"))
	if len(name) > maxSession {
		// The end tells recordings of one folder apart.
		name = strings.TrimLeft(strings.ToValidUTF8(name[len(name)-maxSession:], ""), "/ ")
	}
	if name = strings.TrimSpace(name); name == "" {
		return "recording"
	}
	return name
}
