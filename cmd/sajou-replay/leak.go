package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
)

func (a *app) leakCommand() *cobra.Command {
	var (
		text string
		all  bool
	)
	cmd := &cobra.Command{
		Use:   "leak AGENT (PATH | --value TEXT) [SESSION]",
		Short: "Prove that an agent was never told something, or show where it was",
		Long: `Leak looks through every delta that was ever made for an agent, whole views
included, whether it arrived or not, for one that carries a path or something
below it. For an entity, which is named by its id, also the relationships count
that name it. With --value it looks for a text instead, a secret: in every name
and every text, also as a part of one, as a number, and in why a request of the
agent was refused. Upper and lower case differ.

` + viewPathHelp + `

The answer says what was looked at: how many deltas and operations, and the log's
head. An agent is told nothing else, so where nothing is found it never knew;
that the log is whole, says verify. The exit code is 0 when nothing was found and
1 when something was: the first place, or with --all each of them.`,
		Example: `  sajou-replay leak scout vault
  sajou-replay leak scout /visible_entities/vault/code release-42
  sajou-replay leak scout --value XK-4711 --all`,
		Args: between(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			var q agents.LeakQuery
			rest := args[1:]
			switch {
			case cmd.Flags().Changed("value"):
				if q.Text = text; text == "" {
					return misuse("--value: an empty text is everywhere")
				}
			case len(rest) == 0:
				return misuse("what must not be known? a PATH or --value TEXT; usage: %s", cmd.UseLine())
			default:
				path, err := agents.ParseViewPath(rest[0])
				if err != nil {
					return asked(err)
				}
				if q.Path = path; rest[0] != "" && rest[0][0] != '/' {
					q = agents.LeakQuery{Entity: rest[0]}
				}
				rest = rest[1:]
			}
			t, r, done, err := a.question(rest)
			if err != nil {
				return err
			}
			defer t.Close()
			defer done()
			return a.leak(cmd.Context(), r, args[0], q, all, done)
		},
	}
	cmd.Flags().StringVar(&text, "value", "", "a text to look for, anywhere")
	cmd.Flags().BoolVar(&all, "all", false, "list each place")
	return cmd
}

// leakView is one place where something was told, for JSON.
type leakView struct {
	Place     string `json:"place"`
	How       string `json:"how"`
	Operation *int   `json:"operation,omitempty"` // in the delta's patch, from 0
	newsView
}

// proofView is the answer to a question about a leak, for JSON.
type proofView struct {
	Agent  string    `json:"agent"`
	Path   *string   `json:"path,omitempty"`
	Entity string    `json:"entity,omitempty"`
	Value  string    `json:"value,omitempty"`
	Leaked bool      `json:"leaked"`
	Leaks  uint64    `json:"leaks"`
	First  *leakView `json:"first,omitempty"`
	Looked struct {
		From       uint64   `json:"from"`
		To         uint64   `json:"to"`
		Head       headView `json:"head"`
		Deltas     uint64   `json:"deltas"`
		Whole      uint64   `json:"whole_views"`
		Operations uint64   `json:"operations"`
		Values     uint64   `json:"values,omitempty"`
		Refusals   uint64   `json:"refusals"`
	} `json:"looked"`
}

func (a *app) leak(ctx context.Context, r *sajou.Replay, agent string, q agents.LeakQuery, all bool, done func()) error {
	o := a.output()
	v := proofView{Agent: agent, Entity: q.Entity, Value: q.Text}
	sought := fmt.Sprintf("the text %q", q.Text)
	switch {
	case q.Path != nil:
		path := q.Path.String()
		v.Path, sought = &path, path
	case q.Entity != "":
		sought = "the entity " + q.Entity
	}
	var first *agents.Leak
	proof, err := r.Leak(ctx, agent, q, func(l agents.Leak) error {
		done()
		if first == nil {
			kept := l
			first = &kept
		}
		if !all {
			return nil
		}
		line, err := marshal(viewLeak(l))
		if err != nil {
			return err
		}
		return o.item(printable(leakText(l)), line)
	})
	done()
	if err != nil {
		return asked(err)
	}
	v.Leaked, v.Leaks = proof.Leaks > 0, proof.Leaks
	n := proof.Looked
	v.Looked.From, v.Looked.To, v.Looked.Head = uint64(proof.From), uint64(proof.Head.Seq), viewHead(proof.Head)
	v.Looked.Deltas, v.Looked.Whole, v.Looked.Operations, v.Looked.Values, v.Looked.Refusals = n.Deltas, n.Whole, n.Operations, n.Values, n.Refusals
	text := fmt.Sprintf("%s was never told %s\n", agent, sought)
	if first != nil {
		text = fmt.Sprintf("%s was told %s: %s\n", agent, sought, plural(int(proof.Leaks), "place", "places"))
		if !all {
			leak := viewLeak(*first)
			v.First = &leak
			text += "first  " + leakText(*first) + "\n"
		}
	}
	if first == nil {
		a.remarkPath(q.Entity)
	}
	text = printableLines(text)
	if first != nil && !all && first.Operation >= 0 {
		text += deltaText(indentDelta, agents.Delta{Patches: first.Delivery.Delta.Patches[first.Operation : first.Operation+1]})
	}
	text += fmt.Sprintf("looked at %s with %s, %d of them whole views, and %s, in the entries %d..%d; head %v\n",
		plural(int(n.Deltas), "delta", "deltas"), plural(int(n.Operations), "operation", "operations"), n.Whole,
		plural(int(n.Refusals), "refusal", "refusals"), v.Looked.From, v.Looked.To, proof.Head)
	if all {
		line, err := marshal(v)
		if err == nil {
			err = o.item(text[:len(text)-1], line)
		}
		if err == nil {
			err = o.end()
		}
		if err != nil {
			return err
		}
	} else if err := o.one(text, v); err != nil {
		return err
	}
	if v.Leaked {
		return answerNo
	}
	return nil
}

func viewLeak(l agents.Leak) leakView {
	v := leakView{l.Place, string(l.How), nil, viewNews(l.News)}
	if l.Operation >= 0 {
		v.Operation = &l.Operation
	}
	return v
}

func leakText(l agents.Leak) string {
	return fmt.Sprintf("%s (%s)  %s", l.Place, l.How, newsText(l.News))
}
