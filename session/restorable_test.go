package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/attack"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/internal/msgptest"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
)

// recorded returns the entries of sessions that the program has recorded: with
// choreographies and a scene, with agents, and with a director.
func recorded(t testing.TB) [][]eventlog.Entry {
	t.Helper()
	collect := func(eng *sajou.Engine, name string) (all []eventlog.Entry) {
		log, err := eng.Log().Session(name)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range log.Entries(t.Context(), 1) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
		return all
	}
	eng, ses := enginetest.Begin(t, "store", sajou.Config{FS: vfs.NewMem()})
	ms := int64(0)
	for i, s := range enginetest.DigestStory {
		ms += s.Wait
		if _, err := ses.Record(t.Context(), s.Record(t, i, ms)); err != nil {
			t.Fatal(err)
		}
	}
	story := collect(eng, "a")
	require.NoError(t, eng.Close())
	v := enginetest.RecordVault(t, sajou.Config{})
	v.Wait(1000 * time.Millisecond)
	v.Happens("Move", "scout", `{"to":[5,0]}`)
	v.Wait(1020 * time.Millisecond)
	v.Happens("EntityUpdated", "gm", `{"entity_id":"vault","fields":{"locked":false}}`)
	v.Happens("Speak", "scout", `{"text":"on my way"}`)
	v.Happens("RelationshipChanged", "gm", `{"from":"scout","to":"clerk","type":"ally","strength":0.5}`)
	v.Mark("end")
	dinner := enginetest.Memory(t, sajou.Config{})
	enginetest.PlayDinner(t, dinner, enginetest.InTurn(enginetest.DinnerAnswers))
	return [][]eventlog.Entry{story, collect(v.Eng, "vault"), collect(dinner, "dinner")}
}

// hostile are values that no JSON text gives, that stand at the edge of what one
// gives, or that are written in another way than the program writes them.
func hostile() [][]byte {
	list := [][]byte{
		{0xc0},
		{0xc2},
		{0xc3},
		{0x00},
		{0xff},
		{0x90},
		{0x80},
		{0xa0},
		msgp.AppendInt64(nil, math.MinInt64), msgp.AppendInt64(nil, math.MaxInt64), msgp.AppendUint64(nil, math.MaxUint64),
		msgp.AppendFloat64(nil, math.NaN()), msgp.AppendFloat64(nil, math.Inf(1)), msgp.AppendFloat64(nil, math.Inf(-1)),
		msgp.AppendFloat64(nil, math.Copysign(0, -1)), msgp.AppendFloat64(nil, 1e308), msgp.AppendFloat64(nil, 5e-324), msgp.AppendFloat64(nil, 0.1),
		msgp.AppendFloat32(nil, 1.5), msgp.AppendFloat32(nil, float32(math.NaN())),
		msgp.AppendString(nil, "\xff\xfe"), msgp.AppendString(nil, "a\x00b"), msgp.AppendString(nil, string(bytes.Repeat([]byte("x"), 5000))),
		msgp.AppendString(nil, "\u202e"), msgp.AppendString(nil, "scout"), msgp.AppendString(nil, "agent"),
		msgp.AppendBytes(nil, []byte("bin")), msgp.AppendTime(nil, time.Unix(1, 2)),
		{0xd4, 1, 2},
		{0xc1},
		{0x81, 0x01, 0x02},
		{0x81, 0xc0, 0xc0},
		{0x81, 0x90, 0xc0},
		{0x81, 0xa1, 0xff, 0xa1}, // keys that are none
		{0x82, 0xa1, 'a', 0x01, 0xa1, 'a', 0x02},
		{0x82, 0xa1, 'a', 0x01, 0xd9, 0x01, 'a', 0x02}, // a key twice
		{0xd0, 0x05},
		{0xd1, 0x00, 0x05},
		{0xd3, 0, 0, 0, 0, 0, 0, 0, 5},
		{0xcc, 0x05},
		{0xcf, 0, 0, 0, 0, 0, 0, 0, 5}, // small numbers at length
		{0xd9, 0x01, 'a'},
		{0xda, 0x00, 0x01, 'a'},
		{0xdc, 0x00, 0x01, 0xc0},
		{0xde, 0x00, 0x00}, // short things at length
		{0xdd, 0xff, 0xff, 0xff, 0xff},
		{0xdf, 0xff, 0xff, 0xff, 0xff},
		{0xdb, 0xff, 0xff, 0xff, 0xff}, // more than there is
	}
	for _, depth := range []int{510, 511, 512, 513, 600} {
		list = append(list, append(bytes.Repeat([]byte{0x91}, depth), 0xc0), append(bytes.Repeat([]byte{0x81, 0xa1, 'k'}, depth), 0xc0))
	}
	return list
}

// tamper changes values inside of data, which belongs to the caller afterwards.
func tamper(rng *rand.Rand, data []byte, with [][]byte) []byte {
	for range 1 + rng.IntN(3) {
		all := msgptest.Spans(data, 0)
		if len(all) == 0 {
			return data
		}
		data = msgptest.Put(data, all[rng.IntN(len(all))], with[rng.IntN(len(with))])
	}
	return data
}

// sameRestored writes a fold down, restores it and compares the bytes of both.
func sameRestored(f *projection.Fold) (*projection.Fold, error) {
	img := f.Image()
	g, err := projection.RestoreFold(f.Set(), img)
	if err != nil {
		return nil, err
	}
	for i, p := range g.Image().Parts {
		if !bytes.Equal(p.Data, img.Parts[i].Data) {
			return nil, fmt.Errorf("%s was restored as another state:\n%x\n%x", p.Name, img.Parts[i].Data, p.Data)
		}
	}
	return g, nil
}

// TestAttackFold folds sessions of which some entries are not what the program
// records: values that no JSON text gives, entries of other sessions, leaps in
// time. Whatever the fold takes in, its image restores, to the same bytes, and
// goes on as the fold does.
func TestAttackFold(t *testing.T) {
	sessions := recorded(t)
	with := hostile()
	for _, entries := range sessions {
		for i := range entries {
			for _, at := range msgptest.Spans(entries[i].Data, 0) {
				with = append(with, entries[i].Data[at.Start:at.End])
			}
		}
	}
	plain := len(hostile())
	for seed := range attack.Rounds(150, 20000) {
		rng := rand.New(rand.NewPCG(uint64(seed), 17))
		entries := sessions[rng.IntN(len(sessions))]
		fold := projection.NewFold(session.Projections(session.ProjectionConfig{}), eventlog.Genesis("fold"))
		restored := fold
		at := time.Duration(0)
		odds := 2 + rng.IntN(20)
		for i := range entries {
			e := entries[i]
			if rng.IntN(odds) == 0 {
				other := sessions[rng.IntN(len(sessions))]
				e.Data, e.Kind = other[rng.IntN(len(other))].Data, other[rng.IntN(len(other))].Kind
			}
			if rng.IntN(odds) == 0 {
				choice := with
				if rng.IntN(2) == 0 {
					choice = with[:plain]
				}
				e.Data = tamper(rng, e.Data, choice)
			}
			e.Seq, e.Hash = eventlog.Seq(i+1), eventlog.Hash{byte(i)}
			if at = max(at, e.At); rng.IntN(60) == 0 {
				at += time.Duration(rng.Int64N(int64(math.MaxInt64 - at)))
				at >>= uint(rng.IntN(2))
				at = max(at, fold.At())
			}
			e.At = at
			require.NoError(t, fold.Apply(&e))
			if restored != fold {
				require.NoError(t, restored.Apply(&e))
			}
			next, err := sameRestored(fold)
			if err != nil {
				t.Errorf("seed %d, entry %d, %v at %v: %v; data %x", seed, i+1, e.Kind, e.At, err, e.Data[:min(len(e.Data), 500)])
				break
			}
			if fmt.Sprint(restored.Digests()) != fmt.Sprint(fold.Digests()) {
				t.Fatalf("seed %d, entry %d: what was restored goes on otherwise:\n%v\n%v", seed, i+1, fold.Digests(), restored.Digests())
			}
			if restored == fold || rng.IntN(4) == 0 {
				restored = next
			}
			if rng.IntN(10) == 0 {
				_ = fold.View()
			}
		}
	}
}

// TestAttackRestore restores states of which some values were changed. What is
// restored is written as it was read, and goes on without a fault: it takes
// entries and time, is shown, and can be written and restored again.
func TestAttackRestore(t *testing.T) {
	sessions := recorded(t)
	with := hostile()
	type state struct {
		projection int
		data       []byte
		of         projection.Image
	}
	var states []state
	for _, entries := range sessions {
		fold := projection.NewFold(session.Projections(session.ProjectionConfig{}), eventlog.Genesis("fold"))
		for i := range entries {
			require.NoError(t, fold.Apply(&entries[i]))
			img := fold.Image()
			for n, p := range img.Parts {
				states = append(states, state{n, p.Data, img})
				if i == len(entries)/2 {
					for _, at := range msgptest.Spans(p.Data, 0) {
						with = append(with, p.Data[at.Start:at.End])
					}
				}
			}
		}
	}
	for i := range int64(40) { // numbers near those that are there
		with = append(with, msgp.AppendInt64(nil, i-3))
	}
	restored := 0
	for seed := range attack.Rounds(4000, 400_000) {
		rng := rand.New(rand.NewPCG(uint64(seed), 19))
		s := states[rng.IntN(len(states))]
		data := tamper(rng, s.data, with)
		if restoreAny(t, data) == 0 {
			continue
		}
		restored++
		set := session.Projections(session.ProjectionConfig{})
		img := s.of
		img.Parts = slices.Clone(img.Parts)
		img.Parts[s.projection].Data = data
		f, err := projection.RestoreFold(set, img)
		if err != nil {
			continue // another projection took the bytes, or it is of another place
		}
		entries := sessions[rng.IntN(len(sessions))]
		at := img.At
		for i := range entries {
			e := entries[i]
			e.Seq, e.At = img.Head.Seq+eventlog.Seq(i+1), max(at, e.At)
			if at = e.At; f.Apply(&e) != nil {
				t.Fatal("not in order")
			}
			if i%8 == 0 {
				if _, err := sameRestored(f); err != nil {
					t.Errorf("seed %d: restored from %x, entry %d later: %v", seed, data[:min(len(data), 3000)], i+1, err)
					break
				}
				_ = f.View()
			}
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d states were restored", restored)
}

// A state of another place than its image's is refused.
func TestRestoreElsewhere(t *testing.T) {
	set := session.Projections(session.ProjectionConfig{})
	fold := projection.NewFold(set, eventlog.Genesis("elsewhere"))
	for i, e := range recorded(t)[0] {
		if e.Seq = eventlog.Seq(i + 1); fold.Apply(&e) != nil {
			t.Fatal("not in order")
		}
	}
	img := fold.Image()
	if _, err := projection.RestoreFold(set, img); err != nil {
		t.Fatal(err)
	}
	later, sooner, shorter := img, img, img
	later.At, sooner.At = img.At+1, img.At-1
	shorter.Head.Seq = 1
	for name, img := range map[string]projection.Image{"a later time": later, "an earlier time": sooner, "an earlier entry": shorter} {
		if _, err := projection.RestoreFold(set, img); !errors.Is(err, projection.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
	early := projection.NewFold(set, eventlog.Genesis("elsewhere")).Image()
	for i, p := range img.Parts {
		mixed := early
		mixed.Parts = slices.Clone(early.Parts)
		mixed.Parts[i] = p
		_, err := projection.RestoreFold(set, mixed)
		if timed := p.Name != session.ProjectionSession && p.Name != session.ProjectionDirector; errors.Is(err, projection.ErrCorrupt) != timed {
			t.Errorf("%s of the end at the beginning: %v", p.Name, err)
		}
	}
}
