package main

import (
	"context"
	"encoding/base64"
	"encoding/binary"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
)

func (a *app) exportCommand() *cobra.Command {
	var raw, all bool
	cmd := &cobra.Command{
		Use:   "export [SESSION] [RANGE]",
		Short: "Write a session as JSONL",
		Long: `Export writes the signals of a session, one JSON object a line. Importing them
gives the same values again: 64-bit integers, floats and the order of members
are kept. Entries that are no signals are left out; with --all every entry is
written, in the form that cat -o jsonl has.

With --raw every entry is written with the very bytes that its hash covers, so
that anyone can recompute the chain: docs/verify_chain.py does it in a page of
Python. The first line names the session and its genesis hash.`,
		Example: `  sajou-replay export > session.jsonl
  sajou-replay export release-42 100..200
  sajou-replay export --raw release-42 | python3 docs/verify_chain.py -`,
		Args: between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if raw && all {
				return misuse("--raw writes every entry already; leave --all out")
			}
			session, rest, err := a.splitArgs(args)
			if err != nil {
				return err
			}
			if len(rest) > 1 {
				return misuse("too many arguments; usage: %s", cmd.UseLine())
			}
			t, err := a.target(session)
			if err != nil {
				return err
			}
			defer t.Close()
			text := ""
			if len(rest) == 1 {
				text = rest[0]
			}
			from, to, err := t.resolveRange(cmd.Context(), text)
			if err != nil {
				return err
			}
			o := a.output()
			o.format = "jsonl"
			switch {
			case raw:
				err = exportRaw(cmd.Context(), o, t, from, to)
			default:
				err = exportSignals(cmd.Context(), o, t, from, to, all)
			}
			if err != nil {
				return err
			}
			return o.Flush()
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "write the stored bytes in base64, for checking the chain")
	cmd.Flags().BoolVar(&all, "all", false, "write every entry, not only signals")
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

// each calls visit for every entry from one Seq to another.
func (t *target) each(ctx context.Context, from, to eventlog.Seq, visit func(*eventlog.Entry) error) error {
	if from > to {
		return nil
	}
	for e, err := range t.log.Entries(ctx, from) {
		if err != nil {
			return err
		}
		if e.Seq > to {
			break
		}
		if err := visit(&e); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func exportSignals(ctx context.Context, o *output, t *target, from, to eventlog.Seq, all bool) error {
	var line []byte
	return t.each(ctx, from, to, func(e *eventlog.Entry) error {
		switch {
		case all:
			line = sajou.AppendEntryJSON(line[:0], e)
		case e.Kind != eventlog.KindSignal:
			return nil
		default:
			sig, err := signal.Decode(e.Data)
			if err != nil {
				return &eventlog.EntryError{Seq: e.Seq, Op: "export", Err: err}
			}
			line = sig.AppendJSON(line[:0])
		}
		return o.item("", line)
	})
}

// rawEntry is a line of a raw export. Entry holds the bytes that the hash
// covers behind the hash before: the length as a uvarint, and the body.
type rawEntry struct {
	Session string       `json:"session"`
	Seq     eventlog.Seq `json:"seq"`
	Hash    string       `json:"hash"`
	Entry   string       `json:"entry"`
}

func exportRaw(ctx context.Context, o *output, t *target, from, to eventlog.Seq) error {
	header := struct {
		Session string `json:"session"`
		Genesis string `json:"genesis"`
	}{t.name, t.log.Genesis().String()}
	if from > 1 {
		return misuse("a raw export begins at entry 1, or its first link could not be checked")
	}
	line, err := marshal(header)
	if err != nil {
		return err
	}
	if err := o.item("", line); err != nil {
		return err
	}
	var stored []byte
	return t.each(ctx, from, to, func(e *eventlog.Entry) error {
		stored = binary.AppendUvarint(stored[:0], uint64(len(e.Body)))
		stored = append(stored, e.Body...)
		line, err := marshal(rawEntry{t.name, e.Seq, e.Hash.String(), base64.StdEncoding.EncodeToString(stored)})
		if err != nil {
			return err
		}
		return o.item("", line)
	})
}
