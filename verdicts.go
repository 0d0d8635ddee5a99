package sajou

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// RerunMode says where the verdicts come from when an episode is run over a recorded
// session again. Replay itself needs none: a verdict is an entry like any other.
type RerunMode uint8

// The modes.
const (
	// RerunStrict takes the recorded verdict about a question, and fails with a
	// [PromptError] if the question is not word for word the one that was asked.
	RerunStrict RerunMode = iota
	// RerunLoose takes the verdict that was recorded for the turn and the beat or
	// objective, whatever the question is now.
	RerunLoose
	// RerunLive asks a judge again.
	RerunLive
)

var rerunModes = []string{"strict", "loose", "live"}

// String returns "strict", "loose" or "live".
func (m RerunMode) String() string { return rerunModes[m] }

// ParseRerunMode reads what String writes.
func ParseRerunMode(s string) (RerunMode, bool) {
	for i := range rerunModes {
		if rerunModes[i] == s {
			return RerunMode(i), true
		}
	}
	return 0, false
}

// PromptError says that a question is asked that was not asked so when the
// session was recorded.
type PromptError struct {
	Turn, Attempt int
	Subject       director.Subject
	// Recorded is the digest of the prompt that was recorded, zero if the question
	// was not asked at all; Asked is that of the prompt now.
	Recorded, Asked director.Digest
	// Rebuilt is false if not even the recorded episode gives the recorded prompt:
	// the messages that the judge saw before the response are not those of the log.
	Rebuilt bool
}

func (e *PromptError) Error() string {
	about := fmt.Sprintf("sajou: turn %d: the question about %v %q", e.Turn, e.Subject.Kind, e.Subject.ID)
	switch {
	case e.Recorded == director.Digest{}:
		return fmt.Sprintf("%s was not asked in the recording: its prompt is %v", about, e.Asked)
	case !e.Rebuilt:
		return fmt.Sprintf("%s cannot be asked as it was: the prompt is %v, and %v was recorded with messages that the log does not have", about, e.Asked, e.Recorded)
	}
	return fmt.Sprintf("%s is another: its prompt is %v, and %v was recorded", about, e.Asked, e.Recorded)
}

// RecordedVerdict is a judge's answer as the log has it.
type RecordedVerdict struct {
	director.Verdict
	Seq     eventlog.Seq
	Finding string // "yes", "no" or "unclear"
	Again   bool   // it was asked for again
}

// recordedVerdict reads a semantic verdict.
func recordedVerdict(seq eventlog.Seq, v signal.Value) RecordedVerdict {
	own := func(name string) string { return strings.Clone(textMember(v, name)) }
	latency, _ := v.Get("latency_ms")
	ms, _ := latency.Int64()
	return RecordedVerdict{
		Verdict: director.Verdict{
			Turn: intMember(v, "turn"), Attempt: intMember(v, "attempt"), Subject: subjectMember(v),
			Model: own("model"), Raw: own("raw"), Failure: own("failure"), Latency: ms,
		},
		Seq: seq, Finding: own("verdict"), Again: boolMember(v, "again"),
	}
}

func subjectMember(v signal.Value) director.Subject {
	if id := textMember(v, "objective"); id != "" {
		return director.Subject{Kind: director.AboutObjective, ID: strings.Clone(id)}
	}
	return director.Subject{Kind: director.AboutBeat, ID: strings.Clone(textMember(v, "beat"))}
}

func boolMember(v signal.Value, name string) bool {
	m, _ := v.Get(name)
	b, _ := m.Bool()
	return b
}

// askedBefore is one question of a recording and the answers to it.
type askedBefore struct {
	attempt  int
	prompt   director.Digest
	verdicts []RecordedVerdict // try by try
}

// RecordedVerdicts are the verdicts of a recorded session.
type RecordedVerdicts struct {
	turns map[turnSubject][]askedBefore
	count int
}

type turnSubject struct {
	turn    int
	subject director.Subject
}

// ErrTooMany says that a log has more verdicts than are held at once.
var ErrTooMany = errors.New("sajou: too many verdicts")

// maxVerdictBytes bounds what [RecordedVerdicts] holds.
const maxVerdictBytes = 256 << 20

// Verdicts returns the verdicts of judges that the session has recorded. Those
// that came too late are not among them.
func (r *Replay) Verdicts(ctx context.Context) (*RecordedVerdicts, error) {
	if err := r.exists(); err != nil {
		return nil, err
	}
	all := &RecordedVerdicts{turns: map[turnSubject][]askedBefore{}}
	held := 0
	for m, err := range r.moves(ctx, false, nil) {
		if err != nil {
			return nil, err
		}
		const overhead = 256 // of one question or verdict, about
		for subject, prompt := range m.prompts {
			at := turnSubject{m.turn, subject}
			all.turns[at] = append(all.turns[at], askedBefore{attempt: m.attempt, prompt: prompt})
			held += overhead
		}
		if v := m.verdict; v != nil {
			asked := all.turns[turnSubject{m.turn, v.Subject}]
			if len(asked) == 0 {
				continue
			}
			a := &asked[len(asked)-1]
			a.verdicts = append(a.verdicts, *v)
			held += overhead + len(v.Raw) + len(v.Model) + len(v.Failure)
			all.count++
		}
		if held > maxVerdictBytes {
			return nil, fmt.Errorf("%w: session %q has more than %d bytes of them", ErrTooMany, r.name, maxVerdictBytes)
		}
	}
	return all, nil
}

// Len returns how many verdicts there are.
func (r *RecordedVerdicts) Len() int { return r.count }

// VerdictDifference is a verdict that is another than the recorded one.
type VerdictDifference struct {
	Question director.Question
	Recorded RecordedVerdict
	Now      director.Verdict // Model, Raw and Failure are set
}

// Judge makes a judge of the recorded verdicts, for any [Director]. In mode
// [RerunLive] it asks live, and tells differs, unless that is nil, of each finding that is
// another than the recorded one, one at a time. Where the turns of a session were
// played more than once, as by two episodes, it takes them in their order.
func (r *RecordedVerdicts) Judge(mode RerunMode, live Judge, differs func(VerdictDifference)) Judge {
	return &recordedJudge{verdicts: r, mode: mode, live: live, differs: differs, given: map[given]int{}}
}

type recordedJudge struct {
	verdicts *RecordedVerdicts
	mode     RerunMode
	live     Judge
	differs  func(VerdictDifference)

	mu    sync.Mutex
	given map[given]int // how many answers; guarded by mu
}

// ErrUnanswered says that the recording has no answer to a question.
var ErrUnanswered = errors.New("sajou: no verdict was recorded")

// Judge implements [Judge].
func (j *recordedJudge) Judge(ctx context.Context, q director.Question) (model, answer string, err error) {
	if j.mode == RerunLive {
		return j.ask(ctx, q)
	}
	v, err := j.find(q)
	switch {
	case err != nil:
		return "", "", err
	case v.Failure != "":
		return v.Model, v.Raw, errors.New(v.Failure)
	}
	return v.Model, v.Raw, nil
}

func (j *recordedJudge) ask(ctx context.Context, q director.Question) (model, answer string, err error) {
	if j.live == nil {
		return "", "", errors.New("sajou: no judge to ask again")
	}
	model, answer, err = j.live.Judge(ctx, q)
	v, missing := j.find(q)
	if missing != nil || j.differs == nil {
		return model, answer, err
	}
	now := director.Verdict{Turn: q.Turn, Attempt: q.Attempt, Subject: q.Subject, Try: q.Try, Model: model, Raw: answer}
	finding := director.ParseVerdict(answer)
	if err != nil {
		now.Failure, finding = err.Error(), director.Unclear
	}
	if finding.String() != v.Finding {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.differs(VerdictDifference{q, v, now})
	}
	return model, answer, err
}

// given names a question to which answers were given.
type given struct {
	turnSubject
	attempt int
	prompt  director.Digest
}

// find returns the recorded answer to a question. Asked again, it gives the next
// one, and in the end the last again.
func (j *recordedJudge) find(q director.Question) (RecordedVerdict, error) {
	at := turnSubject{q.Turn, q.Subject}
	asked := j.verdicts.turns[at]
	same := func(a *askedBefore) bool { return a.attempt == q.Attempt }
	if j.mode == RerunStrict {
		same = func(a *askedBefore) bool { return a.prompt == q.Digest }
	} else if !slices.ContainsFunc(asked, func(a askedBefore) bool { return same(&a) }) {
		same = func(*askedBefore) bool { return true } // another attempt said it
	}
	different := &PromptError{Turn: q.Turn, Attempt: q.Attempt, Subject: q.Subject, Asked: q.Digest, Rebuilt: true}
	var answers []RecordedVerdict
	matched := false
	for i := range asked {
		a := &asked[i]
		if same(a) {
			matched = true
			answers = append(answers, a.verdicts...)
		} else if different.Recorded == (director.Digest{}) || a.attempt == q.Attempt {
			different.Recorded = a.prompt
		}
	}
	switch {
	case !matched && j.mode == RerunStrict:
		return RecordedVerdict{}, different
	case len(answers) == 0:
		return RecordedVerdict{}, fmt.Errorf("%w: turn %d, %v %q", ErrUnanswered, q.Turn, q.Subject.Kind, q.Subject.ID)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	key := given{at, q.Attempt, q.Digest}
	n := j.given[key]
	j.given[key]++
	return answers[min(n, len(answers)-1)], nil
}
