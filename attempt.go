package sajou

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// Finish is how an [Attempt] ended.
type Finish string

// The ways to end. What ended with one of the first two stands as an answer.
const (
	FinishStop        Finish = "stop"         // the generator had no more to say
	FinishBudget      Finish = "token_budget" // as many tokens as there may be, or as many bytes
	FinishInterrupted Finish = "interrupted"
	FinishDeadline    Finish = "deadline"
	FinishError       Finish = "error"
)

// Stands reports whether what ended so is an answer.
func (f Finish) Stands() bool { return f == FinishStop || f == FinishBudget }

// Attempt is what a generator answered when it was asked once, as the log has
// it: in an entry of kind effect, data
//
//	["generated", {"text": …, "finish": "stop", "tokens": 12, "attempt": 1,
//	               "generator": …, "agent_id": …, "req_id": …}]
//
// What was said before an interruption or an error is in text too.
type Attempt struct {
	AgentID   string
	ReqID     string
	Number    int // of the attempt at the request, from 1
	Generator string
	Text      string
	Finish    Finish
	Tokens    int64
	// Reason says why it was interrupted, or what the generator's error was:
	// at most 256 bytes, and only there if there is one.
	Reason string
	// Cut says that Text is not all: an entry holds no more. A stream that says
	// more than that is ended, with FinishBudget.
	Cut bool
}

// maxLabel bounds a generator's name and a reason in a record, in bytes.
const maxLabel = 256

// maxAttempt is what the record of an attempt takes besides its text, at most:
// names of members, numbers, generator, reason, agent_id, req_id.
const maxAttempt = 4*maxLabel + 512

// value returns the record's members, agent_id and req_id excepted.
func (a *Attempt) value() signal.Value {
	n := uint32(5)
	if a.Reason != "" {
		n++
	}
	if a.Cut {
		n++
	}
	b := msgp.AppendMapHeader(nil, n)
	b = msgp.AppendString(msgp.AppendString(b, "text"), a.Text)
	b = msgp.AppendString(msgp.AppendString(b, "finish"), string(a.Finish))
	b = msgp.AppendInt64(msgp.AppendString(b, "tokens"), a.Tokens)
	b = msgp.AppendInt64(msgp.AppendString(b, "attempt"), int64(a.Number))
	b = msgp.AppendString(msgp.AppendString(b, "generator"), a.Generator)
	if a.Reason != "" {
		b = msgp.AppendString(msgp.AppendString(b, "reason"), a.Reason)
	}
	if a.Cut {
		b = msgp.AppendBool(msgp.AppendString(b, "cut"), true)
	}
	return b
}

// AttemptOf returns the attempt that an entry records: what the generator said
// then, without asking one again. Members that are absent are zero. The error says
// that the entry records something else.
func AttemptOf(e *eventlog.Entry) (Attempt, error) {
	r, err := WorldRecordOf(e)
	if err != nil {
		return Attempt{}, err
	}
	if r.Word != agents.WordGenerated || r.Value.Kind() != signal.KindObject {
		return Attempt{}, fmt.Errorf("sajou: entry %d is no attempt of a generation but %q", e.Seq, r.Word)
	}
	text := func(name string) string {
		m, _ := r.Value.Get(name)
		s, _ := m.Text()
		return strings.Clone(s)
	}
	number := func(name string) int64 {
		m, _ := r.Value.Get(name)
		i, _ := m.Int64()
		return i
	}
	a := Attempt{
		AgentID: text("agent_id"), ReqID: text("req_id"), Number: int(number("attempt")), Generator: text("generator"),
		Text: text("text"), Finish: Finish(text("finish")), Tokens: number("tokens"), Reason: text("reason"),
	}
	cut, _ := r.Value.Get("cut")
	a.Cut, _ = cut.Bool()
	return a, nil
}

// clip returns s as UTF-8 of at most so many bytes.
func clip(s string, most int) (clipped string, cut bool) {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s, false
	}
	most = max(most, 0)
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most], true
}
