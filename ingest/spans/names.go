package spans

import "strings"

// Family is a convention for the names of attributes.
type Family string

// The families of names.
const (
	GenAI         Family = "gen_ai" // the semantic conventions of OpenTelemetry
	OpenInference Family = "OpenInference"
	Traceloop     Family = "Traceloop"
	Vendor        Family = "vendor" // of one platform or library
)

// field is what an attribute means.
type field uint8

const (
	operation field = iota // the kind of the span
	agentID
	agentName
	agentAbout
	toolName
	callID
	toolInput
	toolOutput
	workflowName
	inputMessages  // what the model was sent
	outputMessages // what the model answered
	inputValue     // what the span was given
	outputValue
	promptTokens
	completionTokens
	totalTokens
	cacheRead
	cacheWrite
	reasoning
	cost
	model
	provider
	conversation
	errorType
	errorFlag
	statusCode
	statusMessage
	fields // their number
)

// AttributeName is one name of an attribute that is read.
type AttributeName struct {
	Name    string
	Family  Family
	Version string // of the convention: "1.27-1.36", "from 1.37"; "" if it has none or the name is in all
	Meaning string

	field field
}

// meanings are the fields in words.
var meanings = [fields]string{
	operation: "kind of the span", agentID: "agent", agentName: "agent", agentAbout: "description of the agent",
	toolName: "tool", callID: "call", toolInput: "input of the tool", toolOutput: "output of the tool",
	workflowName: "workflow", inputMessages: "messages to the model", outputMessages: "messages of the model",
	inputValue: "input", outputValue: "output", promptTokens: "tokens of the input", completionTokens: "tokens of the output",
	totalTokens: "all tokens", cacheRead: "tokens read from a cache", cacheWrite: "tokens written to a cache",
	reasoning: "tokens of reasoning", cost: "cost", model: "model", provider: "provider", conversation: "session",
	errorType: "error", errorFlag: "error", statusCode: "status", statusMessage: "status",
}

// table has all names, by field. Of two names of one field on a span, the one that
// stands first counts.
var table = []AttributeName{
	{"gen_ai.operation.name", GenAI, "", "", operation},
	{"openinference.span.kind", OpenInference, "", "", operation},
	{"traceloop.span.kind", Traceloop, "", "", operation},
	{"aws.genai.span_kind", Vendor, "", "", operation},
	{"langsmith.span.kind", Vendor, "", "", operation},

	{"gen_ai.agent.id", GenAI, "", "", agentID},
	{"gen_ai.agent.name", GenAI, "", "", agentName},
	{"agent.name", OpenInference, "", "", agentName},
	{"graph.node.id", OpenInference, "", "", agentName},
	{"gen_ai.agent.description", GenAI, "", "", agentAbout},

	{"gen_ai.tool.name", GenAI, "", "", toolName},
	{"tool.name", OpenInference, "", "", toolName},
	{"traceloop.entity.name", Traceloop, "", "", toolName},
	{"gen_ai.tool.call.id", GenAI, "", "", callID},
	{"tool.id", OpenInference, "", "", callID},
	{"tool_call.id", OpenInference, "", "", callID},
	{"gen_ai.tool.call.arguments", GenAI, "", "", toolInput},
	{"gcp.vertex.agent.tool_call_args", Vendor, "", "", toolInput},
	// tool.parameters may be the schema of the tool instead of the arguments of the call, so
	// the input of the span comes before it.
	{"tool.parameters", OpenInference, "", "", toolInput},
	{"gen_ai.tool.call.result", GenAI, "", "", toolOutput},
	{"gcp.vertex.agent.tool_response", Vendor, "", "", toolOutput},
	{"traceloop.workflow.name", Traceloop, "", "", workflowName},
	{"gen_ai.workflow.name", GenAI, "", "", workflowName},

	{"gen_ai.input.messages", GenAI, "from 1.37", "", inputMessages},
	{"gen_ai.prompt", GenAI, "to 1.27", "", inputMessages},
	{"gen_ai.output.messages", GenAI, "from 1.37", "", outputMessages},
	{"gen_ai.completion", GenAI, "to 1.27", "", outputMessages},
	{"gcp.vertex.agent.llm_response", Vendor, "", "", outputMessages},
	{"input.value", OpenInference, "", "", inputValue},
	{"traceloop.entity.input", Traceloop, "", "", inputValue},
	{"output.value", OpenInference, "", "", outputValue},
	{"traceloop.entity.output", Traceloop, "", "", outputValue},

	{"gen_ai.usage.input_tokens", GenAI, "from 1.27", "", promptTokens},
	{"gen_ai.usage.prompt_tokens", GenAI, "to 1.26", "", promptTokens},
	{"llm.token_count.prompt", OpenInference, "", "", promptTokens},
	{"llm.usage.prompt_tokens", Traceloop, "", "", promptTokens},
	{"gen_ai.usage.output_tokens", GenAI, "from 1.27", "", completionTokens},
	{"gen_ai.usage.completion_tokens", GenAI, "to 1.26", "", completionTokens},
	{"llm.token_count.completion", OpenInference, "", "", completionTokens},
	{"llm.usage.completion_tokens", Traceloop, "", "", completionTokens},
	{"gen_ai.usage.total_tokens", GenAI, "", "", totalTokens},
	{"llm.token_count.total", OpenInference, "", "", totalTokens},
	{"llm.usage.total_tokens", Traceloop, "", "", totalTokens},
	{"gen_ai.usage.cache_read.input_tokens", GenAI, "", "", cacheRead},
	{"gen_ai.usage.cache_read_input_tokens", Traceloop, "", "", cacheRead},
	{"llm.token_count.prompt_details.cache_read", OpenInference, "", "", cacheRead},
	{"gen_ai.usage.cache_creation.input_tokens", GenAI, "", "", cacheWrite},
	{"gen_ai.usage.cache_write.input_tokens", GenAI, "", "", cacheWrite},
	{"gen_ai.usage.cache_creation_input_tokens", Traceloop, "", "", cacheWrite},
	{"llm.token_count.prompt_details.cache_write", OpenInference, "", "", cacheWrite},
	{"gen_ai.usage.reasoning.output_tokens", GenAI, "", "", reasoning},
	{"gen_ai.usage.reasoning_tokens", Traceloop, "", "", reasoning},
	{"llm.usage.reasoning_tokens", Traceloop, "", "", reasoning},
	{"llm.token_count.completion_details.reasoning", OpenInference, "", "", reasoning},
	{"llm.cost.total", OpenInference, "", "", cost},
	{"gen_ai.usage.cost", Vendor, "", "", cost},

	{"gen_ai.response.model", GenAI, "", "", model},
	{"gen_ai.request.model", GenAI, "", "", model},
	{"llm.model_name", OpenInference, "", "", model},
	{"gen_ai.provider.name", GenAI, "from 1.37", "", provider},
	{"gen_ai.system", GenAI, "to 1.36", "", provider},
	{"llm.provider", OpenInference, "", "", provider},
	{"llm.system", OpenInference, "", "", provider},
	{"gen_ai.conversation.id", GenAI, "", "", conversation},
	{"session.id", OpenInference, "", "", conversation},
	{"gcp.vertex.agent.session_id", Vendor, "", "", conversation},
	{"langsmith.metadata.session_id", Vendor, "", "", conversation},
	{"error.type", GenAI, "", "", errorType},

	// What Jaeger writes for the status of a span.
	{"otel.status_code", Vendor, "", "", statusCode},
	{"otel.status_description", Vendor, "", "", statusMessage},
	{"error", Vendor, "", "", errorFlag},
}

// numbered are the beginnings of names that hold messages by number, such as
// gen_ai.completion.0.content.
var numbered = []struct {
	prefix string
	field  field
}{
	{"gen_ai.completion.", outputMessages},
	{"llm.output_messages.", outputMessages},
	{"gen_ai.prompt.", inputMessages},
	{"llm.input_messages.", inputMessages},
}

// places finds the place of a name in table, and prefixes has the beginnings of names up to
// each dot, for attributes that are nested objects.
var places, prefixes = func() (map[string]int, map[string]bool) {
	p, q := make(map[string]int, len(table)), map[string]bool{}
	note := func(name string) {
		for i, c := range name {
			if c == '.' {
				q[name[:i]] = true
			}
		}
	}
	for i, n := range table {
		p[n.Name] = i
		note(n.Name)
	}
	for _, n := range numbered {
		note(n.prefix)
	}
	return p, q
}()

// AttributeNames returns the names of the attributes that are read. Of two names with one
// meaning on a span, the one that stands first counts; they are never added.
func AttributeNames() []AttributeName {
	list := make([]AttributeName, len(table))
	for i, n := range table {
		n.Meaning = meanings[n.field]
		list[i] = n
	}
	return list
}

// SpanKind is the part that a span has in a session of agents.
type SpanKind uint8

// The kinds.
const (
	Unknown   SpanKind = iota // the attributes must tell it
	Agent                     // an agent at work
	Workflow                  // agents at work together
	Tool                      // a call of a tool
	Chat                      // a call of a model
	Handoff                   // an agent gives its work to another one
	Chain                     // a step that is nothing else
	Transport                 // HTTP, queues and whatever else is no part of the session
)

// kinds are the values of the attributes that tell a kind. Values that are not listed, such as
// "unknown", tell nothing.
var kinds = map[string]SpanKind{
	"invoke_agent": Agent, "agent": Agent,
	"execute_tool": Tool, "tool": Tool,
	"chat": Chat, "text_completion": Chat, "generate_content": Chat, "llm": Chat,
	"invoke_workflow": Workflow, "workflow": Workflow,
	"agent_handoff": Handoff, "handoff": Handoff,
	"chain": Chain,
	"task":  Transport, "create_agent": Transport, "embeddings": Transport, "embedding": Transport, "retrieval": Transport,
	"retriever": Transport, "reranker": Transport, "guardrail": Transport, "evaluator": Transport, "prompt": Transport,
}

// kindOfValue returns the kind that an attribute tells.
func kindOfValue(text string) SpanKind {
	if len(text) > 32 {
		return Unknown
	}
	return kinds[strings.ToLower(text)]
}

// kindOfName returns the kind that the name of a span tells.
func kindOfName(name string) SpanKind {
	switch {
	case strings.HasPrefix(name, "invoke_agent "):
		return Agent
	case strings.HasPrefix(name, "execute_tool "):
		return Tool
	case strings.HasPrefix(name, "chat "), strings.HasPrefix(name, "call_llm"):
		return Chat
	}
	return Unknown
}
