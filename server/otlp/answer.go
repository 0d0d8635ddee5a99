package otlp

import (
	"net/http"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	otlpformat "github.com/sajou-dev/sajou-go/ingest/otlp"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/signal"
)

// mediaProtobuf is the media type of OTLP in protobuf.
const mediaProtobuf = "application/x-protobuf"

// success returns the answer to an export: an ExportTraceServiceResponse or an
// ExportLogsServiceResponse, which differ in the name of one member alone.
func success(refused otlpformat.RefusedParts, rejected string, inJSON bool) (mediaType string, body []byte) {
	text := ""
	if refused.Count > 0 {
		text = strconv.Itoa(refused.Count) + " refused; the first one is " + refused.First
	}
	if inJSON {
		answer := signal.NewObject(1)
		if refused.Count > 0 {
			// Integers of 64 bits are texts in the JSON of protobuf.
			answer.Add("partialSuccess", signal.NewObject(2).Text(rejected, strconv.Itoa(refused.Count)).Text("errorMessage", text).Value())
		}
		return route.MediaJSON, answer.Value().AppendJSON(nil)
	}
	if refused.Count > 0 {
		partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(refused.Count))
		partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType), text)
		body = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
	}
	return mediaProtobuf, body
}

// The codes of google.rpc.Status.
const (
	codeUnknown           = 2
	codeInvalidArgument   = 3
	codeDeadlineExceeded  = 4
	codeNotFound          = 5
	codePermissionDenied  = 7
	codeResourceExhausted = 8
	codeInternal          = 13
	codeUnavailable       = 14
	codeUnauthenticated   = 16
)

var codes = map[int]int{
	http.StatusBadRequest:            codeInvalidArgument,
	http.StatusUnauthorized:          codeUnauthenticated,
	http.StatusForbidden:             codePermissionDenied,
	http.StatusNotFound:              codeNotFound,
	http.StatusGone:                  codeNotFound,
	http.StatusRequestTimeout:        codeDeadlineExceeded,
	http.StatusRequestEntityTooLarge: codeInvalidArgument,
	http.StatusUnsupportedMediaType:  codeInvalidArgument,
	http.StatusTooManyRequests:       codeResourceExhausted,
	http.StatusInternalServerError:   codeInternal,
	http.StatusServiceUnavailable:    codeUnavailable,
}

// status is the form of errors of OTLP: a google.rpc.Status in the encoding of the
// request. An exporter sends again after 429, 502, 503 and 504, and drops the spans after
// every other status, so a full disk and a request that took too long are 503 here.
func status(r *http.Request, p *problem.Details) (status int, mediaType string, body []byte) {
	status = p.Status()
	if status == http.StatusInsufficientStorage || status == http.StatusRequestTimeout || status == http.StatusConflict {
		status = http.StatusServiceUnavailable
	}
	code, known := codes[status]
	if !known {
		code = codeUnknown
	}
	if inJSON, err := encodingOf(r); err == nil && !inJSON {
		body = protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(code))
		return status, mediaProtobuf, protowire.AppendString(protowire.AppendTag(body, 2, protowire.BytesType), p.Detail)
	}
	return status, route.MediaJSON, signal.NewObject(2).Int("code", int64(code)).Text("message", p.Detail).Value().AppendJSON(nil)
}
