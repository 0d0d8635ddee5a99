package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/director/episode"
	"github.com/sajou-dev/sajou-go/internal/simulate"
	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/scene"
)

// schemas are the JSON Schemas that the packages export, in the order of the list.
var schemas = []struct {
	name, text string
	schema     func() []byte
}{
	{"signal", "an event that an outside source reports", signal.Schema},
	{"scene", "the initial stage", scene.Schema},
	{"episode", "the script of a scene of a story", episode.Schema},
	{"simulation", "a scenario of agents, for sim", simulate.Schema},
	{"config", "the configuration of a world of agents", agents.ConfigSchema},
	{"policy", "what an agent may see, and its settings", agents.PolicySchema},
	{"intent", "what an agent asks for", agents.IntentSchema},
	{"outcome", "what it is answered", agents.OutcomeSchema},
	{"effect", "an accepted event of the world", world.EffectSchema},
	{"view", "what an agent sees", view.ViewSchema},
	{"delta", "what an agent is sent when its view changes", view.DeltaSchema},
}

func schemaCommand(a *cli.App) *cobra.Command {
	names := make([]string, len(schemas))
	for i, s := range schemas {
		names[i] = s.name
	}
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON Schema of a file or message",
		Long: `Schema prints a JSON Schema (draft 2020-12) of what people and programs write and
read. Without NAME it lists the schemas. An editor that knows a schema completes
and checks a file while it is written.`,
		Example: `  sajou-replay schema
  sajou-replay schema scene > scene.schema.json`,
		Args:      cli.Between(0, 1),
		ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listSchemas(a)
			}
			for _, s := range schemas {
				if s.name != args[0] {
					continue
				}
				if a.Format == "text" {
					_, err := a.Stdout.Write(s.schema())
					return err
				}
				return a.Output().One("", json.RawMessage(s.schema()))
			}
			hint := "list them with: sajou-replay schema"
			if meant, ok := spelling.Nearest(args[0], names); ok {
				hint = fmt.Sprintf("did you mean %q?", meant)
			}
			return cli.Misuse("there is no schema %q; %s", args[0], hint)
		},
	}
}

func listSchemas(a *cli.App) error {
	o := a.Output()
	for _, s := range schemas {
		if err := o.ItemOf(fmt.Sprintf("%-12s %s", s.name, s.text), map[string]any{"name": s.name, "text": s.text}); err != nil {
			return err
		}
	}
	return o.End()
}
