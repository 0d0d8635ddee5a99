package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/lint"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay/edits"
	"github.com/sajou-dev/sajou-go/replay/variant"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Definitions are the files and folders of --define, through which a command shows a
// session.
type Definitions []string

// DefinitionsHelp is the part of the help that describes --define.
const DefinitionsHelp = `With --define FILE, or a folder of files, the session is seen through other
definitions: choreographies, sequences, easings, bindings, a scene, an episode,
a policy of agents. Each takes the place of the recorded one of its name, at the
same entry, and a policy that of every agent. One that the session does not have
comes into force with the first entry. If two have one name, the later counts.
Recorded decisions stay as they are. Nothing is recorded; a remark on stderr
says that this is not what was recorded.`

// Flag adds --define to a command.
func (d *Definitions) Flag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar((*[]string)(d), "define", nil, "see the session through the definitions of `FILE`; repeatable")
	_ = cmd.MarkFlagFilename("define", "json", "yaml", "yml")
}

// AppendTexts appends the text of every file to digest, in the order in which they are read.
func (d Definitions) AppendTexts(ctx context.Context, digest io.Writer) error {
	files, err := definitionFiles(ctx, "--define", d)
	for _, f := range files {
		fmt.Fprintf(digest, "%d\n%s", len(f.text), f.text)
	}
	return err
}

// SeeThrough makes the session one that was recorded with other definitions, and says so on
// stderr. Without files it does nothing. Definitions that cannot come into force are a
// misuse.
func (a *App) SeeThrough(ctx context.Context, t *OpenedSession, files Definitions) error {
	if len(files) == 0 {
		return nil
	}
	changed, err := a.Through(ctx, t, "--define", files)
	if err != nil {
		return err
	}
	t.changed = changed
	t.Travel = session.NewReplay(changed, t.Engine.Projections(), nil)
	t.Anchor(t.Travel)
	fmt.Fprintf(a.Stderr, "sajou-replay: seen through %s: this is not what was recorded\n", termtext.Printable(strings.Join(files, ", ")))
	return nil
}

// Through returns the session with the definitions of files in the place of its own. The
// name of the argument that has the files begins an error.
func (a *App) Through(ctx context.Context, t *OpenedSession, argument string, files []string) (*variant.Variant, error) {
	last, err := t.Travel.At(ctx, MomentOf(t.Travel.Head().Seq))
	if err != nil {
		return nil, err
	}
	// The files may refer to what the session declares.
	catalog := new(language.Catalog)
	if s, ok := last.State(session.ProjectionPerformances).(Scheduling); ok {
		catalog = s.Scheduler().Catalog()
	}
	edits, err := a.readDefinitions(ctx, catalog, argument, files)
	if err != nil {
		return nil, err
	}
	changed, err := variant.New(ctx, t.Log, edits)
	if errors.Is(err, variant.ErrChange) {
		return nil, Misuse("%s: %s", argument, OneLine(strings.TrimPrefix(err.Error(), variant.ErrChange.Error()+": ")))
	}
	return changed, err
}

// definitionFile is a file that readDefinitions reads.
type definitionFile struct {
	name string
	text []byte

	declared    []language.Declaration
	policy      signal.Value
	diagnostics authored.Diagnostics
}

// readDefinitions reads files and folders of definitions of all kinds. A file may refer to
// the catalog, and to every other file. Diagnostics go to stderr.
func (a *App) readDefinitions(ctx context.Context, c *language.Catalog, argument string, names []string) (e variant.Edits, err error) {
	files, err := definitionFiles(ctx, argument, names)
	if err != nil {
		return e, err
	}
	e, refused, err := compileFiles(ctx, c, files)
	if err != nil {
		return e, err
	}
	if len(refused) > 0 {
		return e, a.refuse(argument, refused)
	}
	for _, f := range files {
		a.printDiagnostics(f.diagnostics)
	}
	return e, nil
}

// compileFiles reads the definitions of files, which may refer to the catalog and to each
// other, and returns the files that have errors, if there are any.
func compileFiles(ctx context.Context, c *language.Catalog, files []*definitionFile) (e variant.Edits, refused []*definitionFile, err error) {
	// A file that refers to a later one is read again after that.
	for waiting := files; len(waiting) > 0; {
		var left []*definitionFile
		for _, f := range waiting {
			if err := Interruptibly(ctx, func() { c = f.read(c) }); err != nil {
				return e, nil, err
			}
			if f.diagnostics.Refused() {
				left = append(left, f)
			}
		}
		if len(left) == len(waiting) {
			return e, left, nil
		}
		waiting = left
	}
	for _, f := range files {
		e.Define = append(e.Define, f.declared...)
		if f.policy != nil {
			e.Policy = f.policy
		}
	}
	return e, nil, nil
}

// CompileVersion returns the changes that a version of definition files makes, which may
// refer to the catalog. The error is an [*edits.RefusedError] with the first diagnostic.
func CompileVersion(ctx context.Context, c *language.Catalog, v *edits.Version, sources []edits.VersionFile) (variant.Edits, error) {
	var files []*definitionFile
	for _, f := range sources {
		files = append(files, &definitionFile{name: f.Name, text: f.Text})
	}
	e, refused, err := compileFiles(ctx, c, files)
	if err == nil && len(refused) > 0 {
		err = &edits.RefusedError{Version: v.Name, Reason: errors.New(refused[0].diagnostics.Only(authored.SeverityError)[0].String())}
	}
	return e, err
}

// refuse prints the diagnostics of files and returns the error about them.
func (a *App) refuse(argument string, files []*definitionFile) error {
	wrong := 0
	for _, f := range files {
		a.printDiagnostics(f.diagnostics)
		wrong += len(f.diagnostics.Only(authored.SeverityError))
	}
	errors := Plural(wrong, "error", "errors")
	if len(files) > 1 {
		return Misuse("%s: %d files have %s; nothing was shown", argument, len(files), errors)
	}
	return Misuse("%s: %s has %s; nothing was shown", argument, files[0].name, errors)
}

func (a *App) printDiagnostics(list authored.Diagnostics) {
	for _, d := range list {
		fmt.Fprintln(a.Stderr, termtext.Printable(d.String()))
	}
}

// mostDefinitionFiles bounds the files of one folder.
const mostDefinitionFiles = 1000

// definitionFiles reads the files, and those of the folders, in the order of their paths.
func definitionFiles(ctx context.Context, argument string, names []string) (files []*definitionFile, err error) {
	for _, name := range names {
		paths := []string{name}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			if paths, err = definitionsIn(name); err != nil {
				return nil, Misuse("%s: %w", argument, err)
			}
		}
		for _, path := range paths {
			text, err := ReadFile(ctx, path, MaxDefinitions)
			if err != nil {
				return nil, err
			}
			files = append(files, &definitionFile{name: path, text: text})
		}
	}
	return files, nil
}

// definitionsIn returns the files of definitions in a folder and in those below it.
func definitionsIn(folder string) (paths []string, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		ext := strings.ToLower(filepath.Ext(path))
		if !d.Type().IsRegular() || !slices.Contains([]string{".json", ".yaml", ".yml", ".zip"}, ext) {
			return nil
		}
		if paths = append(paths, path); len(paths) > mostDefinitionFiles {
			return fmt.Errorf("%s has more than %d files of definitions", folder, mostDefinitionFiles)
		}
		return nil
	})
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s has no file of definitions, whose name ends with .json, .yaml, .yml or .zip", folder)
	}
	return paths, err
}

// read reads the definitions of the file, and returns the catalog with them. If a diagnostic
// is an error, there are none.
func (f *definitionFile) read(c *language.Catalog) *language.Catalog {
	if t, refused := authored.Read(f.name, f.text); refused == nil {
		switch {
		case isEpisode(t.Value):
			made, ds := episode.Parse(f.name, t.JSON)
			if f.diagnostics = t.Placed(ds); !f.diagnostics.Refused() {
				f.declared = []language.Declaration{made}
			}
			return c
		case isPolicy(t.Value):
			f.policy, f.diagnostics = t.Value, nil
			if _, err := agents.CompilePolicy(t.Value, agents.Options{}); err != nil {
				f.diagnostics = authored.Diagnostics{{File: f.name, Line: 1, Column: 1, Severity: authored.SeverityError, Message: OneLine(err.Error())}}
			}
			return c
		}
	}
	declared, next, ds := lint.Read(c, f.name, f.text)
	f.declared, f.diagnostics = nil, ds
	for _, d := range declared {
		f.declared = append(f.declared, d.Declaration)
	}
	return next
}

// isEpisode reports whether a file is an episode.
func isEpisode(v signal.Value) bool {
	_, beats := v.Get("beats")
	return beats || v.TextOf("sajou") == episode.Word
}

// isPolicy reports whether a file is a policy of agents. No other definition has one of
// these members; the policy of a choreography's guard is inside of it.
func isPolicy(v signal.Value) bool {
	for _, name := range []string{"policy", "distance_limit", "relationship_filter", "field_visibility"} {
		if _, ok := v.Get(name); ok {
			return true
		}
	}
	return false
}
