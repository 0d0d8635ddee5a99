package eventlog_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tinylib/msgp/msgp"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
)

// The first append begins a session, which can then be read from any Seq.
func Example() {
	ctx := context.Background()
	l, err := eventlog.Open("sajou-data", eventlog.Config{FS: vfs.NewMem()}) // without FS, on the disk
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	s, err := l.Session("release-42")
	if err != nil {
		log.Fatal(err)
	}
	head, err := s.Append(ctx, eventlog.Batch{
		Key: "first-contact", // appending again with this key does nothing
		Drafts: []eventlog.Draft{
			{Kind: eventlog.KindSignal, At: 0, Data: msgp.AppendString(nil, "hello")},
			{Kind: eventlog.KindSignal, At: 250 * time.Millisecond, Data: msgp.AppendInt(nil, 7)},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("durable up to", head.Seq)
	for e, err := range s.Entries(ctx, 1) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d %s %v %x\n", e.Seq, e.Kind, e.At, e.Data)
	}
	r, err := l.Verify(ctx, "release-42", verify.Options{Expect: head})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("fault:", r.Fault)
	// Output:
	// durable up to 2
	// 1 signal 0s a568656c6c6f
	// 2 signal 250ms 07
	// fault: <nil>
}

// The format of the package comment, read by hand: from the store's keys to the values
// of each entry, with a check of the chain.
func Example_format() {
	fs := vfs.NewMem()
	l, err := eventlog.Open("store", eventlog.Config{FS: fs})
	if err != nil {
		log.Fatal(err)
	}
	s, err := l.Session("release-42")
	if err != nil {
		log.Fatal(err)
	}
	head, err := s.Append(context.Background(), eventlog.Batch{Key: "k", Drafts: []eventlog.Draft{
		{Kind: eventlog.KindSession, At: 0, Data: msgp.AppendNil(nil)},
		{Kind: eventlog.KindBeat, At: time.Second, Data: msgp.AppendBool(nil, true)},
	}})
	if err != nil {
		log.Fatal(err)
	}
	if err := l.Close(); err != nil {
		log.Fatal(err)
	}

	db, err := pebble.Open("store", &pebble.Options{FS: fs, ReadOnly: true, Logger: quiet{}})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	value := func(key string) []byte {
		v, closer, err := db.Get([]byte(key))
		if err != nil {
			log.Fatalf("key %q: %v", key, err)
		}
		defer closer.Close()
		return append([]byte(nil), v...)
	}
	fmt.Println("format version", value("f")[0])
	number := string(value("srelease-42"))                            // 4 bytes, big-endian
	batch := value("e" + number + "\x00\x00\x00\x00\x00\x00\x00\x01") // begins with entry 1

	fmt.Println("batch version", batch[0])
	first, n := binary.Uvarint(batch[1:])
	rest := batch[1+n:]
	count, n := binary.Uvarint(rest)
	rest = rest[n:]
	hash := sha256.Sum256([]byte("sajou.session/1\nrelease-42"))
	for i := range count {
		size, n := binary.Uvarint(rest)
		stored := rest[:n+int(size)] // length and body
		body := stored[n:]
		hash = sha256.Sum256(append(hash[:], stored...))
		if want := rest[len(stored) : len(stored)+32]; string(hash[:]) != string(want) {
			log.Fatalf("entry %d: the chain is broken", first+i)
		}
		rest = rest[len(stored)+32:]

		// The chain proves that the body is unchanged, so a library that trusts the
		// lengths in it may read it.
		d := msgpack.NewDecoder(bytes.NewReader(body))
		elements, _ := d.DecodeArrayLen()
		kind, _ := d.DecodeInt()
		at, _ := d.DecodeInt64()
		key, _ := d.DecodeString() // nil where there is no key, or it is not the first entry
		data, _ := d.DecodeRaw()
		fmt.Printf("entry %d of %d elements: kind %d, at %d ns, key %q, data %x\n", first+i, elements, kind, at, key, []byte(data))
	}
	fmt.Println("bytes left:", len(rest))
	fmt.Println("head is the last hash:", eventlog.Hash(hash) == head.Hash)

	outcome := value("k" + number + "k")
	fmt.Println("key:", binary.BigEndian.Uint64(outcome), binary.BigEndian.Uint64(outcome[8:]), eventlog.Hash(outcome[16:]) == head.Hash)
	// Output:
	// format version 1
	// batch version 1
	// entry 1 of 4 elements: kind 5, at 0 ns, key "k", data c0
	// entry 2 of 4 elements: kind 3, at 1000000000 ns, key "", data c3
	// bytes left: 0
	// head is the last hash: true
	// key: 1 2 true
}
