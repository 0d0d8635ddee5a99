package logcmd

import (
	"context"
	"encoding/base64"
	"encoding/binary"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Export returns the command "export".
func Export(a *cli.App) *cobra.Command {
	var raw, all bool
	cmd := &cobra.Command{
		Use:   "export [SESSION] [RANGE]",
		Short: "Write a session as JSONL",
		Long: `Export writes the signals of a session to stdout, one JSON object a line.
Importing them gives the same values: 64-bit integers, floats and the order of
payload members are kept. Other entries are left out.

--all writes every entry, in the form of cat -o jsonl.

--raw writes for every entry the bytes that its hash covers, in base64, so that
another program can recompute the chain; docs/verify_chain.py is such a program.
The first line has the name of the session and its genesis hash.`,
		Example: `  sajou-replay export > copy.jsonl
  sajou-replay export night-shift 30..40
  sajou-replay export --raw night-shift | python3 docs/verify_chain.py -`,
		Args: cli.Between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if raw && all {
				return cli.Misuse("--raw writes every entry already; omit --all")
			}
			session, over, err := a.SplitRange(cmd, args)
			if err != nil {
				return err
			}
			t, err := a.OpenSession(session)
			if err != nil {
				return err
			}
			defer t.Close()
			from, to, err := t.ResolveRange(cmd.Context(), over)
			if err != nil {
				return err
			}
			o := a.Output()
			o.Format = "jsonl"
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
	cmd.Flags().BoolVar(&raw, "raw", false, "write the bytes that the hashes cover, in base64")
	cmd.Flags().BoolVar(&all, "all", false, "write every entry, not signals alone")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

func exportSignals(ctx context.Context, o *cli.Output, t *cli.OpenedSession, from, to eventlog.Seq, all bool) error {
	var line []byte
	return t.Each(ctx, from, to, func(e *eventlog.Entry) error {
		switch {
		case all:
			line = session.AppendEntryJSON(line[:0], e)
		case e.Kind != eventlog.KindSignal:
			return nil
		default:
			sig, err := signal.Decode(e.Data)
			if err != nil {
				return &eventlog.EntryError{Seq: e.Seq, Op: "export", Err: err}
			}
			line = sig.AppendJSON(line[:0])
		}
		return o.Item("", line)
	})
}

// rawEntry is a line of a raw export. The hash of an entry covers the hash of
// the entry before it, followed by the bytes of Entry: the length of the body as
// a uvarint, and the body.
type rawEntry struct {
	Session string       `json:"session"`
	Seq     eventlog.Seq `json:"seq"`
	Hash    string       `json:"hash"`
	Entry   string       `json:"entry"`
}

func exportRaw(ctx context.Context, o *cli.Output, t *cli.OpenedSession, from, to eventlog.Seq) error {
	header := struct {
		Session string `json:"session"`
		Genesis string `json:"genesis"`
	}{t.Name, t.Log.Genesis().String()}
	if from > 1 {
		return cli.Misuse("a raw export must begin at entry 1, because the first link of the chain is checked from there; name a range such as 1..%d", to)
	}
	line, err := cli.Marshal(header)
	if err != nil {
		return err
	}
	if err := o.Item("", line); err != nil {
		return err
	}
	var stored []byte
	return t.Each(ctx, from, to, func(e *eventlog.Entry) error {
		stored = binary.AppendUvarint(stored[:0], uint64(len(e.Body)))
		stored = append(stored, e.Body...)
		line, err := cli.Marshal(rawEntry{t.Name, e.Seq, e.Hash.String(), base64.StdEncoding.EncodeToString(stored)})
		if err != nil {
			return err
		}
		return o.Item("", line)
	})
}
