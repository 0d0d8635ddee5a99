package verify_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog/chain"
	"github.com/sajou-dev/sajou-go/eventlog/internal/keyspace"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/golden"
)

// damager changes keys and values of a store as a mistake or an attacker could.
type damager struct {
	*golden.Dice
	t  *testing.T
	db *pebble.Batch // indexed, in front of a store that stays
}

// keys returns the keys with a prefix, in order.
func (d damager) keys(prefix string) [][]byte {
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: []byte(prefix), UpperBound: []byte{prefix[0] + 1}})
	require.NoError(d.t, err)
	var keys [][]byte
	for ok := it.First(); ok; ok = it.Next() {
		keys = append(keys, bytes.Clone(it.Key()))
	}
	require.NoError(d.t, it.Close())
	return keys
}

func (d damager) get(key []byte) []byte {
	v, closer, err := d.db.Get(key)
	require.NoError(d.t, err)
	v = bytes.Clone(v)
	require.NoError(d.t, closer.Close())
	return v
}

func (d damager) set(key, value []byte) { require.NoError(d.t, d.db.Set(key, value, nil)) }
func (d damager) remove(key []byte)     { require.NoError(d.t, d.db.Delete(key, nil)) }

// links returns the first Seq, the count and the links of a sealed batch, as far as they can
// be read.
func links(value []byte) (first chain.Seq, all [][]byte) {
	b, err := chain.OpenBatch(value)
	if err != nil {
		return 1, [][]byte{value}
	}
	for range b.Count {
		before := b.Rest
		if _, _, _, err := b.Next(); err != nil {
			break
		}
		all = append(all, before[:len(before)-len(b.Rest)])
	}
	return b.First, append(all, nil)[:len(all)]
}

// batchOf seals links again, with a count of its own.
func batchOf(first chain.Seq, count int, links ...[]byte) []byte {
	b := binary.AppendUvarint([]byte{1}, uint64(first))
	return append(binary.AppendUvarint(b, uint64(count)), slices.Concat(links...)...)
}

// one makes one change.
func (d damager) one() {
	batches, outcomes, records := d.keys("e"), d.keys("k"), d.keys("s")
	key := golden.Pick(d.Dice, batches...)
	other := golden.Pick(d.Dice, batches...)
	value := d.get(key)
	number := uint32(golden.Pick(d.Dice, 7, 7, 7, 8, 9))
	switch d.N(20) {
	case 0:
		d.remove(key)
	case 1:
		d.set(key, d.get(other))
	case 2:
		v := d.get(other)
		d.set(other, value)
		d.set(key, v)
	case 3, 4:
		value[d.N(len(value))] ^= 1 << d.N(8)
		d.set(key, value)
	case 5:
		d.set(key, value[:d.N(len(value))])
	case 6:
		_, more := links(d.get(other))
		d.set(key, append(value, golden.Pick(d.Dice, []byte("rest"), []byte{0}, slices.Concat(more...))...))
	case 7, 8: // other links, perhaps with a count that fits
		first, all := links(value)
		_, more := links(d.get(other))
		n := len(all)
		switch d.N(4) {
		case 0:
			all = slices.Delete(all, d.N(n), n)
		case 1:
			i := d.N(n)
			all = slices.Delete(all, i, i+1)
		case 2:
			all[d.N(n)] = golden.Pick(d.Dice, more...)
		case 3:
			all = append(all, more...)
		}
		d.set(key, batchOf(first, max(1, golden.Pick(d.Dice, n, len(all), n+1, n-1)), all...))
	case 9: // another place of the header
		first, all := links(value)
		d.set(key, batchOf(first+chain.Seq(d.N(3)), len(all), all...))
	case 10:
		d.set(keyspace.BatchKey(nil, number, chain.Seq(d.N(12))), golden.Pick(d.Dice, value, d.get(other), []byte("x"), nil))
	case 11:
		d.set(append(key, golden.Pick(d.Dice, "", "x", "more")...), value)
	case 12: // the newest batches are made again
		var prev []byte
		at := chain.Head{Hash: chain.Genesis("a")}
		for _, k := range d.keys("e") {
			if n, _ := keyspace.Number(k); n != 7 {
				continue
			}
			if b, err := keyspace.OpenBatch(k, d.get(k)); err == nil {
				for i := range b.Count {
					if _, _, h, err := b.Next(); err == nil {
						at = chain.Head{Seq: b.First + chain.Seq(i), Hash: *h}
					}
				}
			}
			prev = k
		}
		if prev == nil {
			return
		}
		draft := chain.Draft{Kind: golden.Pick[chain.Kind](d.Dice, 1, 1, 5, 9), At: time.Duration(d.N(20)-4) * time.Second, Data: golden.Pick(d.Dice, []byte{0xc0}, []byte{0xc0}, nil)}
		b, _ := chain.AppendBatch(nil, at, []chain.Draft{draft, draft}[:1+d.N(2)], golden.Pick(d.Dice, "", "k1", "new"))
		d.set(keyspace.BatchKey(nil, 7, at.Seq+1), b)
	case 13:
		d.remove(golden.Pick(d.Dice, outcomes...))
	case 14:
		key := golden.Pick(d.Dice, outcomes...)
		v := d.get(key)
		if len(v) > 0 {
			v[d.N(len(v))] ^= 1
		}
		d.set(key, golden.Pick(d.Dice, v, v[:len(v)/2], d.get(golden.Pick(d.Dice, outcomes...))))
	case 15:
		d.set(keyspace.OutcomeKey(number, golden.Pick(d.Dice, "k1", "k3", "x", strings.Repeat("y", chain.MaxKey+1))), golden.Pick(d.Dice, d.get(golden.Pick(d.Dice, outcomes...)), []byte("bad"), nil))
	case 16:
		d.set(keyspace.SessionKey(golden.Pick(d.Dice, "a", "b", "c", "", "\xff")), golden.Pick(d.Dice, []byte{0, 0, 0, 7}, []byte{0, 0, 0, 8}, []byte{0, 0, 0, 99}, []byte("bad"), nil, []byte{0, 0, 0, 0}))
	case 17:
		d.remove(golden.Pick(d.Dice, records...))
	case 18:
		t := keyspace.Tombstone{Session: golden.Pick(d.Dice, "a", "b", "z"), Number: golden.Pick[uint32](d.Dice, 7, 8, 30), Head: chain.Head{Seq: chain.Seq(d.N(3))}, At: time.Unix(5, 0)}
		d.set(keyspace.SessionKey(t.Session), keyspace.AppendTombstone(nil, &t))
	case 19:
		d.set(golden.Pick(d.Dice, keyspace.BatchKey(nil, 30, 5), keyspace.OutcomeKey(30, "o"), keyspace.OutcomeKey(1<<32-1, ""), []byte("e\xff"), []byte("k\x00"), keyspace.BatchKey(nil, 1<<32-1, 1)), []byte("x"))
	}
}

var errRead = errors.New("the disk says no")

// countdown fails one read of a store.
type countdown struct {
	pebble.Reader
	left *int
}

func (c countdown) fails() bool {
	*c.left--
	return *c.left == 0
}

func (c countdown) Get(key []byte) ([]byte, io.Closer, error) {
	if c.fails() {
		return nil, nil, errRead
	}
	return c.Reader.Get(key)
}

func (c countdown) NewIter(o *pebble.IterOptions) (*pebble.Iterator, error) {
	return c.NewIterWithContext(context.Background(), o)
}

func (c countdown) NewIterWithContext(ctx context.Context, o *pebble.IterOptions) (*pebble.Iterator, error) {
	if c.fails() {
		return nil, errRead
	}
	return c.Reader.NewIterWithContext(ctx, o)
}

// tell writes down what verification finds in a store.
func tell(out *strings.Builder, reader pebble.Reader, lostEnd func(chain.Head) *verify.Fault, opts verify.Options, numbers ...uint32) {
	for _, n := range numbers {
		r, err := verify.Session(context.Background(), verify.StoredSession{Reader: reader, Name: string(rune('a' + n - 7)), Number: n, LostEnd: lostEnd}, opts)
		fmt.Fprintf(out, "%d: %q %v %v %d %v %v\n", n, r.Session, r.Head, r.Fault, r.KeyFaults, r.Whole(), err)
		for _, f := range r.Keys {
			fmt.Fprintln(out, f.Seq, f.Key, f.Kind, &f)
		}
	}
	faults, err := verify.Store(context.Background(), reader)
	fmt.Fprintln(out, err)
	for _, f := range faults {
		fmt.Fprintf(out, "%q %d %v\n", f.Session, f.Number, &f)
	}
}

// Stores with a few odd keys and values are described as they were, with all workers, and
// also if one of the reads fails: a read that fails never makes a store look whole.
func TestRecordedDamage(t *testing.T) {
	db, heads := twoSessions(t)
	golden.Trace(t, "testdata/trace.txt", func(step func(name, text string)) {
		for seed := range 400 {
			d := damager{golden.NewDice(uint64(seed)), t, db.NewIndexedBatch()}
			for range 1 + d.N(3) {
				if len(d.keys("e")) > 0 && len(d.keys("k")) > 0 && len(d.keys("s")) > 0 {
					d.one()
				}
			}
			lostEnd := func(end chain.Head) *verify.Fault { return nil }
			if d.Once(4) {
				lost := chain.Seq(d.N(9))
				lostEnd = func(end chain.Head) *verify.Fault {
					if end.Seq >= lost {
						return nil
					}
					return &verify.Fault{Seq: end.Seq + 1, Kind: verify.FaultMissing, Detail: fmt.Sprint("lost behind ", end)}
				}
			}
			opts := verify.Options{Workers: 1}
			if d.Once(3) {
				opts.Expect = golden.Pick(d.Dice, heads...)
			}
			var out, many strings.Builder
			tell(&out, d.db, lostEnd, opts, 7, 8, 9)
			opts.Workers = 3
			tell(&many, d.db, lostEnd, opts, 7, 8, 9)
			assert.Equal(t, out.String(), many.String())
			opts.Workers = 1
			for fail := 1; ; fail++ {
				before, left := out.Len(), fail
				tell(&out, countdown{d.db, &left}, lostEnd, opts, 7)
				if left > 0 {
					break // there are fewer reads
				}
				if text := out.String()[before:]; !strings.Contains(text, errRead.Error()) {
					assert.NotContains(t, text, " 0 true <nil>", "%d: read %d", seed, fail)
				}
			}
			require.NoError(t, d.db.Close())
			if step(fmt.Sprint(seed), out.String()); t.Failed() {
				return
			}
		}
	})
}
