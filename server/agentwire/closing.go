package agentwire

import (
	"context"
	"errors"

	"github.com/sajou-dev/sajou-go/agents"
	agentslive "github.com/sajou-dev/sajou-go/agents/live"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// closing is how the server ends a connection: the close code of a WebSocket and its
// reason. The reasons are constants: none tells more than its code.
type closing struct {
	code   int
	reason string
}

// The ends of connections. docs/protocol.md lists them with the remedies.
var (
	closeNormal      = closing{1000, ""}
	closeStopping    = closing{1001, "the server stops: connect again with the last view_seq"}
	closeFrame       = closing{1002, route.FaultOfFrames}
	closeBinary      = closing{1003, "messages are text frames"}
	closeTooBig      = closing{1009, "the message is too large"}
	closeInternal    = closing{1011, "the server failed"}
	closeProtocol    = closing{4000, "too many messages that cannot be read, or a first message that is not a hello"}
	closeToken       = closing{4001, "the caller is unknown: send a token"}
	closeHello       = closing{4002, "no hello came in time"}
	closeForbidden   = closing{4003, "not authorised"}
	closeAbsent      = closing{4004, "no such session or agent"}
	closeReplaced    = closing{4005, "another connection of the agent took over"}
	closeLeft        = closing{4006, "the agent has left"}
	closeHeld        = closing{4007, "the session has a simulation already"}
	closeSlow        = closing{1006, "the client does not read or answer"} // no frame reaches it, so the connection breaks
	closeUnavailable = closing{4008, "the store takes no entries"}
)

// closings are all ends, for the documentation.
func closings() []closing {
	return []closing{
		closeNormal, closeStopping, closeFrame, closeBinary, closeTooBig, closeInternal, closeProtocol, closeToken, closeHello,
		closeForbidden, closeAbsent, closeReplaced, closeLeft, closeHeld, closeSlow, closeUnavailable,
	}
}

// closingOf returns the end of a connection for an error.
func closingOf(err error) closing {
	switch p := absent(err); {
	case errors.Is(err, access.ErrUnauthenticated):
		return closeToken
	case errors.Is(err, access.ErrForbidden), errors.Is(err, access.ErrHidden):
		return closeForbidden
	case errors.Is(p, errAbsent):
		return closeAbsent
	case errors.Is(err, eventlog.ErrReadOnly):
		return closeUnavailable
	case errors.Is(err, eventlog.ErrClosed), errors.Is(err, problem.ErrStopping), errors.Is(err, context.Canceled):
		return closeStopping
	}
	return closeInternal
}

func isUnknownAgent(err error) bool { return errors.Is(err, agents.ErrUnknownAgent) }

// endOf returns the end of a connection whose reader of observations failed.
func endOf(err error) closing {
	if errors.Is(err, agentslive.ErrLeft) {
		return closeLeft
	}
	return closingOf(err)
}
