// Package risk recognises risky acts among the tool calls of a recording, by stated
// rules: [Rules] lists them. A [Detector] takes in the entries of a session and
// returns a [Risk] for each act. It reads the commands of a shell as package workspace
// does, and follows the files, so that it can name an undo where one is certain.
//
// A rule never invents: where a word is a variable or a pattern, or the command may not
// have run, the risk is not Sure.
//
// docs/glossary.md has the nouns of all packages.
package risk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/workspace"
	"github.com/sajou-dev/sajou-go/workspace/internal/shell"
)

// The categories of risks. A mark is "risk:" and the category.
const (
	Delete        = "delete"
	Overwrite     = "overwrite-outside-project"
	ForcePush     = "force-push"
	Deploy        = "deploy"
	SecretRead    = "secret-read"
	SecretPrinted = "secret-printed"
	PipeToShell   = "pipe-to-shell"
)

// ActRule is a rule: an act of a category is recognised by what the text says.
type ActRule struct{ Name, Category, Text string }

// Rules returns all rules.
func Rules() []ActRule {
	return []ActRule{
		{"rm", Delete, "rm, unlink, rmdir, shred, git rm"},
		{"git-clean", Delete, "git clean with -f, without -n"},
		{"find-delete", Delete, "find with -delete, or with -exec rm"},
		{"delete-file", Delete, "a tool or a patch that deletes a file"},
		{"remote-delete", Delete, "git push with --delete or :BRANCH"},
		{"write-outside", Overwrite, "a file outside the directory of the project is written; new files below /tmp and /var/tmp are left out"},
		{"git-push-force", ForcePush, "git push with -f, --force, --force-with-lease, --mirror or +BRANCH, without --dry-run"},
		{"deploy-command", Deploy, "a command that publishes or deploys, such as npm publish, kubectl apply, terraform apply; without --dry-run"},
		{"deploy-name", Deploy, "a script or target whose name has the word deploy, publish or release; never sure"},
		{"secret-file", SecretRead, "a file that usually holds secrets is read: .env, a private key, credentials of a cloud or a registry"},
		{"secret-command", SecretRead, "a command that asks a keeper of secrets, such as vault kv get, gh auth token"},
		{"secret-text", SecretPrinted, "the output of a tool has a private key, or a token with a known prefix"},
		{"fetch-to-shell", PipeToShell, "curl or wget piped to a shell or an interpreter, or within sh -c, eval or source"},
	}
}

// Risk is one risky act.
type Risk struct {
	Seq      eventlog.Seq // of the call
	At       time.Duration
	Category string
	Rule     string
	Agent    string
	Tool     string
	Command  string // the command, or the tool and the file, at most 200 bytes
	Sure     bool   // the act is what the rule says, and has happened if the tool succeeded
	Outcome  string // done, failed, or open: without a result
	Undo     string // a command that undoes it, "" if none is certain
}

// Mark returns "risk:" and the category.
func (r *Risk) Mark() string { return "risk:" + r.Category }

// MaxRisks bounds the risks of a [Detector]. Later ones are counted, not kept.
const MaxRisks = 100_000

// Detector finds the risks of a session.
type Detector struct {
	files   *workspace.State
	open    map[string][]int // indexes of the risks of a call without a result
	risks   []Risk
	Dropped int // risks beyond MaxRisks
}

// NewDetector returns a detector before the first entry.
func NewDetector() *Detector {
	return &Detector{files: workspace.Projection().New().(*workspace.State), open: map[string][]int{}}
}

// Risks returns the risks so far, in the order of the log.
func (d *Detector) Risks() []Risk { return d.risks }

// Apply takes in the next entry.
func (d *Detector) Apply(e *eventlog.Entry) {
	t := workspace.ToolSignalOf(e)
	if t == nil {
		return
	}
	key := t.Agent + "\x00" + t.CallID
	if t.CallID == "" {
		key = t.Agent + "\x00\x00" + t.Tool
	}
	if !t.Result {
		d.files.Apply(e)
		// An older call of this name that has no result stays open.
		d.open[key] = nil
		for _, r := range d.ofCall(t) {
			r.Seq, r.At, r.Agent, r.Tool, r.Outcome = e.Seq, e.At, strings.Clone(t.Agent), strings.Clone(t.Tool), "open"
			r.Command = clip(r.Command)
			if len(d.risks) >= MaxRisks {
				d.Dropped++
				continue
			}
			d.open[key] = append(d.open[key], len(d.risks))
			d.risks = append(d.risks, r)
		}
		if len(d.open[key]) == 0 {
			delete(d.open, key)
		}
		return
	}
	text, _ := t.OutputText()
	for _, i := range d.open[key] {
		r := &d.risks[i]
		if r.Outcome = "done"; !t.Success {
			r.Outcome = "failed"
			continue
		}
		if r.Rule == "git-push-force" {
			r.Undo = undoPush(text)
		}
	}
	delete(d.open, key)
	if name := secretIn(text); name != "" && len(d.risks) < MaxRisks {
		d.risks = append(d.risks, Risk{
			Seq: e.Seq, At: e.At, Category: SecretPrinted, Rule: "secret-text", Agent: strings.Clone(t.Agent), Tool: strings.Clone(t.Tool),
			Command: name, Sure: true, Outcome: "done",
		})
	}
	d.files.Apply(e)
}

// clip bounds a command that is kept.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.Clone(s)
}

// ofCall returns the risks of a call, without its position.
func (d *Detector) ofCall(t *workspace.ToolSignal) (risks []Risk) {
	dir := d.files.Dir(t)
	text, args, isShell := t.CommandLine()
	if isShell {
		list := shell.Parse(text)
		if args != nil {
			list = shell.OfArguments(args)
		}
		for i := range list.Commands {
			risks = append(risks, ofCommand(&list, i)...)
		}
	}
	for _, use := range t.Uses(dir) {
		command := t.Tool + " " + use.Path
		switch {
		case use.Kind == workspace.UseRead && isSecretFile(use.Path):
			risks = append(risks, Risk{Category: SecretRead, Rule: "secret-file", Command: command, Sure: true})
		case use.Kind == workspace.UseDelete && !isShell:
			risks = append(risks, Risk{Category: Delete, Rule: "delete-file", Command: command, Sure: true, Undo: d.undo(use.Path)})
		case use.Kind == workspace.UseWrite && d.outside(use.Path):
			risks = append(risks, Risk{Category: Overwrite, Rule: "write-outside", Command: command, Sure: use.Certain && d.existed(use.Path), Undo: d.undo(use.Path)})
		}
	}
	// rm names a file whose text is known: writing it again is the undo.
	for i := range risks {
		if risks[i].Rule != "rm" || risks[i].Undo != "" {
			continue
		}
		var deleted []string
		for _, use := range t.Uses(dir) {
			if use.Kind == workspace.UseDelete {
				deleted = append(deleted, use.Path)
			}
		}
		if len(deleted) == 1 {
			risks[i].Undo = d.undo(deleted[0])
		}
	}
	return risks
}

// known returns the file of a whole path, or nil.
func (d *Detector) known(path string) *workspace.TrackedFile {
	f, err := d.files.File(path)
	if err != nil || f.Path() != path {
		return nil
	}
	return f
}

func (d *Detector) existed(path string) bool {
	f := d.known(path)
	if f == nil {
		return false
	}
	exists, sure := f.Exists()
	return exists && sure
}

// undo returns the command that brings back a file whose text before the call is known
// for certain.
func (d *Detector) undo(path string) string {
	f := d.known(path)
	if f == nil || !d.existed(path) || !f.Complete() || f.Certainty() != workspace.Known {
		return ""
	}
	return fmt.Sprintf("sajou-replay state %d %s > %s", f.Touched(), quote("workspace/"+path), quote(path))
}

// quote writes a word for a shell.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// outside reports whether a path is outside the project, and not a new temporary file.
func (d *Detector) outside(path string) bool {
	root := d.files.Root()
	if root == "" || workspace.Inside(root, path) {
		return false
	}
	temporary := strings.HasPrefix(path, "/tmp/") || strings.HasPrefix(path, "/var/tmp/") || strings.HasPrefix(path, "/private/tmp/")
	return !temporary || d.existed(path)
}

// undoPush reads the old commit of a forced update from the output of git push.
func undoPush(text string) string {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[0] != "+" || !strings.Contains(line, "(forced update)") {
			continue
		}
		old, _, ok := strings.Cut(fields[1], "...")
		if i := slices.Index(fields, "->"); ok && i > 0 && i+1 < len(fields) && strings.Trim(old, "0123456789abcdef") == "" {
			return "git push --force REMOTE " + old + ":" + quote(fields[i+1])
		}
	}
	return ""
}
