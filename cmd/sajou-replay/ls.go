package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
)

func (a *app) lsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the sessions of the store",
		Long: `Ls lists the sessions of the store in the order they were begun: how many
entries each has, how much session time they span, and the head, which is worth
keeping elsewhere: verify --head can then show that nothing was cut off. A
session whose newest entries cannot be read is listed as damaged; the exit code
is then 1.`,
		Example: `  sajou-replay ls
  sajou-replay ls -o jsonl`,
		Args: between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			engine, err := a.openReading()
			if err != nil {
				return err
			}
			defer engine.Close()
			names, err := engine.Sessions()
			if err != nil {
				return err
			}
			width := 7
			for _, name := range names {
				width = max(width, len([]rune(name)))
			}
			o := a.output()
			var damaged error
			for _, name := range names {
				log, err := engine.Log().Session(name)
				if errors.Is(err, eventlog.ErrCorrupt) {
					// The others are listed all the same.
					a.about, damaged = name, err
					text := fmt.Sprintf("%-*s  damaged", min(width, 40), printable(name))
					value, err := marshal(map[string]any{"session": name, "damaged": true})
					if err != nil {
						return err
					}
					if err := o.item(text, value); err != nil {
						return err
					}
					continue
				}
				if err != nil {
					return err
				}
				head, at := log.Head(), log.At()
				value, err := marshal(struct {
					Session string   `json:"session"`
					Entries uint64   `json:"entries"`
					At      float64  `json:"at"`
					Head    headView `json:"head"`
				}{name, uint64(head.Seq), projection.Millis(at), viewHead(head)})
				if err != nil {
					return err
				}
				text := fmt.Sprintf("%-*s  %8d entries  %12s  %v", min(width, 40), printable(name), head.Seq, clockText(at), head)
				if err := o.item(text, value); err != nil {
					return err
				}
			}
			if err := o.end(); err != nil {
				return err
			}
			return damaged
		},
	}
}
