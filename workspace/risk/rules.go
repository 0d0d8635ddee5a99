package risk

import (
	"strings"

	"github.com/sajou-dev/sajou-go/workspace/internal/shell"
)

// ofCommand returns the risks of one command of a list.
func ofCommand(list *shell.CommandList, index int) (risks []Risk) {
	c := &list.Commands[index]
	run := shell.Run(c.Words)
	if len(run.Words) == 0 {
		return nil
	}
	name := (&shell.SimpleCommand{Words: run.Words}).Name()
	var words []string
	exact := true
	for _, w := range run.Words {
		words = append(words, w.Text)
		exact = exact && w.Exact
	}
	text := strings.Join(words, " ")
	args := words[1:]
	sure := c.Certain && !run.Unsure && !list.Unsure
	add := func(category, rule string, sure bool) {
		risks = append(risks, Risk{Category: category, Rule: rule, Command: text, Sure: sure})
	}
	switch name {
	case "rm", "unlink", "rmdir", "shred":
		add(Delete, "rm", sure && exact)
	case "find":
		if has(args, "-delete") || after(args, "-exec") == "rm" || after(args, "-execdir") == "rm" {
			add(Delete, "find-delete", false)
		}
	case "git":
		risks = append(risks, ofGit(args, text, sure && exact)...)
	case "cat", "less", "more", "head", "tail", "grep", "sed", "awk", "cp", "scp", "base64", "xxd", "strings", "source", ".", "bat":
		for _, w := range args {
			if isSecretFile(w) {
				add(SecretRead, "secret-file", sure)
				break
			}
		}
	}
	if isFetch(name) && fetchRuns(list, index) {
		add(PipeToShell, "fetch-to-shell", sure || c.Pipes || c.From >= 0)
	}
	dry := has(args, "--dry-run") || has(args, "-n") && name == "make" || hasPrefix(args, "--dry-run=")
	if !dry {
		if startsWithOne(words, name, deployCommands) {
			add(Deploy, "deploy-command", sure)
		} else if target := scriptName(name, args); isDeployName(target) {
			add(Deploy, "deploy-name", false)
		}
	}
	if startsWithOne(words, name, secretCommands) {
		add(SecretRead, "secret-command", sure)
	}
	return risks
}

// ofGit returns the risks of git.
func ofGit(args []string, text string, sure bool) (risks []Risk) {
	for len(args) > 1 && strings.HasPrefix(args[0], "-") {
		if args[0] == "-C" || args[0] == "-c" {
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return nil
	}
	verb, rest := args[0], args[1:]
	add := func(category, rule string) {
		risks = append(risks, Risk{Category: category, Rule: rule, Command: text, Sure: sure})
	}
	switch verb {
	case "rm":
		if !has(rest, "--cached") && !has(rest, "-n") && !has(rest, "--dry-run") {
			add(Delete, "rm")
		}
	case "clean":
		if flag(rest, 'f') && !flag(rest, 'n') && !has(rest, "--dry-run") || has(rest, "--force") {
			add(Delete, "git-clean")
		}
	case "push":
		if has(rest, "--dry-run") || flag(rest, 'n') {
			return nil
		}
		forced, deletes := has(rest, "--force") || has(rest, "--mirror") || hasPrefix(rest, "--force-with-lease") || flag(rest, 'f'), has(rest, "--delete") || flag(rest, 'd')
		for _, w := range rest {
			forced = forced || strings.HasPrefix(w, "+") && len(w) > 1
			deletes = deletes || strings.HasPrefix(w, ":") && len(w) > 1
		}
		if forced {
			add(ForcePush, "git-push-force")
		}
		if deletes {
			add(Delete, "remote-delete")
		}
	}
	return risks
}

func has(words []string, word string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}

func hasPrefix(words []string, prefix string) bool {
	for _, w := range words {
		if strings.HasPrefix(w, prefix) {
			return true
		}
	}
	return false
}

// flag reports whether a short option is among words, alone or with others.
func flag(words []string, letter byte) bool {
	for _, w := range words {
		if len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.IndexByte(w, letter) > 0 {
			return true
		}
	}
	return false
}

// after returns the word behind another.
func after(words []string, word string) string {
	for i, w := range words[:max(0, len(words)-1)] {
		if w == word {
			return words[i+1]
		}
	}
	return ""
}

func isFetch(name string) bool { return name == "curl" || name == "wget" || name == "fetch" }

// fetchRuns reports whether the output of a command is run: by a shell at the other end
// of its pipe, or because it stands in the script of one.
func fetchRuns(list *shell.CommandList, index int) bool {
	for i := index; i+1 < len(list.Commands) && list.Commands[i].Pipes; i++ {
		if next := &list.Commands[i+1]; next.Piped && runsText(next) {
			return true
		}
	}
	from := list.Commands[index].From
	return from >= 0 && runsText(&list.Commands[from]) && substitutes(&list.Commands[from])
}

// substitutes reports whether a command has the output of another among its words.
func substitutes(c *shell.SimpleCommand) bool {
	for _, w := range c.Words {
		if !w.Exact && (strings.Contains(w.Text, "$(") || strings.HasPrefix(w.Text, "<(") || strings.Contains(w.Text, "`")) {
			return true
		}
	}
	return false
}

// runsText reports whether a command runs the text that it reads.
func runsText(c *shell.SimpleCommand) bool {
	run := shell.Run(c.Words)
	name := (&shell.SimpleCommand{Words: run.Words}).Name()
	switch name {
	case "python", "python3", "perl", "ruby", "node", "php":
		return len(run.Words) == 1 || run.Words[1].Text == "-"
	case "eval", "source", ".":
		return true
	}
	return shell.IsShell(name)
}

// startsWithOne reports whether a command begins with the words of one of a list;
// options may stand between them.
func startsWithOne(words []string, name string, list []string) bool {
	plain := []string{name}
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") {
			plain = append(plain, w)
		}
	}
	text := strings.Join(plain[:min(len(plain), 4)], " ") + " "
	for _, one := range list {
		if strings.HasPrefix(text, one+" ") {
			return true
		}
	}
	return false
}

var deployCommands = []string{
	"npm publish", "yarn publish", "yarn npm publish", "pnpm publish", "cargo publish", "twine upload", "gem push", "docker push", "podman push",
	"kubectl apply", "kubectl delete", "kubectl rollout", "helm install", "helm upgrade", "terraform apply", "terraform destroy", "tofu apply",
	"pulumi up", "vercel deploy", "netlify deploy", "fly deploy", "flyctl deploy", "firebase deploy", "wrangler deploy", "wrangler publish",
	"serverless deploy", "sls deploy", "cdk deploy", "eb deploy", "gcloud app deploy", "gcloud run deploy", "gcloud functions deploy",
	"aws s3 sync", "aws cloudformation deploy", "aws lambda update-function-code", "gh release create", "goreleaser release", "git push heroku",
}

var secretCommands = []string{
	"vault kv get", "vault read", "gh auth token", "op read", "pass show", "security find-generic-password", "aws secretsmanager get-secret-value",
	"gcloud secrets versions access", "kubectl get secret", "kubectl get secrets", "heroku config", "gcloud auth print-access-token",
}

// scriptName returns the target or script that a command runs by its name.
func scriptName(name string, args []string) string {
	switch name {
	case "make", "just", "task":
		for _, a := range args {
			if !strings.HasPrefix(a, "-") {
				return a
			}
		}
		return ""
	case "npm", "yarn", "pnpm", "bun":
		if len(args) > 1 && args[0] == "run" {
			return args[1]
		}
		return ""
	case "bash", "sh":
		if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			return args[0][strings.LastIndexByte(args[0], '/')+1:]
		}
		return ""
	}
	if strings.HasSuffix(name, ".sh") {
		return name
	}
	return ""
}

func isDeployName(name string) bool {
	for _, word := range strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' }) {
		if word == "deploy" || word == "publish" || word == "release" {
			return true
		}
	}
	return false
}

// isSecretFile reports whether a file of that path usually holds secrets.
func isSecretFile(path string) bool {
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	if rest, ok := strings.CutPrefix(name, ".env"); ok {
		switch rest {
		case ".example", ".sample", ".template", ".dist", ".test":
			return false
		}
		return rest == "" || rest[0] == '.'
	}
	switch name {
	case ".netrc", ".pgpass", ".pypirc", ".git-credentials", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "shadow", ".htpasswd", "kubeconfig":
		return name != "shadow" || strings.HasSuffix(path, "/etc/shadow")
	}
	for _, end := range []string{"/.aws/credentials", "/.docker/config.json", "/.kube/config", "/.config/gcloud/application_default_credentials.json", "/.config/gh/hosts.yml"} {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return false
}

// secretIn returns what kind of secret a text holds, or "".
func secretIn(text string) string {
	for i := strings.Index(text, "-----BEGIN "); i >= 0; {
		line, _, _ := strings.Cut(text[i:], "\n")
		if strings.Contains(line, "PRIVATE KEY-----") {
			return "a private key"
		}
		next := strings.Index(text[i+1:], "-----BEGIN ")
		if next < 0 {
			break
		}
		i += 1 + next
	}
	for _, p := range tokenPrefixes {
		for at := 0; ; {
			n := strings.Index(text[at:], p.prefix)
			if n < 0 {
				break
			}
			at += n
			if (at == 0 || !isTokenByte(text[at-1])) && tokenLength(text[at+len(p.prefix):]) >= p.least {
				return p.kind
			}
			at += len(p.prefix)
		}
	}
	return ""
}

var tokenPrefixes = []struct {
	prefix string
	least  int
	kind   string
}{
	{"ghp_", 30, "a token of GitHub"},
	{"gho_", 30, "a token of GitHub"},
	{"ghs_", 30, "a token of GitHub"},
	{"github_pat_", 30, "a token of GitHub"},
	{"glpat-", 18, "a token of GitLab"},
	{"AKIA", 16, "a key of AWS"},
	{"ASIA", 16, "a key of AWS"},
	{"AIza", 33, "a key of Google"},
	{"sk-ant-", 20, "a key of Anthropic"},
	{"sk-proj-", 20, "a key of OpenAI"},
	{"xoxb-", 20, "a token of Slack"},
	{"xoxp-", 20, "a token of Slack"},
	{"npm_", 30, "a token of npm"},
	{"sk_live_", 16, "a key of Stripe"},
}

func isTokenByte(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func tokenLength(s string) (n int) {
	for n < len(s) && n < 64 && isTokenByte(s[n]) {
		n++
	}
	return n
}
