package director_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/director"
)

// A copy of a table does not change when another copy is edited.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Int(), 0, 100).Draw(t, "list")
		table := director.TableOf(want)
		for range rapid.IntRange(0, 10).Draw(t, "edits") {
			if len(want) == 0 {
				break
			}
			i, v := rapid.IntRange(0, len(want)-1).Draw(t, "i"), rapid.Int().Draw(t, "v")
			before := director.TableList(table)
			edited := director.TableSet(table, i, v)
			if !slices.Equal(director.TableList(table), before) {
				t.Fatal("a copy has changed")
			}
			table = edited
			want = slices.Clone(want)
			want[i] = v
			if got := director.TableAt(table, i); got != v {
				t.Fatalf("element %d is %d, want %d", i, got, v)
			}
		}
		if !slices.Equal(director.TableList(table), want) {
			t.Fatalf("%v, want %v", director.TableList(table), want)
		}
	})
}
