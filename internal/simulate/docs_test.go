package simulate_test

import (
	"strings"
	"testing"
)

// Every scenario on the page comes out as it expects, and the account on it is the
// example's.
func TestPage(t *testing.T) {
	page := read(t, "../../docs/simulate.md")
	blocks := strings.Split(page, "```json\n")[1:]
	if len(blocks) != 1 {
		t.Errorf("%d blocks", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		take, account := play(t, parse(t, "docs/simulate.md", block))
		if len(take.Failures) > 0 {
			t.Errorf("%v\n%s", take.Failures, account)
		}
	}
	_, account := play(t, parse(t, "example", examples(t)["examples/conversation.json"]))
	quoted := 0
	for line := range strings.Lines(page) {
		if what, ok := strings.CutPrefix(line, "    00:00."); ok {
			quoted++
			what = strings.Join(strings.Fields(what)[1:], " ")
			if !strings.Contains(account, " "+what+"\n") {
				t.Errorf("the example does not say: %s", what)
			}
		}
	}
	if quoted != 7 {
		t.Errorf("%d lines of the account", quoted)
	}
}
