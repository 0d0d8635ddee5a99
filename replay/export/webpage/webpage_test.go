package webpage_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/internal/enginetest"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bookmark"
	"github.com/sajou-dev/sajou-go/replay/export/webpage"
	"github.com/sajou-dev/sajou-go/replay/fork"
	"github.com/sajou-dev/sajou-go/stage/film"
)

// page is what a browser reads of a page.
type page struct {
	Lines    []string     `json:"lines"`
	Pictures [][]int      `json:"pictures"`
	Moments  [][2]float64 `json:"moments"`

	text string
}

func reelOf(t *testing.T, signals []string, definitions ...string) *film.Reel {
	t.Helper()
	log, r := enginetest.Recorded(t, signals, definitions...)
	return film.Open(log, r)
}

func written(t *testing.T, reel *film.Reel, o webpage.Options) (page, webpage.Contents) {
	t.Helper()
	var out bytes.Buffer
	sum, err := webpage.Write(t.Context(), &out, reel, replay.Moment{Seq: 1}, replay.Moment{Seq: reel.Travel().Head().Seq}, o)
	require.NoError(t, err)
	p := page{text: out.String()}
	_, rest, ok := strings.Cut(p.text, `<script type="application/json" id="data">`)
	require.True(t, ok)
	data, _, ok := strings.Cut(rest, "</script>")
	require.True(t, ok)
	require.NoError(t, json.Unmarshal([]byte(data), &p))
	return p, sum
}

// picture makes picture n as the script does: from the keyframe before it.
func (p *page) picture(n int) string {
	var lines []int
	for i := n - n%64; i <= n; i++ {
		d := p.Pictures[i]
		head, tail := d[2], d[3]
		lines = slices.Concat(lines[:head], d[4:], lines[len(lines)-tail:])
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(p.Lines[l])
	}
	return b.String()
}

// TestPictures: the picture of each moment is the one that the reel draws there.
func TestPictures(t *testing.T) {
	reel := reelOf(t, enginetest.BustleSignals(2, 60), enginetest.Bustle)
	p, sum := written(t, reel, webpage.Options{Every: 50 * time.Millisecond})
	require.Len(t, p.Moments, sum.Moments)
	require.Greater(t, len(p.Pictures), 130, "several keyframes")
	i := 0
	over := replay.MomentRange{From: replay.Moment{Seq: 1}, To: replay.Moment{Seq: reel.Travel().Head().Seq}, Rest: true, Every: 50 * time.Millisecond}
	for s, err := range reel.Travel().Moments(t.Context(), over, replay.NeedsState) {
		require.NoError(t, err)
		shot, err := reel.ShotOf(t.Context(), s.Fold, s.Moment)
		require.NoError(t, err)
		svg := string(reel.Draw(shot, film.Style{}).AppendSVG(nil))
		_, shapes, _ := strings.Cut(svg, ">\n")
		if _, after, found := strings.Cut(shapes, "</defs>\n"); found {
			shapes = after
		}
		require.Equal(t, strings.TrimSuffix(shapes, "</svg>\n"), p.picture(int(p.Moments[i][0])), "moment %v", s.Moment)
		assert.InDelta(t, float64(s.Fold.At())/1e6, p.Moments[i][1], 1e-6)
		i++
	}
	assert.Equal(t, i, sum.Moments)
	assert.Zero(t, sum.LeftOut)
	for _, m := range regexp.MustCompile(`href=\\?"#([^"\\]+)`).FindAllStringSubmatch(p.text, -1) {
		if !strings.HasPrefix(m[1], "m") || len(m[1]) > 5 {
			assert.Contains(t, p.text, `id="`+m[1]+`"`, "what the pictures use is defined")
		}
	}
}

// TestSelfContained: a page loads nothing, permits its own script alone, and has a
// picture and the list without it.
func TestSelfContained(t *testing.T) {
	p, sum := written(t, reelOf(t, enginetest.BustleSignals(1, 20), enginetest.Bustle), webpage.Options{})
	parts := strings.Split(p.text, "<script>")
	require.Len(t, parts, 2)
	script, _, _ := strings.Cut(parts[1], "</script>")
	hash := sha256.Sum256([]byte(script))
	assert.Contains(t, parts[0], `content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-`+base64.StdEncoding.EncodeToString(hash[:])+`'; base-uri 'none'; form-action 'none'"`)
	assert.NotRegexp(t, `(?i)src=|url\(|@import|https?://`, strings.ReplaceAll(p.text, `xmlns="http://www.w3.org/2000/svg"`, ""))
	assert.Contains(t, parts[0], `<g id="picture">`)
	assert.Contains(t, parts[0], p.picture(0))
	assert.Equal(t, sum.Moments, strings.Count(parts[0], "<li id="))
}

// TestBound: a page of too many moments shows an even choice with both ends, and says so.
func TestBound(t *testing.T) {
	reel := reelOf(t, enginetest.BustleSignals(2, 60), enginetest.Bustle)
	whole, all := written(t, reel, webpage.Options{})
	for _, most := range []int{1, 2, 7, 50} {
		p, sum := written(t, reel, webpage.Options{Most: most})
		assert.LessOrEqual(t, sum.Moments, most+1)
		assert.Equal(t, all.Moments, sum.Moments+sum.LeftOut)
		assert.Equal(t, whole.Moments[len(whole.Moments)-1][1], p.Moments[len(p.Moments)-1][1])
		assert.Contains(t, p.text, "moments are left out")
		assert.Less(t, len(p.text), len(whole.text))
	}
}

// TestBookmarks: each bookmark is a moment of the page with its own picture, also between
// the moments that are shown, and both lists name it.
func TestBookmarks(t *testing.T) {
	reel := reelOf(t, enginetest.BustleSignals(2, 60), enginetest.Bustle)
	plain, without := written(t, reel, webpage.Options{Most: 7})
	assert.NotContains(t, plain.text, "<datalist")
	var marks []bookmark.Bookmark
	for _, m := range []replay.Moment{{Seq: 9}, {Seq: 9, Offset: 1234567}, {Seq: 40}} {
		e, err := reel.Travel().Entry(t.Context(), m.Seq)
		require.NoError(t, err)
		marks = append(marks, bookmark.Bookmark{Session: "a", Name: "b" + strconv.Itoa(len(marks)), Anchor: replay.Anchor{Head: e.Head(), Offset: m.Offset}})
	}
	marks[1].Note = "<i>\u202enote"
	p, sum := written(t, reel, webpage.Options{Most: 7, Bookmarks: marks})
	assert.GreaterOrEqual(t, sum.Moments, without.Moments+1, "the one that is no moment of the session")
	items := regexp.MustCompile(`<li id="m(\d+)" data-mark=""><a href="#m\d+"><time>[^<]*</time> <b>([^<]*)</b>[^<]*<mark>@([^<]*)</mark>(.*)</a>`).FindAllStringSubmatch(p.text, -1)
	require.Len(t, items, 3)
	for i, item := range items {
		assert.Equal(t, []string{marks[i].Moment().String(), marks[i].Name}, item[2:4])
		assert.Contains(t, p.text, `<a href="#m`+item[1]+`">@`+marks[i].Name+`</a>`)
		assert.Contains(t, p.text, `<option value="`+item[1]+`">`)
		n, err := strconv.Atoi(item[1])
		require.NoError(t, err)
		shot, err := reel.Shot(t.Context(), marks[i].Moment())
		require.NoError(t, err)
		svg := string(reel.Draw(shot, film.Style{}).AppendSVG(nil))
		assert.Contains(t, svg, p.picture(int(p.Moments[n][0])))
		if n > 0 {
			assert.LessOrEqual(t, p.Moments[n-1][1], p.Moments[n][1])
		}
	}
	assert.Equal(t, ` &lt;i&gt;\u202enote`, items[1][4])
}

// A page of a fork says that it is none of a recording.
func TestFork(t *testing.T) {
	eng := enginetest.Memory(t, sajou.Config{})
	ses := enginetest.BeginManual(t, eng, "a")
	_, err := ses.Signal(t.Context(), enginetest.TaskSignal(1, 10))
	require.NoError(t, err)
	_, _, err = eng.Fork(t.Context(), "a", "b", fork.Config{})
	require.NoError(t, err)
	log, err := eng.Log().Session("b")
	require.NoError(t, err)
	r, err := eng.Replay("b")
	require.NoError(t, err)
	p, _ := written(t, film.Open(log, r), webpage.Options{})
	assert.Contains(t, p.text, `<title>b, fork of &#34;a&#34; at 2</title>`)
	assert.Contains(t, p.text, `<p>not a recording, but a fork of &#34;a&#34; at 2, head 2:`)
}

// TestHostile: recorded text cannot leave its place.
func TestHostile(t *testing.T) {
	attack := `</script><script>alert(1)</script><img src=x onerror=alert(2)>\" onload=\"alert(3)\u2028]]>-->&lt;b&gt;`
	p, _ := written(t, reelOf(t, []string{
		`{"id":"1","type":"text_delta","timestamp":1000,"source":"s","payload":{"agentId":"` + attack + `","content":"` + attack + `"}}`,
		`{"id":"2","type":"` + attack + `","timestamp":1100,"source":"` + attack + `","payload":{}}`,
		`{"id":"3","type":"error","timestamp":1200,"source":"s","payload":{"agentId":"a","severity":"error","message":"` + attack + `"}}`,
	}), webpage.Options{Style: film.Style{Caption: true}})
	assert.Equal(t, 2, strings.Count(strings.ToLower(p.text), "<script"))
	assert.Equal(t, 2, strings.Count(strings.ToLower(p.text), "</script"))
	assert.NotContains(t, p.text, "<img")
	assert.NotContains(t, p.text, "\u2028")
	for i := range p.Pictures {
		assert.NotRegexp(t, `<(img|script)|" onload="`, p.picture(i))
	}
	assert.Contains(t, p.text, "&lt;img src=x onerror=alert(2)&gt;", "the text is there, as text")
}
