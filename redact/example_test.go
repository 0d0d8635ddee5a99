package redact_test

import (
	"fmt"

	"github.com/sajou-dev/sajou-go/redact"
	"github.com/sajou-dev/sajou-go/signal"
)

func ExampleCompile() {
	rules, diagnostics := redact.Compile("rules.yaml", []byte(`
except: [phone]
patterns:
  - {name: ticket, match: 'ACME-[0-9]+', replacement: '[TICKET]'}
paths: [/metadata/cwd]
`))
	if diagnostics != nil {
		fmt.Println(diagnostics)
		return
	}
	sig, err := signal.Parse([]byte(`{"id":"1","type":"text_delta","timestamp":0,"source":"s",
		"metadata":{"cwd":"/home/bob"},"payload":{"agentId":"a","content":"ACME-7: the API_KEY=abc123 of bob@example.com"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	redactor := rules.NewRedactor()
	fmt.Println(redactor.Redact(sig), redactor.Counts())
	fmt.Println(sig.Metadata)
	fmt.Println(sig.Payload)
	// Output:
	// 4 map[email:1 path:1 secret:1 ticket:1]
	// {"cwd":"[REDACTED]","redactions":{"email":1,"path":1,"secret":1,"ticket":1}}
	// {"agentId":"a","content":"[TICKET]: the API_KEY=[REDACTED] of [EMAIL]"}
}
