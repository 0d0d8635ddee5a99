package read

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

func (room *Library) sessionRoutes() []route.Endpoint {
	return []route.Endpoint{
		room.computed("GET /api/v1/sessions", access.ScopeRead, route.Doc{
			Summary: "The sessions of the store",
			Text:    "In the order in which they were begun, those alone that the caller may read.",
			Params: []route.Parameter{
				{Name: "deleted", Type: "boolean", Text: "list the deleted sessions instead"},
				formatParam(),
			},
			Success: []route.Success{{Status: 200, Content: listed("sessions", "session-item")}},
			Errors:  []problem.ErrorCode{problem.NotAcceptable},
		}, (*request).sessions),
		room.computed("GET /api/v1/sessions/{session}", access.ScopeRead, route.Doc{
			Summary: "The summary of a session",
			Params:  []route.Parameter{{Name: "short", Type: "boolean", Text: "leave out what the agents did, which reads every signal"}},
			Success: []route.Success{{Status: 200, Content: route.JSON("info")}},
			Errors:  []problem.ErrorCode{problem.NoSession},
		}, (*request).info),
	}
}

// sessions lists the sessions.
func (q *request) sessions() error {
	deleted, err := q.flag("deleted")
	if err != nil {
		return err
	}
	l, err := q.newList()
	if err != nil {
		return err
	}
	if deleted {
		err = q.listDeleted(l)
	} else {
		err = q.listSessions(l)
	}
	if err != nil {
		return err
	}
	if q.known(bodyVersion(l.data)) {
		return nil
	}
	return l.send()
}

func (q *request) listSessions(l *list) error {
	names, err := q.room.engine.Sessions()
	if err != nil {
		return err
	}
	caller := access.From(q.ctx)
	for _, name := range names {
		if !caller.May(access.ScopeRead, name) {
			continue
		}
		log, err := q.room.engine.Log().Session(name)
		if errors.Is(err, eventlog.ErrCorrupt) {
			if err := l.add(answer.DamagedView{Session: name, Damaged: true}); err != nil {
				return err
			}
			continue
		}
		if errors.Is(err, eventlog.ErrNoSession) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		bytes, err := q.room.engine.Log().DiskSize(q.ctx, name)
		if err != nil {
			return err
		}
		v, _, err := answer.ViewListed(q.ctx, log, bytes)
		if err != nil {
			return err
		}
		if err := l.add(v); err != nil {
			return err
		}
	}
	return nil
}

func (q *request) listDeleted(l *list) error {
	tombs, err := q.room.engine.Tombstones()
	if err != nil {
		return err
	}
	caller := access.From(q.ctx)
	for i := range tombs {
		if !caller.May(access.ScopeRead, tombs[i].Session) {
			continue
		}
		if err := l.add(answer.ViewTombstone(&tombs[i])); err != nil {
			return err
		}
	}
	return nil
}

// bodyVersion is the version of an answer that depends on more than entries: on the disk,
// or on what the caller may read.
func bodyVersion(body []byte) version {
	sum := sha256.Sum256(body)
	return version{tag: hex.EncodeToString(sum[:16])}
}

// info answers with the summary of a session.
func (q *request) info() error {
	short, err := q.flag("short")
	if err != nil {
		return err
	}
	s, err := q.session()
	if err != nil {
		return err
	}
	v, _, _, err := answer.Info(q.ctx, s.log, s.travel, short)
	if err != nil {
		return err
	}
	engine, name := q.room.engine, s.log.Name()
	if v.Bytes, err = engine.Log().DiskSize(q.ctx, name); err != nil {
		return err
	}
	usage, err := engine.Log().DiskUsage()
	if err != nil {
		return err
	}
	v.Store = answer.ViewUsage(usage)
	if snaps := engine.Snapshots(); snaps != nil {
		list, err := snaps.List(name)
		if err != nil {
			return err
		}
		v.Snapshots = len(list)
	}
	if _, v.Index, err = engine.IndexUsage(name); err != nil {
		return err
	}
	body, err := answer.Marshal(v)
	if err != nil {
		return err
	}
	// The sizes on the disk change without an entry.
	version := bodyVersion(body)
	version.tag = fmt.Sprintf("%d:%s;%s", v.Head.Seq, v.Head.Hash, version.tag)
	if q.known(version) {
		return nil
	}
	return q.one(v)
}
