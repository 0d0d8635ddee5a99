package found

import (
	"context"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/source"
	"github.com/sajou-dev/sajou-go/session/price"
	"github.com/sajou-dev/sajou-go/session/summary"
	"github.com/sajou-dev/sajou-go/signal"
)

// Account is what a recording tells of itself.
type Account struct {
	Format  string
	Project string // the folder in which the agent worked, as the recording has it; "" if it has none
	Prompt  string // the first one of the user
	Length  time.Duration
	Summary *summary.Summary

	// Cost is the cost that the recording has, or else that of its tokens by the prices;
	// Costed tells that one of them is known. Unpriced are the models without a price.
	Cost     float64
	Costed   bool
	Unpriced []string
}

// Read reads a recording whole. Prices may be nil. The path is one of [Found]. An error is one of
// the file or of the context, or that the format is not known.
func Read(ctx context.Context, path string, prices *price.PriceList) (*Account, error) {
	listing, err := source.Open(ctx, path, source.Config{})
	if err != nil {
		return nil, err
	}
	defer listing.Close()
	if len(listing.Recordings) != 1 {
		return nil, fmt.Errorf("%s holds %d recordings; name one of them", path, len(listing.Recordings))
	}
	r := &listing.Recordings[0]
	if err := r.Problem(); err != nil {
		return nil, err
	}
	if r.Format.Map == nil {
		return nil, fmt.Errorf("%s holds signals, which no other tool has recorded", path)
	}
	a := &Account{Format: r.Format.Name}
	counter := summary.NewCounter()
	var first float64
	seen, prompted := false, false
	for item, err := range r.Format.Open(r.FS, r.Name, recording.Options{Final: true, MaxBad: 1}).Items() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		sig := item.Signal
		ms, _ := sig.Timestamp.Value().Float64()
		if !seen {
			first, seen = ms, true
		}
		a.Length = time.Duration(ms-first) * time.Millisecond
		if sig.Type == recording.TypeRecording {
			a.Project = sig.Payload.TextOf("cwd")
		}
		if sig.Type == "task_dispatch" && !prompted && sig.Payload.TextOf("from") == recording.User {
			a.Prompt, prompted = beginning(sig), true
		}
		counter.Add(a.Length, sig)
	}
	a.Summary = counter.Summary()
	a.price(prices)
	return a, nil
}

// beginning returns the beginning of a prompt.
func beginning(sig *signal.Signal) string {
	const most = 1000
	text := []rune(sig.Payload.TextOf("description"))
	return string(text[:min(len(text), most)])
}

// price sets the cost.
func (a *Account) price(prices *price.PriceList) {
	if a.Cost = a.Summary.Tokens.Cost; a.Cost > 0 {
		a.Costed = true
		return
	}
	if prices == nil {
		return
	}
	for _, model := range a.Summary.Models {
		if cost, known := prices.Cost(model.Name, model.Tokens); known {
			a.Cost += cost
			a.Costed = true
		} else if model.Tokens.Prompt+model.Tokens.Completion > 0 {
			a.Unpriced = append(a.Unpriced, model.Name)
		}
	}
}
