package rl

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// The kinds of the environment's own effects. They change nothing in the world.
const (
	KindEpisodeBegan = "EpisodeBegan"
	KindEpisodeStep  = "EpisodeStep"
)

// episode is the payload of EpisodeBegan.
type episode struct {
	Episode uint64   `json:"episode"`
	Seed    uint64   `json:"seed"`
	Agents  []string `json:"agents"`

	seq eventlog.Seq  // of the entry
	at  time.Duration // of the entry
}

// mark is the payload of EpisodeStep.
type mark struct {
	Episode uint64       `json:"episode"`
	Step    uint64       `json:"step"`
	Turn    string       `json:"turn,omitempty"` // the agent that acted, in an AEC
	After   eventlog.Seq `json:"after"`
	Agents  []judgement  `json:"agents"`

	seq, prev eventlog.Seq // of the entry, and of the mark or the beginning before it
}

// judgement is the result of a step for one agent. GlobalSeq is the world's number
// of its effect; the effect itself has the agent's own numbers.
type judgement struct {
	Agent      string      `json:"agent"`
	ReqID      string      `json:"req_id,omitempty"`
	GlobalSeq  uint64      `json:"global_seq,omitempty"`
	Code       agents.Code `json:"code,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Reward     float64     `json:"reward"`
	Terminated bool        `json:"terminated,omitempty"`
	Truncated  bool        `json:"truncated,omitempty"`

	effect    *world.Effect
	rejection *agents.Rejection
}

func (j judgement) done() bool { return j.Terminated || j.Truncated }

// note sets the outcome of the agent's intent.
func (j *judgement) note(reqID string, o agents.Outcome) {
	j.ReqID, j.effect, j.rejection = reqID, o.Effect, o.Rejection
	if r := o.Rejection; r != nil {
		j.Code, j.Reason = r.Code, r.Reason
		for _, p := range r.Problems {
			j.Reason += "; " + p.Path + ": " + p.Reason
		}
		j.Reason = strings.ToValidUTF8(strings.TrimPrefix(j.Reason, "; "), "\uFFFD")
		if len(j.Reason) > maxReason {
			j.Reason = strings.ToValidUTF8(j.Reason[:maxReason], "")
		}
	}
}

// maxReason bounds a recorded reason, in bytes.
const maxReason = 256

// recall restores the rejection from the record.
func (j *judgement) recall() {
	if j.Code == "" || j.rejection != nil {
		return
	}
	failure, _ := j.Code.Failure()
	j.rejection = &agents.Rejection{
		Code: j.Code, Recovery: failure.Recovery, AgentID: j.Agent, ReqID: j.ReqID, Reason: j.Reason,
	}
}

// payload returns v as a value.
func payload(v any) (signal.Value, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return signal.ParseValue(text)
}

// decode reads a payload.
func decode[T any](v signal.Value) (T, error) {
	var t T
	if err := json.Unmarshal(v.AppendJSON(nil), &t); err != nil {
		return t, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return t, nil
}

// history is the record of an episode in the log.
type history struct {
	began      *episode
	registered map[string]bool // registered since the episode began
	marks      []*mark
}

// newest returns the beginning of the newest episode of the session, nil if there
// is none. It searches backwards from the end of the log, in growing portions.
func (e *Env[A]) newest(ctx context.Context) (*episode, error) {
	var began *episode
	before := e.ses.Head().Seq
	for portion := eventlog.Seq(256); before > 0 && began == nil; portion *= 4 {
		from := before - min(before, portion) + 1
		for entry, err := range e.ses.Entries(ctx, from) {
			if err != nil {
				return nil, err
			}
			if entry.Seq > before {
				break
			}
			effect, ok := e.own(&entry)
			if !ok || effect.Kind != KindEpisodeBegan {
				continue
			}
			b, err := decode[episode](effect.Payload)
			if err != nil {
				return nil, err
			}
			b.seq, b.at = entry.Seq, entry.At
			began = &b
		}
		before = from - 1
	}
	return began, nil
}

// history reads the newest episode. Errors: [ErrReset] if there is none,
// [ErrRecord].
func (e *Env[A]) history(ctx context.Context) (h history, err error) {
	if h.began, err = e.newest(ctx); err != nil {
		return h, err
	}
	if h.began == nil {
		return h, ErrReset
	}
	h.registered = map[string]bool{}
	prev := h.began.seq
	for entry, err := range e.ses.Entries(ctx, prev+1) {
		if err != nil {
			return h, err
		}
		if r, err := session.WorldRecordOf(&entry); err == nil && r.Word == agents.WordAgent {
			id, _ := r.Value.Get("agent_id")
			name, _ := id.Text()
			h.registered[name] = true
		}
		effect, ok := e.own(&entry)
		if !ok || effect.Kind != KindEpisodeStep {
			continue
		}
		m, err := decode[mark](effect.Payload)
		if err != nil {
			return h, err
		}
		if m.Episode != h.began.Episode || m.Step != uint64(len(h.marks))+1 || m.After < prev || m.After >= entry.Seq {
			return h, fmt.Errorf("%w: entry %d: step %d of episode %d", ErrRecord, entry.Seq, m.Step, m.Episode)
		}
		m.seq, m.prev = entry.Seq, prev
		h.marks, prev = append(h.marks, &m), entry.Seq
	}
	return h, nil
}

// own returns the effect of an entry if it is the environment's: of its source, and
// not an agent's request.
func (e *Env[A]) own(entry *eventlog.Entry) (world.Effect, bool) {
	effect, ok := effectOf(entry)
	return effect, ok && effect.SourceID == e.spec.Source && effect.ReqID == ""
}

func effectOf(entry *eventlog.Entry) (world.Effect, bool) {
	effect, _, ok := numberedEffectOf(entry)
	return effect, ok
}

// numberedEffectOf returns an effect with its agent's own number.
func numberedEffectOf(entry *eventlog.Entry) (world.Effect, uint64, bool) {
	r, err := session.WorldRecordOf(entry)
	if err != nil || r.Word != agents.WordEffect {
		return world.Effect{}, 0, false
	}
	effect, err := world.ParseEffect(r.Value)
	_, _, answer, _ := agents.FinalOutcomeOf(r)
	return effect, answer.Number, err == nil
}

// effects sets the effects of a step's judgements from the log, in their agents'
// numbers.
func (e *Env[A]) effects(ctx context.Context, m *mark) error {
	wanted := map[uint64]*judgement{}
	for i := range m.Agents {
		if j := &m.Agents[i]; j.GlobalSeq != 0 && j.effect == nil {
			wanted[j.GlobalSeq] = j
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	for entry, err := range e.ses.Entries(ctx, m.prev+1) {
		if err != nil {
			return err
		}
		if effect, number, ok := numberedEffectOf(&entry); ok {
			if j := wanted[effect.GlobalSeq]; j != nil {
				delete(wanted, effect.GlobalSeq)
				effect.GlobalSeq = number
				j.effect = &effect
			}
		}
		if len(wanted) == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: effects of step %d are missing", ErrRecord, m.Step)
}
