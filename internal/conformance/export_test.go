package conformance

// ReadAgent reads a scenario about agents that is no file.
var ReadAgent = readAgent
