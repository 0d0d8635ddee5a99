package film_test

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/ingest"
	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/source"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/stage/agentscene"
	"github.com/sajou-dev/sajou-go/stage/film"
	"github.com/sajou-dev/sajou-go/stage/overview"
	"github.com/sajou-dev/sajou-go/stage/picture"
)

// TestPicturesOfRecordings measures the pictures of recordings of agents: at ten moments, as
// a timeline and as a sequence diagram, no bubble or label overlaps another or a figure, and
// all are in the drawing.
func TestPicturesOfRecordings(t *testing.T) {
	folders := []string{"../agentscene/testdata"}
	if files := "../../../shared/data/real-sessions"; exists(files) {
		folders = append(folders, files)
	}
	drawn := 0
	for _, folder := range folders {
		list, err := source.Open(t.Context(), folder, source.Config{})
		require.NoError(t, err)
		defer list.Close()
		for _, rec := range list.Recordings {
			if rec.Recognized() {
				drawn++
				t.Run(filepath.Base(folder)+"/"+rec.Path, func(t *testing.T) { picturesOf(t, rec) })
			}
		}
	}
	assert.GreaterOrEqual(t, drawn, 2, "recordings that were drawn")
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func picturesOf(t *testing.T, rec source.Listed) {
	eng, err := sajou.Open("store", sajou.Config{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { assert.NoError(t, eng.Close()) }()
	ses, err := eng.Session(t.Context(), "a")
	require.NoError(t, err)
	r, err := ingest.NewRecorder(t.Context(), ses, ingest.Config{Definitions: agentscene.Declarations(), Lenient: true})
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.All(t.Context(), itemsOf(t, rec)))
	log, err := eng.Log().Session("a")
	require.NoError(t, err)
	travel, err := eng.Replay("a")
	require.NoError(t, err)
	reel := film.Open(log, travel)
	whole, err := reel.Interval(t.Context(), replay.Moment{Seq: 1}, replay.Moment{Seq: ses.Head().Seq})
	require.NoError(t, err)
	var cells []picture.Cell
	for shot, err := range reel.At(t.Context(), whole, whole.Spread(10)) {
		require.NoError(t, err)
		for _, style := range []film.Style{{Caption: true}, {Width: 320, Theme: picture.ThemeLight}, {Places: true}} {
			checkBoxes(t, fmt.Sprintf("%v, %+v", shot, style), reel.Draw(shot, style))
		}
		cells = append(cells, picture.Cell{Frame: shot.Frame, Caption: shot.String()})
	}
	checkBoxes(t, "sheet", picture.Sheet(cells, 0, picture.Options{Title: "a", Clock: true}))
	o, err := reel.Overview(t.Context(), whole)
	require.NoError(t, err)
	for _, opt := range []overview.Options{{Title: "a"}, {Title: "a", Width: 600, PerPage: 12}} {
		checkBoxes(t, "timeline", o.Timeline(opt))
		for n := range o.Pages(opt) {
			checkBoxes(t, fmt.Sprintf("page %d", n+1), o.Sequence(n+1, opt))
		}
	}
}

// itemsOf yields the signals of a recording.
func itemsOf(t *testing.T, rec source.Listed) iter.Seq2[recording.Item, error] {
	if rec.Format.Map != nil {
		return rec.Format.Open(rec.FS, rec.Name, recording.Options{Final: true}).Items()
	}
	in, err := rec.FS.Open(rec.Name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = in.Close() })
	return ingest.JSONL(in, rec.Name, true)
}

// checkBoxes requires that no text overlaps a text, a figure, a badge or a bar, except a text
// within its bar, and that all of them are in the drawing.
func checkBoxes(t *testing.T, name string, d *picture.Drawing) {
	t.Helper()
	w, h := d.Size()
	const e = .01
	solid := func(k picture.BoxKind) bool { return k == picture.BoxFigure || k == picture.BoxBadge }
	boxes := d.Boxes()
	for i, b := range boxes {
		if !solid(b.Kind) && (b.X < -e || b.Y < -e || b.X+b.W > w+e || b.Y+b.H > h+e) {
			require.Fail(t, "outside", "%s: %+v is not in the drawing of %v by %v", name, b, w, h)
		}
		for _, a := range boxes[:i] {
			switch {
			case a.X+a.W <= b.X+e, b.X+b.W <= a.X+e, a.Y+a.H <= b.Y+e, b.Y+b.H <= a.Y+e:
			case solid(a.Kind) && solid(b.Kind): // figures may stand before each other
			case a.Kind == picture.BoxBar && b.Kind == picture.BoxText && b.X >= a.X-e && b.X+b.W <= a.X+a.W+e && b.Y >= a.Y-e && b.Y+b.H <= a.Y+a.H+e:
			default:
				require.Fail(t, "overlap", "%s: %+v overlaps %+v", name, b, a)
			}
		}
	}
}
