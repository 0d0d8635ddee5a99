package logcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/ingest/found"
	"github.com/sajou-dev/sajou-go/ingest/source"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session/price"
	"github.com/sajou-dev/sajou-go/session/summary"
)

// findVariable names the variable with the folders that take the place of the known ones.
const findVariable = "SAJOU_FIND"

// Find returns the command "find".
func Find(a *cli.App) *cobra.Command {
	var (
		dirs   []string
		limit  int
		prices string
	)
	cmd := &cobra.Command{
		Use:   "find",
		Short: "List the recordings that agents keep on this machine",
		Long: `Find lists the recordings of agents in the folders where Claude Code, Codex,
Gemini CLI, Copilot CLI, Cline, Roo Code, OpenHands and mini-swe-agent keep
them, and aider's history in the working directory; newest first. An item has a
number, the time of the last change (UTC), the tool, the project, the length,
the number of prompts, of calls and of failed calls, the tokens, the first
prompt and the path.

import --latest records the first one, import --found N the one with the number
N. Find opens the files to read them and changes nothing; nothing is sent.

The folders are those below the home directory, or below CLAUDE_CONFIG_DIR,
CODEX_HOME and COPILOT_HOME if these are set. --dir DIR looks into another folder
instead, for recordings of any format; SAJOU_FIND sets folders for always,
separated as in PATH.

The cost is that in the recording. If it has none, --prices FILE computes it. The
file has the prices of a million tokens by model, in YAML or JSON:

  currency: USD
  models:
    claude-opus-4*: {input: 15, cache_read: 1.5, cache_write: 18.75, output: 75}

A name that ends in * stands for all that begin so. Without cache_read or
cache_write the price of input applies. The exit code is 1 if nothing was found.`,
		Example: `  sajou-replay find
  sajou-replay find --dir ~/runs --limit 3
  sajou-replay find -o json`,
		Args: cli.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return cli.Misuse("--limit %d: must be 1 or more", limit)
			}
			list, err := findRecordings(cmd.Context(), a, dirs)
			if err != nil {
				return err
			}
			var costs *price.PriceList
			if prices != "" {
				if costs, err = readPrices(cmd.Context(), prices); err != nil {
					return err
				}
			}
			return listFound(cmd.Context(), a, list, limit, costs)
		},
	}
	cmd.Flags().StringArrayVar(&dirs, "dir", nil, "look into `DIR` instead of the known folders; repeatable; SAJOU_FIND sets the default")
	cmd.Flags().IntVarP(&limit, "limit", "n", 10, "list at most `N` recordings")
	cmd.Flags().StringVar(&prices, "prices", "", "compute costs by the prices in `FILE`")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

// findRecordings returns the recordings in folders, or in the known places. It reports
// on stderr what could not be looked at.
func findRecordings(ctx context.Context, a *cli.App, dirs []string) ([]found.Found, error) {
	if len(dirs) == 0 {
		for _, dir := range filepath.SplitList(os.Getenv(findVariable)) {
			if dir != "" {
				dirs = append(dirs, dir)
			}
		}
	}
	var list []found.Found
	var remarks []string
	var err error
	if len(dirs) > 0 {
		list, remarks, err = found.Below(ctx, dirs, source.Config{})
	} else {
		home, failed := os.UserHomeDir()
		if failed != nil {
			return nil, cli.Misuse("the home directory is not known: %w; name a folder with --dir", failed)
		}
		work, failed := os.Getwd()
		if failed != nil {
			work = home
		}
		list, remarks, err = found.List(ctx, found.Places(home, work, os.Getenv))
	}
	for _, remark := range remarks {
		fmt.Fprintln(a.Stderr, termtext.Printable(remark))
	}
	return list, err
}

// recordingNumber returns the path of the recording with a number in the list of find.
func recordingNumber(ctx context.Context, a *cli.App, n int) (string, error) {
	list, err := findRecordings(ctx, a, nil)
	if err != nil {
		return "", err
	}
	if n > len(list) {
		return "", cli.Fail(cli.ExitNotFound, "there is no recording %d: %s; see sajou-replay find", n, foundText(len(list)))
	}
	return list[n-1].Path, nil
}

func foundText(n int) string {
	if n == 0 {
		return "none was found"
	}
	return cli.Plural(n, "recording was", "recordings were") + " found"
}

func readPrices(ctx context.Context, name string) (*price.PriceList, error) {
	text, err := cli.ReadFile(ctx, name, 1<<20)
	if err != nil {
		return nil, err
	}
	list, diagnostics := price.Compile(name, text)
	if diagnostics.Refused() {
		return nil, cli.Misuse("%w", diagnostics.Err(errors.New("the prices are refused")))
	}
	return list, nil
}

// foundView is a recording as -o json has it.
type foundView struct {
	Number   int                  `json:"number"`
	Tool     string               `json:"tool"`
	Path     string               `json:"path"`
	Modified string               `json:"modified"`
	Size     int64                `json:"size"`
	Format   string               `json:"format,omitempty"`
	Project  string               `json:"project,omitempty"`
	Prompt   string               `json:"prompt,omitempty"`
	LengthMs int64                `json:"length_ms"`
	Prompts  int                  `json:"prompts"`
	Calls    int                  `json:"tool_calls"`
	Failures int                  `json:"failures"`
	Agents   int                  `json:"agents"`
	Tokens   *summary.TokenTotals `json:"tokens,omitempty"`
	Cost     *float64             `json:"cost,omitempty"`
	Currency string               `json:"currency,omitempty"`
	Unpriced []string             `json:"unpriced,omitempty"`
	Problem  string               `json:"problem,omitempty"` // why the recording could not be read
}

// listFound reads and lists the newest recordings.
func listFound(ctx context.Context, a *cli.App, list []found.Found, limit int, costs *price.PriceList) error {
	out := a.Output()
	m := cli.NewProgress(a.Stderr)
	defer m.Clear()
	for i, f := range list[:min(len(list), limit)] {
		m.Show("reading " + f.Path)
		v := foundView{Number: i + 1, Tool: f.Tool, Path: f.Path, Modified: f.Modified.UTC().Format(time.RFC3339), Size: f.Size}
		account, err := found.Read(ctx, f.Path, costs)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			v.Problem = cli.OneLine(err.Error())
		} else {
			v.read(account, costs)
		}
		m.Clear()
		if err := out.ItemOf(v.text(), v); err != nil {
			return err
		}
	}
	if err := out.End(); err != nil {
		return err
	}
	switch {
	case len(list) == 0:
		return cli.Fail(cli.ExitNo, "no recordings of agents were found; name a folder with --dir")
	case len(list) > limit:
		fmt.Fprintf(a.Stderr, "%s in all; --limit lists more\n", foundText(len(list)))
	}
	return nil
}

// read takes over what a recording tells.
func (v *foundView) read(account *found.Account, costs *price.PriceList) {
	s := account.Summary
	v.Format, v.Project, v.Prompt, v.LengthMs = account.Format, account.Project, account.Prompt, account.Length.Milliseconds()
	v.Prompts, v.Calls, v.Failures, v.Agents, v.Tokens = s.Prompts, s.ToolCalls, s.Failures, len(s.Agents), &s.Tokens
	if account.Costed {
		v.Cost = &account.Cost
		if costs != nil && s.Tokens.Cost == 0 {
			v.Currency = costs.Currency()
		}
	}
	v.Unpriced = account.Unpriced
}

// text is the recording in three lines.
func (v *foundView) text() string {
	const indent = "\n      "
	clip := func(text string, width int) string { return termtext.Clip(termtext.Printable(text), width) }
	modified := strings.Replace(strings.TrimSuffix(v.Modified, ":00Z"), "T", " ", 1)
	parts := []string{fmt.Sprintf("%3d   %.16s", v.Number, modified), v.Tool}
	if v.Problem != "" {
		return strings.Join(parts, "  ") + indent + clip("it cannot be read: "+v.Problem, 100) + indent + termtext.Printable(v.Path)
	}
	if v.Project != "" {
		parts = append(parts, clip(filepath.Base(filepath.FromSlash(v.Project)), 30))
	}
	parts = append(parts, cli.ClockText(time.Duration(v.LengthMs)*time.Millisecond), cli.Plural(v.Prompts, "prompt", "prompts"))
	calls := cli.Plural(v.Calls, "call", "calls")
	if v.Failures > 0 {
		calls += fmt.Sprintf(" (%d failed)", v.Failures)
	}
	parts = append(parts, calls)
	if v.Tokens.Prompt+v.Tokens.Completion > 0 {
		parts = append(parts, fmt.Sprintf("%d + %d tokens", v.Tokens.Prompt, v.Tokens.Completion))
	}
	if v.Cost != nil {
		cost := strings.TrimSpace(fmt.Sprintf("%.2f %s", *v.Cost, v.Currency))
		if len(v.Unpriced) > 0 {
			cost += fmt.Sprintf(" without %s", clip(strings.Join(v.Unpriced, ", "), 40))
		}
		parts = append(parts, "cost "+cost)
	}
	text := strings.Join(parts, "  ")
	if v.Prompt != "" {
		text += indent + clip(strings.Join(strings.Fields(v.Prompt), " "), 100)
	}
	return text + indent + termtext.Printable(v.Path)
}
