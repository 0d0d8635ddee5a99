package server

import "github.com/sajou-dev/sajou-go/server/route"

// Mount adds a route to a server, as a room of the tests.
func (s *Server) Mount(rt route.Endpoint) { s.mux.Handle(rt.Pattern, s.mounted(rt)) }
