package sajou

// The members of some states are known before the first entry is read. They
// implement Closed of package replay/where, which refuses an expression that asks
// for another one.

// Vocabulary returns the names of all members that the session's view can have.
func (s *sessionState) Vocabulary() []string { return sessionMembers }

var sessionMembers = []string{"entries", "flagged", "origin", "time"}

// Vocabulary returns the names of the stage's members.
func (s *stageState) Vocabulary() []string { return s.Names() }

// Vocabulary returns the names of the world's parts.
func (s *worldState) Vocabulary() []string { return worldParts }
