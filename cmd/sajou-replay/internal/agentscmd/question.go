// Package agentscmd has the commands about agents: what they knew and were sent
// (knows, first-known, leak, policy-diff), the fate of their requests
// (why-cancelled, why-rejected), and the scenarios of sim.
package agentscmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/history"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/query"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// viewPathHelp is the part of the help that describes a PATH.
const viewPathHelp = `A PATH is a JSON Pointer into the view of the agent, such as
/visible_entities/door/locked; a view has the members visible_entities,
visible_relationships, view_seq and context_digest. A PATH without a leading
slash is the id of an entity.`

// openQuestion opens the session that the arguments of a command about an agent
// name, or the default one. On a terminal, the history shows its progress until
// done is called.
func openQuestion(a *cli.App, args []string) (t *cli.OpenedSession, r *history.History, done func(), err error) {
	if len(args) > 1 {
		return nil, nil, nil, cli.Misuse("too many arguments: %q", args[1])
	}
	if t, err = a.OpenArgSession(args); err != nil {
		return nil, nil, nil, err
	}
	h, err := t.Engine.AgentHistory(t.Name)
	if err != nil {
		return nil, nil, nil, err
	}
	m := cli.NewProgress(a.Stderr)
	r = h.OnProgress(func(done, total eventlog.Seq) {
		m.Show(fmt.Sprintf("%d of %d entries", done, total))
	})
	return t, r, m.Clear, nil
}

// remarkPath remarks on stderr that a path without a leading slash was read as the
// id of an entity. It is called when the path led to nothing.
func remarkPath(a *cli.App, written string) {
	if strings.Contains(written, "/") && !strings.HasPrefix(written, "/") {
		fmt.Fprintf(a.Stderr, "sajou-replay: %s was read as the id of an entity; the path is written %s\n",
			termtext.Printable(written), termtext.Printable("/visible_entities/"+written))
	}
}

// queryError gives an error of a query its exit code.
func queryError(err error) error {
	switch {
	case errors.Is(err, jsondoc.ErrPointer), errors.Is(err, view.ErrPolicy):
		return cli.Misuse("%s", strings.TrimPrefix(trimAgents(err), "no JSON pointer: "))
	case errors.Is(err, agents.ErrUnknownAgent), errors.Is(err, history.ErrNoThing):
		return cli.Fail(cli.ExitNotFound, "%w", err)
	}
	return err
}

// otherRules separates the error of a session that was recorded under older rules,
// for which the answer by the present rules is still shown, from other errors.
func otherRules(err error) (*session.RulesError, error) {
	if rules, ok := errors.AsType[*session.RulesError](err); ok && rules.Recorded < rules.Present {
		return rules, nil
	}
	return nil, queryError(err)
}

// answered returns the exit of a search of everything that an agent was sent: the
// code yes if the search found something, no if not, or [cli.ExitLoss] if the
// answer is not proven.
func answered(found bool, yes, no int, p *history.LeakProof) error {
	code := no
	if found {
		code = yes
	}
	if p.Rules != nil || !found && len(p.Unsearched) > 0 {
		code = cli.ExitLoss
	}
	if code == 0 {
		return nil
	}
	return &cli.ExitError{Code: code}
}

func gapsText(p *history.LeakProof) string {
	var b strings.Builder
	for _, g := range answer.ViewGaps(p) {
		b.WriteString("not covered: " + termtext.Printable(g.Text) + "\n")
	}
	return b.String()
}

// unproven returns the exit of a printed answer: err, or, for a session of other
// rules, [cli.ExitLoss] with the reason why the answer proves nothing.
func unproven(rules *session.RulesError, err error) error {
	if e, ok := errors.AsType[*cli.ExitError](err); rules == nil || err != nil && (!ok || e.Cause != nil) {
		return err
	}
	return cli.Fail(cli.ExitLoss, "%s; the answer above follows the present rules", answer.RulesText(rules))
}

// textOrPath reads the subject of a search: --value TEXT, or a path.
func textOrPath(cmd *cobra.Command, text string, paths []string) (q query.LeakQuery, rest []string, err error) {
	switch {
	case cmd.Flags().Changed("value"):
		if text == "" {
			return q, nil, cli.Misuse("--value is empty; every text contains the empty text")
		}
		return query.LeakQuery{Text: text}, paths, nil
	case len(paths) == 0:
		return q, nil, cli.Misuse("no PATH and no --value TEXT; usage: %s", cmd.UseLine())
	}
	if q, err = answer.PathQuery(paths[0]); err != nil {
		return q, nil, queryError(err)
	}
	return q, paths[1:], nil
}

// soughtText describes the subject of a search.
func soughtText(q query.LeakQuery) string {
	switch {
	case q.Path != nil:
		return q.Path.String()
	case q.Entity != "":
		return "the entity " + q.Entity
	}
	return fmt.Sprintf("the text %q", q.Text)
}

func trimAgents(err error) string { return strings.ReplaceAll(err.Error(), "agents: ", "") }

func causeText(c query.Cause) string {
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
	case agents.WordGenerated:
		return "an attempt at a generation"
	default:
		return c.Word
	}
}

// indentDelta indents the operations of a delta.
const indentDelta = "      "

// newsText is one line about a delta.
func newsText(n query.TracedDelivery) string {
	delivered := "delivered at once"
	if n.Delivery.At != n.Made {
		delivered = "delivered at " + cli.ClockText(n.Delivery.At)
	}
	return fmt.Sprintf("entry %d at %s: %s; %s", n.Entry, cli.ClockText(n.Made), causeText(n.Cause), delivered)
}

// deltaText returns the operations of a delta, one a line, at most twenty.
func deltaText(indent string, d view.Delta) string {
	const most, width = 20, 200
	var b strings.Builder
	for i, op := range d.Patches {
		if i == most {
			fmt.Fprintf(&b, "%sand %d more; -o json has all\n", indent, len(d.Patches)-most)
			break
		}
		line := fmt.Sprintf("%s%-7s  %s", indent, op.Op, op.Path)
		if op.Value != nil {
			line += "  " + string(answer.CanonicalJSON(op.Value))
		}
		b.WriteString(termtext.Clip(termtext.Printable(line), width) + "\n")
	}
	if len(d.Patches) == 0 {
		b.WriteString(indent + "no operations: its view did not change\n")
	}
	return b.String()
}

// valueText returns a text as it is, and any other value as indented JSON.
func valueText(v signal.Value) string {
	if s, ok := v.Text(); ok {
		return termtext.PrintableLines(s)
	}
	return termtext.PrintableLines(string(cli.Indented(answer.CanonicalJSON(v))))
}
