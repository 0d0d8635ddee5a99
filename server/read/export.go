package read

import (
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest/otlpexport"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/internal/traces"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bookmark"
	"github.com/sajou-dev/sajou-go/replay/course"
	"github.com/sajou-dev/sajou-go/replay/export/asciicast"
	"github.com/sajou-dev/sajou-go/replay/export/mcap"
	"github.com/sajou-dev/sajou-go/replay/export/perfetto"
	"github.com/sajou-dev/sajou-go/replay/export/webpage"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/film"
)

// exportFormat is one form of an export.
type exportFormat struct {
	name, media, file string
	write             func(ctx context.Context, w io.Writer, q *request, s *recorded, over span) error
}

// exportFormats are the formats of the command export, with those of its flags --all and
// --raw.
var exportFormats = []exportFormat{
	{"signals", route.MediaNDJSON, "signals.jsonl", exportLines(session.ExportSignals)},
	{"entries", route.MediaNDJSON, "entries.jsonl", exportLines(session.ExportEntries)},
	{"raw", route.MediaNDJSON, "raw.jsonl", exportLines(session.ExportRaw)},
	{"otlp-json", route.MediaNDJSON, "traces.jsonl", exportTraces},
	{"otlp", "application/x-protobuf", "traces.pb", exportProtobuf},
	{"perfetto", route.MediaJSON, "trace.json", exportPerfetto},
	{"asciicast", "application/x-asciicast", "stage.cast", exportCast},
	{"html", "text/html; charset=utf-8", "session.html", exportPage},
	{"mcap", "application/octet-stream", "session.mcap", exportMCAP},
}

func (room *Library) exportRoutes() []route.Endpoint {
	var names []string
	var contents []route.Content
	for _, f := range exportFormats {
		names = append(names, f.name)
		if !slices.ContainsFunc(contents, func(c route.Content) bool { return c.Type == f.media }) {
			contents = append(contents, route.Content{Type: f.media})
		}
	}
	return []route.Endpoint{
		room.streamed("GET /api/v1/sessions/{session}/export", access.ScopeRead, route.Doc{
			Summary: "A session in the format of another program",
			Text:    "The bytes of the command export. A raw export begins at entry 1.",
			Params: []route.Parameter{
				{Name: "format", Enum: names, Text: "the format; signals if absent"},
				rangeParam(),
			},
			Success: []route.Success{{Status: 200, Content: contents}},
			Errors:  []problem.ErrorCode{problem.NoSession, problem.NoMoment},
		}, (*request).export),
	}
}

// export answers with an export.
func (q *request) export() error {
	s, err := q.session()
	if err != nil {
		return err
	}
	over, err := q.entryRange(s)
	if err != nil {
		return err
	}
	f := &exportFormats[0]
	if i := slices.IndexFunc(exportFormats, func(f exportFormat) bool { return f.name == q.get("format") }); i > 0 {
		f = &exportFormats[i]
	}
	if f.name == "raw" && over.from > 1 {
		return badRequest("a raw export must begin at entry 1, because the first link of the chain is checked from there; name a range such as 1..%d", over.to)
	}
	if over.from > over.to {
		return problem.New(problem.NoMoment, "the range has no entry")
	}
	v := over.version.in(f.name)
	if f.name == "html" {
		v = version{tag: v.tag, forever: false} // it has the bookmarks
	}
	if q.known(v) {
		return nil
	}
	h := q.w.Header()
	h.Set("Content-Type", f.media)
	h.Set("Content-Disposition", `attachment; filename="`+f.file+`"`)
	// A page has texts of the recording. It must not act on behalf of its reader here.
	h.Set("Content-Security-Policy", "sandbox allow-scripts")
	if q.r.Method == http.MethodHead {
		q.w.WriteHeader(http.StatusOK)
		return nil
	}
	out := q.stream()
	return out.end(f.write(q.ctx, out, q, s, over))
}

func exportLines(format session.ExportFormat) func(context.Context, io.Writer, *request, *recorded, span) error {
	return func(ctx context.Context, w io.Writer, _ *request, s *recorded, over span) error {
		for line, err := range session.ExportLines(ctx, s.log, format, over.from, over.to) {
			if err != nil {
				return err
			}
			if _, err := w.Write(append(termtext.PrintableJSON(line), '\n')); err != nil {
				return err
			}
		}
		return nil
	}
}

func exportTraces(ctx context.Context, w io.Writer, _ *request, s *recorded, over span) error {
	for line, err := range traces.Lines(ctx, s.log, over.from, over.to) {
		if err != nil {
			return err
		}
		if _, err := w.Write(append(termtext.PrintableJSON(line), '\n')); err != nil {
			return err
		}
	}
	return nil
}

func exportProtobuf(ctx context.Context, w io.Writer, _ *request, s *recorded, over span) error {
	for part, err := range otlpexport.Protobuf(traces.Lines(ctx, s.log, over.from, over.to)) {
		if err != nil {
			return err
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func exportPerfetto(ctx context.Context, w io.Writer, _ *request, s *recorded, over span) error {
	return perfetto.Write(ctx, w, s.travel, course.Passage{From: over.from, To: over.to})
}

func exportCast(ctx context.Context, w io.Writer, _ *request, s *recorded, over span) error {
	from, to := replay.Moment{Seq: over.from}, replay.Moment{Seq: over.to}
	if over.to >= s.log.Head().Seq {
		to = replay.Moment{} // with what follows the last entry
	}
	_, err := asciicast.Write(ctx, w, film.Open(s.travel, s.travel), from, to, asciicast.Options{Cols: 100, Rows: 30, Rate: 1, Idle: 2 * time.Second})
	return err
}

func exportPage(ctx context.Context, w io.Writer, q *request, s *recorded, over span) error {
	marks, err := q.marksIn(s, over.from, over.to)
	if err != nil {
		return err
	}
	o := webpage.Options{Most: webpage.DefaultMost, Bookmarks: marks}
	_, err = webpage.Write(ctx, w, film.Open(s.travel, s.travel), replay.Moment{Seq: over.from}, replay.Moment{Seq: over.to}, o)
	return err
}

func exportMCAP(ctx context.Context, w io.Writer, _ *request, s *recorded, over span) error {
	return mcap.Write(ctx, w, s.travel, over.from, over.to)
}

// marksIn returns the bookmarks of a range that are of this history, in the order of their
// moments.
func (q *request) marksIn(s *recorded, from, to eventlog.Seq) (marks []bookmark.Bookmark, err error) {
	book, err := q.room.bookmarks()
	if err != nil {
		return nil, err
	}
	for b := range book.All(s.travel.Name()) {
		if b.Head.Seq >= from && b.Head.Seq <= to && s.travel.CheckAnchor(q.ctx, b.Anchor) == nil {
			marks = append(marks, b)
		}
	}
	return marks, nil
}
