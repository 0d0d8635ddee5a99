package aider

import (
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
)

// tokens reads a line such as
//
//	Tokens: 4.2k sent, 3k cache write, 1k cache hit, 1.1k received. Cost: $0.01 message, $0.05 session.
//
// The numbers are rounded.
func tokens(line string) (u recording.TokenCount, ok bool) {
	rest, is := strings.CutPrefix(line, "Tokens: ")
	if !is {
		return u, false
	}
	counts, cost, _ := strings.Cut(rest, "Cost: ")
	for part := range strings.SplitSeq(strings.TrimRight(strings.TrimSpace(counts), "."), ", ") {
		number, what, _ := strings.Cut(part, " ")
		n, is := count(number)
		if !is {
			return u, false
		}
		switch what {
		case "sent":
			u.Prompt = n
		case "received":
			u.Completion = n
		case "cache write":
			u.CacheWrite = n
		case "cache hit":
			u.CacheRead = n
		}
	}
	amount, _, _ := strings.Cut(strings.TrimPrefix(cost, "$"), " ")
	if dollars, err := strconv.ParseFloat(amount, 64); err == nil && dollars > 0 && dollars < 1e6 {
		u.Cost = dollars
	}
	return u, u.Prompt+u.Completion > 0
}

// count reads a number such as 950, 4.2k or 1M.
func count(text string) (int64, bool) {
	unit := 1.0
	switch {
	case strings.HasSuffix(text, "k"):
		unit = 1e3
	case strings.HasSuffix(text, "M"):
		unit = 1e6
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimRight(text, "kM"), ",", ""), 64)
	if err != nil || !(f >= 0 && f < 1e9) {
		return 0, false
	}
	return int64(float64(f*unit) + 0.5), true
}
