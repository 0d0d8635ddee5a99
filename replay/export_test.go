package replay

import "github.com/sajou-dev/sajou-go/eventlog"

// Split sets how the searches of r are divided.
func (r *Replay) Split(workers int, entries eventlog.Seq) { r.split = split{workers, entries} }
