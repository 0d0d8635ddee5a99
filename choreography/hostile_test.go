package choreography_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
)

// A small text can stand for very much. Whatever it is, it is written out or refused
// promptly, and with no more memory than what is written out may take.
func TestWritingOutIsBounded(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	many := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(all, ",")
	}
	repeated := func(times int, step string) string {
		return fmt.Sprintf(`choreography {"on":"x","steps":[{"action":"repeat","times":%d,"steps":[%s]}]}`, times, step)
	}
	including := func(body string, args string) []string {
		return []string{
			`sequence {"sequence":"a","params":["p"],"steps":[` + body + `]}`,
			`choreography {"on":"x","steps":[{"action":"include","sequence":"a","with":{"p":` + args + `}}]}`,
		}
	}
	chain := []string{`sequence {"sequence":"s0","steps":[]}`}
	for i := range 5000 {
		chain = append(chain, fmt.Sprintf(`sequence {"sequence":"s%d","steps":[{"action":"include","sequence":"s%d"}]}`, i+1, i))
	}
	for name, c := range map[string]struct {
		texts []string
		says  string
	}{
		"a large argument, unused": {[]string{
			`sequence {"sequence":"a","params":["p"],"steps":[]}`,
			repeated(90_000, `{"action":"include","sequence":"a","with":{"p":"`+big+`"}},{"action":"flash"}`),
		}, ""},
		"a large argument, handed on": {append([]string{`sequence {"sequence":"b","params":["p"],"steps":[]}`},
			including(`{"action":"repeat","times":45000,"steps":[{"action":"include","sequence":"b","with":{"p":"param.p"}},{"action":"flash"}]}`, `"`+big+`"`)...), ""},
		"a large argument in many places": {including(`{"action":"flash",`+many(20_000, `"m%d":"param.p"`)+`}`, `"`+big+`"`), "bytes"},
		"in many conditions":              {including(`{"action":"flash","when":{`+many(20_000, `"m%d":{"equals":"param.p"}`)+`}}`, `"`+big+`"`), "bytes"},
		"in many operators":               {including(`{"action":"flash","when":{"a":{`+many(20_000, `"m%d":"param.p"`)+`}}}`, `"`+big+`"`), "bytes"},
		"in many alternatives":            {including(`{"action":"onArrive","steps":[],"when":[`+many(20_000, `{"m%d":"param.p"}`)+`]}`, `"`+big+`"`), "bytes"},
		"many items and no steps":         {including(`{"action":"repeat","times":45000,"steps":[{"action":"stagger","every":1,"each":"param.p","steps":"none"},{"action":"flash"}]}`, `[`+many(100_000, "%d")+`]`), ""},
		"items and steps":                 {[]string{`choreography {"on":"x","steps":[{"action":"stagger","every":1,"each":[` + many(10_000, "%d") + `],"steps":[` + many(10_000, `{"action":"flash","n":%d}`) + `]}]}`}, "steps"},
		"a long chain":                    {chain, ""},
	} {
		begun := time.Now()
		s := choreography.NewScheduler()
		var refused error
		for _, text := range c.texts {
			word, text, _ := strings.Cut(text, " ")
			v, err := signal.ParseValue([]byte(text))
			require.NoError(t, err)
			d, err := language.CompileDeclaration(word, v)
			require.NoError(t, err)
			refused = s.Define(d)
		}
		switch {
		case c.says == "" && refused != nil, c.says != "" && (refused == nil || !strings.Contains(refused.Error(), c.says)):
			t.Errorf("%s: %v, want one that says %q", name, refused, c.says)
		case time.Since(begun) > 20*time.Second: // a hundred times what it takes
			t.Errorf("%s took %v", name, time.Since(begun))
		}
	}
}
