package statecmd

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/workspace"
)

// filesHelp is the part of the help about paths of files.
const filesHelp = `A PATH that begins with workspace/ names a file that the agents worked on, as
the recording has it (workspace//repo/main.go); the end of its path is enough if
one file alone has it (workspace/main.go). No file of this machine is opened.`

// workspacePath splits a PATH of a command: the file after workspace/, or "" for all.
func workspacePath(path string) (file string, ok bool) {
	if path == workspace.Name {
		return "", true
	}
	return strings.CutPrefix(path, workspace.Name+"/")
}

// files returns the files at an address.
func files(cmd *cobra.Command, t *cli.OpenedSession, address string) (*workspace.State, eventlog.Seq, error) {
	m, err := t.Resolve(cmd.Context(), address)
	if err != nil {
		return nil, 0, err
	}
	s, err := t.Engine.Files(cmd.Context(), t.Name, m)
	return s, m.Seq, t.BehindGap(cmd.Context(), m, false, err)
}

// lookup returns a file, or the error for one that the recording does not have.
func lookup(s *workspace.State, path string) (*workspace.TrackedFile, error) {
	f, err := s.File(path)
	if errors.Is(err, workspace.ErrNoFile) && len(s.Paths()) == 0 {
		return nil, cli.Fail(cli.ExitNotFound, "%v; it has none yet: no tool call has written or shown a file", err)
	}
	if err != nil {
		return nil, cli.Fail(cli.ExitNotFound, "%v; list the files with: sajou-replay state end workspace", err)
	}
	return f, nil
}

// printableText makes a text of a recording safe for a terminal, and leaves its tabs.
func printableText(text string) string {
	parts := strings.Split(text, "\t")
	for i := range parts {
		parts[i] = termtext.PrintableLines(parts[i])
	}
	return strings.Join(parts, "\t")
}

// showFile writes the text of a file. The error is one of loss if a part of it is
// unknown.
func showFile(a *cli.App, s *workspace.State, seq eventlog.Seq, path string) error {
	f, err := lookup(s, path)
	if err != nil {
		return err
	}
	name := termtext.Printable(f.Path())
	exists, sure := f.Exists()
	if !exists && sure {
		return cli.Fail(cli.ExitNotFound, "%s was deleted by the call of entry %d; name a moment before it", name, f.By())
	}
	if a.Format != "text" {
		if err := a.Output().One("", answer.ViewFile(f)); err != nil {
			return err
		}
	} else {
		o := a.Output()
		if _, err := o.WriteString(printableText(f.Text())); err != nil {
			return err
		}
		if err := o.Flush(); err != nil {
			return err
		}
	}
	for _, remark := range remarks(f) {
		fmt.Fprintf(a.Stderr, "sajou-replay: %s: %s\n", name, remark)
	}
	if !f.Complete() {
		return cli.Fail(cli.ExitLoss, "%s is known in part at entry %d; %s stands for each part that the recording does not show", name, seq, workspace.Gap)
	}
	return nil
}

// remarks are what the text of a file does not tell.
func remarks(f *workspace.TrackedFile) (list []string) {
	if exists, sure := f.Exists(); !sure {
		what := "may be missing"
		if !exists {
			what = "was probably deleted"
		}
		list = append(list, what)
	}
	guessed := 0
	for l := range f.Lines() {
		if l.Certainty == workspace.Guessed {
			guessed++
		}
	}
	if guessed > 0 {
		list = append(list, fmt.Sprintf("%s guessed: a later act may have changed it", cli.Plural(guessed, "line is", "lines are")))
	}
	for _, seq := range f.Pending() {
		list = append(list, fmt.Sprintf("the call of entry %d has no result, so its effect is not known", seq))
	}
	if f.Forgotten() {
		list = append(list, fmt.Sprintf("text was forgotten, because all files together have more than %d MiB", workspace.Limit>>20))
	}
	return list
}

// showFiles lists the files.
func showFiles(a *cli.App, s *workspace.State) error {
	o := a.Output()
	for _, p := range s.Paths() {
		f, err := s.File(p)
		if err != nil {
			return err
		}
		if err := o.ItemOf(fileLine(f), answer.ViewListedFile(f)); err != nil {
			return err
		}
	}
	if s.Hidden() > 0 {
		fmt.Fprintf(a.Stderr, "sajou-replay: the inputs of %s were left out of the recording\n", cli.Plural(s.Hidden(), "tool call", "tool calls"))
	}
	return o.End()
}

func fileLine(f *workspace.TrackedFile) string {
	exists, sure := f.Exists()
	state := "exists"
	if !exists {
		state = "deleted"
	}
	if !sure {
		state += "?"
	}
	lines := "?"
	if n, ok := f.CountLines(); ok {
		lines = strconv.Itoa(n)
	}
	by := "-"
	if f.By() > 0 {
		by = strconv.FormatUint(uint64(f.By()), 10)
	}
	return fmt.Sprintf("%6s  %-8s  %-7v  %5s lines  %s", by, state, f.Certainty(), lines, termtext.Printable(f.Path()))
}

// runFileDiff compares the files, or one of them, at two addresses.
func runFileDiff(a *cli.App, cmd *cobra.Command, t *cli.OpenedSession, addresses []string, path string) error {
	var states [2]*workspace.State
	var seqs [2]eventlog.Seq
	for i := range states {
		var err error
		if states[i], seqs[i], err = files(cmd, t, addresses[i]); err != nil {
			return err
		}
	}
	if path == "" {
		return diffFiles(a, states)
	}
	return diffFile(a, states, seqs, path)
}

// diffFile writes the difference of a file between two moments as a unified diff.
func diffFile(a *cli.App, states [2]*workspace.State, seqs [2]eventlog.Seq, path string) error {
	var texts, names [2]string
	missing := 0
	for i, s := range states {
		f, err := s.File(path)
		if errors.Is(err, workspace.ErrNoFile) {
			names[i] = fmt.Sprintf("%s\tentry %d, not in the recording yet", path, seqs[i])
			missing++
			continue
		}
		if err != nil {
			return cli.Fail(cli.ExitNotFound, "%v", err)
		}
		if exists, _ := f.Exists(); exists || f.Text() != "" {
			texts[i] = f.Text()
		}
		names[i] = fmt.Sprintf("%s\tentry %d", f.Path(), seqs[i])
	}
	if missing == 2 {
		_, err := lookup(states[1], path)
		return err
	}
	unified := workspace.Unified(termtextName(names[0]), texts[0], termtextName(names[1]), texts[1])
	view := struct {
		Path    string `json:"path"`
		From    uint64 `json:"from"`
		To      uint64 `json:"to"`
		Unified string `json:"unified"`
	}{path, uint64(seqs[0]), uint64(seqs[1]), unified}
	if a.Format != "text" {
		if err := a.Output().One("", view); err != nil {
			return err
		}
	} else {
		o := a.Output()
		if _, err := o.WriteString(printableText(unified)); err != nil {
			return err
		}
		if err := o.Flush(); err != nil {
			return err
		}
	}
	if unified != "" {
		return cli.AnswerNo
	}
	return nil
}

// termtextName makes the name of a file safe for one line.
func termtextName(name string) string {
	path, rest, _ := strings.Cut(name, "\tentry ")
	if rest == "" {
		return termtext.Printable(path)
	}
	return termtext.Printable(path) + "\tentry " + rest
}

// diffFiles lists the files that differ between two moments.
func diffFiles(a *cli.App, states [2]*workspace.State) error {
	o := a.Output()
	paths := append(states[0].Paths(), states[1].Paths()...)
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		var texts [2]string
		var there [2]bool
		for i, s := range states {
			if f, err := s.File(p); err == nil && f.Path() == p {
				there[i], _ = f.Exists()
				texts[i] = f.Text()
			}
		}
		change := ""
		switch {
		case there[1] && !there[0]:
			change = "new" // in the recording; it may have been there before
		case there[0] && !there[1]:
			change = "deleted"
		case texts[0] != texts[1]:
			change = "changed"
		default:
			continue
		}
		view := struct {
			Path   string `json:"path"`
			Change string `json:"change"`
		}{p, change}
		if err := o.ItemOf(fmt.Sprintf("%-7s  %s", change, termtext.Printable(p)), view); err != nil {
			return err
		}
	}
	if err := o.End(); err != nil {
		return err
	}
	if o.Items > 0 {
		return cli.AnswerNo
	}
	return nil
}
