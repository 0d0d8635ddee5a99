package spool_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sajou-dev/sajou-go/server/otlp/spool"
)

func Example() {
	dir, _ := os.MkdirTemp("", "spool")
	defer func() { _ = os.RemoveAll(dir) }()
	visit := func(group uint64, _ spool.RecordRef, data []byte) error {
		fmt.Println("found", group, string(data))
		return nil
	}
	s, _, err := spool.Open(filepath.Join(dir, "traces"), spool.Config{}, visit)
	if err != nil {
		panic(err)
	}
	if _, err = s.Write(spool.GroupRecord{Group: 7, Data: []byte("a span")}); err == nil {
		err = s.Sync() // now it may be acknowledged
	}
	if err != nil {
		panic(err)
	}
	_ = s.Close()
	s, _, err = spool.Open(filepath.Join(dir, "traces"), spool.Config{}, visit)
	if err != nil {
		panic(err)
	}
	_ = s.Drop(7)
	_ = s.Close()
	// Output: found 7 a span
}
