package episodecmd

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"

	"github.com/clipperhouse/displaywidth"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director/explore"
	"github.com/sajou-dev/sajou-go/internal/termtext"
)

// The places of a chart, in its units.
const (
	chartWidth = 800
	chartLeft  = 20
	chartBar   = 190
	chartFull  = 260 // width of a whole
	chartSays  = chartBar + chartFull + 12
	chartRow   = 20
	chartText  = 24 // code points of a name
	chartSize  = 12 // of texts; a column of a monospaced font is 0.6 wide
)

// The colours of the parts of a bar.
const (
	colorDone     = "#3b6fb6"
	colorVerified = "#2f8f6b"
	colorAssumed  = "#d2a32c"
	colorForced   = "#c2623f"
	colorMissed   = "#8a8f98"
	colorNone     = "#e6e8ec"
)

// chart is a bar chart, drawn from the top down.
type chart struct {
	b bytes.Buffer
	y int
}

// writeReportSVG draws reports. The same reports give the same bytes.
func writeReportSVG(w io.Writer, reports []explore.Report) error {
	c := &chart{y: chartRow}
	for i := range reports {
		c.report(&reports[i])
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%d" font-family="monospace" font-size="%[5]d" fill="#1f2430">
<rect width="%[1]d" height="%[2]d" fill="#ffffff"/>
%[4]s</svg>
`, chartWidth, c.y, c.y, c.b.Bytes(), chartSize)
	return err
}

func (c *chart) report(r *explore.Report) {
	c.title(14, fmt.Sprintf("%s: %s, %s", termtext.Clip(r.Episode, 60), cli.Plural(r.Sessions, "session", "sessions"), cli.Plural(r.Turns, "turn", "turns")))
	for _, m := range metrics {
		rate := m.rate(r)
		c.row(m.name, shareText(rate), rate.Of, segment{rate.N, colorDone})
		if m.target > 0 {
			x := chartBar + int(m.target*chartFull)
			fmt.Fprintf(&c.b, `<path d="M%d %dv%d" stroke="#1f2430" stroke-width="2"/>`+"\n", x, c.y-chartRow-13, chartRow-4)
		}
	}
	c.title(13, "beats")
	c.legend()
	for i := range r.Beats {
		at := &r.Beats[i]
		says := shareText(at.Landed)
		if at.Landed.N > 0 {
			says += fmt.Sprintf(", late %+d, p95 %+d", at.Median, at.P95)
		}
		if at.NeverEligible {
			says += ", never eligible"
		}
		c.row(at.Beat, says, at.Landed.Of, segment{at.Verified.N, colorVerified}, segment{at.Assumed.N, colorAssumed},
			segment{at.Forced.N, colorForced}, segment{at.Missed, colorMissed})
	}
	for i := range r.Choices {
		at := &r.Choices[i]
		c.title(13, fmt.Sprintf("choice %s: %d offered, %d declined", termtext.Clip(at.ChoicePoint, chartText), at.Offered, at.Declined))
		for j, n := range at.Selected {
			rate := explore.Rate{N: n, Of: at.Offered}
			c.row(at.Options[j], shareText(rate), rate.Of, segment{rate.N, colorDone})
		}
	}
	c.y += chartRow
}

func (c *chart) title(size int, text string) {
	c.y += 8
	c.text(chartLeft, chartWidth-chartLeft, size, fmt.Sprintf(` font-size="%d" font-weight="bold"`, size), text)
	c.b.WriteByte('\n')
	c.y += chartRow
}

// text draws a text between two places. A viewer's font may be wider than a monospaced one,
// so the text is fitted to its columns, or to its room if that is less, and clipped to it by
// viewers that do not know textLength.
func (c *chart) text(left, right, size int, style, text string) {
	text = termtext.Printable(text)
	wide := min((displaywidth.String(text)*size*3+4)/5, right-left)
	if wide <= 0 {
		return
	}
	fmt.Fprintf(&c.b, `<svg x="%d" y="%d" width="%d" height="%d"><text y="%d" textLength="%[3]d" lengthAdjust="spacingAndGlyphs"%[6]s>%[7]s</text></svg>`,
		left, c.y-size-1, wide, size+size/2, size+1, style, svgText(text))
}

// legend draws the meanings of the colours of beats.
func (c *chart) legend() {
	const legendStep = 92
	x := chartBar
	for _, l := range []struct{ name, color string }{
		{"verified", colorVerified}, {"assumed", colorAssumed}, {"forced", colorForced}, {"given up", colorMissed}, {"not landed", colorNone},
	} {
		fmt.Fprintf(&c.b, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/>`, x, c.y-10, l.color)
		c.text(x+14, x+legendStep, chartSize, "", l.name)
		c.b.WriteByte('\n')
		x += legendStep
	}
	c.y += chartRow
}

// segment is a piece of a bar.
type segment struct {
	n     int
	color string
}

// row draws a name, a bar of shares, and a text.
func (c *chart) row(name, says string, whole int, parts ...segment) {
	c.text(chartLeft, chartBar, chartSize, "", termtext.Clip(name, chartText))
	fmt.Fprintf(&c.b, `<rect x="%d" y="%d" width="%d" height="12" fill="%s"/>`, chartBar, c.y-11, chartFull, colorNone)
	done := 0
	for _, p := range parts {
		if p.n == 0 || whole == 0 {
			continue
		}
		// Each end is rounded by itself, so that the parts touch and end together.
		from, to := done*chartFull/whole, (done+p.n)*chartFull/whole
		done += p.n
		fmt.Fprintf(&c.b, `<rect x="%d" y="%d" width="%d" height="12" fill="%s"/>`, chartBar+from, c.y-11, to-from, p.color)
	}
	c.text(chartSays, chartWidth-chartLeft, chartSize, "", says)
	c.b.WriteByte('\n')
	c.y += chartRow
}

// svgText escapes a text for SVG.
func svgText(s string) string {
	var b bytes.Buffer
	if xml.EscapeText(&b, []byte(termtext.Printable(s))) != nil {
		return "" // a buffer does not fail
	}
	return b.String()
}
