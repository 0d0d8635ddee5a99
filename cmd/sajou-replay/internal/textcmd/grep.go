// Package textcmd has the commands about what was said in sessions: grep and transcript.
package textcmd

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session/textsearch"
)

// Grep returns the command "grep".
func Grep(a *cli.App) *cobra.Command {
	var (
		expr       string
		ignoreCase bool
	)
	cmd := &cobra.Command{
		Use:   "grep (TEXT | -e EXPR) [SESSION]...",
		Short: "Find text in what sessions recorded",
		Long: `Grep finds the lines with a text in all sessions of the store, or in those that
are named. It searches the payloads of signals, declarations, effects of agents
and events of the director: names of members and strings, at any depth, line by
line. It does not search ids, sources and metadata; "scan --where" does.

A line of the result has the session, the entry, its session time, its type, the
agent, the place in the payload as a JSON pointer with the number of the line,
and the line around the match. With -o json and -o jsonl it is the whole line.

-e takes an expression in RE2 syntax instead of the text, and -i ignores case.

The exit code is 0 if something was found and 1 if not.`,
		Example: `  sajou-replay grep light
  sajou-replay grep -i -e 'buoy|light' night-shift -o jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if expr == "" && len(args) == 0 {
				return cli.Misuse("missing argument; usage: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			query, names, err := queryOf(expr, ignoreCase, args)
			if err != nil {
				return err
			}
			engine, err := a.OpenReading()
			if err != nil {
				return err
			}
			defer engine.Close()
			return grep(cmd.Context(), a, engine, query, names)
		},
	}
	cmd.Flags().StringVarP(&expr, "regexp", "e", "", "find lines that match `EXPR`")
	cmd.Flags().BoolVarP(&ignoreCase, "ignore-case", "i", false, "let small letters match capitals")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// queryOf returns the query of a command line, and the sessions that are named.
func queryOf(expr string, ignoreCase bool, args []string) (*textsearch.Query, []string, error) {
	var query *textsearch.Query
	var err error
	if expr != "" {
		query, err = textsearch.Expression(expr, ignoreCase)
	} else {
		query, err = textsearch.Literal(args[0], ignoreCase)
		args = args[1:]
	}
	if err != nil {
		return nil, nil, cli.Misuse("%w", err)
	}
	return query, args, nil
}

func grep(ctx context.Context, a *cli.App, engine *sajou.Engine, query *textsearch.Query, names []string) error {
	var err error
	if a.Session != "" {
		names = append(names, a.Session)
	}
	if len(names) == 0 {
		if names, err = engine.Sessions(); err != nil {
			return err
		}
	}
	o := a.Output()
	for _, name := range names {
		t, err := a.OpenSessionIn(engine, name)
		if err != nil {
			return err
		}
		err = t.Each(ctx, 1, t.Log.Head().Seq, func(e *eventlog.Entry) error {
			for hit := range query.Entry(e) {
				if err := o.ItemOf(hitText(name, e, &hit), viewHit(name, e, &hit)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := o.End(); err != nil {
		return err
	}
	if o.Items == 0 {
		return cli.AnswerNo
	}
	return nil
}

type hitView struct {
	Session string  `json:"session"`
	Seq     uint64  `json:"seq"`
	At      float64 `json:"at"`
	Kind    string  `json:"kind"`
	Type    string  `json:"type"`
	Agent   string  `json:"agent,omitempty"`
	Pointer string  `json:"pointer"`
	Key     bool    `json:"key,omitempty"`
	Line    int     `json:"line"`
	Text    string  `json:"text"`
	From    int     `json:"from"`
	To      int     `json:"to"`
}

func viewHit(name string, e *eventlog.Entry, hit *textsearch.MatchedLine) hitView {
	return hitView{
		Session: name, Seq: uint64(e.Seq), At: projection.Millis(e.At), Kind: e.Kind.String(), Type: hit.Type, Agent: hit.Agent,
		Pointer: hit.Pointer, Key: hit.Key, Line: hit.Line, Text: hit.Text, From: hit.From, To: hit.To,
	}
}

// hitText writes a hit as one line.
func hitText(name string, e *eventlog.Entry, hit *textsearch.MatchedLine) string {
	who := hit.Type
	if hit.Agent != "" {
		who += " " + hit.Agent
	}
	where := hit.Pointer
	if hit.Line > 1 {
		where += fmt.Sprintf(":%d", hit.Line)
	}
	const width = 40
	return fmt.Sprintf("%s  %6d  %s  %s  %s  %s", termtext.Clip(termtext.Printable(name), width), e.Seq, cli.ClockText(e.At),
		termtext.Clip(termtext.Printable(who), width), termtext.Clip(termtext.Printable(where), 2*width), around(hit.Text, hit.From, hit.To))
}

// around returns the part of a line around a match.
func around(line string, from, to int) string {
	const before, after = 40, 80 // bytes
	start, end := max(from-before, 0), min(max(to, from)+after, len(line))
	for start > 0 && !utf8.RuneStart(line[start]) {
		start--
	}
	for end < len(line) && !utf8.RuneStart(line[end]) {
		end++
	}
	text := termtext.Printable(strings.TrimSpace(line[start:end]))
	if start > 0 {
		text = "…" + text
	}
	if end < len(line) {
		text += "…"
	}
	return text
}
