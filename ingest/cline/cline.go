// Package cline reads the sessions of Cline: the document of its SDK, and the list of
// messages that its editor extension shows.
package cline

import (
	"path"

	"github.com/sajou-dev/sajou-go/ingest/recording"
	"github.com/sajou-dev/sajou-go/signal"
)

const (
	name    = "cline"
	agentID = "cline"
)

// The files of a task of the extension. The messages of the model repeat those that the
// extension shows, and have no times.
const (
	shownFile   = "ui_messages.json"
	historyFile = "api_conversation_history.json"
)

// Format returns the format.
//
// The document of the SDK has messages with blocks of text, calls and results. A message
// of the user without a result begins a turn; one of the assistant without a call ends it.
// The input tokens include those of the cache. A result has no flag of success: one is a
// failure if its content is an object, or a list of them, with an error or success false.
//
// The extension's ui_messages.json lists what was shown, by kinds (say, ask). Of tools it has
// the call and not the result, except for commands. The file api_conversation_history.json
// beside it is a part of the recording and not read.
func Format() recording.Format {
	return recording.Format{
		Name: name, Title: "Cline session", Agent: agentID,
		Recognized: "a document with agent, sessionId and messages[], or " + shownFile + " with ts, and say or ask",
		Detect: func(s *recording.Sample) string {
			switch {
			case s.Has("agent", "sessionId", "messages[].role", "messages[].content") && !s.Has("projectHash"):
				return "the document has agent, sessionId and messages[]"
			case s.Has("[].ts", "[].type") && (s.Has("[].say") || s.Has("[].ask")):
				return "the messages of a list have ts, type, and say or ask"
			}
			return ""
		},
		PartOf: func(p string) string {
			dir, base := path.Split(p)
			switch base {
			case historyFile, "task_metadata.json", "context_history.json", "focus_chain.md":
				return dir + shownFile
			}
			return ""
		},
		Map: func(in *recording.Recorded, m *recording.Mapping) error {
			doc, err := in.Document(in.Name)
			if err != nil {
				return err
			}
			s := &session{Mapping: m}
			if doc.Kind() == signal.KindArray {
				s.shown(in, doc)
				return nil
			}
			m.SetSession(doc.TextOf("sessionId"))
			m.Origin("role", doc.Member("agent"))
			m.Origin("version", doc.Member("version"))
			for i, rec := range in.Elements(in.Name, "/messages", doc.Member("messages")) {
				s.message(rec.Value, i)
			}
			return nil
		},
	}
}

// session is a reading of one recording.
type session struct {
	*recording.Mapping
	corr   string
	active bool   // the turn is not complete
	open   string // the last call of the extension without a result
}

func (s *session) prompt(corr, text string) {
	s.complete(true, "")
	s.corr, s.active = corr, true
	s.Dispatch(corr, corr, recording.User, agentID, text)
}

func (s *session) complete(success bool, result string) {
	if s.active {
		s.active = false
		s.Complete(s.corr, s.corr, agentID, success, result)
	}
}
