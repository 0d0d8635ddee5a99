package logcmd

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session/summary"
)

// Bounds of the tables of info.
const (
	mostRows    = 12
	mostRemarks = 5
	nameWidth   = 32
)

// writeSummary writes what the agents of a session did. It writes nothing of what there
// is none of.
func writeSummary(b *strings.Builder, s *summary.Summary) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	if o := s.Origin; o != nil {
		text := termtext.Printable(o.Format)
		if o.Session != "" {
			text += ", session " + termtext.Clip(termtext.Printable(o.Session), 80)
		}
		if o.TimeSource == "synthetic" {
			text += ", times invented: the recording has none"
		}
		if !s.Complete && o.TimeSource != "" {
			text += ", may be continued"
		}
		line("origin", "%s", text)
	}
	if n := len(s.Activity.Counts); n > 1 {
		line("activity", "%s  %s each", summary.Sparkline(s.Activity.Counts), time.Duration(s.Activity.BucketMS)*time.Millisecond)
	}
	if s.Prompts+s.Tasks+s.Texts+s.Thoughts > 0 {
		line("said", "%s, %s of agents, %s, %s", cli.Plural(s.Prompts, "prompt", "prompts"), cli.Plural(s.Tasks, "task", "tasks"),
			cli.Plural(s.Texts, "text", "texts"), cli.Plural(s.Thoughts, "thought", "thoughts"))
	}
	if s.ToolCalls+s.ToolResults > 0 {
		line("called", "%s, %s, %s, %d unanswered", cli.Plural(s.ToolCalls, "call", "calls"), cli.Plural(s.ToolResults, "result", "results"),
			cli.Plural(s.Failures, "failure", "failures"), s.Unanswered)
	}
	if s.Errors+s.Warnings+s.Completions > 0 {
		line("ended", "%s, %d of them failed; %s, %s", cli.Plural(s.Completions, "completion", "completions"), s.Failed,
			cli.Plural(s.Errors, "error", "errors"), cli.Plural(s.Warnings, "warning", "warnings"))
	}
	if s.Messages > 0 {
		line("tokens", "%s in %s", tokensText(&s.Tokens), cli.Plural(s.Messages, "message", "messages"))
	}
	if len(s.Models) > 1 || len(s.Models) == 1 && s.Models[0].Name != "" {
		line("models", "%s", modelsText(s.Models))
	}
	writeAgents(b, s.Agents)
	writeTools(b, s.Tools)
	writeNotes(s, line)
}

// writeNotes writes what an import and a redaction noted.
func writeNotes(s *summary.Summary, line func(name, format string, args ...any)) {
	if s.Skew.Moved > 0 {
		line("moved", "%s before an earlier one, by %s at most", cli.Plural(s.Skew.Moved, "record was", "records were"), millisText(s.Skew.MaxMS))
	}
	if s.Skew.Jumped > 0 {
		line("ahead", "%s a clock that was ahead", cli.Plural(s.Skew.Jumped, "record has", "records have"))
	}
	if s.Unreadable > 0 {
		line("unreadable", "%s; list them with: sajou-replay cat --where 'entry.type.endsWith(\".unreadable\")'", cli.Plural(s.Unreadable, "record", "records"))
	}
	if s.Cut > 0 {
		line("cut", "%s shortened to fit an entry", cli.Plural(s.Cut, "signal was", "signals were"))
	}
	if len(s.Redactions) > 0 {
		counts := map[string]int{}
		for kind, n := range s.Redactions {
			counts[kind] = int(n)
		}
		line("redacted", "%s", countsText(counts))
	}
	if s.Removed != nil {
		line("removed", "%d contents of %d bytes", s.Removed.Parts, s.Removed.Bytes)
	}
	for i, r := range s.RemarkList {
		if i == mostRemarks {
			break
		}
		line("remark", "%s: %s", termtext.Printable(r.Kind), termtext.Clip(termtext.Printable(r.Message), 160))
	}
	if more := s.Remarks - mostRemarks; more > 0 {
		line("remark", "%d more; list them with: sajou-replay cat --type import.remark", more)
	}
}

// tokensText writes counts of tokens.
func tokensText(t *summary.TokenTotals) string {
	text := fmt.Sprintf("%d in", t.Prompt)
	if t.CacheRead+t.CacheWrite > 0 {
		text += fmt.Sprintf(" (cache: %d read, %d written)", t.CacheRead, t.CacheWrite)
	}
	text += fmt.Sprintf(", %d out", t.Completion)
	if t.Reasoning > 0 {
		text += fmt.Sprintf(" (%d reasoning)", t.Reasoning)
	}
	if t.Cost > 0 {
		text += ", cost " + costText(t.Cost)
	}
	return text
}

// costText writes a cost with six significant digits, which hide what the additions of
// fractions leave over.
func costText(cost float64) string { return strconv.FormatFloat(cost, 'g', 6, 64) }

func modelsText(models []summary.ModelTotals) string {
	counts := map[string]int{}
	for _, m := range models {
		counts[m.Name] = m.Messages
	}
	return countsText(counts)
}

// millisText writes a time in milliseconds.
func millisText(ms float64) string {
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Millisecond).String()
}

// writeRows writes the rows of a table, the first [mostRows].
func writeRows(b *strings.Builder, title string, names []string, rows []string) {
	width := 0
	for i := range names {
		names[i] = termtext.Clip(termtext.Printable(names[i]), nameWidth)
		width = max(width, len([]rune(names[i])))
	}
	for i, row := range rows {
		if i == mostRows {
			fmt.Fprintf(b, "%-10s %d more; all are in: sajou-replay info -o json\n", "", len(rows)-i)
			break
		}
		fmt.Fprintf(b, "%-10s %s%s  %s\n", title, names[i], strings.Repeat(" ", width-len([]rune(names[i]))), row)
		title = ""
	}
}

// writeAgents writes one row for each agent, in the order of their calls and messages.
func writeAgents(b *strings.Builder, agents []summary.AgentTotals) {
	agents = slices.Clone(agents)
	slices.SortStableFunc(agents, func(x, y summary.AgentTotals) int {
		return cmp.Or(cmp.Compare(y.ToolCalls, x.ToolCalls), cmp.Compare(y.Messages, x.Messages))
	})
	var names, rows []string
	for _, g := range agents {
		row := cli.Plural(g.ToolCalls, "call", "calls")
		if g.Failures > 0 {
			row += fmt.Sprintf(", %d failed", g.Failures)
		}
		if g.Errors > 0 {
			row += ", " + cli.Plural(g.Errors, "error", "errors")
		}
		if g.Messages > 0 {
			row += ", tokens " + tokensText(&g.Tokens)
		}
		if g.Parent != "" {
			row += ", of " + termtext.Clip(termtext.Printable(g.Parent), nameWidth)
		}
		names, rows = append(names, g.ID), append(rows, row)
	}
	writeRows(b, "agents", names, rows)
}

// writeTools writes one row for each tool, in the order of their calls.
func writeTools(b *strings.Builder, tools []summary.ToolTotals) {
	tools = slices.Clone(tools)
	slices.SortStableFunc(tools, func(x, y summary.ToolTotals) int { return cmp.Compare(y.Calls, x.Calls) })
	var names, rows []string
	for _, t := range tools {
		row := cli.Plural(t.Calls, "call", "calls")
		if t.Failures > 0 {
			row += fmt.Sprintf(", %d failed", t.Failures)
		}
		if t.Timed > 0 {
			row += fmt.Sprintf(", %s in all, %s at most", millisText(t.TotalMS), millisText(t.MaxMS))
		}
		names, rows = append(names, t.Name), append(rows, row)
	}
	writeRows(b, "tools", names, rows)
}
