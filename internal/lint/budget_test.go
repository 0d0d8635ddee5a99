package lint_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/internal/attack"
	"github.com/sajou-dev/sajou-go/internal/lint"
)

// numbered joins n copies of a format, in each of which # is its number.
func numbered(n int, format string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(format, "#", fmt.Sprint(i))
	}
	return strings.Join(all, ",")
}

// An archive can decompress to a thousand times its size, and its declarations can
// expand further: every archive is read or refused within the budget.
func TestAttackArchives(t *testing.T) {
	const most = 900 << 20 // allocated in all, garbage included
	wires := numbered(64, `{"fromZone":"signal-type","toZone":"choreographer","fromId":"t#","toId":"c"}`)
	wired := func(rest, wires string) string { return `{"choreographies":[` + rest + `],"wires":[` + wires + `]}` }
	n := attack.Rounds(20_000, 400_000)
	deep := func(depth int, inner string) string {
		return strings.Repeat(`{"action":"parallel","children":[`, depth) + inner + strings.Repeat(`]}`, depth)
	}
	for name, data := range map[string][]byte{
		"wires on a repeat": archive(t, "choreographies.json", wired(`{"id":"c","on":"x","steps":[{"action":"repeat","params":{"times":99990,"steps":[{"action":"a"}]}}]}`, wires)),
		"wires on steps":    archive(t, "choreographies.json", wired(`{"id":"c","on":"x","steps":[`+numbered(n, `{"action":"a"}`)+`]}`, wires)),
		"wires on a text":   archive(t, "choreographies.json", wired(`{"id":"c","on":"x","steps":[{"action":"say","params":{"text":"`+strings.Repeat("x", 10*n)+`"}}]}`, wires)),
		"a target of steps": archive(t, "choreographies.json", wired(`{"id":"c","on":"x","defaultTargetEntityId":"`+strings.Repeat("x", 5*n)+`","steps":[`+numbered(5000, `{"action":"a"}`)+`]}`, "")),
		"choreographies":    archive(t, "choreographies.json", wired(numbered(n, `{"id":"c#","on":"x","steps":[{"action":"a"}]}`), "")),
		"lists of choreographies": archive(t, "choreographies.json", wired(numbered(9999, `{"id":"a#","on":"x","steps":[{"action":"a"}]}`), ""),
			"more.json", `{"choreographies":[`+numbered(9999, `{"id":"b#","on":"x","steps":[{"action":"a"}]}`)+`]}`),
		"bindings": archive(t, "choreographies.json", `{"choreographies":[{"id":"c","on":"x","when":{`+numbered(20_000, `"k#":{"exists":true}`)+`},"steps":[{"action":"a"}]}],"wires":[`+wires+`],"bindings":[`+
			numbered(9999, `{"id":"b#","sourceChoreographyId":"c","targetEntityId":"e","property":"scale"}`)+`]}`),
		"deep steps":    archive(t, "choreographies.json", wired(`{"id":"c","on":"x","steps":[`+deep(120, numbered(n, `{"action":"a"}`))+`]}`, wires)),
		"zones":         archive(t, "scene.json", `{"dimensions":{"width":9,"height":9},"zoneGrid":{"cols":9,"cells":[`+numbered(n, `"z#"`)+`]}}`),
		"positions":     archive(t, "scene.json", `{"dimensions":{"width":9,"height":9},"positions":[`+numbered(n, `{"id":"p#","name":"p#","x":1,"y":1}`)+`]}`),
		"looks":         archive(t, "entities.json", `{"entities":{`+numbered(n, `"l#":{"fallbackColor":"red"}`)+`}}`),
		"all of spaces": archive(t, "scene.json", strings.Repeat(" ", 20<<20)),
		"many files":    archive(t, strings.Split(numbered(5000, "f#.txt,x"), ",")...),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, next, _ := lint.Read(new(language.Catalog), "attack.zip", data)
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > most {
				t.Errorf("%d MiB allocated for an archive of %d bytes", got>>20, len(data))
			}
			if used := next.Used(); used.Steps > definition.MaxStepsInForce || used.Bytes > definition.MaxBytesInForce {
				t.Errorf("%+v in force", used)
			}
		})
	}
}

// The number of files that the end of an archive tells is not believed, nor are the
// sizes of its files.
func TestAttackDirectories(t *testing.T) {
	whole := archive(t, strings.Split(numbered(3, "f#.json,{}"), ",")...)
	r, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	if err != nil || len(r.File) != 3 {
		t.Fatal(err)
	}
	at := bytes.Index(whole, []byte("PK\x01\x02"))
	end := bytes.Index(whole, []byte("PK\x05\x06"))
	entry := whole[at : at+(end-at)/3]
	data := bytes.Clone(whole[:at])
	for range 70_000 { // more than the two bytes of the count hold
		data = append(data, entry...)
	}
	tail := bytes.Clone(whole[end:])
	binary.LittleEndian.PutUint16(tail[8:], 70_000%65536)
	binary.LittleEndian.PutUint16(tail[10:], 70_000%65536)
	binary.LittleEndian.PutUint32(tail[12:], uint32(70_000*len(entry)))
	data = append(data, tail...)
	_, _, diagnostics := lint.Read(new(language.Catalog), "f.zip", data)
	if err := diagnostics.Err(definition.ErrInvalid); err == nil || !strings.Contains(err.Error(), "more than 1000 files") {
		t.Errorf("err = %v, want one about the files", err)
	}
}

// FuzzRead reads what may be any file of declarations, and holds what came into
// force against the budget.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`[{"on":"x","steps":[{"action":"repeat","times":99999,"steps":[{"action":"a"}]}]},{"sajou":"scene","version":1}]`))
	f.Add([]byte(`{"choreographies":[{"id":"c","on":"x","steps":[{"action":"parallel","children":[{"action":"a"}]}]}],"wires":[{"fromZone":"signal-type","toZone":"choreographer","fromId":"t","toId":"c"}],"bindings":[]}`))
	f.Add(archive(f, "scene.json", `{"dimensions":{"width":9,"height":9}}`, "choreographies.json", `{"choreographies":[{"id":"c","on":"x","steps":[]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		declared, next, diagnostics := lint.Read(new(language.Catalog), "f", data)
		if used := next.Used(); used.Steps > definition.MaxStepsInForce || used.Bytes > definition.MaxBytesInForce {
			t.Fatalf("%+v in force", used)
		}
		if diagnostics.Refused() && declared != nil {
			t.Fatal("an error and declarations")
		}
	})
}
