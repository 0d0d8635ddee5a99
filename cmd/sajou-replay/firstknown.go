package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/signal"
)

func (a *app) firstKnownCommand() *cobra.Command {
	var (
		is  string
		all bool
	)
	cmd := &cobra.Command{
		Use:   "first-known AGENT PATH [SESSION]",
		Short: "Find when an agent came to know something",
		Long: `First-known finds the delta by which an agent first had something in its view:
the entry that made it, when the agent was told, and the effect that it tells of.
With --is it finds when the thing first was that JSON value, and with --all it
lists each change, also that the agent lost it.

` + viewPathHelp + `

The exit code is 0 when it was found and 1 when the agent never knew it; what was
on its way when the log ended is told of, and is not known.`,
		Example: `  sajou-replay first-known scout vault
  sajou-replay first-known scout /visible_entities/door/locked --is false
  sajou-replay first-known scout /visible_entities/door/locked release-42 --all -o jsonl`,
		Args: between(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := agents.ParseViewPath(args[1])
			if err != nil {
				return asked(err)
			}
			var value signal.Value
			if cmd.Flags().Changed("is") {
				if value, err = signal.ParseValue([]byte(is)); err != nil {
					return misuse("--is %s: want a JSON value, such as 3, true or '\"text\"': %w", is, err)
				}
			}
			t, r, done, err := a.question(args[2:])
			if err != nil {
				return err
			}
			defer t.Close()
			defer done()
			return a.sightings(cmd.Context(), r, sightingQuery{args[0], args[1], path, value, all}, done)
		},
	}
	cmd.Flags().StringVar(&is, "is", "", "a JSON value that it must be")
	cmd.Flags().BoolVar(&all, "all", false, "list each change")
	return cmd
}

// sightingQuery is what first-known is asked.
type sightingQuery struct {
	agent   string
	written string // the path as it was given
	path    agents.Pointer
	is      signal.Value
	all     bool
}

func (a *app) sightings(ctx context.Context, r *sajou.Replay, q sightingQuery, done func()) error {
	o := a.output()
	found, shown := false, false
	for s, err := range r.Sightings(ctx, q.agent, q.path, q.is) {
		if err != nil {
			return asked(err)
		}
		if s.Value == nil && !q.all {
			continue
		}
		done()
		found, shown = found || !s.Coming, true
		view := viewSighting(q.agent, q.path, s)
		if !q.all {
			if err := o.one(sightingText(s)+deltaText(indentDelta, s.Delivery.Delta), view); err != nil {
				return err
			}
			break
		}
		line, err := marshal(view)
		if err == nil {
			err = o.item(strings.TrimSuffix(sightingText(s), "\n"), line)
		}
		if err != nil {
			return err
		}
	}
	done()
	var err error
	switch {
	case q.all:
		err = o.end()
	case !shown:
		is := ""
		if q.is != nil {
			is = " to be " + string(canonicalJSON(q.is))
		}
		a.remarkPath(q.written)
		text := fmt.Sprintf("%s never knew %v%s", q.agent, q.path, is)
		err = o.one(printable(text), sightingView{Agent: q.agent, Path: q.path.String()})
	}
	if err == nil && !found {
		err = answerNo
	}
	return err
}

// sightingView is a change of what an agent knows, for JSON.
type sightingView struct {
	Agent  string          `json:"agent"`
	Path   string          `json:"path"`
	Known  bool            `json:"known"` // false: it lost it
	Coming bool            `json:"coming,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
	Before json.RawMessage `json:"before,omitempty"`
	*newsView
}

func viewSighting(agent string, path agents.Pointer, s sajou.Sighting) sightingView {
	news := viewNews(s.News)
	return sightingView{
		agent, path.String(), s.Value != nil, s.Coming, canonicalJSON(s.Value), canonicalJSON(s.Before), &news,
	}
}

func sightingText(s sajou.Sighting) string {
	const width = 100
	text := "lost"
	if s.Value != nil {
		text = clip(printable(string(canonicalJSON(s.Value))), width)
	}
	if s.Coming {
		text = "on its way when the log ended: " + text
	}
	return fmt.Sprintf("%s  %s\n      %s\n", clockText(s.Delivery.At), text, printable(newsText(s.News)))
}
