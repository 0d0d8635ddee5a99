package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/signal"
)

func (a *app) knowsCommand() *cobra.Command {
	var (
		at, path string
		pending  bool
	)
	cmd := &cobra.Command{
		Use:   "knows AGENT [SESSION]",
		Short: "Show what an agent knew at a moment",
		Long: `Knows shows the view that an agent had at a moment, by default at the end: what
had been told to it by then. What had happened, but was still on its way, is not
in it; --pending lists that besides.

` + viewPathHelp + `

An agent that has left knows what it was told last. The exit code is 1 when the
agent is not registered yet, or has no such path, and 4 when the session never
had the agent.`,
		Example: `  sajou-replay knows scout --at 812
  sajou-replay knows scout --at 812+50ms --pending
  sajou-replay knows scout release-42 --at t:1.5s --path /visible_entities/door/locked`,
		Args: between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var pointer agents.Pointer
			var err error
			if cmd.Flags().Changed("path") {
				if pointer, err = agents.ParseViewPath(path); err != nil {
					return asked(err)
				}
			}
			if _, err := parseAddress(at); err != nil {
				return err
			}
			t, r, done, err := a.question(args[1:])
			if err != nil {
				return err
			}
			defer t.Close()
			defer done()
			m, err := t.resolve(cmd.Context(), at)
			if err != nil {
				return err
			}
			k, err := r.Knows(cmd.Context(), args[0], m)
			done()
			if err != nil {
				return asked(err)
			}
			if pointer != nil {
				if _, ok := pointer.In(k.View.Value()); !ok {
					a.remarkPath(path)
				}
				return a.showKnown(k, m, pointer, pending)
			}
			return a.showKnowledge(k, m, pending)
		},
	}
	cmd.Flags().StringVar(&at, "at", "end", "the moment")
	cmd.Flags().StringVar(&path, "path", "", "show one part of the view")
	cmd.Flags().BoolVar(&pending, "pending", false, "list what was on its way, too")
	return cmd
}

// knowledgeView is what an agent knows, for JSON.
type knowledgeView struct {
	Agent    string  `json:"agent"`
	Moment   string  `json:"moment"`
	Seq      uint64  `json:"seq"`
	At       float64 `json:"at"`
	Presence string  `json:"presence"`
	Left     uint64  `json:"left,omitempty"` // the entry by which it left
	ViewSeq  uint64  `json:"view_seq"`
	Digest   string  `json:"context_digest"`

	Entities  json.RawMessage `json:"visible_entities,omitempty"`
	Relations json.RawMessage `json:"visible_relationships,omitempty"`

	Path  *string         `json:"path,omitempty"`
	Known *bool           `json:"known,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`

	Pending []newsView `json:"pending,omitempty"`
}

func viewKnowledge(k sajou.Knowledge, m replay.Moment, pending bool) knowledgeView {
	v := knowledgeView{
		Agent: k.Agent, Moment: m.String(), Seq: uint64(k.Head.Seq), At: projection.Millis(k.At),
		Presence: k.Presence.String(), Left: uint64(k.Left), ViewSeq: k.View.ViewSeq, Digest: k.View.ContextDigest,
	}
	if pending {
		v.Pending = []newsView{}
		for _, n := range k.Pending {
			v.Pending = append(v.Pending, viewNews(n))
		}
	}
	return v
}

func (a *app) showKnowledge(k sajou.Knowledge, m replay.Moment, pending bool) error {
	v := viewKnowledge(k, m, pending)
	v.Entities, v.Relations = canonicalJSON(k.View.VisibleEntities), canonicalJSON(k.View.VisibleRelationships)
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %v, %s: view_seq %d, digest %s\n", printable(k.Agent), m, clockText(k.At), v.ViewSeq, v.Digest)
	switch k.Presence {
	case agents.Absent:
		fmt.Fprintf(&b, "it is not registered yet, and knows nothing\n")
	case agents.Departed:
		fmt.Fprintf(&b, "it left by entry %d; this is what it was told last\n", k.Left)
	case agents.Registered:
	}
	if k.Presence != agents.Absent {
		view, err := marshal(struct {
			Entities  json.RawMessage `json:"visible_entities"`
			Relations json.RawMessage `json:"visible_relationships"`
		}{v.Entities, v.Relations})
		if err != nil {
			return err
		}
		b.WriteString(printableLines(string(indented(view))) + "\n")
	}
	if pending {
		b.WriteString(pendingText(k.Pending))
	}
	if err := a.output().one(b.String(), v); err != nil {
		return err
	}
	if k.Presence == agents.Absent {
		return answerNo
	}
	return nil
}

func pendingText(pending []agents.News) string {
	if len(pending) == 0 {
		return "nothing is on its way\n"
	}
	var b strings.Builder
	b.WriteString("on its way:\n")
	for _, n := range pending {
		b.WriteString("  " + printable(newsText(n)) + "\n" + deltaText(indentDelta, n.Delivery.Delta))
	}
	return b.String()
}

// showKnown shows one part of what an agent knows.
func (a *app) showKnown(k sajou.Knowledge, m replay.Moment, path agents.Pointer, pending bool) error {
	v := viewKnowledge(k, m, pending)
	at := path.String()
	value, known := signal.Value(nil), false
	if k.Presence != agents.Absent {
		value, known = path.In(k.View.Value())
	}
	v.Path, v.Known, v.Value = &at, &known, canonicalJSON(value)
	text := valueText(value)
	if !known {
		text = fmt.Sprintf("%s does not know %s", printable(k.Agent), printable(at))
	}
	if pending {
		text += "\n" + pendingText(k.Pending)
	}
	if err := a.output().one(text, v); err != nil {
		return err
	}
	if !known {
		return answerNo
	}
	return nil
}
