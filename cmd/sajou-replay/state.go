package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

func (a *app) stateCommand() *cobra.Command {
	var digests bool
	cmd := &cobra.Command{
		Use:   "state [SESSION] [ADDR [PATH]]",
		Short: "Show the state at a moment",
		Long: `State shows what is true at a moment, by default at the end: seq, at, and one
member a projection: session, performances, and stage, which is what is seen. A
PATH leads to a part of it, either dotted (performances.p-12-1.running.0) or a
JSON pointer (/stage/entities/agent.v2/x), which names with dots in them need.

With --digests it shows instead the digest of each projection there: two
machines that agree on it agree on the whole state.`,
		Example: `  sajou-replay state
  sajou-replay state 812+350ms performances
  sajou-replay state end stage.entities.scout.x
  sajou-replay state release-42 end /session/entries -o json
  sajou-replay state end --digests`,
		Args: between(0, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, rest, err := a.targetAndRest(args)
			if err != nil {
				return err
			}
			defer t.Close()
			if len(rest) == 0 {
				rest = []string{"end"}
			}
			if len(rest) > 2 {
				return misuse("too many arguments; usage: %s", cmd.UseLine())
			}
			fold, err := t.fold(cmd, rest[0])
			if err != nil {
				return err
			}
			if digests {
				return a.showDigests(fold)
			}
			view, err := viewPath(fold, rest[1:])
			if err != nil {
				return err
			}
			data, err := marshal(view)
			if err != nil {
				return err
			}
			text := string(indented(data))
			if s, ok := view.(string); ok {
				text = s
			}
			return a.output().one(printableLines(text), view)
		},
	}
	cmd.Flags().BoolVar(&digests, "digests", false, "show the digest of each projection")
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

func (a *app) diffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff [SESSION] ADDR ADDR [PATH]",
		Short: "Compare the states at two moments",
		Long: `Diff compares the states at two moments and writes what leads from the first to
the second: as lines of text, or with -o json as a JSON Patch (RFC 6902). With
a PATH it compares that part of the states alone. Where the two moments are,
seq and at, is not compared.

The exit code is 0 when the states are the same and 1 when they differ.`,
		Example: `  sajou-replay diff 10 12
  sajou-replay diff 812 812+350ms performances
  sajou-replay diff release-42 0 end -o json`,
		Args: between(2, 4),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, rest, err := a.targetAndRest(args)
			if err != nil {
				return err
			}
			defer t.Close()
			if len(rest) < 2 || len(rest) > 3 {
				return misuse("two addresses are needed; usage: %s", cmd.UseLine())
			}
			var views [2]any
			for i := range views {
				fold, err := t.fold(cmd, rest[i])
				if err != nil {
					return err
				}
				if views[i], err = viewPath(fold, rest[2:]); err != nil {
					return err
				}
				if whole, ok := views[i].(map[string]any); ok && len(rest) == 2 {
					delete(whole, "seq")
					delete(whole, "at")
				}
			}
			patch, err := replay.Diff(views[0], views[1])
			if err != nil {
				return err
			}
			return a.showPatch(patch)
		},
	}
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

// targetAndRest opens the session that args begin with, and returns the others.
func (a *app) targetAndRest(args []string) (*target, []string, error) {
	session, rest, err := a.splitArgs(args)
	if err != nil {
		return nil, nil, err
	}
	if len(rest) > 0 {
		// What is no address at all is told before the store is opened.
		if _, err := parseAddress(rest[0]); err != nil {
			return nil, nil, err
		}
	}
	t, err := a.target(session)
	return t, rest, err
}

// fold returns the state at an address.
func (t *target) fold(cmd *cobra.Command, address string) (*projection.Fold, error) {
	m, err := t.resolve(cmd.Context(), address)
	if err != nil {
		return nil, err
	}
	return t.travel.At(cmd.Context(), m)
}

// viewPath returns the view of a fold, or the part of it that a path leads to.
func viewPath(fold *projection.Fold, path []string) (any, error) {
	var view any = fold.View()
	if len(path) == 0 || path[0] == "" {
		return view, nil
	}
	var names []string
	if rest, ok := strings.CutPrefix(path[0], "/"); ok {
		for name := range strings.SplitSeq(rest, "/") {
			names = append(names, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
		}
	} else {
		names = strings.Split(path[0], ".")
	}
	for i, name := range names {
		next, ok := step(view, name)
		if !ok {
			return nil, fail(exitNotFound, "the state at %d has no %s%s", fold.Head().Seq, strings.Join(names[:i+1], "."), namesOf(view))
		}
		view = next
	}
	return view, nil
}

func step(view any, name string) (any, bool) {
	switch v := view.(type) {
	case map[string]any:
		next, ok := v[name]
		return next, ok
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		return v[i], true
	}
	return nil, false
}

// namesOf tells what would be there instead.
func namesOf(view any) string {
	const most = 12
	switch v := view.(type) {
	case map[string]any:
		if len(v) == 0 {
			return "; there is nothing in it"
		}
		names := make(map[string]int, len(v))
		for name := range v {
			names[name] = 0
		}
		list := sortedNames(names)
		if len(list) > most {
			list = append(list[:most], "…")
		}
		return "; there is " + strings.Join(list, ", ")
	case []any:
		return fmt.Sprintf("; it is a list of %d", len(v))
	}
	return "; it has no members"
}

func (a *app) showDigests(fold *projection.Fold) error {
	o := a.output()
	for _, d := range fold.Digests() {
		value, err := marshal(struct {
			Projection string `json:"projection"`
			Version    uint32 `json:"version"`
			Digest     string `json:"digest"`
		}{d.Name, d.Version, fmt.Sprintf("%016x", d.Sum)})
		if err != nil {
			return err
		}
		if err := o.item(d.String(), value); err != nil {
			return err
		}
	}
	return o.end()
}
