package versions_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/replay/edits"
	"github.com/sajou-dev/sajou-go/replay/edits/versions"
)

// folder writes files and returns their folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	return dir
}

func names(all []edits.Version) (list []string) {
	for _, v := range all {
		list = append(list, v.Name)
	}
	return list
}

// text is what a version has, one file a line.
func text(t *testing.T, v edits.Version) string {
	t.Helper()
	files, err := v.Read(t.Context())
	require.NoError(t, err)
	lines := []string{}
	for _, f := range files {
		lines = append(lines, filepath.Base(f.Name)+": "+string(f.Text))
	}
	return strings.Join(lines, "\n")
}

func TestFolder(t *testing.T) {
	dir := folder(t, map[string]string{
		"v2.json": "2", "v10.json": "10", "v02.json": "2", "v1.YAML": "1", "v1a.yml": "2", "notes.md": "n", ".hidden.json": "h",
		"v3/b10.json": "b", "v3/b9.json": "a", "v3/x.txt": "x", "v3/below/c.json": "c", "empty/x.txt": "x",
	})
	require.NoError(t, os.Symlink(filepath.Join(dir, "v2.json"), filepath.Join(dir, "v9.json")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "nothing"), filepath.Join(dir, "v8.json")))
	all, err := versions.Folder(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, []string{"v1.YAML", "v1a.yml", "v02.json", "v2.json", "v3", "v9.json", "v10.json"}, names(all))
	assert.Equal(t, "b9.json: a\nb10.json: b", text(t, all[4]))
	assert.Equal(t, all[2].Content, all[5].Content)
	assert.NotEqual(t, all[0].Content, all[2].Content)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "v10.json"), []byte("changed"), 0o600))
	_, err = all[6].Read(t.Context())
	require.ErrorContains(t, err, "v10.json was changed during the search")

	part, err := versions.Between(all, "v2.json", "v3")
	require.NoError(t, err)
	require.Equal(t, []string{"v2.json", "v3"}, names(part))
	_, err = versions.Between(all, "v3", "v2.json")
	require.ErrorIs(t, err, versions.ErrNoHistory)
	_, err = versions.Between(all, "", "v7.json")
	require.ErrorIs(t, err, versions.ErrNoHistory)
	_, err = versions.Folder(t.Context(), filepath.Join(dir, "nowhere"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestFolderBounds(t *testing.T) {
	dir := folder(t, map[string]string{"a.json": ""})
	require.NoError(t, os.Truncate(filepath.Join(dir, "a.json"), versions.MaxBytes+1))
	_, err := versions.Folder(t.Context(), dir)
	require.ErrorIs(t, err, versions.ErrTooMuch)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = versions.Folder(ctx, dir)
	require.ErrorIs(t, err, context.Canceled)
}

// repository makes a git repository by the commands of a script.
func repository(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, name := range []string{"GIT_AUTHOR", "GIT_COMMITTER"} {
		t.Setenv(name+"_NAME", "Ann")
		t.Setenv(name+"_EMAIL", "ann@example.com")
		t.Setenv(name+"_DATE", "2020-01-02T03:04:05Z")
	}
	cmd := exec.Command("sh", "-ec", "git init -q -b main; commit() { git add -A; git commit -qm \"$1\"; }\n"+script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

func TestRepository(t *testing.T) {
	dir := repository(t, `
		mkdir -p 'a b'; echo 1 > 'a b/[d].json'; commit one; git tag first
		echo x > other; commit other
		git switch -qc side; echo 2 > 'a b/[d].json'; commit "two
long"; echo 3 > 'a b/[d].json'; commit three
		git switch -q main; echo y > other; commit more; git merge -q --no-ff -m merge side
		git rm -q 'a b/[d].json'; commit gone; git tag gone
		mkdir -p 'a b'; echo 3 > 'a b/[d].json'; echo e > 'a b/e.json'; echo d > 'a b/d.json'; commit back
		git config core.fsmonitor 'touch ran'; git config log.showSignature true`)
	file := filepath.Join(dir, "a b", "[d].json")
	all, err := versions.Repository(t.Context(), file, "", "")
	require.NoError(t, err)
	require.Len(t, all, 4)
	titles, contents := []string{}, []string{}
	for _, v := range all {
		titles, contents = append(titles, v.Title), append(contents, text(t, v))
		assert.Len(t, v.Name, 12)
	}
	assert.Equal(t, []string{"2020-01-02 Ann: one", "2020-01-02 Ann: merge", "2020-01-02 Ann: gone", "2020-01-02 Ann: back"}, titles)
	assert.Equal(t, []string{"[d].json: 1\n", "[d].json: 3\n", "", "[d].json: 3\n"}, contents)
	assert.Equal(t, all[1].Content, all[3].Content)
	assert.NotEqual(t, all[1].Content, all[2].Content)
	require.NoFileExists(t, filepath.Join(dir, "ran"))

	all, err = versions.Repository(t.Context(), filepath.Dir(file), "first", "HEAD")
	require.NoError(t, err)
	require.Len(t, all, 4)
	assert.Equal(t, "[d].json: 3\n\nd.json: d\n\ne.json: e\n", text(t, all[3]))
	all, err = versions.Repository(t.Context(), dir, "gone", "")
	require.NoError(t, err)
	assert.Equal(t, "", text(t, all[1]), "the root has no definitions")

	for _, c := range [][3]string{
		{file, "side", "first"}, {file, "nothing", ""}, {file, "", "-h"}, {filepath.Join(dir, "none.json"), "", ""}, {"", "", ""}, {"a\nb", "", ""}, {t.TempDir(), "", ""},
	} {
		_, err := versions.Repository(t.Context(), c[0], c[1], c[2])
		require.ErrorIs(t, err, versions.ErrNoHistory, "%q", c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = versions.Repository(ctx, file, "", "")
	require.ErrorIs(t, err, context.Canceled)
	t.Setenv("PATH", "")
	_, err = versions.Repository(t.Context(), file, "", "")
	require.ErrorIs(t, err, exec.ErrNotFound)
}
