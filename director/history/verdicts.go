package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

// RerunMode says where the verdicts come from when a recorded session is played
// again. A replay needs none: a verdict is an entry like any other.
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

// PromptError is the error about a question whose prompt differs from the recorded
// one.
type PromptError struct {
	Turn, Attempt int
	Subject       episode.Subject
	// Recorded is the digest of the prompt that was recorded, zero if the question
	// was not asked at all; Asked is that of the prompt now.
	Recorded, Asked episode.ContentDigest
	// Rebuilt is false if not even the recorded episode gives the recorded prompt:
	// the messages that the judge saw before the response are not those of the log.
	Rebuilt bool
}

func (e *PromptError) Error() string {
	about := fmt.Sprintf("sajou: turn %d: the question about %v %q", e.Turn, e.Subject.Kind, e.Subject.ID)
	switch {
	case e.Recorded == episode.ContentDigest{}:
		return fmt.Sprintf("%s was not asked in the recording: its prompt is %v", about, e.Asked)
	case !e.Rebuilt:
		return fmt.Sprintf("%s cannot be asked as it was: the prompt is %v, and %v was recorded with messages that the log does not have", about, e.Asked, e.Recorded)
	}
	return fmt.Sprintf("%s is another: its prompt is %v, and %v was recorded", about, e.Asked, e.Recorded)
}

// RecordedVerdict is a judge's answer as it was recorded.
type RecordedVerdict struct {
	director.Verdict
	Seq     eventlog.Seq
	Finding string // "yes", "no" or "unclear"
	Again   bool   // it was asked for again
}

// recordedVerdict reads a semantic verdict.
func recordedVerdict(seq eventlog.Seq, v signal.Value) RecordedVerdict {
	own := func(name string) string { return strings.Clone(v.TextOf(name)) }
	return RecordedVerdict{
		Verdict: director.Verdict{
			Turn: int(v.IntOf("turn")), Attempt: int(v.IntOf("attempt")), Subject: subjectMember(v),
			Model: own("model"), Raw: own("raw"), Failure: own("failure"), Latency: v.IntOf("latency_ms"),
		},
		Seq: seq, Finding: own("verdict"), Again: v.BoolOf("again"),
	}
}

func subjectMember(v signal.Value) episode.Subject {
	if id := v.TextOf("objective"); id != "" {
		return episode.Subject{Kind: episode.AboutObjective, ID: strings.Clone(id)}
	}
	return episode.Subject{Kind: episode.AboutBeat, ID: strings.Clone(v.TextOf("beat"))}
}

// askedBefore is one question of a recording and the answers to it.
type askedBefore struct {
	attempt  int
	prompt   episode.ContentDigest
	verdicts []RecordedVerdict // try by try
}

// RecordedVerdicts are the verdicts of a recorded session.
type RecordedVerdicts struct {
	turns map[turnSubject][]askedBefore
	count int
}

type turnSubject struct {
	turn    int
	subject episode.Subject
}

// ErrTooMany is wrapped by the error about a log with more verdicts than
// [RecordedVerdicts] holds.
var ErrTooMany = errors.New("sajou: too many verdicts")

// maxVerdictBytes bounds the size of [RecordedVerdicts].
const maxVerdictBytes = 256 << 20

// Verdicts returns the verdicts of judges that a session has recorded, except those
// that came too late.
func Verdicts(ctx context.Context, r *replay.Replay) (*RecordedVerdicts, error) {
	all := &RecordedVerdicts{turns: map[turnSubject][]askedBefore{}}
	held := 0
	for in, err := range inputs(ctx, r, false, nil) {
		if err != nil {
			return nil, err
		}
		const overhead = 256 // of one question or verdict, about
		for subject, prompt := range in.prompts {
			at := turnSubject{in.turn, subject}
			all.turns[at] = append(all.turns[at], askedBefore{attempt: in.attempt, prompt: prompt})
			held += overhead
		}
		if v := in.verdict; v != nil {
			asked := all.turns[turnSubject{in.turn, v.Subject}]
			if len(asked) == 0 {
				continue
			}
			a := &asked[len(asked)-1]
			a.verdicts = append(a.verdicts, *v)
			held += overhead + len(v.Raw) + len(v.Model) + len(v.Failure)
			all.count++
		}
		if held > maxVerdictBytes {
			return nil, fmt.Errorf("%w: session %q has more than %d bytes of them", ErrTooMany, r.Name(), maxVerdictBytes)
		}
	}
	return all, nil
}

// Len returns how many verdicts there are.
func (r *RecordedVerdicts) Len() int { return r.count }

// VerdictDifference is a verdict that differs from the recorded one.
type VerdictDifference struct {
	Question director.Question
	Recorded RecordedVerdict
	Now      director.Verdict // Model, Raw and Failure are set
}

// Judge returns a judge that answers with the recorded verdicts. In mode [RerunLive] it
// asks live and calls differs, unless that is nil, for each finding that differs from
// the recorded one, one at a time. Where the turns of a session were played more than
// once, as by two episodes, it takes them in their order.
func (r *RecordedVerdicts) Judge(mode RerunMode, live director.Judge, differs func(VerdictDifference)) director.Judge {
	return &recordedJudge{verdicts: r, mode: mode, live: live, differs: differs, given: map[given]int{}}
}

type recordedJudge struct {
	verdicts *RecordedVerdicts
	mode     RerunMode
	live     director.Judge
	differs  func(VerdictDifference)

	mu    sync.Mutex
	given map[given]int // how many answers; guarded by mu
}

// ErrUnanswered is wrapped by the error about a question to which the recording has no
// answer.
var ErrUnanswered = errors.New("sajou: no verdict was recorded")

// Judge implements [director.Judge].
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

// given identifies a question to which answers were given.
type given struct {
	turnSubject
	attempt int
	prompt  episode.ContentDigest
}

// find returns the recorded answer to a question. Asked again, it returns the next
// answer, and the last one from then on.
func (j *recordedJudge) find(q director.Question) (RecordedVerdict, error) {
	at := turnSubject{q.Turn, q.Subject}
	asked := j.verdicts.turns[at]
	same := func(a *askedBefore) bool { return a.attempt == q.Attempt }
	if j.mode == RerunStrict {
		same = func(a *askedBefore) bool { return a.prompt == q.Digest }
	} else if !slices.ContainsFunc(asked, func(a askedBefore) bool { return same(&a) }) {
		same = func(*askedBefore) bool { return true } // the answer belongs to another attempt
	}
	different := &PromptError{Turn: q.Turn, Attempt: q.Attempt, Subject: q.Subject, Asked: q.Digest, Rebuilt: true}
	var answers []RecordedVerdict
	matched := false
	for i := range asked {
		a := &asked[i]
		if same(a) {
			matched = true
			answers = append(answers, a.verdicts...)
		} else if different.Recorded == (episode.ContentDigest{}) || a.attempt == q.Attempt {
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
