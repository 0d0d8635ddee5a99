package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/projection"
)

func (a *app) lsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the sessions of the store",
		Long: `Ls lists the sessions of the store in the order they were begun: how many
entries each has, how much session time they span, and the head, which is worth
keeping elsewhere: verify --head can then show that nothing was cut off.`,
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
			for _, name := range names {
				log, err := engine.Log().Session(name)
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
			return o.end()
		},
	}
}
