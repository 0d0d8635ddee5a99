package answer

import (
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/eventlog/verify"
	"github.com/sajou-dev/sajou-go/internal/errtext"
	"github.com/sajou-dev/sajou-go/session"
)

// FaultView is the entry at which a chain breaks.
type FaultView struct {
	Seq    eventlog.Seq     `json:"seq"`
	Kind   verify.FaultKind `json:"kind"`
	Detail string           `json:"detail"`
}

// KeyFaultView is a record of an idempotency key that differs from the entries.
type KeyFaultView struct {
	Seq    eventlog.Seq        `json:"seq"`
	Key    string              `json:"key"`
	Kind   verify.KeyFaultKind `json:"kind"`
	Detail string              `json:"detail"`
}

// StoreFaultView is damage of the store outside of chains.
type StoreFaultView struct {
	Kind   verify.StoreFaultKind `json:"kind"`
	Number uint32                `json:"number,omitempty"`
	Detail string                `json:"detail"`
}

// VerifiedView is the result for one session.
type VerifiedView struct {
	Session   string            `json:"session"`
	Verified  bool              `json:"verified"`
	Head      *session.HeadView `json:"head,omitempty"`
	Fault     *FaultView        `json:"fault,omitempty"`
	Keys      []KeyFaultView    `json:"keys,omitempty"`
	KeyFaults int               `json:"keyFaults,omitempty"`
	Rebuilt   int               `json:"rebuilt,omitempty"` // idempotency records that were rebuilt
	Store     *StoreFaultView   `json:"store,omitempty"`

	// Deleted is when the session was deleted; nothing is verified then, and the head
	// is the one that it had.
	Deleted *time.Time `json:"deleted,omitempty"`

	Fork *ForkView `json:"fork,omitempty"` // the label of a fork
}

// ViewVerified returns the view of the report of a session.
func ViewVerified(r *verify.SessionReport) VerifiedView {
	head := session.ViewHead(r.Head)
	v := VerifiedView{Session: r.Session, Verified: r.Whole(), Head: &head, KeyFaults: r.KeyFaults}
	if f := r.Fault; f != nil {
		v.Fault = ViewFault(f)
	}
	for _, f := range r.Keys {
		v.Keys = append(v.Keys, KeyFaultView{f.Seq, f.Key, f.Kind, errtext.OneLine(f.Detail)})
	}
	return v
}

// ViewFault returns the view of a fault.
func ViewFault(f *verify.Fault) *FaultView {
	return &FaultView{f.Seq, f.Kind, errtext.OneLine(f.Detail)}
}

// ViewDeleted returns the view of a session that was deleted.
func ViewDeleted(t *eventlog.Tombstone) VerifiedView {
	head := session.ViewHead(t.Head)
	return VerifiedView{Session: t.Session, Head: &head, Deleted: &t.At}
}

// ViewStoreFault returns the view of damage of the store.
func ViewStoreFault(f *verify.StoreFault) VerifiedView {
	return VerifiedView{Session: f.Session, Store: &StoreFaultView{f.Kind, f.Number, errtext.OneLine(f.Detail)}}
}

// ForkView is the label of a fork.
type ForkView struct {
	Parent     string           `json:"parent"`
	Head       session.HeadView `json:"head"`
	At         eventlog.Seq     `json:"at"`
	Entries    eventlog.Seq     `json:"entries"`
	Incomplete bool             `json:"incomplete,omitempty"`
	Of         *ForkView        `json:"fork,omitempty"`
}

// ViewFork returns the label of a fork whose Head is head, nil for no
// label.
func ViewFork(f *session.Fork, head eventlog.Head) *ForkView {
	if f == nil {
		return nil
	}
	v := &ForkView{Parent: f.Parent, Head: session.ViewHead(f.Head), At: f.At, Entries: f.Entries, Incomplete: !f.Complete(head)}
	if f.Of != nil {
		v.Of = ViewFork(f.Of, f.Head)
	}
	return v
}
