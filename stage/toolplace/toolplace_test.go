package toolplace_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sajou-dev/sajou-go/internal/find"
	"github.com/sajou-dev/sajou-go/stage/toolplace"
)

// TestOf has the tools of the agents that people use, by place.
func TestOf(t *testing.T) {
	for place, tools := range map[toolplace.Workplace]string{
		toolplace.Files:    "Read LS NotebookRead read_file read_many_files read_files list_directory view cat open view_image mcp__filesystem__read_text_file",
		toolplace.Search:   "Grep Glob grep find_file search_file_content search_dir ToolSearch codebase_search mcp__github__search_issues",
		toolplace.Edits:    "Edit MultiEdit Write NotebookEdit apply_patch str_replace_editor str_replace_based_edit_tool editor replace write_file write_to_file replace_in_file create edit mcp__filesystem__edit_file",
		toolplace.Terminal: "Bash BashOutput KillShell exec_command write_stdin shell local_shell_call run_shell_command execute_bash execute_command bash_command run_commands python git container.exec mcp__desktop__execute_command",
		toolplace.Tests:    "run_tests run_test pytest test mcp__ide__run_tests",
		toolplace.Web:      "WebSearch WebFetch web_search web_fetch google_web_search browser_action fetch_url visit_webpage mcp__playwright__browser_click mcp__fetch__fetch",
		toolplace.Other:    "Task TodoWrite Agent finish think update_plan helm_list_releases mcp__linear__create_issue mcp__x__y researcher test-runner search_agent run-away user claude",
	} {
		for tool := range strings.FieldsSeq(tools) {
			assert.Equal(t, place, toolplace.Of(tool), tool)
		}
	}
	assert.Equal(t, toolplace.Other, toolplace.Of(""))
}

// TestPatternsDecide: each pattern decides for at least one name, so none is written in vain,
// and each names a known workplace.
func TestPatternsDecide(t *testing.T) {
	all := toolplace.Patterns()
	for i, p := range all {
		assert.Contains(t, toolplace.Places(), p.Workplace, p.Match)
		example := strings.ReplaceAll(p.Match, "*", "Zz9")
		first := slices.IndexFunc(all, func(q toolplace.Pattern) bool { return find.Wildcard(q.Match, example) })
		assert.Equal(t, p.Match, all[first].Match, "the pattern %q comes after one that matches all its names", all[i].Match)
	}
}
