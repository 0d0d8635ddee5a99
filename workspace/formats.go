package workspace

import "strings"

// fileChange is the part of a patch about one file.
type fileChange struct {
	op    byte // 'A' for a new file, 'D' for a deleted one, 'U' for a changed one
	path  string
	to    string // of a moved file
	text  string // of a new file
	hunks []hunk
}

// parsePatch reads the format of the tool apply_patch. It is lenient: what it does not
// understand ends the part it stands in.
func parsePatch(text string) []fileChange {
	_, body, ok := strings.Cut(text, "*** Begin Patch")
	if !ok {
		return nil
	}
	body, _, _ = strings.Cut(body, "*** End Patch")
	var changes []fileChange
	var c *fileChange
	var h *hunk
	var added strings.Builder // the text of a new file
	end := func() {
		if c != nil && c.op == 'A' {
			c.text = added.String()
		}
		added.Reset()
	}
	for line := range strings.SplitSeq(body, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if rest, ok := strings.CutPrefix(line, "*** "); ok {
			verb, name, _ := strings.Cut(rest, ": ")
			name = strings.TrimSpace(name)
			switch verb {
			case "Add File", "Delete File", "Update File":
				end()
				changes = append(changes, fileChange{op: verb[0], path: name})
				c, h = &changes[len(changes)-1], nil
			case "Move to":
				if c != nil {
					c.to = name
				}
			case "End of File":
				if h != nil {
					h.atEnd = true
				}
			}
			continue
		}
		if c == nil {
			continue
		}
		if c.op == 'A' {
			if rest, ok := strings.CutPrefix(line, "+"); ok {
				added.WriteString(rest + "\n")
			}
			continue
		}
		if c.op != 'U' {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "@@"); ok {
			c.hunks = append(c.hunks, hunk{after: strings.TrimSpace(rest)})
			h = &c.hunks[len(c.hunks)-1]
			continue
		}
		if h == nil {
			if line == "" {
				continue
			}
			c.hunks = append(c.hunks, hunk{})
			h = &c.hunks[len(c.hunks)-1]
		}
		addHunkLine(h, line)
	}
	end()
	for i := range changes {
		trimHunks(&changes[i])
	}
	return changes
}

func addHunkLine(h *hunk, line string) {
	switch {
	case line == "":
		h.lines = append(h.lines, hunkLine{' ', ""})
	case line[0] == ' ' || line[0] == '-' || line[0] == '+':
		h.lines = append(h.lines, hunkLine{line[0], line[1:]})
	}
}

// trimHunks removes the empty line that stands before the next header.
func trimHunks(c *fileChange) {
	for i := range c.hunks {
		h := &c.hunks[i]
		if n := len(h.lines); n > 0 && h.lines[n-1] == (hunkLine{' ', ""}) {
			h.lines = h.lines[:n-1]
		}
	}
}

// parseUnified reads a unified diff, with the names that --- and +++ give.
func parseUnified(text string) []fileChange {
	var changes []fileChange
	var c *fileChange
	var h *hunk
	left, right := 0, 0 // lines of the hunk that are still to come
	before := ""
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case h != nil && (left > 0 || right > 0):
			addHunkLine(h, line)
			if line == "" || line[0] != '+' {
				left--
			}
			if line == "" || line[0] != '-' {
				right--
			}
		case strings.HasPrefix(line, "--- "):
			before = diffName(line[4:])
			c, h = nil, nil
		case strings.HasPrefix(line, "+++ "):
			name := diffName(line[4:])
			change := fileChange{op: 'U', path: name}
			switch {
			case name == "/dev/null":
				change = fileChange{op: 'D', path: before}
			case before == "/dev/null":
				change.op = 'A'
			}
			changes = append(changes, change)
			c, h = &changes[len(changes)-1], nil
		case c != nil && strings.HasPrefix(line, "@@ -"):
			start, l, r, ok := hunkHead(line)
			if !ok {
				c = nil
				continue
			}
			if l == 0 {
				start++ // nothing goes, and the place is behind the line of that number
			}
			c.hunks = append(c.hunks, hunk{start: start})
			h = &c.hunks[len(c.hunks)-1]
			left, right = l, r
		}
	}
	for i := range changes {
		if c := &changes[i]; c.op == 'A' {
			var added strings.Builder
			for _, h := range c.hunks {
				for _, l := range h.lines {
					added.WriteString(l.text + "\n")
				}
			}
			c.text, c.hunks = added.String(), nil
		}
	}
	return changes
}

func diffName(s string) string {
	s, _, _ = strings.Cut(s, "\t")
	if rest, ok := strings.CutPrefix(s, "a/"); ok {
		return rest
	}
	if rest, ok := strings.CutPrefix(s, "b/"); ok {
		return rest
	}
	return strings.TrimSpace(s)
}

// hunkHead reads "@@ -12,3 +12,4 @@".
func hunkHead(line string) (start, left, right int, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return 0, 0, 0, false
	}
	start, left, ok = lineRange(fields[1], "-")
	_, right, ok2 := lineRange(fields[2], "+")
	return start, left, right, ok && ok2
}

func lineRange(s, sign string) (start, n int, ok bool) {
	s, ok = strings.CutPrefix(s, sign)
	if !ok {
		return 0, 0, false
	}
	first, size, sized := strings.Cut(s, ",")
	start, ok = smallNumber(first)
	n = 1
	if sized && ok {
		n, ok = smallNumber(size)
	}
	return start, n, ok
}

// smallNumber reads a decimal number of at most nine digits.
func smallNumber(s string) (n int, ok bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// replacement is a text and the one that takes its place.
type replacement struct{ old, text string }

// parseSearchReplace reads blocks of the form
//
//	<<<<<<< SEARCH
//	old lines
//	=======
//	new lines
//	>>>>>>> REPLACE
//
// with any number of signs from three on, or the words of Cline for the signs (------- SEARCH, +++++++ REPLACE).
// A block without its end is left out.
func parseSearchReplace(text string) (blocks []replacement) {
	const outside, inOld, inNew = 0, 1, 2
	state := outside
	var old, replacing strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		bare := strings.TrimSuffix(line, "\r")
		switch {
		case isFence(bare, "<-", " SEARCH"):
			old.Reset()
			replacing.Reset()
			state = inOld
		case state == inOld && isFence(bare, "=", ""):
			state = inNew
		case state == inNew && isFence(bare, ">+", " REPLACE"):
			blocks = append(blocks, replacement{old.String(), replacing.String()})
			state = outside
		case state == inOld:
			old.WriteString(line + "\n")
		case state == inNew:
			replacing.WriteString(line + "\n")
		}
	}
	return blocks
}

// isFence reports whether a line is three or more equal signs out of a set, and then
// a word.
func isFence(line, signs, word string) bool {
	head, ok := strings.CutSuffix(line, word)
	if word != "" && !ok {
		head, ok = strings.CutSuffix(line, word+">") // a slip that the tool accepts
	}
	if !ok || len(head) < 3 || strings.IndexByte(signs, head[0]) < 0 {
		return false
	}
	return strings.Trim(head, head[:1]) == ""
}
