package storefile

import "github.com/cockroachdb/pebble/v2"

// compactions decides when Pebble may compact: as Pebble's own scheduler does, but
// never while the disk is frozen. Nothing waits for a compaction, but Pebble would
// retry a failed one at once and forever.
//
// The embedded scheduler is the default one without its goroutine, which checks the
// limit every 100 ms; here Pebble asks it after each flush and each compaction.
type compactions struct {
	pebble.CompactionScheduler
	disk *FreezeFS
}

// NewCompactions returns a scheduler for the store that writes to disk.
func NewCompactions(disk *FreezeFS) pebble.CompactionScheduler {
	return &compactions{pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest(), disk}
}

// Register implements [pebble.CompactionScheduler].
func (c *compactions) Register(goroutinesEach int, db pebble.DBForCompaction) {
	c.CompactionScheduler.Register(goroutinesEach, thawedDB{db, c.disk})
}

// thawedDB allows no compaction while the disk is frozen.
type thawedDB struct {
	pebble.DBForCompaction
	disk *FreezeFS
}

// GetAllowedWithoutPermission implements [pebble.DBForCompaction].
func (d thawedDB) GetAllowedWithoutPermission() int {
	if d.disk.Frozen.Load() {
		return 0
	}
	return d.DBForCompaction.GetAllowedWithoutPermission()
}
