package versions_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sajou-dev/sajou-go/replay/edits/versions"
)

func Example() {
	dir, err := os.MkdirTemp("", "versions")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, name := range []string{"v1.json", "v2.json", "v10.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("[]"), 0o600); err != nil {
			fmt.Println(err)
			return
		}
	}
	all, err := versions.Folder(context.Background(), dir)
	for _, v := range all {
		fmt.Println(v.Name)
	}
	fmt.Println(err)
	// Output:
	// v1.json
	// v2.json
	// v10.json
	// <nil>
}
