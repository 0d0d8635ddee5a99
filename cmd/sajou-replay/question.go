package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

// This file is what the commands share that ask what agents knew.

const viewPathHelp = `A PATH is a JSON pointer into the agent's view, which has visible_entities,
visible_relationships, view_seq and context_digest: /visible_entities/door/locked.
What does not begin with a slash is the id of an entity.`

// question opens the session that a command about an agent names, if it does.
// Where the entries that are gone over are many, a terminal shows how far it is.
func (a *app) question(args []string) (t *target, r *sajou.Replay, done func(), err error) {
	if len(args) > 1 {
		return nil, nil, nil, misuse("too many arguments: %q", args[1])
	}
	if t, err = a.argTarget(args); err != nil {
		return nil, nil, nil, err
	}
	m := newMeter(a.stderr)
	r = t.engine.Replay(t.name).OnProgress(func(done, total eventlog.Seq) {
		m.show(fmt.Sprintf("%d of %d entries", done, total))
	})
	return t, r, m.clear, nil
}

// remarkPath says how a path was read that led to nothing, where it is likely to
// have been meant otherwise: without a slash in front it is an entity's id.
func (a *app) remarkPath(written string) {
	if strings.Contains(written, "/") && !strings.HasPrefix(written, "/") {
		fmt.Fprintf(a.stderr, "sajou-replay: %s was looked for as the id of an entity; as a path it is %s\n",
			printable(written), printable("/visible_entities/"+written))
	}
}

// asked says of an error which exit code it means.
func asked(err error) error {
	switch {
	case errors.Is(err, agents.ErrPointer), errors.Is(err, agents.ErrPolicy):
		return misuse("%s", strings.TrimPrefix(trimAgents(err), "no JSON pointer: "))
	case errors.Is(err, agents.UnknownAgent):
		return fail(exitNotFound, "%w", err)
	}
	return err
}

func trimAgents(err error) string { return strings.ReplaceAll(err.Error(), "agents: ", "") }

// canonicalJSON is a value for marshal: exact, and written one way.
func canonicalJSON(v signal.Value) json.RawMessage {
	if v == nil {
		return nil
	}
	return json.RawMessage(agents.AppendCanonical(nil, v))
}

// causeView is what an agent is told of, for JSON.
type causeView struct {
	Word      string `json:"word"`
	GlobalSeq uint64 `json:"global_seq,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Source    string `json:"source_id,omitempty"`
	ReqID     string `json:"req_id,omitempty"`
}

func viewCause(c agents.Cause) causeView {
	return causeView{c.Word, c.GlobalSeq, c.Kind, c.Source, c.ReqID}
}

func causeText(c agents.Cause) string {
	switch c.Word {
	case agents.WordEffect:
		text := fmt.Sprintf("effect %d, %s of %s", c.GlobalSeq, c.Kind, c.Source)
		if c.ReqID != "" {
			text += ", req_id " + c.ReqID
		}
		return text
	case agents.WordAgent:
		return "its registration"
	case agents.WordOutcome:
		return "the refusal of a request"
	default:
		return c.Word
	}
}

// newsView is a delta and where it comes from, for JSON. Times are milliseconds
// of session time.
type newsView struct {
	Seq    uint64          `json:"seq"`
	Made   float64         `json:"made"`
	Told   float64         `json:"told"`
	Number uint64          `json:"number"`
	Cause  causeView       `json:"cause"`
	Delta  json.RawMessage `json:"delta,omitempty"`
}

func viewNews(n agents.News) newsView {
	v := newsView{
		n.Entry, projection.Millis(n.Made), projection.Millis(n.Delivery.At), n.Delivery.Number,
		viewCause(n.Cause), nil,
	}
	if n.Delivery.Number > 0 {
		v.Delta = canonicalJSON(n.Delivery.Delta.Value())
	}
	return v
}

// indentDelta stands before the operations of a delta below a line about it.
const indentDelta = "      "

// newsText is one line about a delta.
func newsText(n agents.News) string {
	told := "told at once"
	if n.Delivery.At != n.Made {
		told = "told at " + clockText(n.Delivery.At)
	}
	return fmt.Sprintf("entry %d at %s: %s; %s", n.Entry, clockText(n.Made), causeText(n.Cause), told)
}

// deltaText shows a delta's operations, one a line behind an indent; of a long
// one the first.
func deltaText(indent string, d agents.Delta) string {
	const most, width = 20, 200
	var b strings.Builder
	for i, op := range d.Patches {
		if i == most {
			fmt.Fprintf(&b, "%sand %d more; -o json has all\n", indent, len(d.Patches)-most)
			break
		}
		line := fmt.Sprintf("%s%-7s  %s", indent, op.Op, op.Path)
		if op.Value != nil {
			line += "  " + string(canonicalJSON(op.Value))
		}
		b.WriteString(clip(printable(line), width) + "\n")
	}
	if len(d.Patches) == 0 {
		b.WriteString(indent + "no operations: nothing that it sees has changed\n")
	}
	return b.String()
}

// valueText is a value for people, as state shows one: a text as it is, else JSON.
func valueText(v signal.Value) string {
	if s, ok := v.Text(); ok {
		return printableLines(s)
	}
	return printableLines(string(indented(canonicalJSON(v))))
}
