package script_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/director/script"
)

// A script says the first line whose conditions hold, and answers for the judge.
func ExampleScript() {
	s, err := script.Parse([]byte(`{
		"sajou": "script", "version": 1, "character": "Ada",
		"lines": [
			{"turn": 1, "say": "Sit down by the fire.", "judge": {"warm": "YES"}},
			{"choice": "drink/yes", "say": "Careful, it is hot."},
			{"say": "Go on."}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	said := map[string]bool{}
	for turn, choice := range []string{"", "drink/yes", ""} {
		line := s.Line(script.LineContext{
			Turn: turn + 1, Choice: choice,
			Flag: func(string) bool { return false },
			Said: func(words string) bool { return said[words] },
		})
		said[line] = true
		fmt.Printf("%s: %s (warm: %s)\n", s.Character, line, s.Answer(line, "warm"))
	}
	// Output:
	// Ada: Sit down by the fire. (warm: YES)
	// Ada: Careful, it is hot. (warm: NO)
	// Ada: Go on. (warm: NO)
}
