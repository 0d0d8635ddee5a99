package conformance_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/internal/conformance"
)

func spawn(id, entity string) choreography.Command {
	return choreography.Command{Kind: choreography.CommandExecute, PerformanceID: id, Action: "spawn", EntityRef: entity}
}

// TestCompare shows what counts as the same: numbers by value, progress and
// times within their tolerance, everything else exactly.
func TestCompare(t *testing.T) {
	base := choreography.Command{
		At: time.Second, Kind: choreography.CommandUpdate, PerformanceID: "p1", Action: "move",
		Params: map[string]any{"n": int64(5), "list": []any{int64(1), nil}}, Progress: 0.5, Elapsed: time.Second,
	}
	tests := []struct {
		name   string
		change func(*choreography.Command)
		same   bool
	}{
		{"nothing", func(*choreography.Command) {}, true},
		{"5 and 5.0", func(c *choreography.Command) { c.Params = map[string]any{"n": 5.0, "list": []any{1.0, nil}} }, true},
		{"progress by 1e-10", func(c *choreography.Command) { c.Progress += 1e-10 }, true},
		{"progress by 1e-8", func(c *choreography.Command) { c.Progress += 1e-8 }, false},
		{"a microsecond", func(c *choreography.Command) { c.At += time.Microsecond }, false},
		{"null for absent", func(c *choreography.Command) {
			c.Params = map[string]any{"n": 5.0, "list": []any{1.0, nil}, "x": nil}
		}, false},
		{"a number as text", func(c *choreography.Command) { c.Params = map[string]any{"n": "5", "list": []any{1.0, nil}} }, false},
		{"another performance", func(c *choreography.Command) { c.PerformanceID = "p2" }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := base
			tt.change(&want)
			v := conformance.Compare([]choreography.Command{base}, []choreography.Command{want})
			if v.Same != tt.same {
				t.Errorf("Same = %v, want %v: %s", v.Same, tt.same, v.Difference)
			}
		})
	}
}

// TestCompareInterleaving shows that streams which differ only between
// performances are reported as such, and not as a pass.
func TestCompareInterleaving(t *testing.T) {
	got := []choreography.Command{spawn("p1", "a"), spawn("p2", "b"), spawn("p1", "c")}
	want := []choreography.Command{spawn("p1", "a"), spawn("p1", "c"), spawn("p2", "b")}
	v := conformance.Compare(got, want)
	if v.Same || !v.Interleaving || v.Index != 1 || !strings.Contains(v.Difference, "same per performance, other interleaving") {
		t.Errorf("verdict %+v, want another interleaving from 1 on", v)
	}
	if v := conformance.Compare(got[:2], want[:2]); v.Same || v.Interleaving {
		t.Errorf("verdict %+v, want a plain difference", v)
	}
	if v := conformance.Compare(got[:2], got); v.Same || v.Interleaving || v.Index != 2 {
		t.Errorf("verdict %+v, want a missing command at 2", v)
	}
}

// TestParseRefuses shows that a file which is no scenario is an error and never
// an empty scenario that passes.
func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		``, `[`, `{}`, `7`, `{"script":[{}]}`, `{"script":[{"advance":-1}]}`, `{"script":[{"signal":7}]}`,
		`{"script":[],"definitions":[7]}`, `{"script":[{"advance":1,"signal":{}}]}`,
	} {
		if s, err := conformance.Parse([]byte(text)); !errors.Is(err, conformance.ErrScenario) {
			t.Errorf("Parse(%q) = %v, %v, want ErrScenario", text, s, err)
		}
	}
}

// TestMissingFolder shows that a set without a suite's folder, or with an empty
// one, is an error.
func TestMissingFolder(t *testing.T) {
	set := t.TempDir()
	for _, suite := range conformance.Suites {
		if _, err := suite.Cases(set); err == nil {
			t.Errorf("%s: no error for a missing folder", suite.Folder)
		}
		if err := os.Mkdir(filepath.Join(set, suite.Folder), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := suite.Cases(set); err == nil {
			t.Errorf("%s: no error for an empty folder", suite.Folder)
		}
	}
}
