package history

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// input is one thing that came to the director of a recorded session from outside.
// Everything else in its events follows from its inputs.
type input struct {
	seq     eventlog.Seq
	at      time.Duration
	word    string // of the event by which it was recorded
	record  signal.Record
	turn    int
	attempt int
	said    string                                    // the text of the user or the character; "" if the log does not have it
	digest  string                                    // of said
	prompts map[episode.Subject]episode.ContentDigest // the questions about a response
	before  []director.TranscriptLine                 // the messages before the response that its judges saw
	rebuilt bool                                      // the recorded episode makes the recorded prompts of before
	verdict *RecordedVerdict                          // an answer that was awaited
	episode *episode.Episode                          // the episode that begins, or its new version
	outside *externalEvent                            // nil unless the input came from outside the play

	asked *director.State // the state in which the last question was asked
}

// externalEvent is a signal or an effect that rules about flags may concern.
type externalEvent struct {
	kind    episode.EventKind
	name    string
	payload signal.Value
}

// externalEventOf returns the signal or effect that an entry holds, nil for other
// entries. Cue signals do not count: the director's events make them again.
func externalEventOf(e *eventlog.Entry) *externalEvent {
	switch e.Kind {
	case eventlog.KindSignal:
		sig, err := signal.Decode(e.Data)
		if err != nil || sig.Problem != "" || sig.Source == session.CueSource && sig.ID == session.CueID(e.Seq) {
			return nil
		}
		return &externalEvent{episode.OfSignal, sig.Type, sig.Payload}
	case eventlog.KindEffect:
		r, err := session.WorldRecordOf(e)
		if err != nil || r.Word != agents.WordEffect {
			return nil
		}
		payload, _ := r.Value.Get("payload")
		return &externalEvent{episode.OfEffect, r.Value.TextOf("kind"), payload}
	default:
		return nil
	}
}

// inputs iterates over the inputs of a session's director, in order. An input that is a
// response comes with the questions about it and, if seen is true, with the messages
// that its judges saw before it. External events count if the recorded episode, or the
// one that may be given in also, listens to them.
func inputs(ctx context.Context, r *replay.Replay, seen bool, also *episode.Episode) iter.Seq2[*input, error] {
	return func(yield func(*input, error) bool) {
		m := inputReader{yield: yield, seen: seen, listens: map[string]bool{}}
		if also != nil {
			for _, rule := range also.FlagRules {
				m.listens[rule.Kind.String()+" "+rule.Name] = true
			}
		}
		for e, err := range r.Entries(ctx, 1) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !m.entry(&e) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(nil, err)
			return
		}
		m.flush()
	}
}

// inputReader makes inputs of entries.
type inputReader struct {
	yield   func(*input, error) bool
	seen    bool
	listens map[string]bool // "signal NAME" of events that count besides those of the recorded episode
	state   director.State
	user    *session.Utterance // the user's last message, unless an input has it
	answer  *session.Utterance // the character's last message, unless an input has it
	open    *input             // a response whose questions are still being read
	guided  bool               // the next guidance belongs to an input that was yielded
	scene   dialogue
}

func (m *inputReader) flush() bool {
	done := m.open
	m.open = nil
	if done == nil {
		return true
	}
	if m.seen {
		done.before, done.rebuilt = m.scene.seenBy(done)
	}
	done.asked = nil
	return m.yield(done, nil)
}

func (m *inputReader) entry(e *eventlog.Entry) bool {
	if e.Kind == eventlog.KindBeat {
		if r, err := session.BeatOf(e); err == nil {
			if said, ok := session.UtteranceOf(r); ok {
				said.Text = strings.Clone(said.Text)
				if said.Role == "user" {
					m.user = &said
				} else {
					m.answer = &said
				}
				return true
			}
		}
	}
	if h := externalEventOf(e); h != nil {
		if !m.state.Listens(h.kind, h.name) && !m.listens[h.kind.String()+" "+h.name] {
			return true
		}
		return m.flush() && m.yield(&input{seq: e.Seq, at: e.At, turn: m.state.Turn(), outside: h}, nil)
	}
	r, ok := session.DirectorRecordOf(e)
	if !ok || m.state.Apply(r.Word, r.Value) != nil {
		return true
	}
	in := &input{seq: e.Seq, at: e.At, word: r.Word, record: r, turn: m.state.Turn()}
	switch r.Word {
	case episode.EpisodeStarted:
		if !m.flush() {
			return false
		}
		in.episode, m.guided = m.state.Episode(), false
		m.scene = dialogue{opening: in.episode.OpeningLine}
	case episode.TurnOpened:
		m.guided = true
		in.digest = strings.Clone(r.Value.TextOf("digest"))
		if u := m.user; u != nil && u.Turn == in.turn {
			in.said = u.Text
		}
		m.user = nil
		said := in.said
		if said == "" && r.Value.TextOf("input") == "choice" {
			said = m.scene.label
		}
		if !m.flush() {
			return false
		}
		m.scene.say(in.turn, "user", said)
		return m.yield(in, nil)
	case episode.GuidanceIssued:
		if m.guided {
			m.guided = false
			return true
		}
	case episode.ResponseRecorded:
		if !m.flush() {
			return false
		}
		in.attempt, in.digest = int(r.Value.IntOf("attempt")), strings.Clone(r.Value.TextOf("digest"))
		if a := m.answer; a != nil && a.Turn == in.turn && a.Attempt == in.attempt {
			in.said = a.Text
		}
		m.answer = nil
		m.scene.say(in.turn, "character", in.said)
		m.open = in
		return true
	case episode.JudgementAsked:
		if d, ok := digestMember(r, "prompt"); ok && m.open != nil {
			if m.open.prompts == nil {
				m.open.prompts = map[episode.Subject]episode.ContentDigest{}
			}
			m.open.prompts[subjectMember(r.Value)] = d
			asked := m.state
			m.open.asked = &asked
		}
		return true
	case episode.VerdictRecorded:
		if !r.Value.BoolOf("inactive") {
			if r.Value.TextOf("method") != episode.Semantic.String() {
				return true
			}
			v := recordedVerdict(e.Seq, r.Value)
			in.verdict = &v
		}
	case episode.ChoiceSelected:
		m.scene.label = strings.Clone(r.Value.TextOf("label"))
	case episode.EpisodeRevised:
		view, _ := m.state.View().(map[string]any)
		in.episode, m.guided = m.state.Episode(), view["phase"] == "opened"
	case episode.BeatForced:
		m.scene.force(m.state.Turn(), r.Value.TextOf("line"))
		return true
	default:
		return true
	}
	return m.flush() && m.yield(in, nil)
}

// digestMember reads a digest.
func digestMember(r signal.Record, name string) (d episode.ContentDigest, ok bool) {
	text := r.Value.TextOf(name)
	return d, len(text) == 2*len(d) && decodeHex(d[:], text)
}

func decodeHex(dst []byte, text string) bool {
	n, err := hex.Decode(dst, []byte(text))
	return err == nil && n == len(dst)
}

// dialogue holds the last messages, for judges that see the ones before a response.
type dialogue struct {
	opening string // the character's line at the beginning
	label   string // of the choice that was made last
	lines   []line
}

type line struct {
	turn   int
	forced bool
	director.TranscriptLine
}

// maxLines bounds the messages of a dialogue. It is more than a judge sees.
const maxLines = 24

// say adds a message of a turn. A message that is repeated replaces the first one and
// everything after it.
func (s *dialogue) say(turn int, role, text string) {
	if i := slices.IndexFunc(s.lines, func(l line) bool { return l.turn == turn && l.Role == role }); i >= 0 {
		s.lines = s.lines[:i]
	}
	if text != "" {
		s.add(line{turn, false, director.TranscriptLine{Role: role, Text: text}})
	}
}

func (s *dialogue) force(turn int, text string) {
	s.add(line{turn, true, director.TranscriptLine{Role: "character", Text: strings.Clone(text)}})
}

func (s *dialogue) add(l line) {
	if s.lines = append(s.lines, l); len(s.lines) > maxLines {
		s.lines, s.opening = slices.Delete(s.lines, 0, len(s.lines)-maxLines), ""
	}
}

// seenBefore is the greatest number of messages that a judge sees.
const seenBefore = 4

// seenBy returns the messages before a response that its judges were shown. The program
// that played chose them, and the log has only the digests of the prompts, so seenBy
// tries which messages make the same prompts. It returns false if none do.
func (s *dialogue) seenBy(in *input) (before []director.TranscriptLine, same bool) {
	var usual []director.TranscriptLine
	for _, opened := range []bool{true, false} {
		for _, forced := range []bool{true, false} {
			all := s.before(in.turn, opened, forced)
			for n := min(seenBefore, len(all)); n >= 0; n-- {
				before := all[len(all)-n:]
				if usual == nil {
					usual = before
				}
				if in.makes(before) {
					return before, true
				}
			}
		}
	}
	return usual, false
}

// before returns the messages before the response of a turn.
func (s *dialogue) before(turn int, opened, forced bool) []director.TranscriptLine {
	all := []director.TranscriptLine{}
	if opened && s.opening != "" {
		all = append(all, director.TranscriptLine{Role: "character", Text: s.opening})
	}
	for _, l := range s.lines {
		if l.turn == turn && l.Role == "character" {
			break
		}
		if forced || !l.forced {
			all = append(all, l.TranscriptLine)
		}
	}
	return all
}

// maxPrompts bounds the prompts that are rebuilt at once, in bytes.
const maxPrompts = 64 << 20

// makes reports whether the recorded episode makes the recorded prompts of the
// response and of some messages before it.
func (in *input) makes(before []director.TranscriptLine) bool {
	if in.asked == nil {
		return true
	}
	if len(in.prompts)*len(in.said) > maxPrompts {
		return false
	}
	questions, err := in.asked.Questions(in.said, before)
	if err != nil {
		return false
	}
	for _, q := range questions {
		if p, ok := in.prompts[q.Subject]; ok && p != q.Digest {
			return false
		}
	}
	return true
}

// ErrNoText is wrapped by the error about a text that the log does not have, or that is
// not the one that the director got. A session can leave texts out of its log.
var ErrNoText = errors.New("sajou: the log does not have what was said")

// text returns the text of the input, if it is the one that the director got.
func (in *input) text() (string, error) {
	if in.digest != "" && episode.DigestOf(in.said).String() != in.digest {
		return "", fmt.Errorf("%w in turn %d", ErrNoText, in.turn)
	}
	return in.said, nil
}
