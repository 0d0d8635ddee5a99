package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

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
	// newer is full.
	newer, older map[string]agents.FinalOutcome
	none         map[string]struct{} // not answered when this turn looked
}

const answersAtHand = 16 << 10 // of each map

func (k *keyedAnswers) begin(t *writer.Turn) {
	k.turn, k.err = t, nil
	clear(k.none)
}

func (k *keyedAnswers) note(agentID, reqID string, a agents.FinalOutcome) {
	if len(k.newer) >= answersAtHand || k.newer == nil {
		k.newer, k.older = make(map[string]agents.FinalOutcome), k.newer
	}
	key := intentKey(agentID, reqID)
	k.newer[key] = a
	delete(k.none, key)
}

// absent reports whether a key was looked up in this turn and not found.
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
		if k.none == nil {
			k.none = map[string]struct{}{}
		}
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
