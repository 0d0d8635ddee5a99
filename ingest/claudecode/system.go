package claudecode

import (
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

func (r *reader) system(th *thread, l *line) {
	switch l.subtype {
	case "turn_duration":
		r.endOf(th, l, "durationMs")
	case "stop_hook_summary":
		// A hook that prevents the end, or that has just sent the agent back, does not end the turn.
		if l.whole.BoolOf("preventedContinuation") || l.whole.Member("hookErrors").Len() > 0 || th.returned {
			r.m.Skip("stop_hook_summary")
			return
		}
		r.endOf(th, l, "hookCount")
	case "api_error":
		r.retry(th, l)
	case "api_refusal", "model_refusal_fallback":
		r.m.AddMeta("retractedMessageUuids", l.whole.Member("retractedMessageUuids"))
		message := l.whole.TextOf("content")
		if message == "" {
			message = "The model refused to answer."
		}
		r.m.Error(th.corr, th.agent, l.subtype, recording.Warning, message)
	case "compact_boundary":
		r.m.KeepPart("compact", th.corr, recording.AsObject(l.whole.Member("compactMetadata")))
	case "local_command":
		r.m.Skip("local command")
	case "":
		r.m.Keep("system")
	default:
		r.m.Keep("system." + l.subtype)
	}
}

// endOf ends the turn at a line of the program that says so.
func (r *reader) endOf(th *thread, l *line, fact string) {
	if !th.open || th != r.main {
		r.m.Skip(l.subtype)
		return
	}
	r.m.AddMeta(fact, l.whole.Member(fact))
	r.endTurn(th, true)
}

// retry maps an error of the API after which the program tries again. The last attempt ends
// the turn.
func (r *reader) retry(th *thread, l *line) {
	r.release(th)
	attempt, most := l.whole.IntOf("retryAttempt"), l.whole.IntOf("maxRetries")
	for _, name := range []string{"retryAttempt", "maxRetries", "retryInMs"} {
		r.m.AddMeta(name, l.whole.Member(name))
	}
	message := errorMessage(l.errorValue)
	if most == 0 || attempt < most {
		r.m.Error(th.corr, th.agent, "api_error", recording.Warning, message)
		return
	}
	r.m.Error(th.corr, th.agent, "api_error", recording.Severe, message)
	r.endTurn(th, false)
	th.failed = true
}

// errorMessage finds the message of an error of the API, which is the innermost one.
func errorMessage(v signal.Value) string {
	const depth = 4
	message := ""
	for range depth {
		if text, ok := v.Text(); ok && text != "" {
			return text
		}
		if text := v.TextOf("message"); text != "" {
			message = text
		}
		if status, ok := v.Member("status").Int64(); ok && message == "" {
			message = "status " + strconv.FormatInt(status, 10)
		}
		v = v.Member("error")
	}
	if message == "" {
		message = "error of the API"
	}
	return message
}

func (r *reader) attachment(th *thread, l *line) {
	a := l.attachment
	switch kind := a.TextOf("type"); kind {
	case "hook_blocking_error", "hook_non_blocking_error":
		code := a.TextOf("hookEvent")
		if code == "" {
			code = kind
		}
		r.m.AddMeta("hookName", a.Member("hookName"))
		r.m.Error(th.corr, th.agent, code, recording.Warning, hookMessage(a, kind))
	case "queued_command":
		r.queued(th, l, a)
	default:
		r.m.Skip("attachment")
	}
}

func hookMessage(a signal.Value, kind string) string {
	blocking := a.Member("blockingError")
	for _, text := range []string{
		blocking.TextOf("blockingError"), a.TextOf("blockingError"), a.TextOf("stderr"), a.TextOf("content"), a.TextOf("stdout"),
	} {
		if text != "" {
			return text
		}
	}
	return kind
}

// queued maps a prompt that the person typed while the agent worked. The turn goes on.
func (r *reader) queued(th *thread, l *line, a signal.Value) {
	c := parseContent(a.Member("prompt"))
	switch classify(c.text) {
	case notificationText:
		r.notification(c.text)
		return
	case localText, feedbackText, interruptedText:
		r.m.Skip("local command")
		return
	case commandText:
		c.text = command(c.text)
	case promptText:
	}
	if c.text == "" && len(c.media) == 0 {
		r.m.Skip("attachment")
		return
	}
	if th != r.main || !th.open {
		r.prompt(th, l, c.text, c.media)
	} else {
		r.release(th)
		task := strings.Clone(r.id(l))
		th.tasks = append(th.tasks, task)
		th.answered, th.ended = false, ""
		r.addMedia(c.media)
		r.place(l)
		r.m.Dispatch(th.corr, task, recording.User, th.agent, c.text)
	}
	if len(th.queued) < maxQueued && c.text != "" {
		th.queued = append(th.queued, strings.Clone(c.text))
	}
}
