package statecmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bookmark"
)

// Mark returns the command "mark" with its subcommands.
func Mark(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mark",
		Short: "Name moments, and list their names",
		Long: `A bookmark is a name for a moment of a session, perhaps with a note. Every command
that takes an address takes @NAME, and @NAME+300ms.

Bookmarks are kept in bookmarks.jsonl in the directory of the store, which is
readable, and never in the audited log. A bookmark holds the hash of its entry:
it is refused for a session with the same name and another history. Deleting a
session keeps its bookmarks; mark ls --all shows them as gone.`,
		Example: `  sajou-replay mark add failure 36+50ms --note "still gold"
  sajou-replay mark ls
  sajou-replay state @failure+50ms performances
  sajou-replay mark rm failure`,
		Args: cli.GroupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(markAdd(a), markLs(a), markRm(a), markImport(a))
	return cmd
}

func markAdd(a *cli.App) *cobra.Command {
	var note string
	var force bool
	cmd := &cobra.Command{
		Use:   "add NAME [ADDR]",
		Short: "Name a moment",
		Long: `Add names a moment of the session, by default the end. A NAME has letters, digits,
- and _. An existing bookmark is replaced only with --force.`,
		Example: `  sajou-replay mark add failure 36 --note "the grind fails"
  sajou-replay mark add failure end-10 --force`,
		Args: cli.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			address := "end"
			if len(args) == 2 {
				address = args[1]
			}
			t, err := a.OpenSession("")
			if err != nil {
				return err
			}
			defer t.Close()
			m, err := t.Resolve(cmd.Context(), address)
			if err != nil {
				return err
			}
			b, err := t.AddBookmark(cmd.Context(), args[0], note, m, force)
			if err != nil {
				return err
			}
			return a.Output().One(fmt.Sprintf("@%s is %v of %s", b.Name, m, termtext.Printable(t.Name)), b)
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "keep `TEXT` with the name")
	cmd.Flags().BoolVar(&force, "force", false, "replace an existing bookmark")
	return cmd
}

// The statuses of a bookmark in a listing.
const (
	statusFound  = "found"
	statusGone   = "gone"    // the store does not have the session any more
	statusOther  = "other"   // the session has another history
	statusUnread = "unknown" // the session could not be read
)

func markLs(a *cli.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "ls [SESSION]",
		Short: "List bookmarks",
		Long: `Ls lists the bookmarks of a session, or with --all those of all sessions, in the
order of their moments. With -o jsonl it writes the lines that mark import reads.

The status of a bookmark is found; gone if the store has no such session; other if
the session has another history, or unknown if it cannot be read. The text shows a
status other than found.`,
		Example: `  sajou-replay mark ls
  sajou-replay mark ls --all -o jsonl`,
		Args: cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.SessionArg(args)
			if err != nil {
				return err
			}
			if all && name != "" {
				return cli.Misuse("--all lists the bookmarks of all sessions; omit %q", name)
			}
			engine, err := a.OpenReading()
			if err != nil {
				return err
			}
			defer engine.Close()
			if !all {
				if name, err = a.SessionName(engine, name); err != nil {
					return err
				}
			}
			book, err := a.Bookmarks()
			if err != nil {
				return err
			}
			o := a.Output()
			for b := range book.All(name) {
				status, reason := statusOf(cmd, engine, &b)
				if err := cmd.Context().Err(); err != nil {
					return err
				}
				text := fmt.Sprintf("%-16s  %-12v", "@"+b.Name, b.Moment())
				if all {
					text = fmt.Sprintf("%-12s  %s", b.Session, text)
				}
				if text += "  " + b.Note; status != statusFound {
					text += "  (" + reason + ")"
				}
				if err := o.ItemOf(termtext.Printable(strings.TrimRight(text, " ")), listed{b, status}); err != nil {
					return err
				}
			}
			return o.End()
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list the bookmarks of all sessions, also of those that are gone")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// listed is a bookmark with its status.
type listed struct {
	bookmark.Bookmark
	status string
}

// MarshalJSON adds the status to the line of a bookmark.
func (l listed) MarshalJSON() ([]byte, error) {
	data, err := l.Bookmark.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(data[:len(data)-1], `,"status":%q}`, l.status), nil
}

// statusOf returns the status of a bookmark, and the reason if it is not found.
func statusOf(cmd *cobra.Command, engine *sajou.Engine, b *bookmark.Bookmark) (status, reason string) {
	travel, err := engine.Replay(b.Session)
	switch {
	case errors.Is(err, eventlog.ErrNoSession), errors.Is(err, eventlog.ErrDeleted), errors.Is(err, eventlog.ErrInvalid):
		return statusGone, "gone: the store has no such session"
	case err != nil:
		return statusUnread, err.Error()
	}
	if err := travel.CheckAnchor(cmd.Context(), b.Anchor); err != nil {
		if errors.Is(err, replay.ErrNotThere) {
			return statusOther, err.Error()
		}
		return statusUnread, err.Error()
	}
	return statusFound, ""
}

func markRm(a *cli.App) *cobra.Command {
	var gone bool
	cmd := &cobra.Command{
		Use:   "rm NAME...",
		Short: "Remove bookmarks",
		Long: `Rm removes bookmarks of the session; with -s SESSION also of one that is gone.
With --gone it removes all bookmarks of sessions that the store does not have.`,
		Example: `  sajou-replay mark add failure 36
  sajou-replay mark rm failure
  sajou-replay mark rm --gone`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if gone != (len(args) == 0) {
				return cli.Misuse("name the bookmarks, or use --gone; usage: %s", cmd.UseLine())
			}
			engine, err := a.OpenReading()
			if err != nil {
				return err
			}
			defer engine.Close()
			var remove []bookmark.Bookmark
			err = a.ChangeBookmarks(func(book *bookmark.Book) error {
				if gone {
					for b := range book.All("") {
						if status, _ := statusOf(cmd, engine, &b); status == statusGone {
							remove = append(remove, b)
						}
					}
				} else if remove, err = named(a, engine, book, args); err != nil {
					return err
				}
				for _, b := range remove {
					book.Remove(b.Session, b.Name)
				}
				return nil
			})
			if err != nil {
				return err
			}
			o := a.Output()
			for _, b := range remove {
				if err := o.ItemOf(termtext.Printable(fmt.Sprintf("removed @%s of %s", b.Name, b.Session)), b); err != nil {
					return err
				}
			}
			return o.End()
		},
	}
	cmd.Flags().BoolVar(&gone, "gone", false, "remove the bookmarks of sessions that are gone")
	return cmd
}

// named returns the bookmarks of the session of the command with the given names.
func named(a *cli.App, engine *sajou.Engine, book *bookmark.Book, names []string) ([]bookmark.Bookmark, error) {
	session, err := a.SessionName(engine, "")
	if err != nil {
		return nil, err
	}
	var found []bookmark.Bookmark
	for _, name := range names {
		b, ok := book.Find(session, strings.TrimPrefix(name, "@"))
		if !ok {
			return nil, cli.Fail(cli.ExitNotFound, "%s has no bookmark %q; list them with: sajou-replay mark ls --all", session, name)
		}
		if !slices.Contains(found, b) {
			found = append(found, b)
		}
	}
	return found, nil
}

func markImport(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Add the bookmarks of a file",
		Long: `Import adds the bookmarks that mark ls -o jsonl has written, from a file, or from
stdin if FILE is -. A bookmark with the same session and name is replaced. A file
with a bad line changes nothing.`,
		Example: `  sajou-replay mark import bookmarks.jsonl`,
		Args:    cli.Between(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			added, err := a.ReadBookmarks(args[0])
			if err != nil {
				if errors.Is(err, bookmark.ErrMalformed) {
					return cli.Misuse("%s: %w", args[0], err)
				}
				return err
			}
			engine, err := a.OpenReading()
			if err != nil {
				return err
			}
			defer engine.Close()
			err = a.ChangeBookmarks(func(book *bookmark.Book) error {
				for b := range added.All("") {
					if err := book.Put(b); err != nil {
						return cli.Misuse("%w", err)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			return a.Output().One(cli.Plural(added.Len(), "bookmark", "bookmarks"), map[string]any{"bookmarks": added.Len()})
		},
	}
	return cmd
}
