package episodecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/signal"
)

func migrateCommand(a *cli.App) *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:   "migrate FILE",
		Short: "Convert an episode's legacy choice points to beats",
		Long: `Migrate converts the choice points that an episode offers at a turn to beats.
Instead of a card that appears at turn 4, the character brings about the moment
around turn 4, and then the choice is the user's answer. Migrate drafts the
instruction of the character and the detection of the moment from the prompt of
the card, and lists each draft on stderr for you to decide.

The new file goes to stdout, or with -w replaces the old one. Parts that do not
change keep their formatting. An episode in YAML becomes JSON.`,
		Example: `  sajou-replay episode migrate old.json > new.json
  sajou-replay episode migrate -w interview.json`,
		Args: cli.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return runMigrate(cmd.Context(), a, args[0], write) },
	}
	cmd.Flags().BoolVarP(&write, "write", "w", false, "replace the file instead of writing to stdout")
	return cmd
}

func runMigrate(ctx context.Context, a *cli.App, name string, write bool) error {
	e, f, err := loadEpisode(ctx, a, name, "nothing was migrated")
	if err != nil {
		return err
	}
	switch {
	case write && name == "-":
		return cli.Misuse("-w needs a file; an episode from stdin is written to stdout")
	case write && f.read.FromYAML():
		return cli.Misuse("%s is YAML, and the result is JSON; write it to another file: sajou-replay episode migrate %s > FILE.json", f.name, cli.ShellWord(name))
	}
	var value signal.Value
	var todo []episode.Todo
	text := f.text
	if stopped := cli.Interruptibly(ctx, func() {
		if value, todo, err = episode.Migrate(e.Value()); err != nil {
			return
		}
		switch {
		case f.read.FromYAML():
			text = append(cli.Indented(value.AppendJSON(nil)), '\n')
		case !bytes.Equal(value, e.Value()):
			text = episode.Rewrite(f.text, e.Value(), value)
		}
	}); stopped != nil {
		return stopped
	}
	if err != nil {
		return err
	}
	for _, t := range todo {
		fmt.Fprintln(a.Stderr, termtext.Printable(f.name+": to decide: "+t.String()))
	}
	if legacy, ok := e.Value().Get("choice_points"); !ok || legacy.Len() == 0 {
		fmt.Fprintln(a.Stderr, termtext.Printable(f.name+": it has no choice points of its own; nothing changes"))
	}
	if write {
		return cli.WriteFile(name, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
	}
	view := struct {
		Episode json.RawMessage `json:"episode"`
		Todo    []migrateTodo   `json:"todo"`
	}{value.AppendJSON(nil), []migrateTodo{}}
	for _, t := range todo {
		view.Todo = append(view.Todo, migrateTodo{t.Pointer, t.Message})
	}
	return a.Output().One(string(text), view)
}

type migrateTodo struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}
