package rl

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
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
	Turn    string       `json:"turn,omitempty"` // whose it was, of an AEC
	After   eventlog.Seq `json:"after"`
	Agents  []judgement  `json:"agents"`

	seq, prev eventlog.Seq // of the entry, and of the mark or the beginning before it
}

// judgement is what a step came to for one agent.
type judgement struct {
	Agent      string      `json:"agent"`
	ReqID      string      `json:"req_id,omitempty"`
	GlobalSeq  uint64      `json:"global_seq,omitempty"`
	Code       agents.Code `json:"code,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Reward     float64     `json:"reward"`
	Terminated bool        `json:"terminated,omitempty"`
	Truncated  bool        `json:"truncated,omitempty"`

	effect    *agents.Effect
	rejection *agents.Rejection
}

func (j judgement) done() bool { return j.Terminated || j.Truncated }

// note takes over what came of the agent's intent.
func (j *judgement) note(reqID string, o agents.Outcome) {
	j.ReqID, j.GlobalSeq, j.effect, j.rejection = reqID, o.GlobalSeq, o.Effect, o.Rejection
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

// maxReason bounds what is recorded of a reason, in bytes.
const maxReason = 256

// recall makes the rejection that the record speaks of, if it is not at hand.
func (j *judgement) recall() {
	if j.Code == "" || j.rejection != nil {
		return
	}
	failure, _ := j.Code.Failure()
	j.rejection = &agents.Rejection{
		Code: j.Code, Recovery: failure.Recovery, AgentID: j.Agent, ReqID: j.ReqID, Reason: j.Reason,
	}
}

// payload makes what is recorded.
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

// history is what the log has of an episode.
type history struct {
	began      *episode
	registered map[string]bool // since then
	marks      []*mark
}

// newest returns the beginning of the newest episode of the session, nil if it
// has none. It looks from the end of the log backwards, in growing portions.
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

// history reads what has come of the newest episode. Errors: [ErrReset] if there
// is none, [ErrRecord].
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
		if r, err := sajou.WorldRecordOf(&entry); err == nil && r.Word == agents.WordAgent {
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

// own returns the effect of an entry, if it is the environment's: of its source
// and nobody's request.
func (e *Env[A]) own(entry *eventlog.Entry) (agents.Effect, bool) {
	effect, ok := effectOf(entry)
	return effect, ok && effect.SourceID == e.spec.Source && effect.ReqID == ""
}

func effectOf(entry *eventlog.Entry) (agents.Effect, bool) {
	r, err := sajou.WorldRecordOf(entry)
	if err != nil || r.Word != agents.WordEffect {
		return agents.Effect{}, false
	}
	effect, err := agents.ParseEffect(r.Value)
	return effect, err == nil
}

// effects gives the judgements of a mark the effects that the log has for them.
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
		if effect, ok := effectOf(&entry); ok {
			if j := wanted[effect.GlobalSeq]; j != nil {
				j.effect = &effect
				delete(wanted, effect.GlobalSeq)
			}
		}
		if len(wanted) == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: effects of step %d are missing", ErrRecord, m.Step)
}
