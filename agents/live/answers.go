package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync/atomic"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/writer"
	"github.com/sajou-dev/sajou-go/session"
)

// KeyPrefix begins the idempotency keys of agents' requests. A record of the
// program must not have such a key.
const KeyPrefix = "intent/"

// intentKey returns the key of a request in the log: intent/AGENT/REQ_ID, with ~
// and / in the agent's id escaped as in a JSON pointer, or a digest of that if it
// is too long for a key.
func intentKey(agentID, reqID string) string {
	key := KeyPrefix + escapeKey.Replace(agentID) + "/" + reqID
	if len(key) <= eventlog.MaxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return KeyPrefix + hex.EncodeToString(sum[:]) // without a second /, which all other keys have
}

var escapeKey = strings.NewReplacer("~", "~0", "/", "~1")

// keyedAnswers is the log as what remembers answers, see [agents.FinalOutcomes]. It
// belongs to the turns.
type keyedAnswers struct {
	writer *writer.Writer
	turn   *writer.Turn // the present one
	err    error        // of the present turn

	// The newest answers are kept at hand: those of the present round can not
	// be read from the log yet. Of two maps the older one is dropped when the
	// newer is full. They hold the answers of all entries behind their Seq.
	newer, older     map[string]agents.FinalOutcome
	newerTo, olderTo eventlog.Seq
	none             map[string]struct{} // not answered, as this turn knows

	all atomic.Bool // olderTo is 0, so that every answer is at hand
}

const answersAtHand = 16 << 10 // of each map

func (k *keyedAnswers) begin(t *writer.Turn) {
	if k.none == nil {
		k.none = map[string]struct{}{}
		if session.WorldOf(t.Fold()).HadAgents() { // otherwise nothing was answered
			k.newerTo = t.Fold().Head().Seq
		}
		k.drop(k.newerTo)
	}
	k.turn, k.err = t, nil
	clear(k.none)
}

// drop says that answers up to a Seq are no longer at hand.
func (k *keyedAnswers) drop(to eventlog.Seq) {
	k.olderTo = to
	k.all.Store(to == 0)
}

// note keeps the answer of an entry at hand. No entry that is not noted yet is at behind
// or before it.
func (k *keyedAnswers) note(behind eventlog.Seq, agentID, reqID string, a agents.FinalOutcome) {
	if len(k.newer) >= answersAtHand || k.newer == nil {
		k.newer, k.older = make(map[string]agents.FinalOutcome), k.newer
		k.drop(k.newerTo)
		k.newerTo = behind
	}
	key := intentKey(agentID, reqID)
	k.newer[key] = a
	delete(k.none, key)
}

// lookup is the search for the answer of a request before its turn.
type lookup struct {
	key    string
	upTo   eventlog.Seq
	absent bool // no entry up to upTo has the key
}

// lookUp searches the log for the answer of a request, nil for a draft, unless all
// answers are at hand. The caller's goroutine does it, because a turn decides for all
// agents.
func (a *Agents) lookUp(in *agents.Intent) lookup {
	if in == nil {
		return lookup{}
	}
	l := lookup{key: intentKey(in.AgentID, in.ReqID), absent: true}
	if !a.answers.all.Load() {
		l.upTo, l.absent = a.w.Absent(l.key)
	}
	return l
}

// use spares the present turn a search, if all answers of entries behind the one before
// it are at hand.
func (k *keyedAnswers) use(l lookup) {
	if !l.absent || l.upTo < k.olderTo {
		return
	}
	_, newer := k.newer[l.key]
	_, older := k.older[l.key]
	if !newer && !older {
		k.none[l.key] = struct{}{}
	}
}

// absent reports whether the present turn knows that a key has no answer.
func (k *keyedAnswers) absent(key string) bool {
	_, ok := k.none[key]
	return ok
}

// Answered looks a request up.
func (k *keyedAnswers) Answered(agentID, reqID string) (agents.FinalOutcome, bool) {
	key := intentKey(agentID, reqID)
	for _, m := range []map[string]agents.FinalOutcome{k.newer, k.older} {
		if a, ok := m[key]; ok {
			return a, true
		}
	}
	if k.absent(key) {
		return agents.FinalOutcome{}, false
	}
	t, err := k.turn.Repeat(key)
	if err != nil || t == nil {
		if err == nil {
			k.none[key] = struct{}{}
		}
		k.fail(err)
		return agents.FinalOutcome{}, false
	}
	for e, err := range k.writer.Entries(context.Background(), t.First()) {
		if err != nil || e.Seq > t.Head().Seq {
			k.fail(err)
			break
		}
		if r, err := session.WorldRecordOf(&e); err == nil {
			if agent, id, a, ok := agents.FinalOutcomeOf(r); ok && agent == agentID && id == reqID {
				return a, true
			}
		}
	}
	return agents.FinalOutcome{}, false
}

func (k *keyedAnswers) fail(err error) {
	if k.err == nil {
		k.err = err
	}
}
