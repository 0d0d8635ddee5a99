// Package price computes the cost of tokens from a list of prices.
package price

import (
	"math"
	"strings"

	"github.com/sajou-dev/sajou-go/authored"
	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/session/summary"
)

// million is the number of tokens of a price.
const million = 1_000_000

// PriceList is a list of prices by model. It is immutable.
type PriceList struct {
	currency string
	models   map[string]rates
}

// rates are the prices of a million tokens of a model.
type rates struct {
	input, cacheRead, cacheWrite, output float64
}

// Compile reads a list from the text of a file, YAML if its name ends in .yaml or .yml and
// JSON otherwise. It returns either a list or diagnostics. The text is an object such as
//
//	currency: USD
//	models:
//	  claude-opus-4*: {input: 15, cache_read: 1.5, cache_write: 18.75, output: 75}
//	  gpt-5: {input: 1.25, cache_read: 0.125, output: 10}
//
// The prices are those of a million tokens. A name that ends in * is the beginning of names;
// of several that match the longest counts. Input and output are required. Tokens that a
// cache holds cost as much as other input where cache_read or cache_write is absent.
func Compile(file string, text []byte) (*PriceList, authored.Diagnostics) {
	t, refused := authored.Read(file, text)
	if refused != nil {
		return nil, refused
	}
	r := reader{}
	list := r.list(authored.Located{Value: t.Value})
	if r.Refused() {
		return nil, t.Placed(r.Diagnostics(file, t.JSON))
	}
	return list, nil
}

// Currency returns the currency of the prices, which may be empty.
func (l *PriceList) Currency() string { return l.currency }

// Cost returns the cost of the tokens of a model. It is not known if no name matches that of
// the model.
func (l *PriceList) Cost(model string, t summary.TokenTotals) (cost float64, known bool) {
	r, known := l.of(model)
	if !known {
		return 0, false
	}
	plain := max(t.Prompt-t.CacheRead-t.CacheWrite, 0)
	cost = float64(float64(plain)*r.input) + float64(float64(t.CacheRead)*r.cacheRead)
	cost += float64(float64(t.CacheWrite)*r.cacheWrite) + float64(float64(t.Completion)*r.output)
	return cost / million, true
}

// of returns the rates of a model. Names of providers before a slash are tried with and
// without them: anthropic/claude-opus-4.
func (l *PriceList) of(model string) (rates, bool) {
	for {
		if r, known := l.match(model); known {
			return r, true
		}
		_, rest, is := strings.Cut(model, "/")
		if !is {
			return rates{}, false
		}
		model = rest
	}
}

func (l *PriceList) match(model string) (found rates, known bool) {
	if r, known := l.models[model]; known {
		return r, true
	}
	longest := -1
	for name, r := range l.models {
		prefix, open := strings.CutSuffix(name, "*")
		if open && len(prefix) > longest && strings.HasPrefix(model, prefix) {
			found, known, longest = r, true, len(prefix)
		}
	}
	return found, known
}

// reader reads the text of a list.
type reader struct{ authored.Remarks }

// members checks that an object has known members only.
func (r *reader) members(at authored.Located, known ...string) {
	for name, member := range at.Members {
		if nearest, is := spelling.Nearest(name, known); name != "" && !contains(known, name) {
			hint := ""
			if is {
				hint = "; did you mean " + nearest + "?"
			}
			r.Errorf(member.Location.Key(), "unknown member %q%s", name, hint)
		}
	}
}

func contains(list []string, name string) bool {
	for _, known := range list {
		if known == name {
			return true
		}
	}
	return false
}

func (r *reader) list(root authored.Located) *PriceList {
	l := &PriceList{models: map[string]rates{}}
	r.members(root, "currency", "models")
	if currency := root.At("currency"); root.Has("currency") {
		text, is := currency.Value.Text()
		if !is || len(text) > 16 {
			r.Errorf(currency.Location, "the currency must be a text of at most 16 bytes")
		}
		l.currency = text
	}
	for name, model := range root.At("models").Members {
		r.members(model, "input", "cache_read", "cache_write", "output")
		p := rates{input: r.price(model, "input"), output: r.price(model, "output")}
		p.cacheRead, p.cacheWrite = p.input, p.input
		if model.Has("cache_read") {
			p.cacheRead = r.price(model, "cache_read")
		}
		if model.Has("cache_write") {
			p.cacheWrite = r.price(model, "cache_write")
		}
		l.models[name] = p
	}
	if len(l.models) == 0 {
		r.Errorf(nil, "models must be an object with at least one model")
	}
	return l
}

func (r *reader) price(model authored.Located, name string) float64 {
	at := model.At(name)
	f, is := at.Value.Float64()
	if !is || f < 0 || f > 1e6 || math.IsNaN(f) {
		r.Errorf(at.Location, "%s must be the price of a million tokens, a number from 0 to 1000000", name)
		return 0
	}
	return f
}
