package director

import (
	"context"
	"strings"
	"unicode"

	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/signal"
)

// Question is a question to a model about one response. It is asked with temperature
// 0 and expects one word (beat contract, "Post-Evaluation Phase").
type Question struct {
	Turn    int
	Attempt int
	Subject episode.Subject
	// Try counts the tries of the question, from 1: the policy of the episode may
	// have it asked again after an unclear answer.
	Try    int
	Prompt string
	Digest episode.ContentDigest // of the prompt
	Tokens int                   // bound of the answer
}

// Verdict is a model's answer to a [Question], unchanged.
type Verdict struct {
	Turn    int
	Attempt int
	Subject episode.Subject
	// Try is the try of the question; 0 means the one that is awaited. It keeps an
	// answer that is given twice, after a crash, from counting as the next one.
	Try   int
	Model string
	Raw   string
	// Failure is the reason why there is no answer, "" if there is one. A failed call
	// counts as an unclear verdict. The text is recorded.
	Failure string
	Latency int64 // in milliseconds
}

// Finding is the result of a verdict.
type Finding uint8

// The findings.
const (
	No Finding = iota
	Yes
	Unclear
)

var findings = []string{"no", "yes", "unclear"}

func (f Finding) String() string { return findings[f] }

// ParseVerdict reads a raw answer strictly: its first word, without the punctuation
// around it, is YES or NO, in upper or lower case. Any other answer is unclear. A
// word ends at a space or at a dash, comma, semicolon or colon: "Yes—she asks". The
// beat contract's `"YES" in answer` would accept "I cannot answer YES or NO".
func ParseVerdict(raw string) Finding {
	ends := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("—–,;:", r) }
	for word := range strings.FieldsFuncSeq(raw, ends) {
		word = strings.TrimFunc(word, func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) })
		switch {
		case word == "": // nothing but punctuation
		case strings.EqualFold(word, "yes"):
			return Yes
		case strings.EqualFold(word, "no"):
			return No
		default:
			return Unclear
		}
	}
	return Unclear
}

// TranscriptLine is one line of the scene. Judges see the lines before a response.
type TranscriptLine struct {
	Role string // "user" or "character"
	Text string
}

// maxMessages is the number of lines before the response that a judge sees.
const maxMessages = 4

// escaper keeps material from closing the mark around it.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// judgePrompt returns the prompt that asks whether a response accomplished a beat or
// an objective. Texts of authors, users and models are enclosed in marks that they
// cannot close. Events hold the digest of the prompt: its texts are in texts.go.
func judgePrompt(kind episode.SubjectKind, what, criteria, response string, before []TranscriptLine) string {
	var b strings.Builder
	b.WriteString(promptOpening)
	mark := func(name, text string) {
		b.WriteString("<" + name + ">\n" + escaper.Replace(strings.ToValidUTF8(text, "\uFFFD")) + "\n</" + name + ">\n")
	}
	mark(kind.String(), what)
	mark(markCriteria, criteria)
	for _, m := range before[max(0, len(before)-maxMessages):] {
		name := markBeforeUser
		if m.Role == "character" {
			name = markBeforeCharacter
		}
		mark(name, m.Text)
	}
	mark(markResponse, response)
	switch kind {
	case episode.AboutObjective:
		b.WriteString(promptObjective)
	default:
		b.WriteString(promptBeat)
	}
	b.WriteString(promptAnswer)
	return b.String()
}

// question returns the question about a subject.
func question(e *episode.Episode, turn, attempt, try int, s episode.Subject, response string, before []TranscriptLine) Question {
	var what, criteria string
	switch s.Kind {
	case episode.AboutBeat:
		i, _ := e.BeatIndex(s.ID)
		beat := &e.Beats[i]
		what, criteria = beat.Description, beat.Criteria
		if what == "" {
			what = criteria
		}
	case episode.AboutObjective:
		for i := range e.Objectives {
			if e.Objectives[i].ID == s.ID {
				what, criteria = e.Objectives[i].Description, e.Objectives[i].Success.Criteria
			}
		}
	}
	prompt := judgePrompt(s.Kind, what, criteria, response, before)
	return Question{turn, attempt, s, try, prompt, episode.DigestOf(prompt), 10}
}

// Judge decides what a character's response accomplished. [Question.Prompt] delimits
// the texts of others. The answer is free text, of which [ParseVerdict] accepts only a
// plain YES or NO.
type Judge interface {
	// Judge returns the unchanged answer and the name of the model that gave it. It
	// should return when ctx ends; the caller does not wait longer. Calls may overlap.
	Judge(ctx context.Context, q Question) (model, answer string, err error)
}

// AskedAgain reports whether records hold an unclear verdict after which the question
// has to be asked once more.
func AskedAgain(records []signal.Record) bool {
	for _, r := range records {
		if r.Word == episode.VerdictRecorded {
			return r.Value.BoolOf("again")
		}
	}
	return false
}
