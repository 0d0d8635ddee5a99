package record

import (
	"net/http"

	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/signal"
)

// SessionHeader names the session of a request to a route that does not name it.
const SessionHeader = route.SessionHeader

// sessionFor returns the name of the session for a signal of a request.
func (rv *Receiver) sessionFor(r *http.Request, sig *signal.Signal) (string, error) {
	name, err := route.NamedSession(r)
	if name != "" || err != nil {
		return name, err
	}
	return rv.SessionOf(sig), nil
}

// SessionOf returns the name of the session for a signal whose sender names none.
func (rv *Receiver) SessionOf(sig *signal.Signal) string {
	return rv.cfg.Split.Part(rv.cfg.Session, sig, rv.cfg.Now())
}
