// Package wording has the words that readers of authored files share.
package wording

import (
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/signal"
)

// Quoted shortens what was written for a message.
func Quoted(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}

// Article names a kind of value with its article.
func Article(k signal.ValueKind) string {
	switch k {
	case signal.KindNull:
		return "null"
	case signal.KindAbsent:
		return "nothing"
	case signal.KindInt, signal.KindUint, signal.KindArray, signal.KindObject:
		return "an " + k.String()
	default:
		return "a " + k.String()
	}
}
