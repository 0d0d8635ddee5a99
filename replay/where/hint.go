package where

import (
	"fmt"
	"regexp"
	"unicode/utf8"
)

const (
	namePattern = `[A-Za-z_]\w*`
	keyPattern  = `\[\s*("[^"\\]*"|'[^'\\]*')\s*\]`
	pathPattern = namePattern + `(?:\.` + namePattern + `|` + keyPattern + `)*`
)

var (
	// hyphened matches a path whose last name has a hyphen, as the ids of agents do. CEL
	// reads the hyphen as a minus.
	hyphened = regexp.MustCompile(`(` + pathPattern + `)\.(` + namePattern + `(?:-\w+)+)`)

	// hasKey matches has() of a name in brackets, which CEL does not have.
	hasKey = regexp.MustCompile(`\bhas\(\s*(` + pathPattern + `)` + keyPattern + `\s*\)`)

	// hasPath matches the beginning of has().
	hasPath = regexp.MustCompile(`\bhas\(\s*$`)
)

// nameHint returns what to write in place of the text around a mistake, if the text is
// probably meant as a name that CEL allows in brackets only. The offset of the mistake
// is in characters, in a line of the expression. Otherwise nameHint returns "".
func nameHint(line string, offset int) string {
	if at := around(hasKey, line, offset); at != nil {
		// The pattern of a path has a group for its own keys, the second.
		return fmt.Sprintf("has() takes a member after a dot; write %s in %s", line[at[6]:at[7]], line[at[2]:at[3]])
	}
	at := around(hyphened, line, offset)
	if at == nil {
		return ""
	}
	path, name := line[at[2]:at[3]], line[at[6]:at[7]]
	if hasPath.MatchString(line[:at[0]]) {
		return fmt.Sprintf("the hyphen is a minus; if %q is a name, write %q in %s", name, name, path)
	}
	return fmt.Sprintf("the hyphen is a minus; if %q is a name, write %s[%q]", name, path, name)
}

// statePath matches the path of a member of the state.
var statePath = regexp.MustCompile(`\b(?:state|prev)((?:\.` + namePattern + `|` + keyPattern + `)+)`)

// pathMember matches one name of such a path.
var pathMember = regexp.MustCompile(`\.(` + namePattern + `)|` + keyPattern)

// StatePaths returns the members of the state that the expression names, such as ["stage",
// "entities", "smoke"], without those of variables of its own. The first name is that of a
// projection.
func (x *Expression) StatePaths() (paths [][]string) {
	for _, at := range statePath.FindAllStringSubmatchIndex(x.source, -1) {
		var names []string
		for _, m := range pathMember.FindAllStringSubmatch(x.source[at[2]:at[3]], -1) {
			name := m[1]
			if name == "" {
				name = m[2][1 : len(m[2])-1]
			}
			names = append(names, name)
		}
		if at[1] < len(x.source) && x.source[at[1]] == '(' { // the last one is a function
			names = names[:len(names)-1]
		}
		if len(names) > 0 && (at[0] == 0 || x.source[at[0]-1] != '.') {
			paths = append(paths, names)
		}
	}
	return paths
}

// around returns the first match of a pattern that covers a character of the text or
// ends before it, as the indexes of its groups.
func around(pattern *regexp.Regexp, text string, offset int) []int {
	for _, at := range pattern.FindAllStringSubmatchIndex(text, -1) {
		from, to := utf8.RuneCountInString(text[:at[0]]), utf8.RuneCountInString(text[:at[1]])
		if from <= offset && offset <= to {
			return at
		}
	}
	return nil
}
