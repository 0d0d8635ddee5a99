package agents

import (
	_ "embed" // of the schemas
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// This file has the JSON of intents and outcomes, by which clients in other languages
// and other processes know them.

var (
	//go:embed intent.schema.json
	intentSchema string
	//go:embed outcome.schema.json
	outcomeSchema string
	//go:embed config.schema.json
	configSchema string
	//go:embed policy.schema.json
	policySchema string
)

// IntentSchema returns the JSON Schema (draft 2020-12) of an [Intent] as
// [ParseIntent] reads it.
func IntentSchema() []byte { return []byte(intentSchema) }

// OutcomeSchema returns the JSON Schema (draft 2020-12) of an [Outcome] as
// [Outcome.Value] returns it.
func OutcomeSchema() []byte { return []byte(outcomeSchema) }

// ConfigSchema returns the JSON Schema (draft 2020-12) of the configurations that
// [ParseConfig] reads.
func ConfigSchema() []byte { return []byte(configSchema) }

// PolicySchema returns the JSON Schema (draft 2020-12) of [Registration.Policy].
func PolicySchema() []byte { return []byte(policySchema) }

// Value returns the intent in the form that [ParseIntent] reads.
func (in Intent) Value() signal.Value {
	o := jsonvalue.Fields{
		{"kind", jsonvalue.Text(in.Kind)},
		{"context_seq", jsonvalue.Uint(in.ContextSeq)},
		{"req_id", jsonvalue.Text(in.ReqID)},
		{"agent_id", jsonvalue.Text(in.AgentID)},
	}
	add := func(name string, v signal.Value) { o = append(o, jsonvalue.NamedValue{name, v}) }
	if in.Payload != nil {
		add("payload", in.Payload)
	}
	if !in.Unprioritized {
		add("priority", jsonvalue.Int(int64(in.Priority)))
	}
	if in.SchemaVersion != "" {
		add("schema_version", jsonvalue.Text(in.SchemaVersion))
	}
	return o.Value()
}

// MarshalJSON returns [Intent.Value] as JSON.
func (in Intent) MarshalJSON() ([]byte, error) { return in.Value().MarshalJSON() }

// UnmarshalJSON reads an intent as [ParseIntent] does.
func (in *Intent) UnmarshalJSON(text []byte) error {
	v, err := signal.ParseValue(text)
	if err == nil {
		*in, err = ParseIntent(v)
	}
	return err
}

// Value returns the outcome as JSON, in the form of [OutcomeSchema]. Members that say
// nothing are absent.
func (o Outcome) Value() signal.Value {
	out := jsonvalue.Fields{{"status", jsonvalue.Text(o.Status.String())}}
	add := func(name string, v signal.Value) { out = append(out, jsonvalue.NamedValue{name, v}) }
	if o.GlobalSeq > 0 {
		add("global_seq", jsonvalue.Uint(o.GlobalSeq))
		add("uuid", jsonvalue.Text(o.UUID))
	}
	if o.Number > 0 {
		add("number", jsonvalue.Uint(o.Number))
	}
	if o.Effect != nil {
		add("effect", o.Effect.WithRequest())
	}
	if o.Rejection != nil {
		add("rejection", o.Rejection.Value())
	}
	return out.Value()
}

// MarshalJSON returns [Outcome.Value] as JSON.
func (o Outcome) MarshalJSON() ([]byte, error) { return o.Value().MarshalJSON() }

// UnmarshalJSON reads what [Outcome.MarshalJSON] writes.
func (o *Outcome) UnmarshalJSON(text []byte) error {
	v, err := signal.ParseValue(text)
	if err == nil {
		*o, err = ParseOutcome(v)
	}
	return err
}

// ParseOutcome reads the object that [Outcome.Value] returns. Other members are
// ignored.
func ParseOutcome(v signal.Value) (Outcome, error) {
	status := slices.Index(statusNames[:], jsonvalue.TextOf(v, "status"))
	if status < 0 {
		return Outcome{}, errors.New("agents: outcome: status is none of rejected, accepted and duplicate")
	}
	o := Outcome{
		Status:    Status(status),
		GlobalSeq: jsonvalue.UintOf(v, "global_seq"),
		UUID:      strings.Clone(jsonvalue.TextOf(v, "uuid")),
		Number:    jsonvalue.UintOf(v, "number"),
	}
	if e, ok := v.Get("effect"); ok {
		effect, err := world.ParseEffect(e)
		if err != nil {
			return Outcome{}, fmt.Errorf("agents: outcome: %w", err)
		}
		o.Effect = &effect
	}
	if r, ok := v.Get("rejection"); ok {
		if r.Kind() != signal.KindObject {
			return Outcome{}, errors.New("agents: outcome: rejection is no object")
		}
		o.Rejection = rejectionOf(r)
	}
	if o.Rejection == nil && (o.GlobalSeq == 0 || o.Status == Rejected) {
		return Outcome{}, errors.New("agents: outcome: neither an effect nor a rejection")
	}
	return o, nil
}

// Value returns the rejection as JSON: the member rejection of an [Outcome].
func (r *Rejection) Value() signal.Value {
	out := jsonvalue.Fields{
		{"code", jsonvalue.Text(string(r.Code))},
		{"recovery", jsonvalue.Text(string(r.Recovery))},
		{"agent_id", jsonvalue.Text(r.AgentID)},
		{"req_id", jsonvalue.Text(r.ReqID)},
		{"reason", jsonvalue.Text(r.Reason)},
	}
	add := func(name string, v signal.Value) { out = append(out, jsonvalue.NamedValue{name, v}) }
	if len(r.Problems) > 0 {
		add("problems", problemsValue(r.Problems))
	}
	if r.Code == ErrStaleContext {
		add("expected_seq", jsonvalue.Uint(r.ExpectedSeq))
		add("actual_seq", jsonvalue.Uint(r.ActualSeq))
	}
	if r.Quota != "" {
		add("quota", jsonvalue.Text(string(r.Quota)))
		add("limit", jsonvalue.Int(r.Limit))
	}
	if r.RetryAfter > 0 {
		add("retry_after_ms", jsonvalue.Float(float64(r.RetryAfter)/1e6))
	}
	return out.Value()
}

func rejectionOf(v signal.Value) *Rejection {
	text := func(name string) string { return strings.Clone(jsonvalue.TextOf(v, name)) }
	r := &Rejection{
		Code: Code(text("code")), Recovery: Recovery(text("recovery")), AgentID: text("agent_id"), ReqID: text("req_id"), Reason: text("reason"),
		Problems:    problemsOf(v),
		ExpectedSeq: jsonvalue.UintOf(v, "expected_seq"), ActualSeq: jsonvalue.UintOf(v, "actual_seq"),
		Quota: QuotaType(text("quota")), Limit: jsonvalue.IntOf(v, "limit"),
	}
	if ms, ok := v.Member("retry_after_ms").Float64(); ok && ms > 0 && ms < float64(1<<63)/1e6 {
		r.RetryAfter = time.Duration(math.Round(float64(ms * 1e6)))
	}
	return r
}

// problemsValue returns problems as an array of objects with path and reason.
func problemsValue(problems []Problem) signal.Value {
	list := make([]signal.Value, len(problems))
	for i, p := range problems {
		list[i] = jsonvalue.Fields{{"path", jsonvalue.Text(p.Path)}, {"reason", jsonvalue.Text(p.Reason)}}.Value()
	}
	return jsonvalue.Array(list)
}
