package picture

import "unicode"

// visual returns the characters of a text in the order and in the forms in which they are
// painted. Without shaping it is the text itself.
//
// Only what labels and sentences need is done: a run of letters that are written from right
// to left is reversed as a whole, with the spaces and marks between them, and digits within
// keep their order. The text around a run stays from left to right.
func visual(s string, shaping bool) []rune {
	runes := []rune(s)
	if !shaping {
		return runes
	}
	for i := 0; i < len(runes); i++ {
		if !rightToLeft(runes[i]) {
			continue
		}
		end := i + 1
		for j := end; j < len(runes) && !unicode.In(runes[j], unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul); j++ {
			if rightToLeft(runes[j]) {
				end = j + 1
			}
		}
		join(runes[i:end])
		reverse(runes[i:end])
		i = end
	}
	return runes
}

func rightToLeft(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Hebrew) && (unicode.IsLetter(r) || unicode.Is(unicode.Mn, r))
}

// reverse reverses a run, in which numbers keep their order.
func reverse(run []rune) {
	for i, j := 0, len(run)-1; i < j; i, j = i+1, j-1 {
		run[i], run[j] = run[j], run[i]
	}
	for i := 0; i < len(run); i++ {
		end := i
		for end < len(run) && unicode.IsDigit(run[end]) {
			end++
		}
		for a, b := i, end-1; a < b; a, b = a+1, b-1 {
			run[a], run[b] = run[b], run[a]
		}
		i = max(i, end-1)
	}
	mirror := map[rune]rune{'(': ')', ')': '(', '[': ']', ']': '[', '{': '}', '}': '{', '<': '>', '>': '<', '«': '»', '»': '«'}
	for i, r := range run {
		if m, ok := mirror[r]; ok {
			run[i] = m
		}
	}
}

// arabicForms has the number of forms of each letter from U+0621 to U+063A and from U+0641 to
// U+064A: 1 alone, 2 with one joined to the letter before, 4 with two more that join the
// letter after. The characters of the forms follow each other from U+FE80, in this order:
// alone, final, initial, medial.
const arabicForms = "12222424244444222244444444" + "4444444224"

// form is the first of the presentation forms of a letter, and their number; 0 for other
// characters.
func arabicForm(r rune) (first rune, forms int) {
	i := int(r) - 0x621
	switch {
	case r >= 0x641 && r <= 0x64a:
		i = int(r) - 0x641 + 26
	case r < 0x621 || r > 0x63a:
		return 0, 0
	}
	first = 0xfe80
	for _, n := range arabicForms[:i] {
		first += n - '0'
	}
	return first, int(arabicForms[i] - '0')
}

// join replaces the Arabic letters of a run, in the order in which they are read, by the forms
// by which they join.
func join(run []rune) {
	letters := make([]rune, len(run))
	copy(letters, run)
	near := func(i, step int) (r rune) { // the next letter, past the marks above letters
		for i += step; i >= 0 && i < len(letters); i += step {
			if !unicode.Is(unicode.Mn, letters[i]) {
				return letters[i]
			}
		}
		return 0
	}
	const tatweel = 0x640 // joins on both sides
	for i, r := range letters {
		first, forms := arabicForm(r)
		if forms == 0 {
			continue
		}
		_, before := arabicForm(near(i, -1))
		_, after := arabicForm(near(i, 1))
		joinsBefore := forms > 1 && (before == 4 || near(i, -1) == tatweel)
		joinsAfter := forms == 4 && (after > 1 || near(i, 1) == tatweel)
		switch {
		case joinsBefore && joinsAfter:
			run[i] = first + 3
		case joinsAfter:
			run[i] = first + 2
		case joinsBefore:
			run[i] = first + 1
		default:
			run[i] = first
		}
	}
}
