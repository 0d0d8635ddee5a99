package recording

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// SampleBytes is how much of a file's beginning a [Sample] needs.
const SampleBytes = 1 << 20

// sampleLines is the number of lines that are looked at: the first lines of a
// recording are often special.
const sampleLines = 20

// Sample is the beginning of a recording, for [Format.Detect].
type Sample struct {
	Name    string   // of the file or folder
	Folder  []string // the paths below a folder, relative to it; nil for a file
	Head    []byte   // the first bytes of a file
	Whole   bool     // the file has no more
	parsed  bool
	lines   []signal.Value
	paths   map[string]bool
	scalars map[string]string
}

// NewSample returns a sample of a file. Head is at most [SampleBytes].
func NewSample(name string, head []byte, whole bool) *Sample {
	return &Sample{Name: name, Head: bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), Whole: whole}
}

// NewFolderSample returns a sample of a folder with the paths of its files.
func NewFolderSample(name string, files []string) *Sample {
	return &Sample{Name: name, Folder: files}
}

// Base returns the last element of the name.
func (s *Sample) Base() string { return path.Base(s.Name) }

// Lines returns the objects of the first 20 lines, if the sample has one JSON object a
// line and is not one document.
func (s *Sample) Lines() []signal.Value {
	s.parse()
	return s.lines
}

// AnyLine reports whether a condition holds for one of the lines.
func (s *Sample) AnyLine(is func(signal.Value) bool) bool {
	for _, line := range s.Lines() {
		if is(line) {
			return true
		}
	}
	return false
}

// Has reports whether the sample is a JSON document that has all of the members at the
// given paths, such as "data[].spans[].traceID" or "[].role" in an array. It sees no more
// of a long document than its beginning, and of a text with lines the first document.
func (s *Sample) Has(paths ...string) bool {
	s.parse()
	for _, p := range paths {
		if !s.paths[p] {
			return false
		}
	}
	return true
}

// Text returns the first text that stands at a path of the document, as in [Sample.Has].
func (s *Sample) Text(path string) string {
	s.parse()
	return s.scalars[path]
}

func (s *Sample) parse() {
	if s.parsed {
		return
	}
	s.parsed = true
	s.paths, s.scalars = map[string]bool{}, map[string]string{}
	head := bytes.TrimSpace(s.Head)
	if len(head) == 0 || head[0] != '{' && head[0] != '[' {
		return
	}
	s.walk()
	if s.Whole && json.Valid(head) {
		if !bytes.ContainsRune(head, '\n') && head[0] == '{' {
			// A file of one line is a document, and also a recording of one record.
			if v, _, err := ParseJSON(head); err == nil {
				s.lines = []signal.Value{v}
			}
		}
		return
	}
	for line := range bytes.Lines(s.Head) {
		if len(s.lines) == sampleLines {
			return
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] != '{' {
			continue
		}
		if v, _, err := ParseJSON(line); err == nil && v.Kind() == signal.KindObject {
			s.lines = append(s.lines, v)
		}
	}
}

// walk notes the paths of the first document, down to depth members.
func (s *Sample) walk() {
	const depth, most = 6, 200_000
	d := json.NewDecoder(bytes.NewReader(s.Head))
	type level struct {
		path  string
		array bool
		key   bool // the next token is a key
	}
	var open []level
	member := ""
	for range most {
		token, err := d.Token()
		if err != nil {
			return
		}
		if n := len(open); n > 0 && open[n-1].key {
			if name, isKey := token.(string); isKey {
				member = strings.TrimPrefix(open[n-1].path+"."+name, ".")
				if n <= depth {
					s.paths[member] = true
				}
				open[n-1].key = false
				continue
			}
		}
		at := member
		if n := len(open); n > 0 && open[n-1].array {
			at = open[n-1].path + "[]"
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			open = append(open, level{path: at, array: token == json.Delim('['), key: token == json.Delim('{')})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			if len(open) == 0 {
				return
			}
		default:
			if text, isText := token.(string); isText && len(open) <= depth {
				if _, had := s.scalars[at]; !had {
					s.scalars[at] = text
				}
			}
		}
		if n := len(open); n > 0 && !open[n-1].array {
			open[n-1].key = true
		}
	}
}
