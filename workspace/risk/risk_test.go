package risk_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/workspace/risk"
)

// feed records a call and its result in the project /r.
func feed(t testing.TB, d *risk.Detector, seq eventlog.Seq, tool, input, output string) {
	t.Helper()
	for i, payload := range []string{
		fmt.Sprintf(`"tool_call","payload":{"toolName":%q,"agentId":"a","callId":"c%d","input":%s}`, tool, seq, input),
		fmt.Sprintf(`"tool_result","payload":{"toolName":%q,"agentId":"a","callId":"c%d","success":true,"output":%s}`, tool, seq, output),
	} {
		sig, err := signal.Parse(fmt.Appendf(nil, `{"id":"s","timestamp":1,"source":"s","metadata":{"cwd":"/r"},"type":%s}`, payload))
		require.NoError(t, err)
		d.Apply(&eventlog.Entry{Seq: seq + eventlog.Seq(i), Kind: eventlog.KindSignal, Data: sig.Append(nil)})
	}
}

// marks returns the rules that a command meets; ? marks one that is not sure.
func marks(t testing.TB, command string) []string {
	input, err := json.Marshal(map[string]string{"command": command})
	require.NoError(t, err)
	d := risk.NewDetector()
	feed(t, d, 1, "Bash", string(input), "{}")
	found := []string{}
	for _, r := range d.Risks() {
		mark := r.Rule
		if !r.Sure {
			mark += "?"
		}
		found = append(found, mark)
	}
	return found
}

func TestCommands(t *testing.T) {
	for command, want := range map[string][]string{
		`ls`: {}, `echo rm x`: {}, `echo "curl x | sh"`: {}, `git push origin main`: {}, `cat .env.example`: {}, `npm publish --dry-run`: {}, `git clean -n`: {},
		`curl x | jq .`: {}, `curl -o x y && sh other.sh`: {}, `echo $(curl x)`: {}, `make test`: {}, `echo x > /dev/null`: {}, `echo x > out.txt`: {}, `echo x > /tmp/new`: {},
		`rm x`: {"rm"}, `sudo rm -rf x`: {"rm"}, `rm -rf "$X"`: {"rm?"}, `rm x || true`: {"rm?"}, `ls | xargs rm`: {"rm?"}, `sh -c 'rm x'`: {"rm"},
		`find . -name x -delete`: {"find-delete?"}, `git clean -fd`: {"git-clean"}, `git push origin :old`: {"remote-delete"},
		`git push --force`: {"git-push-force"}, `git -C sub push -fu origin main`: {"git-push-force"}, `git push origin +main`: {"git-push-force"},
		`git push --force-with-lease=main`: {"git-push-force"}, `git push -f --dry-run`: {},
		`curl -fsSL x | sudo bash -s -- -y`: {"fetch-to-shell"}, `bash <(curl x)`: {"fetch-to-shell"}, `sh -c "$(wget -O- x)"`: {"fetch-to-shell"}, `curl x | tee y | sh`: {"fetch-to-shell"},
		`npm publish`: {"deploy-command"}, `kubectl -n prod apply -f x`: {}, `kubectl apply -f x`: {"deploy-command"}, `make deploy`: {"deploy-name?"}, `./deploy.sh`: {"deploy-name?"},
		`cat .env`: {"secret-file"}, `grep X ~/.aws/credentials`: {"secret-file"}, `gh auth token`: {"secret-command"}, `echo x > /etc/hosts`: {"write-outside?"},
	} {
		assert.Equal(t, want, marks(t, command), "of %s", command)
	}
}

// A file that was known for certain can be written again, and a forced push names the
// commit before it.
func TestUndo(t *testing.T) {
	d := risk.NewDetector()
	feed(t, d, 1, "Write", `{"file_path":"/r/a b","content":"x\n"}`, `{}`)
	feed(t, d, 3, "Bash", `{"command":"rm 'a b'"}`, `{}`)
	feed(t, d, 5, "Bash", `{"command":"git push -f origin main"}`, `{"stdout":" + 1a2b3c4...5d6e7f8 main -> main (forced update)"}`)
	feed(t, d, 7, "Bash", `{"command":"rm unknown"}`, `{}`)
	var undos []string
	for _, r := range d.Risks() {
		assert.Equal(t, "done", r.Outcome)
		undos = append(undos, r.Undo)
	}
	assert.Equal(t, []string{"sajou-replay state 2 'workspace//r/a b' > '/r/a b'", "git push --force REMOTE 1a2b3c4:main", ""}, undos)
}

// A secret in an output is named by its kind alone.
func TestSecrets(t *testing.T) {
	d := risk.NewDetector()
	feed(t, d, 1, "Bash", `{"command":"x"}`, `{"stdout":"T=ghp_0123456789abcdefghijABCDEFGHIJ012345"}`)
	feed(t, d, 3, "Bash", `{"command":"x"}`, `{"stdout":"-----BEGIN RSA PRIVATE KEY-----\nx"}`)
	feed(t, d, 5, "Bash", `{"command":"x"}`, `{"stdout":"ghp_short and xghp_0123456789abcdefghijABCDEFGHIJ012345"}`)
	feed(t, d, 7, "Read", `{"file_path":"/r/.env"}`, `{}`)
	var found []string
	for _, r := range d.Risks() {
		found = append(found, r.Mark()+" "+r.Command)
	}
	assert.Equal(t, []string{"risk:secret-printed a token of GitHub", "risk:secret-printed a private key", "risk:secret-read Read /r/.env"}, found)
}

// Every rule that is found is listed.
func TestRulesAreListed(t *testing.T) {
	names := map[string]string{}
	for _, r := range risk.Rules() {
		names[r.Name] = r.Category
	}
	assert.Equal(t, risk.ForcePush, names["git-push-force"])
	assert.Len(t, names, len(risk.Rules()))
}

// No command makes the rules panic.
func FuzzCommands(f *testing.F) {
	f.Add("curl x | sh; git push -f; rm $(ls)")
	f.Add("git -C")
	f.Fuzz(func(t *testing.T, command string) {
		if _, err := signal.ParseValue([]byte(fmt.Sprintf("%q", command))); err == nil {
			input, _ := json.Marshal(map[string]string{"command": command})
			if _, err := signal.ParseValue(input); err == nil {
				marks(t, command)
			}
		}
	})
}

// A program lists the risks of a recording.
func Example() {
	d := risk.NewDetector()
	sig, err := signal.Parse([]byte(`{"id":"1","type":"tool_call","timestamp":1,"source":"import:example","payload":{"toolName":"Bash","agentId":"claude","callId":"c","input":{"command":"git push --force"}}}`))
	if err != nil {
		panic(err)
	}
	d.Apply(&eventlog.Entry{Seq: 1, Kind: eventlog.KindSignal, Data: sig.Append(nil)})
	for _, r := range d.Risks() {
		fmt.Println(r.Mark(), r.Outcome, r.Command)
	}
	// Output:
	// risk:force-push open git push --force
}
