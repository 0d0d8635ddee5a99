package storefile

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// This file marks every table with the id of its store, so that a table of another
// store with the same name and size is detected.

// TableMark is the id of a store as a property of its tables. It implements
// [pebble.BlockPropertyCollector] and collects nothing.
type TableMark StoreID

const storeMarkName = "sajou.store"

var errNoSuffix = errors.New("eventlog: keys have no suffix to replace")

// Name implements [pebble.BlockPropertyCollector].
func (TableMark) Name() string { return storeMarkName }

// AddPointKey implements [pebble.BlockPropertyCollector].
func (TableMark) AddPointKey(pebble.InternalKey, []byte) error { return nil }

// AddRangeKeys implements [pebble.BlockPropertyCollector].
func (TableMark) AddRangeKeys(sstable.Span) error { return nil }

// AddCollectedWithSuffixReplacement implements [pebble.BlockPropertyCollector].
func (TableMark) AddCollectedWithSuffixReplacement(_, _, _ []byte) error { return errNoSuffix }

// SupportsSuffixReplacement implements [pebble.BlockPropertyCollector].
func (TableMark) SupportsSuffixReplacement() bool { return false }

// FinishDataBlock implements [pebble.BlockPropertyCollector].
func (TableMark) FinishDataBlock(buf []byte) ([]byte, error) { return buf, nil }

// AddPrevDataBlockToIndexBlock implements [pebble.BlockPropertyCollector].
func (TableMark) AddPrevDataBlockToIndexBlock() {}

// FinishIndexBlock implements [pebble.BlockPropertyCollector].
func (TableMark) FinishIndexBlock(buf []byte) ([]byte, error) { return buf, nil }

// FinishTable implements [pebble.BlockPropertyCollector].
func (m TableMark) FinishTable(buf []byte) ([]byte, error) { return append(buf, m...), nil }

// tableStore returns the id of the store that wrote a table; ok is false for a
// table from before SAJOU.
func tableStore(p *sstable.Properties) (id StoreID, ok bool) {
	if p == nil {
		return "", false
	}
	mark := p.UserProperties[storeMarkName]
	if len(mark) < 1 {
		return "", false
	}
	return StoreID(mark[1:]), true // Pebble's own number of the property is in front
}
