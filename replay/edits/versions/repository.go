package versions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/edits"
)

// Repository returns the versions of a file or folder in the work tree of a git repository,
// the oldest first. From and to name commits in any way that git knows: the first version
// is that of from, and the last one the latest up to to. The empty from stands for the
// first commit that has the file, the empty to for HEAD. Errors: [ErrNoHistory] if git
// knows no such file or commit, [ErrTooMuch], and [*GitError].
func Repository(ctx context.Context, name, from, to string) ([]edits.Version, error) {
	r, err := openRepository(ctx, name)
	if err != nil {
		return nil, err
	}
	last, err := r.commit(ctx, orHead(to))
	if err != nil {
		return nil, err
	}
	var all []edits.Version
	over := last
	if from != "" {
		first, err := r.commit(ctx, from)
		if err != nil {
			return nil, err
		}
		if _, err := r.git(ctx, 0, nil, "merge-base", "--is-ancestor", first, last); err != nil {
			if IsExit(err, 1) {
				return nil, fmt.Errorf("versions: %w: %q does not come before %q", ErrNoHistory, from, orHead(to))
			}
			return nil, err
		}
		if all, err = r.commits(ctx, "--max-count=1", first, "--"); err != nil {
			return nil, err
		}
		over = first + ".." + last
	}
	later, err := r.commits(ctx, "--max-count="+strconv.Itoa(MaxVersions+1), "--reverse", over, "--", r.spec)
	if err != nil {
		return nil, err
	}
	if len(later) > MaxVersions {
		return nil, fmt.Errorf("versions: %w: more than %d commits change %s", ErrTooMuch, MaxVersions, name)
	}
	if all = append(all, later...); len(all) == 0 {
		return nil, fmt.Errorf("versions: %w: no commit up to %q has %s", ErrNoHistory, orHead(to), name)
	}
	return all, r.contents(ctx, all)
}

func orHead(rev string) string {
	if rev == "" {
		return "HEAD"
	}
	return rev
}

// repository is a file or folder in a git repository.
type repository struct {
	dir  string // of the work tree, in which git runs
	spec string // the file or folder, relative to dir
	path string // the same, relative to the root
}

func openRepository(ctx context.Context, name string) (*repository, error) {
	if name == "" || strings.ContainsAny(name, "\n\x00") {
		return nil, fmt.Errorf("versions: %w: the path %q cannot be searched", ErrNoHistory, name)
	}
	r := &repository{dir: filepath.Dir(name), spec: filepath.Base(name)}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		r.dir, r.spec = name, "."
	}
	prefix, err := r.git(ctx, 1<<16, nil, "rev-parse", "--show-prefix")
	if e, ok := errors.AsType[*GitError](err); ok && e.Started {
		return nil, fmt.Errorf("versions: %w: %s is not in a git repository: %s", ErrNoHistory, name, e.Message)
	}
	if err != nil {
		return nil, err
	}
	r.path = path.Join(strings.TrimSuffix(string(prefix), "\n"), r.spec)
	if r.path == "." {
		r.path = ""
	}
	return r, nil
}

// commit returns the hash of the commit that a revision names.
func (r *repository) commit(ctx context.Context, rev string) (string, error) {
	unknown := fmt.Errorf("versions: %w: git knows no commit %q", ErrNoHistory, rev)
	if strings.HasPrefix(rev, "-") {
		return "", unknown // would be an option
	}
	hash, err := r.git(ctx, 1<<10, nil, "rev-parse", "--verify", "--quiet", rev+"^{commit}")
	if e, ok := errors.AsType[*GitError](err); ok && e.Started {
		return "", unknown
	}
	return strings.TrimSpace(string(hash)), err
}

// maxLog bounds the bytes that git log writes.
const maxLog = 64 << 20

// commits returns the commits that git log lists, each with its hash as Name.
func (r *repository) commits(ctx context.Context, args ...string) ([]edits.Version, error) {
	out, err := r.git(ctx, maxLog, nil, append([]string{
		"log", "-z", "--first-parent", "--no-color", "--no-decorate", "--no-notes", "--no-patch", "--encoding=UTF-8", "--format=tformat:%H%x00%as%x00%an%x00%s",
	}, args...)...)
	if err != nil {
		return nil, err
	}
	return parseLog(out)
}

// parseLog reads what git log wrote: four fields a commit, each with a NUL behind it.
func parseLog(out []byte) (all []edits.Version, err error) {
	const fields = 4
	if len(out) == 0 {
		return nil, nil
	}
	parts := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(parts)%fields != 0 {
		return nil, fmt.Errorf("versions: git log wrote %d fields, not a multiple of %d", len(parts), fields)
	}
	for c := range slices.Chunk(parts, fields) {
		all = append(all, edits.Version{Name: c[0], Title: c[1] + " " + c[2] + ": " + c[3]})
	}
	return all, nil
}

// abbreviated is the number of digits of a commit's hash that name a version. They are more
// than git takes by default, so two commits of a file do not share them.
const abbreviated = 12

// contents completes versions whose names are the hashes of their commits.
func (r *repository) contents(ctx context.Context, all []edits.Version) error {
	var asked bytes.Buffer
	for i := range all {
		fmt.Fprintf(&asked, "%s:%s\n", all[i].Name, r.path)
	}
	out, err := r.git(ctx, maxLog, &asked, "cat-file", "--batch-check=%(objecttype) %(objectname)")
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(all) {
		return fmt.Errorf("versions: git cat-file answered %d of %d questions", len(lines), len(all))
	}
	for i, line := range lines {
		v := &all[i]
		v.Name = v.Name[:min(len(v.Name), abbreviated)]
		kind, hash, _ := strings.Cut(line, " ")
		switch {
		case strings.HasSuffix(line, " missing"):
			v.Content = bisect.HashInput([]byte("absent"))
			v.Read = func(context.Context) ([]edits.VersionFile, error) { return nil, nil }
		case kind == "blob" || kind == "tree":
			v.Content = bisect.HashInput([]byte(kind), []byte(hash))
			v.Read = func(ctx context.Context) ([]edits.VersionFile, error) { return r.read(ctx, v.Name, kind, hash) }
		default:
			return fmt.Errorf("versions: git cat-file answered %.80q", line)
		}
	}
	return nil
}

// read reads the files of a version.
func (r *repository) read(ctx context.Context, version, kind, hash string) ([]edits.VersionFile, error) {
	objects := []object{{path.Base(r.path), hash}}
	if kind == "tree" {
		out, err := r.git(ctx, maxLog, nil, "ls-tree", "-z", "--full-tree", hash)
		if err != nil {
			return nil, err
		}
		objects = parseTree(out)
	}
	var files []edits.VersionFile
	b := budget{of: version}
	for _, o := range objects {
		text, err := r.git(ctx, MaxBytes-b.bytes, nil, "cat-file", "blob", o.hash)
		if err != nil {
			return nil, err
		}
		if err := b.take(int64(len(text))); err != nil {
			return nil, err
		}
		files = append(files, edits.VersionFile{Name: o.name, Text: text})
	}
	return files, nil
}

// object is a file in a tree of git.
type object struct{ name, hash string }

// parseTree returns the files of definitions in what git ls-tree wrote, in natural order.
func parseTree(out []byte) (objects []object) {
	for entry := range strings.SplitSeq(string(out), "\x00") {
		about, name, _ := strings.Cut(entry, "\t") // mode, type and hash
		if f := strings.Fields(about); len(f) == 3 && f[1] == "blob" && declares(name) && !strings.HasPrefix(name, ".") {
			objects = append(objects, object{name, f[2]})
		}
	}
	slices.SortFunc(objects, func(a, b object) int { return natural(a.name, b.name) })
	return objects
}

// GitError reports that git could not be run, or failed.
type GitError struct {
	Command string // of git, such as "log"
	Started bool
	Message string // what git wrote to stderr, its beginning
	Cause   error
}

func (e *GitError) Error() string {
	if !e.Started {
		return fmt.Sprintf("versions: cannot run git: %v", e.Cause)
	}
	text := fmt.Sprintf("versions: git %s failed: %v", e.Command, e.Cause)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

func (e *GitError) Unwrap() error { return e.Cause }

// IsExit reports whether git exited with a code.
func IsExit(err error, code int) bool {
	e, ok := errors.AsType[*exec.ExitError](err)
	return ok && e.ExitCode() == code
}

// gitConfig keeps what a configuration could start or change out of the commands.
var gitConfig = []string{
	"--no-pager", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "-c", "log.follow=false", "-c", "log.mailmap=false",
}

// git runs git and returns its output, which may have most bytes. Git ends with ctx.
func (r *repository) git(ctx context.Context, most int64, stdin io.Reader, args ...string) ([]byte, error) {
	out, message := &bounded{most: most}, &bounded{most: 1 << 10, cut: true}
	cmd := exec.CommandContext(ctx, "git", slices.Concat(gitConfig, []string{"-C", r.dir}, args)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, out, message
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1")
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.full:
		return nil, fmt.Errorf("versions: %w: git %s writes more than %d bytes", ErrTooMuch, args[0], most)
	case err != nil:
		first, _, _ := strings.Cut(strings.TrimSpace(message.String()), "\n")
		return nil, &GitError{args[0], cmd.ProcessState != nil, strings.TrimPrefix(first, "fatal: "), err}
	}
	return out.Bytes(), nil
}

// bounded takes at most so many bytes. More is an error, or cut off.
type bounded struct {
	bytes.Buffer
	most int64
	cut  bool
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.most - int64(b.Len()); int64(len(p)) > room {
		b.full = true
		if !b.cut {
			return 0, ErrTooMuch
		}
		_, _ = b.Buffer.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return b.Buffer.Write(p)
}
