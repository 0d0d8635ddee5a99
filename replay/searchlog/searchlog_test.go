package searchlog_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/searchlog"
)

// night returns a search of n candidates, one an entry.
func night(n int) *bisect.Search {
	list := make([]bisect.Stretch, n)
	for i := range list {
		m := replay.Moment{Seq: eventlog.Seq(i + 1)}
		list[i] = bisect.Stretch{From: m, Last: m, Input: bisect.InputHash{byte(i), 1}}
	}
	return bisect.New(list, bisect.Options{Goal: bisect.Any, Probes: 2})
}

var subject = searchlog.SearchSubject{Session: "night", Head: "9:ab", Definitions: "d", Good: "1", Bad: "9", Test: searchlog.SearchedTest{Kind: "person"}}

// text returns the log of a search of the first n candidates, judged as results say.
func text(t require.TestingT, results ...bisect.TestResult) []byte {
	out, err := searchlog.Begin(subject)
	require.NoError(t, err)
	s := night(9)
	for i, r := range results {
		at := s.Stretches()[i]
		l, err := searchlog.KeptJudgment{Result: r, Moment: at.From.String(), Input: at.Input, By: "person"}.Line()
		require.NoError(t, err)
		out = append(out, l...)
	}
	return out
}

// A search that is continued from its log, cut at any byte, is the search after the whole
// lines of the log; undone verdicts do not count.
func TestResume(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := night(9)
		log, err := searchlog.Begin(subject)
		require.NoError(t, err)
		whole := []int{0, len(log)} // lengths after each line
		states := []bisect.Conclusion{{}, model.Conclusion()}
		judged := 0
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			if judged > 0 && rapid.Bool().Draw(t, "undo") {
				log, judged = append(log, searchlog.Undo()...), judged-1
				_, ok := model.Undo()
				require.True(t, ok)
			} else {
				i := rapid.IntRange(0, 8).Draw(t, "candidate")
				r := rapid.SampledFrom([]bisect.TestResult{bisect.Good, bisect.Bad, bisect.Skip}).Draw(t, "result")
				at := model.Stretches()[i]
				l, err := searchlog.KeptJudgment{Result: r, Moment: at.From.String(), Input: at.Input}.Line()
				require.NoError(t, err)
				log, judged = append(log, l...), judged+1
				require.NoError(t, model.Judge(i, r))
			}
			whole, states = append(whole, len(log)), append(states, model.Conclusion())
		}
		cut := rapid.IntRange(0, len(log)).Draw(t, "cut")
		lines := 0
		for lines+1 < len(whole) && whole[lines+1] <= cut {
			lines++
		}
		l, err := searchlog.Read(bytes.NewReader(log[:cut]))
		if lines == 0 {
			require.ErrorIs(t, err, searchlog.ErrMalformed)
			return
		}
		require.NoError(t, err)
		require.Equal(t, cut > whole[lines], l.Torn)
		require.Equal(t, int64(whole[lines]), l.Size)
		again := night(9)
		require.NoError(t, l.Resume(again))
		require.Equal(t, states[lines], again.Conclusion())

		shared, err := l.Text()
		require.NoError(t, err)
		copied, err := searchlog.Read(bytes.NewReader(shared))
		require.NoError(t, err)
		require.True(t, slices.Equal(l.Verdicts, copied.Verdicts))
	})
}

// A search does not go on if something has changed, and the error names it.
func TestChanges(t *testing.T) {
	l, err := searchlog.Read(bytes.NewReader(text(t, bisect.Good, bisect.Bad)))
	require.NoError(t, err)
	require.NoError(t, l.Check("9:ab", "d", ""))
	for what, err := range map[string]error{
		"recording":   l.Check("9:cd", "d", ""),
		"definitions": l.Check("9:ab", "e", ""),
		"test":        l.Check("9:ab", "d", "another"),
		"input":       l.Resume(bisect.New([]bisect.Stretch{{From: replay.Moment{Seq: 1}, Last: replay.Moment{Seq: 9}}}, bisect.Options{})),
	} {
		var changed *searchlog.ChangedError
		require.ErrorAs(t, err, &changed)
		assert.Equal(t, what, changed.What)
		assert.Contains(t, err.Error(), "the "+what+" changed since the search began")
	}
	short := night(1)
	var changed *searchlog.ChangedError
	require.ErrorAs(t, l.Resume(short), &changed)
	assert.Equal(t, "not in the range", changed.Now)
}

// The options are those of the first line, or the default.
func TestOptions(t *testing.T) {
	first := string(text(t))
	for log, want := range map[string]bisect.Options{
		first: {Goal: bisect.Any, Probes: bisect.DefaultProbes},
		strings.Replace(first, `"test"`, `"find":"last","probes":0,"define":["a.json"],"test"`, 1): {Goal: bisect.Last},
	} {
		l, err := searchlog.Read(strings.NewReader(log))
		require.NoError(t, err)
		options, err := l.Subject.Options()
		require.NoError(t, err)
		assert.Equal(t, want, options)
		again, err := l.Text()
		require.NoError(t, err)
		assert.Equal(t, log, string(again))
	}
}

func TestMalformed(t *testing.T) {
	first := string(text(t))
	for name, log := range map[string]string{
		"empty":             "",
		"not JSON":          "hello\n",
		"another object":    "{}\n",
		"another version":   strings.Replace(first, `"bisect":1`, `"bisect":2`, 1),
		"unknown member":    strings.Replace(first, `"bisect":1`, `"bisect":1,"x":1`, 1),
		"more in a line":    strings.Replace(first, "\n", "{}\n", 1),
		"no session":        strings.Replace(first, "night", "", 1),
		"no moment":         strings.Replace(first, `"good":"1"`, `"good":"one"`, 1),
		"one term":          strings.Replace(first, `"test"`, `"terms":["a"],"test"`, 1),
		"equal terms":       strings.Replace(first, `"test"`, `"terms":["a","a"],"test"`, 1),
		"unknown goal":      strings.Replace(first, `"test"`, `"find":"some","test"`, 1),
		"negative probes":   strings.Replace(first, `"test"`, `"probes":-1,"test"`, 1),
		"undo at once":      first + string(searchlog.Undo()),
		"no verdict":        first + "{}\n",
		"unknown verdict":   first + strings.Replace(string(text(t, bisect.Bad)[len(first):]), `"bad"`, `"worse"`, 1),
		"negative offset":   first + strings.Replace(string(text(t, bisect.Bad)[len(first):]), `"moment":"1"`, `"moment":"1+-3s"`, 1),
		"short input":       first + strings.Replace(string(text(t, bisect.Bad)[len(first):]), `"input":"00`, `"input":"`, 1),
		"endless line":      first + strings.Repeat("x", searchlog.MaxLine+2),
		"damage in between": first + "{\"verdict\n" + string(text(t, bisect.Bad)[len(first):]),
	} {
		_, err := searchlog.Read(strings.NewReader(log))
		assert.ErrorIsf(t, err, searchlog.ErrMalformed, "%s", name)
	}
	_, err := searchlog.Begin(searchlog.SearchSubject{})
	assert.ErrorIs(t, err, searchlog.ErrMalformed)
}

// Every file is read or refused, and what is read can be written and read again.
func FuzzRead(f *testing.F) {
	f.Add(text(f, bisect.Good, bisect.Skip, bisect.Bad))
	f.Add(append(text(f, bisect.Good), searchlog.Undo()...))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := searchlog.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		require.LessOrEqual(t, l.Size, int64(len(data)))
		shared, err := l.Text()
		require.NoError(t, err)
		again, err := searchlog.Read(bytes.NewReader(shared))
		require.NoError(t, err)
		require.True(t, slices.Equal(l.Verdicts, again.Verdicts))
		require.Equal(t, l.Subject, again.Subject)
	})
}
