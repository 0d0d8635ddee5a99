package schema_test

import (
	"encoding/json"
	"flag"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/schematest"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/schema"
	"github.com/sajou-dev/sajou-go/signal"
)

var update = flag.Bool("update", false, "write the schemas of the views")

// generated are the schemas that follow types, with what they describe.
var generated = map[string]schematest.GeneratedSchema{
	"session":       {Of: answer.ListedView{}, Text: "A session in the list of a store."},
	"damaged":       {Of: answer.DamagedView{}, Text: "A session that cannot be read."},
	"tombstone":     {Of: answer.TombstoneView{}, Text: "A deleted session."},
	"info":          {Of: answer.InfoView{}, Text: "The summary of a session. Times are milliseconds of session time."},
	"frame":         {Of: answer.FrameView{}, Text: "The visible stage at a moment: what a renderer has to draw, from back to front. Lengths are units of the scene, times milliseconds of session time. A number that is not finite is null."},
	"agents":        {Of: answer.AgentsView{}, Text: "The agents that are registered at a moment."},
	"knowledge-at":  {Of: answer.UnprovenKnowledgeView{}, Text: "What an agent knew at a moment."},
	"sent":          {Of: answer.SentView{}, Text: "The first place where an agent was sent something."},
	"change-of":     {Of: answer.ChangeView{}, Text: "A change of a part of an agent's view."},
	"proof":         {Of: answer.ProofView{}, Text: "The result of a search of everything that an agent was sent."},
	"request":       {Of: answer.UnprovenRequestView{}, Text: "The fate of a request. Times are milliseconds of session time."},
	"blamed":        {Of: answer.BlamedView{}, Text: "What set a value last."},
	"setting":       {Of: answer.SettingView{}, Text: "One setting of a value."},
	"line":          {Of: answer.LineView{}, Text: "A line of a file with the call that wrote it, or a gap."},
	"minimal":       {Of: answer.MinimalView{}, Text: "A set of signals of which none can be left out."},
	"difference":    {Of: answer.DifferenceView{}, Text: "A difference between the view of an agent and that under another policy."},
	"tally":         {Of: answer.SummaryView{}, Text: "The number of the differences between two policies."},
	"slice":         {Of: answer.SliceView{}, Text: "The causal slice of a value."},
	"declaration":   {Of: answer.DeclarationView{}, Text: "A declaration in force, as it was written."},
	"defined":       {Of: answer.DefinedView{}, Text: "The result of bringing declarations into force."},
	"verified":      {Of: answer.VerifiedView{}, Text: "The result of the verification of a session."},
	"bisected":      {Of: answer.BisectView{}, Text: "The answer of a search with tests."},
	"interval":      {Of: answer.IntervalView{}, Text: "An interval at which an expression has one value."},
	"value":         {Of: answer.ValueView{}, Text: "The value of an expression at an entry."},
	"digest":        {Of: answer.DigestView{}, Text: "The digest of a projection."},
	"board-episode": {Of: answer.EpisodeView{}, Text: "How far an episode has come."},
	"board-beat":    {Of: answer.BeatView{}, Text: "How far a beat has come."},
	"board-choice":  {Of: answer.ChoiceView{}, Text: "What became of a choice point."},
	"board-turn":    {Of: answer.TurnView{}, Text: "What the director recorded of a turn."},
}

// special are the schemas of types with a JSON of their own.
var special = map[reflect.Type]any{
	reflect.TypeFor[signal.Value]():      map[string]any{},
	reflect.TypeFor[answer.NumberView](): map[string]any{"type": []string{"number", "null"}},
}

// The schemas of the views are those of their types.
func TestGenerated(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(generated)) {
		schematest.CheckDocument(t, filepath.Join("documents", name+".schema.json"), name, generated[name], special, *update)
	}
}

// The schema of problems has every code.
func TestProblemCodes(t *testing.T) {
	text, _ := schema.Get("problem")
	var doc struct {
		Properties struct {
			Code struct{ Enum []problem.ErrorCode }
		}
	}
	require.NoError(t, json.Unmarshal(text, &doc))
	var codes []problem.ErrorCode
	for _, class := range problem.Classes() {
		codes = append(codes, class.Code)
	}
	assert.Equal(t, codes, doc.Properties.Code.Enum)
}
