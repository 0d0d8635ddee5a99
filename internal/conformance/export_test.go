package conformance

// PlayedCase makes a case of the text of a file about the director.
func PlayedCase(name string, data []byte) Case { return playedCase(name, data) }

// ReadAgent reads a scenario about agents that is no file.
var ReadAgent = readAgent
