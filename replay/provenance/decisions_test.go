package provenance_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/provenance"
)

// recorded reads a raw recording of the corpus.
func recorded(t *testing.T, file string) *memory {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	m := &memory{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var raw struct {
			Entry []byte `json:"entry"`
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &raw))
		if raw.Entry == nil {
			continue // the head of the file
		}
		_, n := binary.Uvarint(raw.Entry)
		var e eventlog.Entry
		require.NoError(t, chain.DecodeBody(&e, raw.Entry[n:]))
		m.add([]eventlog.Draft{{Kind: e.Kind, At: e.At, Data: e.Data}})
	}
	require.NoError(t, lines.Err())
	return m
}

func edgesOf(s *provenance.Slice) []string {
	var texts []string
	for _, e := range s.Edges {
		texts = append(texts, s.Nodes[e.From].Text+" "+e.Reason+" "+s.Nodes[e.To].Text)
	}
	return texts
}

// A beat is followed to its verdict, the judgment, the response, the guidance, and what it
// requires; a turn to its input.
func TestWhyOfTheDirector(t *testing.T) {
	m := recorded(t, "../../testdata/corpus/director/interview.raw.jsonl")
	at := replay.Moment{Seq: m.Head().Seq}
	path, err := provenance.ParsePath("director.beats.name_range.status")
	require.NoError(t, err)
	s, err := provenance.Why(t.Context(), m.replay(), path, at)
	require.NoError(t, err)
	assert.Equal(t, provenance.AsRecorded, s.Precision)
	assert.Equal(t, "completed", s.Value)
	edges := strings.Join(edgesOf(s), "\n")
	for _, want := range []string{
		"director.beats.name_range.status was set by entry 45, beatLanded name_range, turn 5",
		"was found by entry 44, verdictRecorded name_range yes, turn 5",
		"answers entry 43, judgementAsked name_range, turn 5",
		"is about entry 42, responseRecorded, turn 5",
		"was directed by entry 40, guidanceIssued, turn 5",
		"requires entry 37, flagSet asked_range, turn 4",
		"takes the choice of entry 36, choiceSelected ask_salary salary_question range, turn 4",
	} {
		assert.Contains(t, edges, want)
	}
	path, err = provenance.ParsePath("director.turn")
	require.NoError(t, err)
	s, err = provenance.Why(t.Context(), m.replay(), path, at)
	require.NoError(t, err)
	assert.Equal(t, []eventlog.Seq{2, 3, 86, 87}, s.Entries)
}

// A value of the stage that a signal of the director set is followed to the event that
// the signal was made of, and what that depends on.
func TestWhyBehindASignalOfTheDirector(t *testing.T) {
	m := recorded(t, "../../testdata/corpus/director/interview.raw.jsonl")
	// The declaration takes the place of a message, which changes nothing else.
	bell := begin(t, `{"id":"bell","on":"beat_landed","steps":[{"action":"spawn","entity":"bell","at":{"x":10,"y":20}}]}`)
	m.entries[3].Kind, m.entries[3].Data = bell.entries[1].Kind, bell.entries[1].Data
	path, err := provenance.ParsePath("stage.entities.bell.x")
	require.NoError(t, err)
	s, err := provenance.Why(t.Context(), m.replay(), path, replay.Moment{Seq: 35})
	require.NoError(t, err)
	assert.Equal(t, []eventlog.Seq{32}, s.Signals)
	edges := edgesOf(s)
	assert.Contains(t, edges, "entry 32, beat_landed was made of entry 31, beatLanded ask_salary, turn 4")
	assert.Contains(t, edges, "entry 31, beatLanded ask_salary, turn 4 was found by entry 30, verdictRecorded ask_salary yes, turn 4")
}
