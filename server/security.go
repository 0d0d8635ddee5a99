package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// maxEventsAnswer bounds the security events of one answer.
const maxEventsAnswer = 1000

// security answers questions about the security events.
type security struct{ events *access.Events }

func (s security) Routes() []route.Endpoint {
	var kinds []string
	for _, kind := range access.SecurityKinds() {
		kinds = append(kinds, string(kind))
	}
	return []route.Endpoint{{
		Pattern: "GET /api/v1/security/events", Scope: access.ScopeAdmin, Handler: s.list,
		Doc: &route.Doc{
			Summary: "The security events since the server began, as far as they are kept",
			Params: []route.Parameter{
				{Name: "after", Type: "integer", Text: "the number behind which the events begin; next of the answer before"},
				{Name: "kind", Enum: kinds, Text: "the kind of the events; all if absent"},
				{Name: "limit", Type: "integer", Text: "how many events at most, from 1 to 1000; 100 if absent"},
			},
			Success: []route.Success{{Status: http.StatusOK, Content: route.JSON("security-events")}},
			Errors:  []problem.ErrorCode{problem.BadRequest},
		},
	}}
}

// SecurityReport is the answer about security events: how many there were of each kind
// since the server began, those that were asked for, and the number from which the next
// question goes on.
type SecurityReport struct {
	Counts map[access.SecurityKind]uint64 `json:"counts"`
	Events []access.SecurityEvent         `json:"events"`
	Next   uint64                         `json:"next"`
}

// list answers with the kept events after the number "after", of the kind "kind", at most
// "limit" of them.
func (s security) list(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	after, limit := uint64(0), uint64(100)
	for _, p := range []struct {
		name  string
		value *uint64
	}{{"after", &after}, {"limit", &limit}} {
		if text := q.Get(p.name); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return problem.New(problem.BadRequest, fmt.Sprintf("%s=%.40q is not a whole number", p.name, text))
			}
			*p.value = n
		}
	}
	if limit == 0 || limit > maxEventsAnswer {
		return problem.New(problem.BadRequest, fmt.Sprintf("limit must be from 1 to %d", maxEventsAnswer))
	}
	kind := access.SecurityKind(q.Get("kind"))
	if kind != "" && !slices.Contains(access.SecurityKinds(), kind) {
		return problem.New(problem.BadRequest, fmt.Sprintf("kind=%.40q is not a kind of security event; use one of %v", kind, access.SecurityKinds()))
	}
	answer := SecurityReport{Counts: s.events.Counts(), Events: s.events.After(after, kind, int(limit)), Next: after}
	if n := len(answer.Events); n > 0 {
		answer.Next = answer.Events[n-1].Number
	} else {
		answer.Events = []access.SecurityEvent{}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(body, '\n')) // the caller may be gone
	return nil
}
