package generate

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Finish is how an [Attempt] ended.
type Finish string

// The ends. An attempt with one of the first two is an answer.
const (
	FinishStop        Finish = "stop"         // the generator returned
	FinishBudget      Finish = "token_budget" // the bound of tokens or bytes was reached
	FinishInterrupted Finish = "interrupted"
	FinishDeadline    Finish = "deadline"
	FinishError       Finish = "error"
)

// Complete reports whether an attempt with this end is an answer.
func (f Finish) Complete() bool { return f == FinishStop || f == FinishBudget }

// Attempt is the result of one call of a generator, as the log records it: in an
// entry of kind effect, data
//
//	["generated", {"text": …, "finish": "stop", "tokens": 12, "attempt": 1,
//	               "generator": …, "view_seq": 7, "view_digest": …, "prompt_sha256": …,
//	               "agent_id": …, "req_id": …}]
//
// The text includes tokens that came before an interruption or an error. With
// [live.Config.RecordPrompts] the member prompt holds the messages that the
// generator was sent.
type Attempt struct {
	AgentID   string
	ReqID     string
	Number    int // of the attempt at the request, from 1
	Generator string
	Text      string
	Finish    Finish
	Tokens    int64
	// Reason is the reason of the interruption, or the generator's error:
	// at most 256 bytes, empty if there is none.
	Reason string
	// ViewSeq and ViewDigest name the view that the prompt was made of: the one
	// that was delivered to the agent when its token was issued.
	ViewSeq    uint64
	ViewDigest string
	// PromptDigest is the SHA-256 of the prompt's messages, see
	// [agents.PromptDigest]. Prompt are the messages themselves, if they are recorded.
	PromptDigest string
	Prompt       []ChatMessage
	// Cut says that Text is incomplete, because an entry holds no more. A stream that
	// sends more than that ends with FinishBudget.
	Cut bool
}

// Parts of the Reason of an attempt that this package words itself. They are part of
// the format of entries.
const (
	reasonPanicked   = "the generator panicked"
	reasonGoexit     = "its goroutine was ended"
	reasonRetryAfter = ", again after %v"
)

// maxLabel bounds a generator's name and a reason in a record, in bytes.
const maxLabel = 256

// maxAttempt is an upper bound of the size of an attempt's record without its text:
// names of members, numbers, generator, reason, digests, agent_id, req_id. A
// recorded prompt is not included.
const maxAttempt = 4*maxLabel + 768

// value returns the record's members, agent_id and req_id excepted.
func (a *Attempt) value() signal.Value {
	n := uint32(8)
	if len(a.Prompt) > 0 {
		n++
	}
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
	b = msgp.AppendUint64(msgp.AppendString(b, agents.MemberViewSeq), a.ViewSeq)
	b = msgp.AppendString(msgp.AppendString(b, agents.MemberViewDigest), a.ViewDigest)
	b = msgp.AppendString(msgp.AppendString(b, agents.MemberPromptDigest), a.PromptDigest)
	if len(a.Prompt) > 0 {
		b = append(msgp.AppendString(b, agents.MemberPrompt), promptValue(a.Prompt)...)
	}
	if a.Reason != "" {
		b = msgp.AppendString(msgp.AppendString(b, "reason"), a.Reason)
	}
	if a.Cut {
		b = msgp.AppendBool(msgp.AppendString(b, "cut"), true)
	}
	return b
}

// promptValue returns messages in the form of a record.
func promptValue(messages []ChatMessage) signal.Value {
	b := msgp.AppendArrayHeader(nil, uint32(len(messages)))
	for _, m := range messages {
		b = msgp.AppendMapHeader(b, 2)
		b = msgp.AppendString(msgp.AppendString(b, "role"), m.Role)
		b = msgp.AppendString(msgp.AppendString(b, "content"), m.Content)
	}
	return b
}

// AttemptOf returns the attempt that an entry records, without calling the
// generator again. Absent members are zero. It returns an error if the entry
// records something else.
func AttemptOf(e *eventlog.Entry) (Attempt, error) {
	r, err := session.WorldRecordOf(e)
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
	a.ViewSeq, a.ViewDigest = uint64(max(number(agents.MemberViewSeq), 0)), text(agents.MemberViewDigest)
	a.PromptDigest = text(agents.MemberPromptDigest)
	prompt, _ := r.Value.Get(agents.MemberPrompt)
	for m := range prompt.Elements() {
		role, _ := m.Member("role").Text()
		content, _ := m.Member("content").Text()
		a.Prompt = append(a.Prompt, ChatMessage{strings.Clone(role), strings.Clone(content)})
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
