package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Tell the version of this program",
		Long:    `Version tells the version of this program, the commit it was built from, and the version of Go.`,
		Example: `  sajou-replay version -o json`,
		Args:    between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			version, revision := "(devel)", ""
			if info, ok := debug.ReadBuildInfo(); ok {
				if info.Main.Version != "" {
					version = info.Main.Version
				}
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = s.Value
					}
				}
			}
			text := fmt.Sprintf("sajou-replay %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if revision != "" {
				text += " " + revision
			}
			return a.output().one(text, map[string]any{
				"version": version, "revision": revision, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
			})
		},
	}
}

func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write man pages into a directory",
		Long:    `Man writes one man page for each command into a directory, which it makes if there is none.`,
		Example: `  sajou-replay man ~/.local/share/man/man1`,
		Args:    between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Title: "SAJOU-REPLAY", Section: "1"}, args[0])
		},
	}
}
