package sajou

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
)

// intentPrefix begins the idempotency keys of agents' requests. A record of the
// program's own may not have such a key.
const intentPrefix = "intent/"

// intentKey returns the key under which a request is answered in the log:
// intent/AGENT/REQ_ID, with ~ and / in the agent's id escaped as in a JSON pointer,
// or if that is too long for a key a digest of it.
func intentKey(agentID, reqID string) string {
	key := intentPrefix + escapeKey.Replace(agentID) + "/" + reqID
	if len(key) <= eventlog.MaxKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return intentPrefix + hex.EncodeToString(sum[:]) // with no second /, as the others have
}

var escapeKey = strings.NewReplacer("~", "~0", "/", "~1")

// keyedAnswers is the log as what remembers answers, see [agents.Answers]. It
// belongs to the turns.
type keyedAnswers struct {
	log   *eventlog.Session
	round *eventlog.Round
	err   error // of the present turn

	// The newest answers are kept at hand: those of the present round can not
	// be read from the log yet. Of two maps the older one is dropped when the
	// newer is full.
	newer, older map[string]agents.Answer
	none         map[string]struct{} // not answered when this turn looked
}

const answersAtHand = 16 << 10 // of each map

func (k *keyedAnswers) begin(round *eventlog.Round) {
	k.round, k.err = round, nil
	clear(k.none)
}

func (k *keyedAnswers) note(agentID, reqID string, a agents.Answer) {
	if len(k.newer) >= answersAtHand || k.newer == nil {
		k.newer, k.older = make(map[string]agents.Answer), k.newer
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
func (k *keyedAnswers) Answered(agentID, reqID string) (agents.Answer, bool) {
	key := intentKey(agentID, reqID)
	for _, m := range []map[string]agents.Answer{k.newer, k.older} {
		if a, ok := m[key]; ok {
			return a, true
		}
	}
	if k.absent(key) {
		return agents.Answer{}, false
	}
	t, err := k.round.Repeat(key)
	if err != nil || t == nil {
		if k.none == nil {
			k.none = map[string]struct{}{}
		}
		if err == nil {
			k.none[key] = struct{}{}
		}
		k.fail(err)
		return agents.Answer{}, false
	}
	for e, err := range k.log.Entries(context.Background(), t.First()) {
		if err != nil || e.Seq > t.Head().Seq {
			k.fail(err)
			break
		}
		if r, err := WorldRecordOf(&e); err == nil {
			if agent, id, a, ok := r.Answer(); ok && agent == agentID && id == reqID {
				return a, true
			}
		}
	}
	return agents.Answer{}, false
}

func (k *keyedAnswers) fail(err error) {
	if k.err == nil {
		k.err = err
	}
}
