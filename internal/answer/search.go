package answer

import (
	"encoding/json"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
)

// ExaminedView is a moment that was examined.
type ExaminedView struct {
	Moment string  `json:"moment"`
	Seq    uint64  `json:"seq"`
	Offset float64 `json:"offset"` // milliseconds after the entry
	At     float64 `json:"at"`     // milliseconds of session time
	Kind   string  `json:"kind"`
}

// ViewExamined returns the view of a moment that was examined.
func ViewExamined(m replay.ExaminedMoment) ExaminedView {
	return ExaminedView{m.Moment.String(), uint64(m.Moment.Seq), projection.Millis(m.Moment.Offset), projection.Millis(m.At), m.Kind.String()}
}

// IntervalView is an interval at which an expression has one value.
type IntervalView struct {
	From  ExaminedView    `json:"from"`
	Until ExaminedView    `json:"until"`
	Open  bool            `json:"open"`
	Value json.RawMessage `json:"value"`
}

// ViewInterval returns the view of an interval of [Valuing] or [Truth].
func ViewInterval(iv *replay.ValueInterval[string]) IntervalView {
	return IntervalView{ViewExamined(iv.From), ViewExamined(iv.Until), iv.Open, json.RawMessage(iv.Value)}
}

// ValueView is the value of an expression at an entry.
type ValueView struct {
	Seq   eventlog.Seq    `json:"seq"`
	At    float64         `json:"at"`
	Value json.RawMessage `json:"value"`
}

// ViewValue returns the view of a value of [Valuing] at an entry.
func ViewValue(e *eventlog.Entry, value string) ValueView {
	return ValueView{e.Seq, projection.Millis(e.At), json.RawMessage(value)}
}
