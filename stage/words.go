package stage

import (
	"strings"
	"time"
	"unicode/utf8"
)

// The pace of speech; see the action say in the package comment.
const (
	speechRate  = 30 // characters a second
	maxSpeech   = 200
	speechStays = 5 * time.Second
	speechFades = 400 * time.Millisecond
	speechGap   = 3 * time.Second // after a longer pause appended text replaces the speech
)

// words is the text of an entity while no act types it: text that stays, or speech
// that is typed by itself and then disappears.
type words struct {
	text   string
	speech bool
	stream bool // the speech began with append, so that more can be added

	// These are of speech. The first before characters were typed at the instant since,
	// and the others follow. said is the instant of the last text that was added.
	runes       int
	before      int
	since, said time.Duration
}

// say returns the words after more is said. A sentence keeps its beginning, a stream its
// end.
func (w words) say(more string, add bool, at time.Duration) words {
	if !add || !w.speech || w.text == "" || at-w.said > speechGap {
		s, cut := clip(more, maxSpeech)
		if cut {
			s, _ = clip(more, maxSpeech-1)
			s += "…"
		}
		return words{text: strings.Clone(s), speech: true, stream: add, runes: utf8.RuneCountInString(s), since: at, said: at}
	}
	if more == "" {
		return w
	}
	typed := w.typed(at)
	if typed == w.runes {
		w.before, w.since = w.runes, at
	}
	added := utf8.RuneCountInString(more)
	drop := max(0, w.runes+added-maxSpeech)
	if drop >= w.runes {
		w.text = strings.Clone(more[len(prefix(more, drop-w.runes)):])
	} else {
		w.text = w.text[len(prefix(w.text, drop)):] + more
	}
	w.runes += added - drop
	w.before -= drop
	if typed < drop {
		w.before, w.since = 0, at
	}
	w.said = at
	return w
}

// typed returns the number of characters that are visible. It is never negative:
// before is negative only by characters that were dropped after they were typed.
func (w *words) typed(at time.Duration) int {
	elapsed := int64(max(0, at-w.since))
	n := elapsed/second*speechRate + elapsed%second*speechRate/second
	return int(max(0, min(int64(w.before)+n, int64(w.runes))))
}

const second = int64(time.Second)

// end is the instant at which speech disappears.
func (w *words) end() time.Duration {
	left := int64(w.runes - w.before)
	typing := left/speechRate*second + (left%speechRate*second+speechRate-1)/speechRate
	return later(later(w.since, time.Duration(typing)), speechStays)
}

// at returns the visible text and its opacity.
func (w *words) at(at time.Duration) (string, float64) {
	if !w.speech {
		return w.text, 1
	}
	left := w.end() - at
	if left <= 0 {
		return "", 1
	}
	return prefix(w.text, w.typed(at)), share(left, speechFades)
}

// prefix returns the first n characters of s.
func prefix(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// clip returns the first n characters of s, and whether there are more.
func clip(s string, n int) (string, bool) {
	p := prefix(s, n)
	return p, len(p) < len(s)
}
