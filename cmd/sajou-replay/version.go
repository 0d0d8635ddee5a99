package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
)

func versionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Long: `Version prints the version of the program, the version of Go, the platform, and
the commit of the build. With --version every command does the same, and nothing
else.`,
		Example: `  sajou-replay version -o json
  sajou-replay --version`,
		Args: cli.Between(0, 0),
		RunE: func(*cobra.Command, []string) error { return printVersion(a) },
	}
}

// programVersion returns the version of the build.
func programVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// printVersion writes the version of the program.
func printVersion(a *cli.App) error {
	version, revision := programVersion(), ""
	if info, ok := debug.ReadBuildInfo(); ok {
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
}

// versionFlag gives a command and those below it the flag --version, with which they
// print the version, whatever their arguments are.
func versionFlag(a *cli.App, root *cobra.Command) {
	wanted := root.PersistentFlags().Bool("version", false, "print the version of the program and end")
	for commands := []*cobra.Command{root}; len(commands) > 0; {
		cmd := commands[0]
		commands = append(commands[1:], cmd.Commands()...)
		args, run := cmd.Args, cmd.RunE
		if run == nil {
			continue
		}
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if *wanted || args == nil {
				return nil
			}
			return args(cmd, given)
		}
		cmd.RunE = func(cmd *cobra.Command, given []string) error {
			if *wanted {
				return printVersion(a)
			}
			return run(cmd, given)
		}
	}
}
