package stage

// The limits that the tests exceed.
const (
	MaxEntities = maxEntities
	MaxBeams    = maxBeams
	MaxSounds   = maxSounds
	MaxRecent   = maxRecent
)
