package minisweagent

import (
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

// messageTime returns the time of a message, in float seconds or as text.
func messageTime(v signal.Value) (recording.Instant, bool) {
	for _, at := range []signal.Value{v.Member("extra").Member("timestamp"), v.Member("timestamp")} {
		if t, is := recording.TimeValue(at, time.Second); is {
			return t, true
		}
	}
	return 0, false
}

// shellBlock returns the content of the one block of shell code in a text, or "" if there
// are none or several.
func shellBlock(text string) string {
	var found []string
	for rest := text; ; {
		_, after, is := strings.Cut(rest, "```")
		if !is {
			break
		}
		language, body, is := strings.Cut(after, "\n")
		if !is {
			break
		}
		code, next, is := strings.Cut(body, "\n```")
		if !is {
			break
		}
		switch strings.TrimSpace(language) {
		case "bash", "sh", "mswea_bash_command":
			found = append(found, strings.TrimSpace(code))
		}
		rest = next
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// returnCode reads the mark <returncode>N</returncode> at the beginning of a result.
func returnCode(text string) (int64, bool) {
	rest, is := strings.CutPrefix(strings.TrimSpace(text), "<returncode>")
	if !is {
		return 0, false
	}
	number, _, is := strings.Cut(rest, "</returncode>")
	if !is {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32)
	return n, err == nil
}

// outputBlock returns what stands between <output> and </output>, or the whole text.
func outputBlock(text string) string {
	if _, rest, is := strings.Cut(text, "<output>\n"); is {
		if at := strings.LastIndex(rest, "</output>"); at >= 0 {
			return rest[:at]
		}
	}
	return text
}
