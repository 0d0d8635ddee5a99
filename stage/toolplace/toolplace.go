// Package toolplace groups the tools of agents by the kind of work that they do.
//
// Agents name their tools differently: Bash, exec_command and run_shell_command are one
// kind of work. [Of] returns the [Workplace] of a tool by its name alone. [Patterns] is the
// whole table, from which the scene of package agentscene makes its rules, so that a
// picture and a count agree.
//
// # Rules
//
// A pattern is the whole name of a tool, in which each * matches any text, also the empty
// one. Upper and lower case differ. The first pattern of the table that matches decides, and
// a name without a pattern is in the place [Other]. A shell command is in [Terminal],
// whatever it does: the arguments of a call are not read.
//
// # Limits
//
// The patterns without a server (mcp__…) match few names that are no tools, since agents
// and tools have their names in one space on a stage. An agent that is called "bash" or
// "browser" is taken for the place.
//
// docs/glossary.md has the nouns of all packages.
package toolplace

import (
	"slices"
	"strings"

	"github.com/sajou-dev/sajou-go/internal/find"
)

// Workplace is a kind of work for which agents use tools.
type Workplace string

// The places. Their order here is that of [Places].
const (
	Files    Workplace = "files"    // reading and listing files
	Search   Workplace = "search"   // searching names and texts of files
	Edits    Workplace = "edits"    // writing and changing files
	Terminal Workplace = "terminal" // shell commands and programs
	Tests    Workplace = "tests"    // running tests
	Web      Workplace = "web"      // pages, browsers and searches of the web
	Other    Workplace = "other"    // all other tools, such as plans and services
)

// Places returns all places in a fixed order.
func Places() []Workplace { return []Workplace{Files, Search, Edits, Terminal, Tests, Web, Other} }

// Pattern assigns a place to the tools whose names match.
type Pattern struct {
	Match     string // a name, in which * matches any text
	Workplace Workplace
}

// table lists the patterns of each place. An earlier line has precedence: run_tests is in
// tests although run_* is in terminal.
var table = parse(`
tests:    run_test* run-tests runTests RunTests pytest unittest tox jest vitest test
web:      WebSearch WebFetch web_* web-* web.* WebSearchTool WebFetchTool browser browser_* browser.* browse browse_* fetch fetch_* google_* http_* http.* url_* goto visit_webpage visit_page navigate navigate_* open_url curl wget
edits:    Edit MultiEdit Write NotebookEdit Update edit edit_* edit-file edit.* editor file_editor multi_edit write write_file write_to_file write_files str_replace* replace replace_* search_replace apply_patch apply_diff applypatch patch create create_file insert insert_* append undo_edit delete_file delete_files rename_file move_file
search:   Grep Glob grep grep_* glob glob_* ripgrep rg find find_file find_* search search_file* search_dir* search_code* search_text code_search codebase_search file_search semantic_search tool_search ToolSearch
files:    Read ReadFile NotebookRead LS List read read_* read.* view view_* cat head tail less open open_file list_dir* list_files list_code* ls tree get_file* file_read scroll_* goto_line stat wc
terminal: Bash BashOutput KillShell KillBash PowerShell bash bash_* bash.* shell shell_* shell.* local_shell* exec exec_* execute execute_* container.exec write_stdin run run_* run.* terminal terminal_* python ipython* jupyter* node npm npx yarn pnpm pip pip3 uv go cargo make cmake gcc git gh docker kubectl cd cp mv rm mkdir rmdir touch echo printf sed awk xargs chmod export source sh zsh ps kill which env sleep date pwd
web:      mcp__*browser* mcp__*playwright* mcp__*puppeteer* mcp__*chrome* mcp__*fetch* mcp__*__web* mcp__*__search_web mcp__*tavily* mcp__*brave* mcp__*firecrawl*
edits:    mcp__*__write* mcp__*__edit* mcp__*__replace* mcp__*__insert* mcp__*__apply* mcp__filesystem__create* mcp__filesystem__move*
search:   mcp__*__search* mcp__*__grep* mcp__*__find* mcp__*__glob*
files:    mcp__*__read* mcp__*__list_dir* mcp__*__list_files* mcp__*__view* mcp__filesystem__*
tests:    mcp__*__run_test* mcp__*__test*
terminal: mcp__*__run* mcp__*__exec* mcp__*shell* mcp__*terminal*
other:    mcp__*
`)

func parse(text string) []Pattern {
	var all []Pattern
	for line := range strings.Lines(strings.TrimSpace(text)) {
		place, patterns, _ := strings.Cut(line, ":")
		for p := range strings.FieldsSeq(patterns) {
			all = append(all, Pattern{Match: p, Workplace: Workplace(place)})
		}
	}
	return all
}

// Patterns returns the table: the first pattern that matches the name of a tool decides.
func Patterns() []Pattern { return slices.Clone(table) }

// Of returns the place of a tool by its name, [Other] for a name without a pattern.
func Of(tool string) Workplace {
	for _, p := range table {
		if find.Wildcard(p.Match, tool) {
			return p.Workplace
		}
	}
	return Other
}
