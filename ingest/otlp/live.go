package otlp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/ingest/spans"
	"github.com/sajou-dev/sajou-go/signal"
)

// Live maps the parts of one trace, or of the logs of one session, in the order of their
// arrival, by the same rules as a file with them. Three things differ:
//
//   - the source of all signals is "otlp:" and the service that recorded the root, or "otlp";
//   - no signal says that a recording begins, or in which order the spans arrived;
//   - the ids of log records, on which the ids of their signals depend, are digests of
//     their content.
//
// The ids of the signals depend on the spans alone: further parts of the same trace add
// signals, and those of the parts before keep their ids. The error is about a part that
// [SplitSpans] and [SplitLogs] do not return.
func Live(parts []ExportPart) ([]*signal.Signal, error) {
	format := Format()
	source := format.Name
	format.Map = func(_ *recording.Recorded, m *recording.Mapping) error {
		c := spans.NewCollection(m)
		l := &logs{c: c}
		rooted := false
		for i := range parts {
			service, err := l.addPart(&parts[i])
			if err != nil {
				return fmt.Errorf("part %d: %w", i, err)
			}
			if root := parts[i].Parent == "" && !parts[i].Log; service != "" && (i == 0 || root && !rooted) {
				source = format.Name + ":" + service
				rooted = rooted || root
			}
		}
		if err := l.addSpans(); err != nil {
			return err
		}
		c.Map()
		return nil
	}
	var signals []*signal.Signal
	for item, err := range format.Open(nil, "live", recording.Options{MaxBad: 1}).Items() {
		if err != nil {
			return nil, err
		}
		sig := item.Signal
		if sig.Type == recording.TypeRecording || sig.Type == recording.TypeRemark && sig.Payload.TextOf("kind") == spans.RemarkOrder {
			continue
		}
		sig.Source = source
		signals = append(signals, sig)
	}
	return signals, nil
}

// addPart adds a part and returns the name of its service.
func (l *logs) addPart(p *ExportPart) (service string, err error) {
	if p.Log {
		digest := sha256.Sum256(p.Text)
		l.id = "log-" + hex.EncodeToString(digest[:8])
	}
	if p.JSON {
		v, _, err := recording.ParseJSON(p.Text)
		if err != nil {
			return "", err
		}
		return serviceOfPart(v), addDocument(l, recording.NativeRecord{Size: len(p.Text), Value: v})
	}
	reader := &protoReader{c: l.c, text: p.Text, logs: l}
	err = reader.export(0, len(p.Text), "")
	return reader.service, err
}

// serviceOfPart returns the name of the service of an export of one record in JSON.
func serviceOfPart(v signal.Value) string {
	for _, root := range []string{"resourceSpans", "resourceLogs"} {
		for r := range v.Member(root).Elements() {
			return service(r.Member("resource"))
		}
	}
	return ""
}
