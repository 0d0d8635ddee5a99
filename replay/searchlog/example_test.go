package searchlog_test

import (
	"bytes"
	"fmt"

	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/searchlog"
)

// A search is begun, judged, and continued from its log.
func ExampleSearchLog() {
	log, err := searchlog.Begin(searchlog.SearchSubject{Session: "night", Head: "9:ab", Good: "1", Bad: "9", Test: searchlog.SearchedTest{Kind: "person"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := night(9)
	for _, v := range []searchlog.KeptJudgment{
		{Result: bisect.Good, Moment: "1", Input: s.Stretches()[0].Input, By: "given"},
		{Result: bisect.Bad, Moment: "9", Input: s.Stretches()[8].Input, By: "given"},
	} {
		line, err := v.Line()
		if err != nil {
			fmt.Println(err)
			return
		}
		log = append(log, line...)
	}
	l, err := searchlog.Read(bytes.NewReader(log))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := l.Resume(s); err != nil {
		fmt.Println(err)
		return
	}
	next, _ := s.Next()
	fmt.Println("next:", s.Stretches()[next.Index].From)
	// Output:
	// next: 5
}
