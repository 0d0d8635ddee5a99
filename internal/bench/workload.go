package main

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/choreography/definition"
	"github.com/sajou-dev/sajou-go/choreography/language"
	"github.com/sajou-dev/sajou-go/signal"
)

// The workload: agents at work, in signals of the sizes that real ones have,
// and choreographies that answer most of them, with interruptions.

const definitionText = `[
 {"on":"task_dispatch","steps":[
  {"action":"spawn","entity":"pigeon","at":"signal.from"},
  {"action":"fly","entity":"pigeon","to":"signal.to","duration":1200,"easing":"arc"},
  {"action":"onArrive","steps":[{"action":"destroy","entity":"pigeon"},{"action":"flash","target":"signal.to","color":"gold","duration":300}]},
  {"action":"onInterrupt","steps":[{"action":"destroy","entity":"pigeon"}]}]},
 {"on":"tool_call","steps":[
  {"action":"move","entity":"signal.agentId","to":"forge","duration":800,"easing":"easeInOut"},
  {"action":"parallel","steps":[
   {"action":"pulse","target":"forge","duration":400},
   {"action":"playSound","sound":"hammer"}]}]},
 {"on":"tool_result","when":{"signal.success":{"equals":false}},"steps":[{"action":"flash","target":"signal.agentId","color":"red","duration":200}]},
 {"on":"error","interrupts":true,"steps":[{"action":"flash","target":"signal.agentId","color":"red","duration":300},{"action":"playSound","sound":"alarm"}]}
]`

func definitions() ([]language.Declaration, error) {
	defs, diags := language.Parse("bench.json", []byte(definitionText))
	return defs, diags.Err(definition.ErrInvalid)
}

// makeSignal makes the nth signal. One comes every 250 ms.
func makeSignal(n int) (*signal.Signal, error) {
	agent := n % 5
	task := n / 8
	var typ, payload string
	switch n % 8 {
	case 0:
		typ, payload = "task_dispatch", fmt.Sprintf(`{"taskId":"task-%05d","from":"orchestrator","to":"agent-%d","description":"Collect what is known about case %d and sum it up"}`, task, agent, n*7919%100_003)
	case 1, 3:
		typ, payload = "tool_call", fmt.Sprintf(`{"toolName":"web_search","agentId":"agent-%d","callId":"call-%06d","input":{"query":"case %d, second opinion","limit":%d}}`, agent, n, n*104_729%1_000_003, n%50)
	case 2, 4:
		typ, payload = "tool_result", fmt.Sprintf(`{"toolName":"web_search","agentId":"agent-%d","callId":"call-%06d","success":%v,"output":{"resultCount":%d,"topResult":"document %d"}}`, agent, n-1, n%10 != 0, n%17, n*15_485_863%10_000_019)
	case 5:
		typ, payload = "token_usage", fmt.Sprintf(`{"agentId":"agent-%d","promptTokens":%d,"completionTokens":%d,"model":"some-model-4-5","cost":%.3f}`, agent, n%4000, n%900, float64(n%100)/1000+0.0005)
	case 6:
		if n%80 == 6 {
			typ, payload = "error", fmt.Sprintf(`{"agentId":"agent-%d","code":"E%d","message":"the tool did not answer in time","severity":"error"}`, agent, n%30)
		} else {
			typ, payload = "agent_state_change", fmt.Sprintf(`{"agentId":"agent-%d","from":"thinking","to":"acting","reason":"tool call %d"}`, agent, n)
		}
	default:
		typ, payload = "completion", fmt.Sprintf(`{"taskId":"task-%05d","agentId":"agent-%d","success":true,"result":"Summary %d written"}`, task, agent, n)
	}
	line := fmt.Appendf(nil, `{"id":"sig-%07d","type":"%s","timestamp":%d,"source":"adapter:bench","correlationId":"task-%05d","payload":%s}`,
		n, typ, 1_795_207_280_126+250*n, task, payload)
	return signal.Parse(line)
}

func makeSignals(n int) ([]*signal.Signal, error) {
	all := make([]*signal.Signal, n)
	for i := range all {
		var err error
		if all[i], err = makeSignal(i); err != nil {
			return nil, err
		}
	}
	return all, nil
}
