package chain_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
)

// sealedBatch returns a batch of three entries with a key.
func sealedBatch() []byte {
	drafts := []chain.Draft{
		{Kind: chain.KindSignal, At: 1, Data: []byte("\xa5entry")},
		{Kind: chain.KindSignal, At: 2, Data: []byte{0x93, 1, 2, 3}},
		{Kind: chain.KindBeat, At: 3, Data: []byte{0xc0}},
	}
	b, _ := chain.AppendBatch(nil, chain.Head{Hash: chain.Genesis("a")}, drafts, "key")
	return b
}

// walk reads a sealed batch to its end, as every reader does, and calls f for
// each link.
func walk(sealed []byte, f func(e chain.Entry, stored []byte)) (rest []byte, err error) {
	b, err := chain.OpenBatch(sealed)
	if err != nil {
		return nil, err
	}
	for i := range b.Count {
		stored, body, hash, err := b.Next()
		if err != nil {
			return nil, err
		}
		e := chain.Entry{Seq: b.First + chain.Seq(i), Hash: *hash}
		if err := chain.DecodeBody(&e, body); err != nil {
			return nil, err
		}
		f(e, stored)
	}
	return b.Rest, nil
}

// A sealed batch opens with the entries that were sealed, each linked to the one
// before, and takes no more bytes than SealedSize says.
func TestSealedBatchOpens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		after := chain.Head{
			Seq:  chain.Seq(rapid.Uint64Range(0, 1<<63).Draw(t, "after")),
			Hash: chain.Hash(rapid.SliceOfN(rapid.Byte(), chain.HashSize, chain.HashSize).Draw(t, "hash")),
		}
		key := rapid.StringN(0, 20, chain.MaxKey).Draw(t, "key")
		drafts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) chain.Draft {
			return chain.Draft{
				Kind: chain.Kind(rapid.Uint8Range(1, 5).Draw(t, "kind")),
				At:   time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "at")),
				Data: append([]byte{0xc0}, rapid.SliceOfN(rapid.Byte(), 0, 1500).Draw(t, "data")...),
			}
		}), 1, 20).Draw(t, "drafts")
		sealed, head := chain.AppendBatch(nil, after, drafts, key)
		if bound := chain.SealedSize(drafts, key); len(sealed) > bound {
			t.Errorf("%d bytes, bounded by %d", len(sealed), bound)
		}
		at, i := after, 0
		rest, err := walk(sealed, func(e chain.Entry, stored []byte) {
			want := chain.Entry{
				Seq: at.Seq + 1, Hash: chain.Link(at.Hash, stored), Kind: drafts[i].Kind, At: drafts[i].At,
				Data: drafts[i].Data, Body: e.Body,
			}
			if i == 0 {
				want.Key = key
			}
			if diff := cmp.Diff(want, e); diff != "" {
				t.Errorf("entry %d (-want +got):\n%s", i, diff)
			}
			at, i = e.Head(), i+1
		})
		if err != nil || len(rest) != 0 || i != len(drafts) || at != head {
			t.Errorf("%d of %d entries, %d bytes behind them, ends at %v, want %v, %v", i, len(drafts), len(rest), at, head, err)
		}
	})
}

// Reading a sealed batch does not panic on any bytes, allocates little, and returns only
// parts of the bytes.
func FuzzOpenBatch(f *testing.F) {
	header := func(first, count uint64) []byte {
		return binary.AppendUvarint(binary.AppendUvarint([]byte{1}, first), count)
	}
	whole := sealedBatch()
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte{})
	f.Add([]byte{1})
	f.Add([]byte{2, 1, 1})
	f.Add(header(1<<64-1, 1<<16))
	f.Add(append(header(1, 1<<16), binary.AppendUvarint(nil, 1<<63)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		next, size := chain.Seq(0), 0
		rest, err := walk(b, func(e chain.Entry, stored []byte) {
			if next != 0 && e.Seq != next || !e.Kind.Valid() || e.At < 0 || len(e.Key) > chain.MaxKey || len(e.Data) == 0 {
				t.Errorf("entry %+v where %d belongs", e, next)
			}
			if len(e.Data) > len(e.Body) || len(e.Body) > len(stored) {
				t.Errorf("entry %d: %d bytes of data in %d of body in %d stored", e.Seq, len(e.Data), len(e.Body), len(stored))
			}
			next = e.Seq + 1
			size += len(stored) + chain.HashSize
		})
		runtime.ReadMemStats(&after)
		if size+len(rest) > len(b) {
			t.Errorf("%d bytes of links and %d behind them in %d bytes", size, len(rest), len(b))
		}
		if err != nil && !errors.Is(err, chain.ErrCorrupt) && !errors.Is(err, chain.ErrVersion) {
			t.Errorf("error of no class: %v", err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(4*len(b))+64<<10 {
			t.Errorf("%d bytes of input took %d bytes of memory", len(b), used)
		}
		_, _ = walk(b, func(e chain.Entry, _ []byte) { sameToOthers(t, e) })
	})
}

// sameToOthers fails if a msgpack library that shares no code with this package reads
// other values from the body of an entry. The library trusts lengths, so the body must
// have been decoded before.
func sameToOthers(t *testing.T, e chain.Entry) {
	t.Helper()
	rest := bytes.NewReader(e.Body)
	d := msgpack.NewDecoder(rest)
	elements, err1 := d.DecodeArrayLen()
	kind, err2 := d.DecodeInt64()
	at, err3 := d.DecodeInt64()
	key, err4 := d.DecodeString() // nil is no key
	data := e.Body[len(e.Body)-rest.Len():]
	if err := errors.Join(err1, err2, err3, err4); err != nil || elements != 4 || kind != int64(e.Kind) ||
		at != int64(e.At) || key != e.Key || !bytes.Equal(data, e.Data) {
		t.Errorf("entry %+v: others read %d elements, kind %d, at %d, key %q, data %x, %v", e, elements, kind, at, key, data, err)
	}
}

// Every truncation of a sealed batch is corrupt.
func TestTruncatedBatch(t *testing.T) {
	whole := sealedBatch()
	for n := range whole {
		if _, err := walk(whole[:n], func(chain.Entry, []byte) {}); !errors.Is(err, chain.ErrCorrupt) {
			t.Errorf("%d of %d bytes: err = %v, want ErrCorrupt", n, len(whole), err)
		}
	}
}

func ExampleOpenBatch() {
	genesis := chain.Head{Hash: chain.Genesis("night")}
	sealed, _ := chain.AppendBatch(nil, genesis, []chain.Draft{
		{Kind: chain.KindSignal, At: 5 * time.Millisecond, Data: []byte("\xa5hello")},
		{Kind: chain.KindSignal, At: 7 * time.Millisecond, Data: []byte("\xa5again")},
	}, "")

	b, err := chain.OpenBatch(sealed)
	at := genesis
	for range b.Count {
		stored, body, hash, _ := b.Next()
		var e chain.Entry
		err = errors.Join(err, chain.DecodeBody(&e, body))
		at.Seq++
		fmt.Println(at.Seq, e.Kind, e.At, chain.Link(at.Hash, stored) == *hash)
		at.Hash = *hash
	}
	fmt.Println(len(b.Rest), err)
	// Output:
	// 1 signal 5ms true
	// 2 signal 7ms true
	// 0 <nil>
}
