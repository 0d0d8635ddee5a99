package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/choreography/rehearsal"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/server/problem"
)

// The bounds of authored texts.
const (
	maxText     = 1 << 20 // bytes of one call
	maxCommands = 20_000  // of one scenario
)

type fileArg struct {
	Name string `json:"name,omitempty" jsonschema:"the name in messages; .yaml means that the text is YAML"`
	Text string `json:"text" jsonschema:"choreographies, sequences, easings, bindings and scenes: a JSON object or an array of them"`
}

type lintArgs struct {
	Files  []fileArg `json:"files" jsonschema:"the files; they are checked as if they came into force together"`
	Cursor string    `json:"cursor,omitempty" jsonschema:"the cursor of the answer before"`
}

type rehearseArgs struct {
	Scenario string `json:"scenario" jsonschema:"the scenario as JSON text: {id, name, definitions, script: [{signal} or {advance: ms}], expected?, scene?, values?}, or an array of them"`
	Cursor   string `json:"cursor,omitempty" jsonschema:"the cursor of the part before"`
}

func authorTools() []*tool {
	return []*tool{
		newTool("lint", "Check choreographies and scenes",
			"Find mistakes in choreographies and scenes that you give as text: errors, and declarations that are valid but have no effect, with line and column. Nothing is recorded. An empty list means that none was found.",
			lintFiles),
		newTool("rehearse", "Run choreographies on a script",
			"Run choreographies that you give on a script of signals and return the commands of their performances: try a mend before it is recorded. Nothing is recorded. With expected commands or values, same says whether they match, and difference where they do not.",
			rehearse),
	}
}

func lintFiles(_ context.Context, c *call, args lintArgs) (*reply, error) {
	var files []lint.File
	size := 0
	for i, f := range args.Files {
		if f.Name == "" {
			f.Name = "file" + strconv.Itoa(i+1) + ".json"
		}
		if size += len(f.Text); size > maxText {
			return nil, refuse(problem.TooLarge, "Give fewer or shorter files.", "the files have more than %d bytes", maxText)
		}
		files = append(files, lint.File{Name: f.Name, Text: []byte(f.Text)})
	}
	first, err := c.number(args.Cursor, 0)
	if err != nil {
		return nil, err
	}
	list := items{c: c}
	for n, issue := range lint.Check(files...) {
		if uint64(n) < first {
			continue
		}
		if ok, err := list.add(answer.ViewIssue(&issue), nil); err != nil || !ok {
			return list.reply(strconv.Itoa(n)), err
		}
	}
	return list.reply(""), nil
}

// scenarioName is the name of the text of a scenario in messages.
const scenarioName = "scenario"

func rehearse(_ context.Context, c *call, args rehearseArgs) (*reply, error) {
	if len(args.Scenario) > maxText {
		return nil, refuse(problem.TooLarge, "Give a shorter scenario.", "the scenario has more than %d bytes", maxText)
	}
	text := []byte(args.Scenario)
	scenarios, diagnostics := rehearsal.Parse(scenarioName, text)
	if len(diagnostics) > 0 {
		return nil, refuse(problem.Invalid, "Correct the scenario at the place that the message names.", "%s", diagnostics[0].String())
	}
	if remarks := rehearsal.Remarks(scenarioName, text); remarks.Refused() {
		return nil, refuse(problem.Invalid, "Correct the definition at the place that the message names; the tool lint explains more.", "%s", remarks[0].String())
	}
	var views []json.RawMessage
	for _, s := range scenarios {
		commands, whole := rehearsal.RunAtMost(s, maxCommands)
		if !whole {
			return nil, refuse(problem.OverBudget, "Shorten the script.", "a scenario has more than %d commands", maxCommands)
		}
		verdict := rehearsal.Comparison{Same: true}
		if s.Judged {
			verdict = rehearsal.Compare(commands, s.Expected)
		}
		if values := rehearsal.CompareValues(s); len(values) > 0 {
			verdict.Same = false
			verdict.Difference = strings.TrimPrefix(strings.Join(append([]string{verdict.Difference}, values...), "\n"), "\n")
		}
		view, err := answer.Marshal(answer.ViewRehearsed(scenarioName, s, commands, verdict))
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	if len(views) == 0 {
		return nil, badArgument(errors.New("there is no scenario"))
	}
	return c.whole(views, args.Cursor)
}
