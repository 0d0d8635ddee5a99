package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

func versionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Long: `Version prints the version of the program, the version of Go, the platform, and
the commit of the build.`,
		Example: `  sajou-replay version -o json`,
		Args:    cli.Between(0, 0),
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
			return a.Output().One(text, map[string]any{
				"version": version, "revision": revision, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
			})
		},
	}
}

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write manual pages to a directory",
		Long:    `Man writes a manual page for each command to DIR, and creates DIR if necessary.`,
		Example: `  sajou-replay man ~/.local/share/man/man1`,
		Args:    cli.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.MakeDirectory(args[0]); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Title: "SAJOU-REPLAY", Section: "1"}, args[0])
		},
	}
}
