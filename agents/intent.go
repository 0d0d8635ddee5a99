package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sajou-dev/sajou-go/agents/internal/codec"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// KindCustom is the kind of an intent that means whatever the program says.
// The other kinds of intent are [world.KindSpeak], [world.KindMove] and [world.KindInteract], each
// kind with a [world.Handler], and those that the configuration names.
const KindCustom = "Custom"

// Bounds of an intent.
const (
	MaxReqID    = 200
	MaxPriority = 100 // and its negative
)

// Intent is what an agent asks for.
type Intent struct {
	Kind       string
	Payload    signal.Value
	ContextSeq uint64 // the view_seq of what it considered
	ReqID      string // unique for the agent; the same one means the same intent
	AgentID    string
	// Priority orders the intents of one quantum, the greater first.
	// Unprioritized means the agent's default.
	Priority      int
	Unprioritized bool
	SchemaVersion string
}

// ParseIntent reads an intent in the form of the multi-agent design, "Core Data Types".
// Other members are ignored.
func ParseIntent(v signal.Value) (Intent, error) {
	in := Intent{Unprioritized: true}
	if v.Kind() != signal.KindObject {
		return in, errors.New("agents: an intent is an object")
	}
	for name, m := range v.Members() {
		ok := true
		var text *string
		switch name {
		case "kind":
			text = &in.Kind
		case "req_id":
			text = &in.ReqID
		case "agent_id":
			text = &in.AgentID
		case "schema_version":
			text = &in.SchemaVersion
		case "payload":
			if m.Kind() != signal.KindNull {
				in.Payload, ok = m, m.Kind() == signal.KindObject
			}
		case "context_seq":
			var i int64
			i, ok = m.Int64()
			ok = ok && i >= 0
			in.ContextSeq = uint64(i)
		case "priority":
			if m.Kind() == signal.KindNull {
				continue
			}
			var i int64
			i, ok = m.Int64()
			ok = ok && i >= -MaxPriority && i <= MaxPriority
			in.Priority, in.Unprioritized = int(i), false
		}
		if text != nil {
			var s string
			s, ok = m.Text()
			*text = strings.Clone(s)
		}
		if !ok {
			return Intent{}, fmt.Errorf("agents: intent: %s %v", name, m)
		}
	}
	return in, nil
}

// UUID returns the uuid of the effect that an intent becomes: derived, so that
// it is the same wherever and however often it is decided. It is the
// hexadecimal form of the first 16 bytes of SHA-256 over
//
//	"sajou-uuid" 0x00 world 0x00 agent 0x00 req_id
func (in Intent) UUID(world string) string {
	return deriveUUID(world, in.AgentID, in.ReqID)
}

func deriveUUID(parts ...string) string {
	sum := sha256.Sum256([]byte("sajou-uuid\x00" + strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// structure says what is wrong with an intent before anybody looks at its
// meaning: without these there is nothing to remember an answer under.
func (in *Intent) structure() *Rejection {
	var r Rejection
	wrong := func(path, format string, args ...any) {
		r.Problems = append(r.Problems, Problem{path, fmt.Sprintf(format, args...)})
	}
	if err := codec.CheckKey(in.ReqID, MaxReqID); err != nil {
		wrong("/req_id", "%v", err)
	}
	if err := codec.CheckKey(in.AgentID, world.MaxID); err != nil {
		wrong("/agent_id", "%v", err)
	}
	if err := codec.CheckKey(in.Kind, world.MaxID); err != nil {
		wrong("/kind", "%v", err)
	}
	if err := soundPayload(in.Payload); err != nil {
		wrong("/payload", "%v", err)
	}
	if len(in.SchemaVersion) > world.MaxID || !utf8.ValidString(in.SchemaVersion) {
		wrong("/schema_version", "want at most %d bytes of UTF-8", world.MaxID)
	}
	if in.Priority < -MaxPriority || in.Priority > MaxPriority {
		wrong("/priority", "%d, want -%d to %d", in.Priority, MaxPriority, MaxPriority)
	}
	if len(r.Problems) > 0 {
		rejection := reject(in, ErrInvalidIntent, "malformed")
		rejection.Problems = r.Problems
		return rejection
	}
	if !compatible(in.SchemaVersion) {
		return reject(in, ErrVersionMismatch, "schema_version %q, this program speaks %s", in.SchemaVersion, world.SchemaVersion)
	}
	return nil
}

// soundPayload refuses what no record could hold: bytes that are no object, or
// an object beyond the bounds of effects.
func soundPayload(v signal.Value) error {
	if v == nil {
		return nil
	}
	if len(v) > world.MaxPayload {
		return fmt.Errorf("more than %d bytes", world.MaxPayload)
	}
	return soundObject(v, world.MaxEntityDepth)
}

func soundObject(v signal.Value, depth int) error {
	switch _, rest, err := signal.CheckValue(v); {
	case err != nil:
		return err
	case len(rest) > 0:
		return errors.New("more than one value")
	case v.Kind() != signal.KindObject:
		return fmt.Errorf("%v, want an object", v.Kind())
	case jsonvalue.Height(v) > depth:
		return fmt.Errorf("deeper than %d levels", depth)
	}
	return nil
}

// compatible reports whether a version is of the same major one as ours. None
// said means ours.
func compatible(version string) bool {
	if version == "" {
		return true
	}
	major, _, _ := strings.Cut(version, ".")
	ours, _, _ := strings.Cut(world.SchemaVersion, ".")
	return major == ours
}

// cost returns how many tokens an intent counts as: a quarter of its payload's
// JSON, and one at least.
func cost(payload signal.Value) int64 {
	return max(1, int64(len(payload.AppendJSON(nil)))/4)
}
