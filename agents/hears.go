package agents

// Hears reports whether an agent receives a message, which is any effect that
// somebody says something by. It is asked once the effect has been applied. An
// agent hears itself, and others whose effects it observes (see
// [Observer.Observes]) if
//
//   - the message is not for others: what is said in private is heard by its
//     target alone, and what is said to a team by the team
//   - the policy does not hide the field that keeps what was said, at an entity
//     that is in view
//
// A channel that cannot be read is heard by nobody else.
func (c *Core) Hears(agent string, e Effect) bool {
	a, ok := c.agents[agent]
	if !ok {
		return false
	}
	if e.SourceID == agent {
		return true
	}
	channel, err := channelOf(e)
	if err != nil {
		return false
	}
	eye := newEye(c.world.Reader, agent)
	if !a.observer.observes(eye, e) {
		return false
	}
	of, field := e.SourceID, "last_message"
	switch channel {
	case ChannelPrivate:
		of, field = agent, fieldPrivate
	case ChannelTeam:
		field = fieldTeam
	}
	return !a.observer.Sees(of) || a.observer.lens.policy.Shows(eye, of, field)
}
