package corpus_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sajou-dev/sajou-go/replay/corpus"
)

func Example() {
	dir, err := os.MkdirTemp("", "corpus")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	line := `{"id":"1","type":"thinking","timestamp":1000,"source":"test","payload":{"agentId":"ann","content":"hm"}}`
	if err := os.WriteFile(filepath.Join(dir, "night.jsonl"), []byte(line), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	recordings, err := corpus.Find(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range recordings {
		if _, err := r.Update(ctx, corpus.DefaultPoints); err != nil {
			fmt.Println(err)
		}
	}
	for check, err := range corpus.CheckAll(ctx, recordings, 1) {
		fmt.Println(check.Name, check.Whole(), check.Entries, err)
	}
	// Output: night.jsonl true 2 <nil>
}
