package live

// Reasons returns the recorded reasons of missing verdicts.
func Reasons() []string {
	return []string{reasonNotAsked, reasonNoJudge, reasonHanging, reasonPanic, reasonTimeout}
}
