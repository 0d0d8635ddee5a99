package sajou_test

import (
	"encoding/json"
	"testing"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

// Whatever stands in an entry, it can be shown: as one valid JSON object and as
// a view; and the fold takes it in without a fault.
func FuzzEntry(f *testing.F) {
	sig, err := signal.Parse([]byte(`{"id":"1","type":"task_dispatch","timestamp":1,"source":"a","correlationId":"c","payload":{"taskId":"t","from":"a","to":"b"}}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint8(eventlog.KindSignal), sig.Append(nil))
	f.Add(uint8(eventlog.KindSession), []byte("\x92\xa6opened\x81\xa4time\xa4wall"))
	f.Add(uint8(eventlog.KindDefine), []byte("\x92\xacchoreography\x82\xa2on\xa1x\xa5steps\x90"))
	f.Add(uint8(eventlog.KindEffect), []byte{0xc0})
	f.Add(uint8(eventlog.KindSignal), []byte("\x92\x81\xa1\xff\xa1\xff\xa1p"))
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		e := eventlog.Entry{Seq: 1, Kind: eventlog.Kind(kind%5 + 1), Data: data}
		if text := sajou.AppendEntryJSON(nil, &e); !json.Valid(text) {
			t.Errorf("%v entry %x is shown as %s", e.Kind, data, text)
		}
		if view := sajou.EntryView(&e); view["kind"] != e.Kind.String() {
			t.Errorf("%v entry %x is viewed as %v", e.Kind, data, view)
		}
		fold := projection.NewFold(sajou.Projections(), eventlog.Genesis("fuzz"))
		if err := fold.Apply(&e); err != nil {
			t.Fatal(err)
		}
		fold.Advance(1000)
		_ = fold.View()
		again, err := fold.Clone()
		if err != nil {
			if _, _, unsound := signal.CheckValue(data); unsound != nil {
				return // what no writer of ours records need not be restorable
			}
			t.Fatalf("%v entry %x: its state cannot be restored: %v", e.Kind, data, err)
		}
		for i, d := range fold.Digests() {
			if d != again.Digests()[i] {
				t.Errorf("%v entry %x: %v restored as %v", e.Kind, data, d, again.Digests()[i])
			}
		}
	})
}

// No bytes make trouble when a state is restored from them, and what is
// restored is itself restorable.
func FuzzRestoreState(f *testing.F) {
	for _, p := range sajou.Projections() {
		f.Add(p.New().Append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, p := range sajou.Projections() {
			st, err := p.Restore(data)
			if err != nil {
				continue
			}
			if _, err := p.Restore(st.Append(nil)); err != nil {
				t.Errorf("%s: restored from %x, written, refused: %v", p.Name, data, err)
			}
			_ = st.View()
		}
	})
}
