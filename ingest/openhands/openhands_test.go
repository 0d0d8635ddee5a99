package openhands_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/ingest/openhands"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/internal/golden"
	"github.com/sajou-dev/sajou-go/internal/recordingtest"
	"github.com/sajou-dev/sajou-go/signal"
)

func TestStories(t *testing.T) {
	golden.Run(t, "testdata/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		return recordingtest.Story(t, openhands.Format(), in)
	})
	golden.Run(t, "testdata/conversation/*.txtar", func(t *testing.T, in []txtar.File) []txtar.File {
		files := fstest.MapFS{}
		for _, f := range in {
			files[f.Name] = &fstest.MapFile{Data: f.Data}
		}
		list, balance := recordingtest.Read(t, openhands.Format(), files, ".", recording.Options{Final: true})
		return []txtar.File{{Name: "told", Data: []byte(recordingtest.Tell(list) + recordingtest.TellBalance(balance))}}
	})
}

// A list as the server hands it out, within an object, gives the same signals but for their places.
func TestWrappedList(t *testing.T) {
	const events = `[{"id":0,"timestamp":"2025-01-27T22:44:56","source":"user","action":"message","args":{"content":"Fix it."}}]`
	wrapped := `{"trajectory":` + events + `}`
	assert.NotEmpty(t, openhands.Format().Detect(recording.NewSample("e.json", []byte(wrapped), true)))
	one, _ := recordingtest.Read(t, openhands.Format(), recordingtest.File("a", []byte(events)), "a", recording.Options{})
	two, _ := recordingtest.Read(t, openhands.Format(), recordingtest.File("b", []byte(wrapped)), "b", recording.Options{})
	assert.Equal(t, recordingtest.Tell(one), recordingtest.Tell(two))
	for i := range one {
		assert.Equal(t, one[i].ID, two[i].ID, "ids do not depend on the name of the file")
	}
}

// event is an event of version 0.
type event struct {
	Source, Action, Observation string
	Cause                       *int
	Metadata                    struct {
		Response struct {
			ID    string
			Usage struct {
				Prompt     int64 `json:"prompt_tokens"`
				Completion int64 `json:"completion_tokens"`
			}
		} `json:"model_response"`
	} `json:"tool_call_metadata"`
}

// The facts of real recordings, counted straight from the files, are those of the signals.
func TestRealRecordings(t *testing.T) {
	files, is := recordingtest.Real("../..", "openhands")
	if !is {
		return
	}
	lists, err := fs.Glob(files, "*.json")
	require.NoError(t, err)
	require.NotEmpty(t, lists)
	for _, name := range lists {
		text, err := fs.ReadFile(files, name)
		require.NoError(t, err)
		var events []event
		require.NoError(t, json.Unmarshal(text, &events))
		prompts, calls, results := 0, 0, 0
		usage := map[string][2]int64{}
		for _, e := range events {
			switch {
			case e.Action == "message" && e.Source == "user":
				prompts++
			case e.Action != "" && e.Action != "finish":
				calls++
			case e.Observation != "" && e.Cause != nil:
				results++
			}
			if r := e.Metadata.Response; r.ID != "" {
				usage[r.ID] = [2]int64{r.Usage.Prompt, r.Usage.Completion}
			}
		}
		list, _ := recordingtest.Read(t, openhands.Format(), files, name, recording.Options{Final: true})
		check(t, list, prompts, calls, results, usage)
	}
	folders, err := fs.Glob(files, "*/events")
	require.NoError(t, err)
	for _, dir := range folders {
		prompts, calls, results := 0, 0, 0
		names, err := fs.Glob(files, dir+"/*.json")
		require.NoError(t, err)
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			require.NoError(t, err)
			var e struct {
				Source, Kind string
				ToolName     string `json:"tool_name"`
			}
			require.NoError(t, json.Unmarshal(text, &e))
			switch {
			case e.Kind == "MessageEvent" && e.Source == "user":
				prompts++
			case e.Kind == "ActionEvent" && e.ToolName != "finish":
				calls++
			case e.Kind == "ObservationEvent" && e.ToolName != "finish":
				results++
			}
		}
		base, err := fs.ReadFile(files, path.Dir(dir)+"/base_state.json")
		require.NoError(t, err)
		var state struct {
			Stats struct {
				Uses map[string]struct {
					Usage struct {
						Prompt     int64 `json:"prompt_tokens"`
						Completion int64 `json:"completion_tokens"`
					} `json:"accumulated_token_usage"`
				} `json:"usage_to_metrics"`
			}
		}
		require.NoError(t, json.Unmarshal(base, &state))
		usage := map[string][2]int64{}
		for name, use := range state.Stats.Uses {
			usage[name] = [2]int64{use.Usage.Prompt, use.Usage.Completion}
		}
		list, _ := recordingtest.Read(t, openhands.Format(), files, path.Dir(dir), recording.Options{Final: true})
		check(t, list, prompts, calls, results, usage)
	}
}

func check(t *testing.T, list []*signal.Signal, prompts, calls, results int, usage map[string][2]int64) {
	t.Helper()
	n := recordingtest.Count(list)
	assert.Equal(t, []int{prompts, calls, results, len(usage)}, []int{n["task_dispatch"], n["tool_call"], n["tool_result"], n["token_usage"]})
	var want, got [2]int64
	for _, u := range usage {
		want[0] += u[0]
		want[1] += u[1]
	}
	for _, s := range list {
		if s.Type == "token_usage" {
			got[0] += s.Payload.IntOf("promptTokens")
			got[1] += s.Payload.IntOf("completionTokens")
		}
	}
	assert.Equal(t, want, got)
}

// FuzzRead reads a file of any text as a list, and as an event of a folder.
func FuzzRead(f *testing.F) {
	recordingtest.Seeds(f, "testdata/*.txtar")
	f.Add([]byte(`{"kind":"ActionEvent","tool_call":{"arguments":"{"}}`))
	f.Add([]byte(strings.Repeat("[", 100)))
	f.Fuzz(func(t *testing.T, text []byte) {
		recordingtest.Fuzzed(t, openhands.Format(), "e.json", text)
		files := fstest.MapFS{"base_state.json": {Data: text}, "events/event-1-a.json": {Data: text}, "events/event-2-b.json": {Data: bytes.ToUpper(text)}}
		_, _, err := recordingtest.TryRead(t, openhands.Format(), files, ".", recording.Options{Final: true, MaxBad: 1, KeepNative: true})
		require.NoError(t, err)
	})
}
