package eventlog

import "time"

// LogMetrics receives measurements of a log. Nothing is decided by them and nothing of
// them is recorded.
//
// The methods are called on the paths that they measure, by goroutines of the log, of
// its callers and of the store, several at once and some of them under locks. They must
// not wait, must not call the log, and must not panic. Durations are of [Config].Now and
// never negative. The interface gets no other methods: [CommittedRound] may get fields.
type LogMetrics interface {
	// Committed: the appends of a round are durable, or failed. It is called once for
	// each round that holds an entry, by one goroutine that waits for the disk, before
	// the appends of the round return.
	Committed(r CommittedRound)

	// FileSynced: a sync of a file of the store has returned. The role of the file is
	// "wal" for the write-ahead log, whose syncs make appends durable, "heads" for
	// [HeadsFile], "table", "manifest" or "other". One sync may serve several rounds.
	FileSynced(role string, took time.Duration, err error)

	// LogFailed: a write has failed, and from now on the log is read-only. It is called
	// at most once, also if no append is under way.
	LogFailed(cause error)
}

// CommittedRound is one write to the store: the batches that writers of one session
// appended together.
type CommittedRound struct {
	Session string
	Batches int
	Entries int
	Bytes   int           // of the sealed batches
	Took    time.Duration // from handing the round to the store until it was durable or had failed
	Err     error         // why it is not durable, nil if it is
}

// measured is the measurement of a commit under way.
type measured struct {
	CommittedRound
	began time.Time
}

// measure begins to measure a round that is about to be handed to the store. It returns
// nil without [Config].Metrics.
func (r *Round) measure() *measured {
	cfg := &r.session.log.cfg
	if cfg.Metrics == nil {
		return nil
	}
	return &measured{CommittedRound{Session: r.session.name, Batches: r.batches, Entries: r.entries, Bytes: r.bytes}, cfg.Now()}
}

// report reports a commit that has ended.
func (m *measured) report(cfg *Config, err error) {
	if m == nil {
		return
	}
	m.Took, m.Err = max(cfg.Now().Sub(m.began), 0), err
	cfg.Metrics.Committed(m.CommittedRound)
}
