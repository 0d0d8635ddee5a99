package price_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/session/price"
	"github.com/sajou-dev/sajou-go/session/summary"
)

const prices = `
currency: USD
models:
  m: {input: 10, output: 50}
  m-large*: {input: 20, cache_read: 2, cache_write: 25, output: 100}
  m-large-2*: {input: 1, output: 1}
  acme/m: {input: 1, output: 0}
`

func Example() {
	list, diagnostics := price.Compile("prices.yaml", []byte(prices))
	if diagnostics.Refused() {
		fmt.Println(diagnostics)
		return
	}
	cost, _ := list.Cost("m-large-1", summary.TokenTotals{Prompt: 1_000_000, CacheRead: 900_000, Completion: 10_000})
	fmt.Printf("%.2f %s\n", cost, list.Currency())
	// Output: 4.80 USD
}

func TestCost(t *testing.T) {
	list, diagnostics := price.Compile("p.yaml", []byte(prices))
	require.Empty(t, diagnostics)
	million := summary.TokenTotals{Prompt: 1_000_000, Completion: 1_000_000}
	cached := summary.TokenTotals{Prompt: 1_000_000, CacheRead: 500_000, CacheWrite: 400_000}
	for _, tt := range []struct {
		model string
		t     summary.TokenTotals
		want  float64
	}{
		{"m", million, 60},
		{"m", cached, 10},               // of unknown prices of caches
		{"m-large", cached, 13},         // 100,000 at 20, 500,000 at 2, 400,000 at 25
		{"m-large-2-x", million, 2},     // the longest name
		{"acme/m", million, 1},          // the provider has its own price
		{"other/m", million, 60},        // another has not
		{"a/b/m-large", million, 120},   // several providers
		{"m", summary.TokenTotals{}, 0}, // nothing
		{"m", summary.TokenTotals{Prompt: 1, CacheRead: 1_000_000}, 10},
	} {
		got, known := list.Cost(tt.model, tt.t)
		assert.True(t, known, tt.model)
		assert.InDelta(t, tt.want, got, 1e-9, tt.model)
	}
	for _, model := range []string{"", "n", "mm", "m/", "acme"} {
		_, known := list.Cost(model, million)
		assert.False(t, known, model)
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                           "p.json:1:1: error: models must be an object with at least one model",
		`[`:                            "p.json:1:2: error",
		`{"models":{"m":{"input":1}}}`: "output must be the price of a million tokens",
		`{"models":{"m":{"input":-1,"output":1}}}`:                     "p.json:1:25: error: input must be",
		`{"models":{"m":{"input":1,"output":"1"}}}`:                    "output must be",
		`{"models":{"m":{"input":1,"output":1,"cacheread":1}}}`:        `unknown member "cacheread"; did you mean cache_read?`,
		`{"currency":7,"models":{"m":{"input":1,"output":1}}}`:         "the currency must be a text",
		`{"models":{"m":{"input":1,"output":1,"cache_read":"a lot"}}}`: "cache_read must be",
		`{"models":{"m":{"input":1,"output":1,"cache_write":1e400}}}`:  "error",
	} {
		list, diagnostics := price.Compile("p.json", []byte(text))
		assert.Nil(t, list, text)
		assert.Contains(t, diagnostics.String(), want, text)
	}
}

// FuzzCompile compiles any text.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(prices), "m-large-1")
	f.Add([]byte(`{"models":{"*":{"input":1,"output":1}}}`), "a/b")
	f.Fuzz(func(t *testing.T, text []byte, model string) {
		for _, name := range []string{"p.yaml", "p.json"} {
			list, diagnostics := price.Compile(name, text)
			require.Equal(t, list == nil, diagnostics.Refused())
			if list != nil {
				cost, _ := list.Cost(model, summary.TokenTotals{Prompt: 1 << 40, CacheRead: 1 << 39, Completion: 1 << 40})
				require.GreaterOrEqual(t, cost, 0.0)
			}
		}
	})
}
