package settings_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/settings"
)

// sourceOf returns the source of a setting's value.
func sourceOf(values []settings.ResolvedSetting, name string) string {
	for _, v := range values {
		if v.Setting.Name == name {
			return v.Source
		}
	}
	return ""
}

func TestPrecedence(t *testing.T) {
	variables := map[string]string{"SAJOU_STOP_TIMEOUT": "3s", "SAJOU_LISTEN": "127.0.0.1:1, 127.0.0.1:2"}
	given := settings.Given{
		Flags:    map[string][]string{"listen": {"127.0.0.1:3"}},
		Variable: func(name string) (string, bool) { v, ok := variables[name]; return v, ok },
		File:     "serve.yaml",
		Text:     []byte("listen: [127.0.0.1:4]\nstop-timeout: 4s\nbody-timeout: 7s\nmax-header: 2048\nloopback-anonymous: none\n"),
	}
	s, values, err := settings.Resolve(given)
	require.NoError(t, err)
	assert.Equal(t, []string{"127.0.0.1:3"}, s.Listen)
	assert.Equal(t, "--listen", sourceOf(values, "listen"))
	assert.Equal(t, 3*time.Second, s.Server.StopTimeout)
	assert.Equal(t, "SAJOU_STOP_TIMEOUT", sourceOf(values, "stop-timeout"))
	assert.Equal(t, 7*time.Second, s.Server.BodyTimeout)
	assert.Equal(t, "serve.yaml:3:15", sourceOf(values, "body-timeout"))
	assert.Equal(t, 2048, s.Server.MaxHeader)
	assert.Equal(t, []access.Scope{}, s.Server.Access.Loopback)
	assert.Equal(t, "default", sourceOf(values, "idle-timeout"))
	given.Flags = nil
	s, _, err = settings.Resolve(given)
	require.NoError(t, err)
	assert.Equal(t, []string{"127.0.0.1:1", "127.0.0.1:2"}, s.Listen)
}

// A file that has every setting as a comment gives none.
func TestFileOfComments(t *testing.T) {
	for _, text := range []string{"", "\n", "# listen: [127.0.0.1:4]\r\n\n  # max-rate: 7"} {
		_, values, err := settings.Resolve(settings.Given{File: "serve.yaml", Text: []byte(text)})
		require.NoError(t, err, "%q", text)
		assert.Equal(t, "default", sourceOf(values, "listen"))
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"unknown", "lisen: x\n", `serve.yaml:1:1: error: there is no setting "lisen"; did you mean listen? (/lisen)`},
		{"two mistakes", "body-timeout: soon\nmax-header: 3\n", "serve.yaml:1:15: error: \"soon\" is not a duration such as 500ms or 2s (/body-timeout)\nserve.yaml:2:13: error: \"3\" is not a whole number from 1024 to 1048576 (/max-header)"},
		{"no address", "listen: []\n", "a setting is refused: listen has no address; give one, such as 127.0.0.1:5175"},
		{"no object", "- 1\n", "serve.yaml:1:1: error: must be an object with a member for each setting"},
		{"nested", "log-level: {a: 1}\n", "serve.yaml:1:12: error: must be a text, a number, true, false, or a list where the setting takes several values (/log-level)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := settings.Resolve(settings.Given{File: "serve.yaml", Text: []byte(c.file)})
			require.ErrorIs(t, err, settings.ErrSettings)
			assert.Equal(t, c.want, err.Error())
		})
	}
	_, _, err := settings.Resolve(settings.Given{Flags: map[string][]string{"log-level": {"loud"}}})
	require.ErrorIs(t, err, settings.ErrSettings)
	assert.Contains(t, err.Error(), `log-level (--log-level): "loud" is not a level`)

	for _, c := range [][3]string{
		{"listen", "nonsense", `"nonsense" is not an address; write it as 127.0.0.1:5175`},
		{"listen", "127.0.0.1:99999", "is not an address"},
		{"listen", "127.0.0.1:http", "is not an address"},
		{"allow-origin", "evil", `"evil" is not an origin`},
		{"host", "app.example:80", "is not a host"},
		{"session", "a\nb", "cannot be the name of a session"},
		{"tls-cert", "cert.pem", "tls-cert and tls-key belong together"},
		{"tls-key", "key.pem", "tls-cert and tls-key belong together"},
		{"client-ca", "ca.pem", "client-ca needs TLS"},
		{"client-cert", "ci.example=record@build-*", "give client-ca too"},
		{"client-cert", "ci.example=record@b*-*", `the pattern "b*-*" has a "*" before its end`},
	} {
		_, _, err := settings.Resolve(settings.Given{Flags: map[string][]string{c[0]: {c[1]}}})
		require.ErrorIs(t, err, settings.ErrSettings, c)
		assert.Contains(t, err.Error(), c[2])
	}
}

// The defaults in the table are the defaults of the server.
func TestDefaults(t *testing.T) {
	s, values, err := settings.Resolve(settings.Given{})
	require.NoError(t, err)
	assert.Len(t, values, len(settings.All()))
	assert.Equal(t, []string{"127.0.0.1:5175", "[::1]:5175"}, s.Listen)
	assert.Equal(t, 10*time.Second, s.Server.StopTimeout)
	assert.Equal(t, []access.Scope{access.ScopeRecord, access.ScopeRead}, s.Server.Access.Loopback)
}

func FuzzFile(f *testing.F) {
	f.Add("listen: [127.0.0.1:4]\nstop-timeout: 4s\n")
	f.Add("{\"log-level\": \"debug\"}")
	f.Fuzz(func(t *testing.T, text string) {
		s, _, err := settings.Resolve(settings.Given{File: "f.yaml", Text: []byte(text)})
		if (s == nil) == (err == nil) {
			t.Fatal("neither settings nor an error")
		}
	})
}
