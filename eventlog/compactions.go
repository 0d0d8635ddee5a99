package eventlog

import "github.com/cockroachdb/pebble/v2"

// compactions decides when Pebble may compact: as its own scheduler does, and
// never while the disk is frozen. Compactions only tidy up, so nothing waits
// for them, but Pebble would try a failed one again at once and for ever.
//
// The scheduler beneath is the default one without its goroutine, which looks
// every 100 ms whether the limit has changed; here it is asked after each
// flush and each compaction.
type compactions struct {
	pebble.CompactionScheduler
	disk *freezeFS
}

func newCompactions(disk *freezeFS) *compactions {
	return &compactions{pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest(), disk}
}

// Register implements [pebble.CompactionScheduler].
func (c *compactions) Register(goroutinesEach int, db pebble.DBForCompaction) {
	c.CompactionScheduler.Register(goroutinesEach, thawedDB{db, c.disk})
}

// thawedDB allows no compaction while the disk is frozen.
type thawedDB struct {
	pebble.DBForCompaction
	disk *freezeFS
}

// GetAllowedWithoutPermission implements [pebble.DBForCompaction].
func (d thawedDB) GetAllowedWithoutPermission() int {
	if d.disk.frozen.Load() {
		return 0
	}
	return d.DBForCompaction.GetAllowedWithoutPermission()
}
