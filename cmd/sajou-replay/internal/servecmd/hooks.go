package servecmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/ingest/hooks/forward"
	"github.com/sajou-dev/sajou-go/ingest/hooks/settings"
	"github.com/sajou-dev/sajou-go/ingest/partition"
	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// Hooks returns the command "hooks".
func Hooks(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hooks",
		Short: "Make Claude Code record its sessions while they run",
		Long: `Hooks installs, removes and shows the hooks with which Claude Code sends its
events to the server of "sajou-replay serve". docs/recording.md describes what
they do.

They stand in .claude/settings.local.json of the current directory, in the
file of --file, or with --user in the settings of the user, which apply to all
projects.`,
		Example: `  sajou-replay hooks install --dry-run
  sajou-replay hooks status`,
		Args: cli.GroupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(hooksInstall(a), hooksRemove(a), hooksStatus(a))
	return cmd
}

// settingsFile is the file that the flags of a command name.
type settingsFile struct {
	file   string
	user   bool
	dryRun bool
}

func (f *settingsFile) register(cmd *cobra.Command, edits bool) {
	cmd.Flags().StringVar(&f.file, "file", "", "`FILE` of the settings (default .claude/settings.local.json)")
	cmd.Flags().BoolVar(&f.user, "user", false, "the settings of the user, ~/.claude/settings.json")
	if edits {
		cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show the change, and make none")
	}
}

// path returns the file itself: a link is followed, so that it stays one.
func (f *settingsFile) path() (string, error) {
	name := cmp.Or(f.file, filepath.Join(".claude", "settings.local.json"))
	if f.user {
		if f.file != "" {
			return "", cli.Misuse("--user and --file exclude each other")
		}
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		name = filepath.Join(home, ".claude", "settings.json")
	}
	path, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return "", cli.Fail(cli.ExitNotFound, "%s is a link to a file that does not exist; name the file itself with --file", name)
		}
		return name, nil
	}
	if err != nil {
		return "", fmt.Errorf("%s cannot be followed to a file: %w; name the file itself with --file", name, err)
	}
	return path, nil
}

// readSettings returns the content of the file of settings, nil if the file does not exist.
func readSettings(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, cli.Misuse("%s is not a regular file", path)
	case info.Size() > settings.MaxText:
		return nil, cli.Misuse("%s: %w: it has more than %d MiB", path, settings.ErrSettings, settings.MaxText>>20)
	}
	return os.ReadFile(path)
}

// change changes the settings, unless it is a dry run, and returns the texts from before
// and after.
func (f *settingsFile) change(change func([]byte) ([]byte, error)) (path string, before, after []byte, err error) {
	if path, err = f.path(); err != nil {
		return path, nil, nil, err
	}
	if before, err = readSettings(path); err != nil {
		return path, nil, nil, err
	}
	if after, err = change(before); err != nil {
		return path, nil, nil, cli.Misuse("%s: %w; nothing was changed", path, err)
	}
	if !bytes.Equal(before, after) && !f.dryRun {
		err = writeSettings(path, before, after)
	}
	return path, before, after, err
}

// edit changes the settings and shows the difference.
func (f *settingsFile) edit(a *cli.App, change func([]byte) ([]byte, error)) error {
	path, before, after, err := f.change(change)
	if err != nil {
		return err
	}
	result := struct {
		File    string `json:"file"`
		Changed bool   `json:"changed"`
		DryRun  bool   `json:"dry_run,omitempty"`
		Diff    string `json:"diff,omitempty"`
	}{path, !bytes.Equal(before, after), f.dryRun, string(diff.Diff(path, before, path+" (new)", after))}
	text := fmt.Sprintf("%s has these hooks already: nothing to change", path)
	switch {
	case result.Changed && f.dryRun:
		text = result.Diff + path + " would be changed"
	case result.Changed:
		text = result.Diff + path + " is changed; it counts for sessions that begin from now on"
	case len(before) == 0:
		text = path + " has no hooks: nothing to change"
	}
	return a.Output().One(printableLines(text), result)
}

// printableLines returns a text of which each line can be shown in a terminal.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = termtext.Printable(strings.ReplaceAll(strings.TrimSuffix(lines[i], "\r"), "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// writeSettings writes the file completely or not at all, unless someone else has changed it.
func writeSettings(path string, before, after []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	now, err := readSettings(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, before) {
		return cli.Fail(cli.ExitNo, "%s was changed by another program at the same time; nothing was written, try again", path)
	}
	return cli.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(after)
		return err
	})
}

// hookTimeout is how long Claude Code waits for a hook, in seconds. The hook itself ends
// before.
const hookTimeout = 5

// connectTap returns the function that installs or removes the hooks in the directory of
// the server, for callers of /api/tap/connect. The hooks send to an address of the server.
func connectTap(address string) func(context.Context, bool) error {
	return func(_ context.Context, install bool) error {
		var f settingsFile
		command, err := hookCommand("", address)
		if err != nil {
			return err
		}
		_, _, _, err = f.change(func(text []byte) ([]byte, error) {
			if !install {
				return settings.Remove(text)
			}
			return settings.Install(text, settings.HookCommand{Command: command + " --server " + cli.ShellWord(address), Timeout: hookTimeout})
		})
		return err
	}
}

func hooksInstall(a *cli.App) *cobra.Command {
	var (
		file                   settingsFile
		program, server, split string
		async                  bool
	)
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Add the hooks to the settings of Claude Code",
		Long: `Install adds a command to the hooks of Claude Code, at the beginning and the
end of a session, at each prompt, before and after each tool, and at the
beginning and the end of subagents. What is in the file stays as it is, hooks
of others included; those of an earlier install are replaced. It shows the
difference. A file that it cannot parse is refused.

The command is sajou-hook if that lies beside this program and can reach the
server, since it starts faster; else it is "sajou-replay hook". The agent waits
for it, some milliseconds, so that events arrive in their order; with --async it
does not. A token is not written into the file: see SAJOU_TOKEN_FILE in
docs/recording.md.

The exit code is 0, 1 if the file cannot be read or written, 2 if it cannot be
edited, and 4 if it is a link to nothing.`,
		Example: `  sajou-replay hooks install
  sajou-replay hooks install --user --split day --session claude --dry-run
  sajou-replay hooks install --file settings.json --server http://127.0.0.1:8175`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := partition.Split(split).Check(cmp.Or(a.Session, "claude")); err != nil {
				return cli.Misuse("%w", err)
			}
			if server != "" {
				if err := forward.CheckServer(server); err != nil {
					return cli.Misuse("--server: %w", err)
				}
			}
			command, err := hookCommand(program, server)
			if err != nil {
				return err
			}
			for _, f := range []struct{ name, value string }{{"--server", server}, {"--session", a.Session}, {"--split", split}} {
				if f.value != "" {
					command += " " + f.name + " " + cli.ShellWord(f.value)
				}
			}
			return file.edit(a, func(text []byte) ([]byte, error) {
				return settings.Install(text, settings.HookCommand{Command: command, Timeout: hookTimeout, Async: async})
			})
		},
	}
	file.register(cmd, true)
	cmd.Flags().StringVar(&program, "program", "", "run `COMMAND`, with the flags that are given here, instead of the program found")
	cmd.Flags().StringVar(&server, "server", "", "`ADDRESS` of the server (default: that of SAJOU_SERVER when the hook runs)")
	cmd.Flags().StringVar(&split, "split", "", "divide the session by `KIND`: native-session, source or day")
	cmd.Flags().BoolVar(&async, "async", false, "do not let the agent wait for the hooks")
	return cmd
}

// hookCommand returns the program of a hook, for the shell.
func hookCommand(program, server string) (string, error) {
	if program != "" {
		return program, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	name := "sajou-hook"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	small := filepath.Join(filepath.Dir(self), name)
	if info, err := os.Stat(small); err == nil && info.Mode().IsRegular() && reachesSimply(cmp.Or(server, os.Getenv("SAJOU_SERVER"), forward.DefaultServer)) {
		return cli.ShellWord(small), nil
	}
	return cli.ShellWord(self) + " hook", nil
}

// reachesSimply reports whether sajou-hook, which has no TLS and resolves no names, can
// connect to a server.
func reachesSimply(server string) bool {
	if strings.HasPrefix(server, "unix:") {
		return true
	}
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" {
		return false
	}
	_, err = netip.ParseAddr(u.Hostname())
	return err == nil || u.Hostname() == "localhost"
}

func hooksRemove(a *cli.App) *cobra.Command {
	var file settingsFile
	cmd := &cobra.Command{
		Use:   "remove",
		Short: "Remove the hooks from the settings of Claude Code",
		Long: `Remove takes the hooks that "hooks install" has added out of the file, and
shows the difference. Everything else stays as it is. What waits in the spool
stays there; the next start of the server delivers it.

The exit code is 0, 1 if the file cannot be read or written, 2 if it cannot be
edited, and 4 if it is a link to nothing.`,
		Example: `  sajou-replay hooks remove --dry-run
  sajou-replay hooks remove --user`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return file.edit(a, settings.Remove) },
	}
	file.register(cmd, true)
	return cmd
}

// hooksStatusView is the status as -o json has it.
type hooksStatusView struct {
	File        string            `json:"file"`
	Installed   map[string]string `json:"installed"`
	Missing     []string          `json:"missing"`
	Spool       string            `json:"spool"`
	Waiting     int               `json:"waiting"`
	WaitingSize int64             `json:"waiting_bytes"`
	LastFailure string            `json:"last_failure,omitempty"`
}

func hooksStatus(a *cli.App) *cobra.Command {
	var file settingsFile
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show which hooks are installed, and what waits for the server",
		Long: `Status lists the events at which Claude Code runs a hook of this program,
counts the objects that wait in the spool for the server, and shows the last
failure.

The exit code is 0 if all hooks are installed, else 1.`,
		Example: `  sajou-replay hooks status
  sajou-replay hooks status --user -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, err := file.path()
			if err != nil {
				return err
			}
			text, err := readSettings(path)
			if err != nil {
				return err
			}
			v := hooksStatusView{File: path, Missing: []string{}, Spool: forward.DefaultDir()}
			if v.Installed, err = settings.Installed(text); err != nil {
				return cli.Misuse("%s: %w", path, err)
			}
			var lines []string
			for _, event := range settings.Events() {
				command, ok := v.Installed[event]
				if !ok {
					v.Missing = append(v.Missing, event)
					command = "not installed"
				}
				lines = append(lines, fmt.Sprintf("%-20s %s", event, command))
			}
			for _, q := range forward.Queues(v.Spool) {
				v.Waiting += q.Items
				v.WaitingSize += q.Bytes
			}
			v.LastFailure = forward.LastFailure(v.Spool)
			lines = slices.Insert(lines, 0, path)
			lines = append(lines, fmt.Sprintf("waiting for the server: %s in %s", cli.Plural(v.Waiting, "object", "objects"), v.Spool))
			if v.LastFailure != "" {
				lines = append(lines, "last failure: "+v.LastFailure)
			}
			if err := a.Output().One(printableLines(strings.Join(lines, "\n")), v); err != nil {
				return err
			}
			if len(v.Missing) > 0 {
				return cli.AnswerNo
			}
			return nil
		},
	}
	file.register(cmd, false)
	return cmd
}
