package cli

import (
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// CommandText is a command as one line of a table, with the number of an entry; 0 leaves
// it out.
func CommandText(seq eventlog.Seq, c *choreography.Command) string {
	where := "      "
	if seq > 0 {
		where = fmt.Sprintf("%6d", seq)
	}
	return fmt.Sprintf("%s  %s  %s", where, ClockText(c.At), CommandDetail(c))
}

// CommandDetail is a command without its time.
func CommandDetail(c *choreography.Command) string {
	var detail string
	switch c.Kind {
	case choreography.CommandInterrupt:
		detail = fmt.Sprintf("%s by %s", c.CorrelationID, c.InterruptedBy)
	case choreography.CommandStart:
		detail = fmt.Sprintf("%s %s %vms %s %s", c.Action, c.EntityRef, c.Duration, c.Easing, paramsText(c.Params))
	case choreography.CommandUpdate:
		detail = fmt.Sprintf("%s %s %3.0f%%", c.Action, c.EntityRef, c.Progress*100)
	default:
		detail = fmt.Sprintf("%s %s %s", c.Action, c.EntityRef, paramsText(c.Params))
	}
	return strings.TrimRight(fmt.Sprintf("%-10s %-9s  %s", c.PerformanceID, c.Kind, termtext.Printable(detail)), " ")
}

func paramsText(params map[string]any) string {
	if len(params) == 0 {
		return ""
	}
	data, err := Marshal(params)
	if err != nil {
		return ""
	}
	return termtext.Clip(string(data), 70)
}
