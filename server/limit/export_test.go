package limit

// Known returns the number of callers whose rate is known.
func (l *Limits) Known() int { return len(l.callers.newer) + len(l.callers.older) }
