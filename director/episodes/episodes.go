// Package episodes has the episodes that come with the program, and scripts:
// characters whose lines are written down. With a script an episode can be
// played to its end without a model, always in the same way.
//
// # A script
//
// A script is a JSON object:
//
//	{ "sajou": "script", "version": 1,
//	  "episode": "interview", "character": "Morgan",
//	  "lines": [
//	    {"beat": "name_range", "urgency": "required",
//	     "say": "From fifty to sixty.", "judge": {"name_range": "YES"}},
//	    {"choice": "offer_answer/take", "say": "On the first."},
//	    {"turn": 1, "flag": "met", "say": "You again."},
//	    {"say": "Go on."} ] }
//
// Every member of a line but say and judge is a condition:
//
//	turn     the number of the turn
//	beat     the beat that the director wants worked in
//	urgency  how much it presses at least: suggested, required or overdue
//	choice   what the user chose, which is the input of the turn: POINT/OPTION
//	flag     a flag that is set
//
// The character says the first line of the list all of whose conditions hold and
// whose words it has not said yet. When there is none left, the lines without a
// condition begin anew.
//
// judge says what a judge would answer about the line, by the beat or objective
// it is asked about; of what is not named the answer is NO.
//
// The package is pure: no clock, no goroutine, no input or output.
package episodes

import (
	"embed"
	"slices"
)

//go:embed interview.json *.script.json
var files embed.FS

// names are the episodes that come with the program, each with a script.
var names = []string{"interview"}

// Names lists the episodes that come with the program.
func Names() []string { return slices.Clone(names) }

// Text returns the text of an episode that comes with the program, and of its
// script; false if there is none of that name.
func Text(name string) (episode, script []byte, ok bool) {
	if !slices.Contains(names, name) {
		return nil, nil, false
	}
	episode, err := files.ReadFile(name + ".json")
	if err != nil {
		return nil, nil, false
	}
	script, err = files.ReadFile(name + ".script.json")
	return episode, script, err == nil
}
