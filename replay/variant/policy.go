package variant

import (
	"bytes"
	"context"
	"fmt"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
)

// policy gives all registered agents the policy of c.
func (b *builder) policy(ctx context.Context, c *Edits) error {
	if c.Policy == nil {
		return nil
	}
	registered := false
	for e, err := range b.parent.Entries(ctx, 1) {
		if err != nil {
			return fmt.Errorf("variant: read the registrations: %w", err)
		}
		if e.Seq > b.last {
			break
		}
		if p := b.points[e.Seq]; e.Kind != eventlog.KindEffect || p != nil && (p.drop || p.set != nil) {
			continue
		}
		r, err := session.WorldRecordOf(&e)
		if err != nil || r.Word != agents.WordAgent {
			continue // a record that cannot be read has no effect in the parent either
		}
		registered = true
		now := agents.WithPolicy(r.Value, c.Policy)
		if bytes.Equal(now, r.Value) {
			continue
		}
		d := &eventlog.Draft{Kind: e.Kind, At: e.At, Data: session.AppendWord(nil, r.Word, now)}
		if err := check(d); err != nil {
			return impossible("the policy does not fit into entry %d: %w", e.Seq, err)
		}
		b.point(e.Seq).set = d
	}
	if !registered && ctx.Err() == nil {
		return impossible("no agent is registered, so a policy has no effect")
	}
	return ctx.Err()
}
