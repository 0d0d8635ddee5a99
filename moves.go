package sajou

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/director"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

// move is one thing that was done to the director of a recorded session from
// outside: everything else in its events follows from these.
type move struct {
	seq     eventlog.Seq
	at      time.Duration
	word    string // of the event by which it was recorded
	record  director.Record
	turn    int
	attempt int
	said    string                               // what the user or the character said; "" if the log does not have it
	digest  string                               // of that
	prompts map[director.Subject]director.Digest // what was asked about a response
	before  []director.Message                   // what its judges saw before the response
	rebuilt bool                                 // the recorded episode makes the recorded prompts of that
	verdict *RecordedVerdict                     // that was awaited
	episode *director.Episode                    // that begins, or goes on as another version
	heard   *heard                               // what happened outside the play, if that is what this is

	asked *director.State // when all was asked
}

// heard is a signal or an effect that rules about flags may be about.
type heard struct {
	kind    director.EventKind
	name    string
	payload signal.Value
}

// heardOf returns what an entry lets the director hear, nil if nothing. Signals
// that the director's own events became come of those again.
func heardOf(e *eventlog.Entry) *heard {
	switch e.Kind {
	case eventlog.KindSignal:
		sig, err := signal.Decode(e.Data)
		if err != nil || sig.Problem != "" || sig.Source == cueSource && sig.ID == fmt.Sprintf("cue-%d", e.Seq) {
			return nil
		}
		return &heard{director.OfSignal, sig.Type, sig.Payload}
	case eventlog.KindEffect:
		r, err := WorldRecordOf(e)
		if err != nil || r.Word != agents.WordEffect {
			return nil
		}
		payload, _ := r.Value.Get("payload")
		return &heard{director.OfEffect, textMember(r.Value, "kind"), payload}
	default:
		return nil
	}
}

// moves returns what was done to the director of the session, in order. A
// response is told with what was asked about it and, if seen is true, with what
// its judges saw before it. Of what happens outside the play that is told which the
// recorded episode listens to, or another one that may be given.
func (r *Replay) moves(ctx context.Context, seen bool, also *director.Episode) iter.Seq2[*move, error] {
	return func(yield func(*move, error) bool) {
		log, err := r.engine.log.Session(r.name)
		if err != nil {
			yield(nil, err)
			return
		}
		m := mover{yield: yield, seen: seen, listens: map[string]bool{}}
		if also != nil {
			for _, rule := range also.FlagRules {
				m.listens[rule.Kind.String()+" "+rule.Name] = true
			}
		}
		for e, err := range log.Entries(ctx, 1) {
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

// mover makes moves of entries.
type mover struct {
	yield   func(*move, error) bool
	seen    bool
	listens map[string]bool // to what, "signal NAME", besides what the episode does
	state   director.State
	user    *Said // that came and is not used yet
	answer  *Said // likewise, of the character
	open    *move // a response about which not all is known
	guided  bool  // the guidance that comes next belongs to a move
	scene   dialogue
}

func (m *mover) flush() bool {
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

func (m *mover) entry(e *eventlog.Entry) bool {
	if e.Kind == eventlog.KindBeat {
		if r, err := BeatOf(e); err == nil {
			if said, ok := SaidBy(r); ok {
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
	if h := heardOf(e); h != nil {
		if !m.state.Listens(h.kind, h.name) && !m.listens[h.kind.String()+" "+h.name] {
			return true
		}
		return m.flush() && m.yield(&move{seq: e.Seq, at: e.At, turn: m.state.Turn(), heard: h}, nil)
	}
	r, ok := eventOf(e)
	if !ok || m.state.Apply(r.Word, r.Value) != nil {
		return true
	}
	mv := &move{seq: e.Seq, at: e.At, word: r.Word, record: r, turn: m.state.Turn()}
	switch r.Word {
	case director.EpisodeStarted:
		if !m.flush() {
			return false
		}
		mv.episode, m.guided = m.state.Episode(), false
		m.scene = dialogue{opening: mv.episode.OpeningLine}
	case director.TurnOpened:
		m.guided = true
		mv.digest = strings.Clone(textMember(r.Value, "digest"))
		if u := m.user; u != nil && u.Turn == mv.turn {
			mv.said = u.Text
		}
		m.user = nil
		said := mv.said
		if said == "" && textMember(r.Value, "input") == "choice" {
			said = m.scene.label
		}
		if !m.flush() {
			return false
		}
		m.scene.say(mv.turn, "user", said)
		return m.yield(mv, nil)
	case director.GuidanceIssued:
		if m.guided {
			m.guided = false
			return true
		}
	case director.ResponseRecorded:
		if !m.flush() {
			return false
		}
		mv.attempt, mv.digest = intMember(r.Value, "attempt"), strings.Clone(textMember(r.Value, "digest"))
		if a := m.answer; a != nil && a.Turn == mv.turn && a.Attempt == mv.attempt {
			mv.said = a.Text
		}
		m.answer = nil
		m.scene.say(mv.turn, "character", mv.said)
		m.open = mv
		return true
	case director.JudgementAsked:
		if d, ok := digestMember(r, "prompt"); ok && m.open != nil {
			if m.open.prompts == nil {
				m.open.prompts = map[director.Subject]director.Digest{}
			}
			m.open.prompts[subjectMember(r.Value)] = d
			asked := m.state
			m.open.asked = &asked
		}
		return true
	case director.VerdictRecorded:
		if !boolMember(r.Value, "inactive") {
			if textMember(r.Value, "method") != director.Semantic.String() {
				return true
			}
			v := recordedVerdict(e.Seq, r.Value)
			mv.verdict = &v
		}
	case director.ChoiceSelected:
		m.scene.label = strings.Clone(textMember(r.Value, "label"))
	case director.EpisodeRevised:
		view, _ := m.state.View().(map[string]any)
		mv.episode, m.guided = m.state.Episode(), view["phase"] == "opened"
	case director.BeatForced:
		m.scene.force(m.state.Turn(), textMember(r.Value, "line"))
		return true
	default:
		return true
	}
	return m.flush() && m.yield(mv, nil)
}

// digestMember reads a digest.
func digestMember(r director.Record, name string) (d director.Digest, ok bool) {
	text := textMember(r.Value, name)
	return d, len(text) == 2*len(d) && decodeHex(d[:], text)
}

// dialogue is the last of what was said, for judges that see what came before.
type dialogue struct {
	opening string // the character's line at the beginning
	label   string // of the choice that was made last
	lines   []line
}

type line struct {
	turn   int
	forced bool
	director.Message
}

// maxLines is how much of a dialogue is kept: more than a judge sees.
const maxLines = 24

// say adds what was said in a turn. What is said anew takes the place of what
// was said before, and of all that came after that.
func (s *dialogue) say(turn int, role, text string) {
	if i := slices.IndexFunc(s.lines, func(l line) bool { return l.turn == turn && l.Role == role }); i >= 0 {
		s.lines = s.lines[:i]
	}
	if text != "" {
		s.add(line{turn, false, director.Message{Role: role, Text: text}})
	}
}

func (s *dialogue) force(turn int, text string) {
	s.add(line{turn, true, director.Message{Role: "character", Text: strings.Clone(text)}})
}

func (s *dialogue) add(l line) {
	if s.lines = append(s.lines, l); len(s.lines) > maxLines {
		s.lines, s.opening = slices.Delete(s.lines, 0, len(s.lines)-maxLines), ""
	}
}

// seenBefore is how many messages a judge sees at most.
const seenBefore = 4

// seenBy returns the messages before a response that its judges were shown.
// Which these were, whoever played decided, and the log has only the digests of
// the prompts: those messages are taken that make the same prompts. False if
// none do.
func (s *dialogue) seenBy(m *move) (before []director.Message, same bool) {
	var usual []director.Message
	for _, opened := range []bool{true, false} {
		for _, forced := range []bool{true, false} {
			all := s.before(m.turn, opened, forced)
			for n := min(seenBefore, len(all)); n >= 0; n-- {
				before := all[len(all)-n:]
				if usual == nil {
					usual = before
				}
				if m.makes(before) {
					return before, true
				}
			}
		}
	}
	return usual, false
}

// before returns what was said before the response of a turn.
func (s *dialogue) before(turn int, opened, forced bool) []director.Message {
	all := []director.Message{}
	if opened && s.opening != "" {
		all = append(all, director.Message{Role: "character", Text: s.opening})
	}
	for _, l := range s.lines {
		if l.turn == turn && l.Role == "character" {
			break
		}
		if forced || !l.forced {
			all = append(all, l.Message)
		}
	}
	return all
}

// maxPrompts bounds the prompts that are made anew at once, in bytes.
const maxPrompts = 64 << 20

// makes reports whether the recorded episode makes the recorded prompts of the
// response and of some messages before it.
func (m *move) makes(before []director.Message) bool {
	if m.asked == nil {
		return true
	}
	if len(m.prompts)*len(m.said) > maxPrompts {
		return false
	}
	questions, err := m.asked.Questions(m.said, before)
	if err != nil {
		return false
	}
	for _, q := range questions {
		if p, ok := m.prompts[q.Subject]; ok && p != q.Digest {
			return false
		}
	}
	return true
}

// ErrNoText says that what was said is not in the log, or not what the director
// heard: see [Config.OmitText].
var ErrNoText = errors.New("sajou: the log does not have what was said")

// text returns what was said, if it is what was heard.
func (m *move) text() (string, error) {
	if m.digest != "" && director.DigestOf(m.said).String() != m.digest {
		return "", fmt.Errorf("%w in turn %d", ErrNoText, m.turn)
	}
	return m.said, nil
}
