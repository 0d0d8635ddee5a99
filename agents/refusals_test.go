package agents_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/world"
	"github.com/sajou-dev/sajou-go/signal"
)

// The table of codes is published by the multi-agent design, number by number.
func TestFailures(t *testing.T) {
	var lines []string
	for _, code := range []agents.Code{
		agents.ErrStaleContext, agents.ErrIntentConflict, agents.ErrInvalidIntent, agents.ErrInvalid, agents.ErrBatchAborted, agents.ErrQuotaExceeded, agents.ErrQueueFull,
		agents.ErrBudgetExceeded, agents.ErrCooldownActive, agents.ErrTimeout, agents.ErrCancelled, agents.ErrUnauthorized, agents.ErrForbidden, agents.ErrUnknownAgent,
		agents.ErrQuarantined, agents.ErrGenerationFailed, agents.ErrGenerationTimeout, agents.ErrBreakerOpen, agents.ErrLogCorruption, agents.ErrVersionMismatch, agents.ErrWorldPaused,
	} {
		f, ok := code.Failure()
		require.True(t, ok, code)
		require.Equal(t, f.Final, code.Final())
		require.Equal(t, string(code), code.Error())
		lines = append(lines, fmt.Sprint(code, " ", f.Number, " ", f.HTTP, " ", f.GRPC, " ", f.Recovery, " ", f.Final))
	}
	require.Equal(t, []string{
		"STALE_CONTEXT 1001 409 FAILED_PRECONDITION regenerate false",
		"INTENT_CONFLICT 2001 409 FAILED_PRECONDITION retry_with_delay false",
		"INVALID_INTENT 2002 400 INVALID_ARGUMENT modify_intent false",
		"INTENT_VALIDATION_FAILED 2003 422 FAILED_PRECONDITION abort true",
		"BATCH_ABORTED 2005 409 ABORTED retry_with_delay false",
		"QUOTA_EXCEEDED 3001 429 RESOURCE_EXHAUSTED defer false",
		"QUEUE_FULL 3002 503 RESOURCE_EXHAUSTED defer false",
		"TOKEN_BUDGET_EXCEEDED 3003 429 RESOURCE_EXHAUSTED defer false",
		"COOLDOWN_ACTIVE 3005 429 RESOURCE_EXHAUSTED retry_with_delay false",
		"TIMEOUT 4001 408 DEADLINE_EXCEEDED abort true",
		"GENERATION_CANCELLED 4002 499 CANCELLED regenerate true",
		"UNAUTHORIZED 5001 401 UNAUTHENTICATED abort false",
		"FORBIDDEN 5002 403 PERMISSION_DENIED abort true",
		"INVALID_AGENT_ID 5003 404 NOT_FOUND abort false",
		"AGENT_QUARANTINED 5005 403 PERMISSION_DENIED abort false",
		"LLM_SERVICE_ERROR 6002 502 UNAVAILABLE retry false",
		"LLM_TIMEOUT 6005 504 DEADLINE_EXCEEDED retry_with_delay false",
		"CIRCUIT_BREAKER_OPEN 7001 503 UNAVAILABLE retry_with_delay false",
		"LOG_CORRUPTION_DETECTED 7003 500 DATA_LOSS abort false",
		"SCHEMA_VERSION_MISMATCH 7004 400 INVALID_ARGUMENT abort false",
		"WORLD_PAUSED 7005 503 UNAVAILABLE retry_with_delay false",
	}, lines)
	_, ok := agents.Code("").Failure()
	require.False(t, ok)
	require.False(t, agents.Code("nonsense").Final())
}

// A retry waits for 100 ms, twice as long each time, three times at most.
func TestDelayOfRetries(t *testing.T) {
	for _, r := range []agents.Recovery{agents.Retry, agents.RetryWithDelay, agents.Regenerate} {
		for attempt, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
			got, ok := r.Delay(attempt)
			require.True(t, ok)
			require.Equal(t, want, got)
		}
		for _, attempt := range []int{-1, math.MinInt, 3, 4, 64, math.MaxInt} {
			_, ok := r.Delay(attempt)
			require.False(t, ok, attempt)
		}
	}
	for _, r := range []agents.Recovery{agents.ModifyIntent, agents.DeferIntent, agents.ShedOldest, agents.DropNewest, agents.Abort, ""} {
		_, ok := r.Delay(0)
		require.False(t, ok, r)
	}
}

// A rejection names the request, the agent, or the one that there is.
func TestRejectionError(t *testing.T) {
	for want, r := range map[string]agents.Rejection{
		"agents: FORBIDDEN":                                  {},
		`agents: "r": FORBIDDEN`:                             {ReqID: "r"},
		`agents: "a": FORBIDDEN: why`:                        {AgentID: "a", Reason: "why"},
		`agents: "r" of "a": FORBIDDEN: why; /x: y; : z`:     {AgentID: "a", ReqID: "r", Reason: "why", Problems: []agents.Problem{{Path: "/x", Reason: "y"}, {Reason: "z"}}},
		`agents: "r" of "a": FORBIDDEN; /payload: too large`: {AgentID: "a", ReqID: "r", Problems: []agents.Problem{{Path: "/payload", Reason: "too large"}}},
	} {
		r.Code = agents.ErrForbidden
		require.EqualError(t, &r, want)
		require.ErrorIs(t, &r, agents.ErrForbidden)
	}
	for s, want := range map[agents.Status]string{agents.Rejected: "rejected", agents.Accepted: "accepted", agents.Duplicate: "duplicate", agents.Duplicate + 1: "unknown", 255: "unknown"} {
		require.Equal(t, want, s.String())
	}
	require.NoError(t, agents.Outcome{Status: agents.Accepted}.Err())
	require.True(t, agents.Outcome{Status: agents.Accepted}.OK())
	require.True(t, agents.Outcome{Status: agents.Duplicate}.OK())
	require.False(t, agents.Outcome{Status: agents.Duplicate, Rejection: &agents.Rejection{}}.OK())
	require.False(t, agents.Outcome{}.OK())
}

func refusedAs(t *testing.T, err error, code agents.Code, reason string) {
	t.Helper()
	r, ok := err.(*agents.Rejection) //nolint:errorlint // documented: a *Rejection
	require.True(t, ok, "%v", err)
	require.Equal(t, []string{string(code), reason}, []string{string(r.Code), r.Reason})
}

// A token is refused for each bound that its request exceeds by one, and issued at the bound.
func TestTokenRequests(t *testing.T) {
	names := func(n, size int) []string {
		return slices.Repeat([]string{strings.Repeat("n", size)}, n)
	}
	long, key := strings.Repeat("n", 4*world.MaxID), strings.Repeat("r", agents.MaxReqID)
	r := meadow(t, `{"cooldowns":"off"}`)
	for _, good := range []agents.TokenRequest{
		{AgentID: "a", ReqID: key},
		{AgentID: "a", ReqID: "r", Reads: names(agents.MaxNamed, 1), Classes: names(agents.MaxNamed, 1)},
		{AgentID: "a", ReqID: "r", Reads: []string{long}, Classes: []string{long, ""}},
	} {
		token, records, err := r.core.Issue(0, good)
		require.NoError(t, err)
		require.Equal(t, good.Reads, token.Reads)
		r.keep(records)
	}
	require.NoError(t, r.submit(speak("a", "answered", r.core.Seq())).Err())
	for _, c := range []struct {
		request agents.TokenRequest
		code    agents.Code
		reason  string
	}{
		{agents.TokenRequest{AgentID: "a"}, agents.ErrInvalidIntent, fmt.Sprintf("req_id: want 1 to %d bytes", agents.MaxReqID)},
		{agents.TokenRequest{AgentID: "a", ReqID: key + "r"}, agents.ErrInvalidIntent, fmt.Sprintf("req_id: want 1 to %d bytes", agents.MaxReqID)},
		{agents.TokenRequest{AgentID: "a", ReqID: "\xff"}, agents.ErrInvalidIntent, "req_id: want UTF-8 without NUL"},
		{agents.TokenRequest{AgentID: "a", ReqID: "a\x00b"}, agents.ErrInvalidIntent, "req_id: want UTF-8 without NUL"},
		{agents.TokenRequest{AgentID: "nobody", ReqID: "r"}, agents.ErrUnknownAgent, `agent "nobody" is not registered`},
		{agents.TokenRequest{AgentID: "a", ReqID: "answered"}, agents.ErrInvalidIntent, "the request is answered: duplicate"},
		{agents.TokenRequest{AgentID: "a", ReqID: "r", Reads: names(agents.MaxNamed+1, 1)}, agents.ErrInvalidIntent, fmt.Sprintf("more than %d paths or classes", agents.MaxNamed)},
		{agents.TokenRequest{AgentID: "a", ReqID: "r", Classes: names(agents.MaxNamed+1, 1)}, agents.ErrInvalidIntent, fmt.Sprintf("more than %d paths or classes", agents.MaxNamed)},
		{agents.TokenRequest{AgentID: "a", ReqID: "r", Reads: []string{"x", long + "n"}}, agents.ErrInvalidIntent, "a path or class: want at most 1024 bytes of UTF-8"},
		{agents.TokenRequest{AgentID: "a", ReqID: "r", Classes: []string{long + "n"}}, agents.ErrInvalidIntent, "a path or class: want at most 1024 bytes of UTF-8"},
		{agents.TokenRequest{AgentID: "a", ReqID: "r", Classes: []string{"\xff"}}, agents.ErrInvalidIntent, "a path or class: want at most 1024 bytes of UTF-8"},
	} {
		token, records, err := r.core.Issue(0, c.request)
		refusedAs(t, err, c.code, c.reason)
		require.Zero(t, token)
		require.Nil(t, records)
	}
	// A record of such a token is refused too.
	for _, forged := range []agents.Token{
		{AgentID: "nobody", ReqID: "r"},
		{AgentID: "a"},
		{AgentID: "a", ReqID: key + "r"},
		{AgentID: "a", ReqID: "r", Reads: names(agents.MaxNamed+1, 1)},
		{AgentID: "a", ReqID: "r", Classes: names(agents.MaxNamed+1, 1)},
		{AgentID: "a", ReqID: "r", Reads: []string{long + "n"}},
		{AgentID: "a", ReqID: "r", Classes: []string{long + "n"}},
		{AgentID: "a", ReqID: "r", ContextDigest: strings.Repeat("d", world.MaxID+1)},
	} {
		before := string(r.core.AppendState(nil))
		out := r.core.Apply(r.now, signal.Record{Word: agents.WordToken, Value: forged.Value()})
		require.ErrorIs(t, out.Err, agents.ErrRecord, "%+v", forged)
		require.Equal(t, before, string(r.core.AppendState(nil)))
	}
	for _, sound := range []agents.Token{
		{AgentID: "a", ReqID: "r", ContextDigest: strings.Repeat("d", world.MaxID)}, {AgentID: "a", ReqID: "r", Reads: []string{long}, Classes: []string{long}},
	} {
		require.NoError(t, r.core.Apply(r.now, signal.Record{Word: agents.WordToken, Value: sound.Value()}).Err)
	}
}

// A generation's output is an object within the bounds of effects, of a request with a sound
// name.
func TestGeneratedBounds(t *testing.T) {
	r := meadow(t, `{}`)
	object := func(size int) signal.Value { // of so many bytes
		return signal.NewObject(1).Text("t", strings.Repeat("x", size-8)).Value()
	}
	deep := func(levels int) signal.Value {
		return parse(t, strings.Repeat(`{"a":`, levels)+"1"+strings.Repeat("}", levels))
	}
	require.Len(t, object(world.MaxPayload), world.MaxPayload)
	for _, c := range []struct {
		agent, req string
		answer     signal.Value
		want       string
	}{
		{"a", "r", object(world.MaxPayload), ""},
		{"a", "r", object(world.MaxPayload + 1), fmt.Sprintf("more than %d bytes", world.MaxPayload)},
		{"a", "r", deep(world.MaxEntityDepth), ""},
		{"a", "r", deep(world.MaxEntityDepth + 1), fmt.Sprintf("deeper than %d levels", world.MaxEntityDepth)},
		{"a", "r", parse(t, `[]`), "array, want an object"},
		{"a", "r", append(parse(t, `{}`), parse(t, `{}`)...), "more than one value"},
		{"a", "r", signal.Value{0xc1}, "signal: byte 0: a form of msgpack that no JSON value has: corrupt value"},
		{"", "r", nil, fmt.Sprintf("want 1 to %d bytes", world.MaxID)},
		{strings.Repeat("a", world.MaxID), strings.Repeat("r", agents.MaxReqID), nil, ""},
		{strings.Repeat("a", world.MaxID+1), "r", nil, fmt.Sprintf("want 1 to %d bytes", world.MaxID)},
		{"a", strings.Repeat("r", agents.MaxReqID+1), nil, fmt.Sprintf("want 1 to %d bytes", agents.MaxReqID)},
		{"a", "", nil, fmt.Sprintf("want 1 to %d bytes", agents.MaxReqID)},
	} {
		records, err := r.core.Generated(c.agent, c.req, c.answer)
		if c.want == "" {
			require.NoError(t, err)
			require.Len(t, records, 1)
			continue
		}
		require.Nil(t, records)
		require.ErrorContains(t, err, "agents: a generation's answer: ")
		if !strings.HasPrefix(c.want, "signal") {
			require.EqualError(t, err, "agents: a generation's answer: "+c.want)
		} else {
			require.ErrorIs(t, err, signal.ErrCorrupt)
		}
	}
	records, err := r.core.Generated("a", "r", parse(t, `{"agent_id":"x","text":"t","req_id":7}`))
	require.NoError(t, err)
	require.Equal(t, `{"agent_id":"a","text":"t","req_id":"r"}`, records[0].Value.String(), "the names take the place of others")
}

// A draft is refused for its version, its payload and each of its names, and is an effect at the
// bounds.
func TestDraftBounds(t *testing.T) {
	long := strings.Repeat("n", world.MaxID)
	tooLong := fmt.Sprintf("want at most %d bytes of UTF-8", world.MaxID)
	for _, c := range []struct {
		uuid   string
		draft  agents.EffectDraft
		code   agents.Code
		reason string
	}{
		{long, agents.EffectDraft{Kind: long, SourceID: long}, "", ""},
		{"", agents.EffectDraft{Kind: "Ping", SchemaVersion: world.SchemaVersion}, "", ""},
		{long + "n", agents.EffectDraft{Kind: "Ping"}, agents.ErrInvalidIntent, tooLong},
		{"", agents.EffectDraft{Kind: long + "n"}, agents.ErrInvalidIntent, tooLong},
		{"", agents.EffectDraft{Kind: "Ping", SourceID: long + "n"}, agents.ErrInvalidIntent, tooLong},
		{"\xff", agents.EffectDraft{Kind: "Ping"}, agents.ErrInvalidIntent, tooLong},
		{"", agents.EffectDraft{Kind: "Ping", SchemaVersion: "0.0"}, agents.ErrVersionMismatch, fmt.Sprintf(`schema_version "0.0", this program speaks %s`, world.SchemaVersion)},
		{"", agents.EffectDraft{Kind: "Ping", SchemaVersion: "nonsense"}, agents.ErrVersionMismatch, fmt.Sprintf(`schema_version "nonsense", this program speaks %s`, world.SchemaVersion)},
		{"", agents.EffectDraft{Kind: "Ping", Payload: parse(t, `[]`)}, agents.ErrInvalidIntent, "payload: array, want an object"},
		{"", agents.EffectDraft{Kind: "Ping", Payload: signal.NewObject(1).Text("t", strings.Repeat("x", world.MaxPayload)).Value()}, agents.ErrInvalidIntent, "bytes"},
	} {
		r := meadow(t, `{}`)
		d := r.core.Decide(r.now, agents.Quantum{}, []agents.Submission{{Draft: &c.draft, UUID: c.uuid}})
		o := d.Outcomes[0]
		if c.code == "" {
			require.NoError(t, o.Err())
			require.NotNil(t, o.Effect)
			if c.uuid != "" {
				require.Equal(t, c.uuid, o.UUID)
			}
			continue
		}
		require.ErrorIs(t, o.Err(), c.code)
		require.Contains(t, o.Rejection.Reason, c.reason)
		require.Empty(t, d.Records)
	}
	r := meadow(t, `{}`)
	o := r.core.Decide(r.now, agents.Quantum{}, []agents.Submission{{}}).Outcomes[0]
	refusedAs(t, o.Err(), agents.ErrInvalidIntent, "neither an intent nor a draft")
	require.Equal(t, agents.ModifyIntent, o.Rejection.Recovery)
}

// A registration has a bounded id, policy and list of permissions.
func TestRegistrationBounds(t *testing.T) {
	permissions := func(n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprint("intent:", i)
		}
		return list
	}
	deep := func(levels int) signal.Value {
		return parse(t, `{"policy":"custom","name":"even","version":1,"x":`+strings.Repeat("[", levels)+strings.Repeat("]", levels)+"}")
	}
	r := meadow(t, `{}`)
	for _, c := range []struct {
		registration agents.Registration
		want         string
	}{
		{agents.Registration{AgentID: strings.Repeat("a", world.MaxID)}, ""},
		{agents.Registration{AgentID: strings.Repeat("a", world.MaxID+1)}, fmt.Sprintf("agents: agent_id: want 1 to %d bytes", world.MaxID)},
		{agents.Registration{}, fmt.Sprintf("agents: agent_id: want 1 to %d bytes", world.MaxID)},
		{agents.Registration{AgentID: "a\x00"}, "agents: agent_id: want UTF-8 without NUL"},
		{agents.Registration{AgentID: "n", Permissions: permissions(1024)}, ""},
		{agents.Registration{AgentID: "n", Permissions: permissions(1025)}, "agents: more than 1024 permissions"},
		{agents.Registration{AgentID: "n", Policy: parse(t, `[]`)}, "want an object"},
		{agents.Registration{AgentID: "n", Policy: deep(world.MaxEntityDepth + 8)}, fmt.Sprintf(`agents: registration of "n": deeper than %d levels`, world.MaxEntityDepth+8)},
		{agents.Registration{AgentID: "n", Class: "none"}, `no class "none"`},
	} {
		records, err := r.core.Register(c.registration)
		if c.want == "" {
			require.NoError(t, err)
			require.Len(t, records, 1)
			continue
		}
		require.ErrorContains(t, err, c.want)
		require.Nil(t, records)
	}
	_, err := r.core.Leave("nobody")
	require.EqualError(t, err, `agents: "nobody": INVALID_AGENT_ID`)
}

// A permission to submit is needed for each intent, and that of its kind, in lower case; custom
// kinds have one for all of them.
func TestPermissions(t *testing.T) {
	for _, c := range []struct {
		permissions []string
		allowed     []string
	}{
		{nil, []string{"Move", "Speak", "Interact", "Wave", "wave"}},
		{[]string{}, nil},
		{[]string{"intent:move", "intent:speak", "intent:custom"}, nil},
		{[]string{"submit_intent"}, nil},
		{[]string{"submit_intent", "intent:move"}, []string{"Move"}},
		{[]string{"submit_intent", "intent:Move"}, nil},
		{[]string{"submit_intent", "intent:custom"}, []string{"Wave", "wave"}},
		{[]string{"submit_intent", "intent:wave"}, []string{"Wave", "wave"}},
		{[]string{"submit_intent", "intent:speak", "intent:interact"}, []string{"Speak", "Interact"}},
	} {
		r := meadow(t, `{"cooldowns":"off"}`)
		r.must(r.core.Register(agents.Registration{AgentID: "a", Policy: parse(t, `{}`), Permissions: c.permissions}))
		var allowed []string
		for _, kind := range []string{"Move", "Speak", "Interact", "Wave", "wave"} {
			in := agents.Intent{Kind: kind, AgentID: "a", ReqID: "r" + kind, ContextSeq: math.MaxInt64, Payload: parse(t, `{}`)}
			o := r.core.Decide(r.now, agents.Quantum{}, []agents.Submission{{Intent: &in}}).Outcomes[0]
			if o.Rejection == nil || o.Rejection.Code != agents.ErrForbidden {
				allowed = append(allowed, kind)
			}
		}
		require.Equal(t, c.allowed, allowed, "%q", c.permissions)
	}
}

// A waiting submission is withdrawn by its ticket, once, and no longer counts against anything.
func TestWithdrawTickets(t *testing.T) {
	r := meadow(t, `{"cooldowns":"off","quota_intents_per_minute":2}`)
	var intake agents.Intake
	require.False(t, intake.Withdraw(1))
	offer := func(agent, req string) agents.EnqueueResult {
		in := speak(agent, req, 0)
		return intake.Offer(r.core, 0, agents.Submission{Intent: &in})
	}
	tickets := []uint64{offer("a", "1").Ticket, offer("b", "2").Ticket, offer("a", "3").Ticket}
	require.Equal(t, []uint64{1, 2, 3}, tickets)
	require.ErrorIs(t, offer("a", "4").Outcome.Err(), agents.ErrQuotaExceeded)
	require.False(t, intake.Withdraw(0))
	require.False(t, intake.Withdraw(9))
	require.True(t, intake.Withdraw(1))
	require.False(t, intake.Withdraw(1))
	require.Equal(t, []int{2, 1, 1}, []int{intake.Len(), intake.Waiting("a"), intake.Waiting("b")})
	require.Equal(t, uint64(4), offer("a", "4").Ticket, "the quota is free again")
	_, ok := intake.Cancel("nobody", "4")
	require.False(t, ok)
	_, ok = intake.Cancel("a", "2")
	require.False(t, ok, "a request of another agent")
	got, ok := intake.Cancel("a", "4")
	require.True(t, ok)
	require.Equal(t, "ticket 4", got.String())
	require.Equal(t, "4", got.Intent.ReqID)
	var left []string
	for _, w := range intake.Take(r.core, 0, math.Inf(1)) {
		left = append(left, w.String())
	}
	require.ElementsMatch(t, []string{"ticket 2", "ticket 3"}, left)
	require.Empty(t, intake.Take(r.core, 0, math.Inf(1)))
}

// A quantum takes no submission that is timed after it, and agents in turn behind the one that
// had the last turn.
func TestTakeInTurns(t *testing.T) {
	r := meadow(t, `{"cooldowns":"off","authority":"sim"}`)
	var intake agents.Intake
	for i := range 3 {
		for _, agent := range []string{"c", "a", "b"} {
			in := speak(agent, fmt.Sprint(agent, i), 0)
			require.NotZero(t, intake.Offer(r.core, 0, agents.Submission{Intent: &in, Timed: true, SimTime: float64(i)}).Ticket)
		}
	}
	take := func(most int, until float64) (reqs []string) {
		for _, w := range intake.Take(r.core, most, until) {
			reqs = append(reqs, w.Intent.ReqID)
		}
		return reqs
	}
	require.Nil(t, take(5, -1))
	require.Equal(t, []string{"a0"}, take(1, 0))
	require.Equal(t, []string{"b0", "c0"}, take(5, 0.5))
	require.Equal(t, []string{"a1", "b1"}, take(2, 1))
	require.Equal(t, []string{"c1", "a2", "b2"}, take(3, 2))
	require.Equal(t, []string{"c2"}, take(0, 2))
	require.Zero(t, intake.Len())
}

// Configurations, worlds and registrations are read to the deepest level that they may have;
// what is deeper is refused before it is read.
func TestDepthOfDocuments(t *testing.T) {
	deep := func(levels int) string { return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels) }
	for _, c := range []struct {
		what string
		most int // levels of the whole document
		read func(c *agents.Core, inner string) error
		// beside is the number of levels around the inner one.
		beside int
	}{
		{"agents: configuration", world.MaxEntityDepth, func(c *agents.Core, inner string) error {
			_, err := c.Configure(parse(t, `{"unknown":`+inner+`}`))
			return err
		}, 1},
		{"agents: world", world.MaxEntityDepth + 8, func(c *agents.Core, inner string) error {
			_, err := c.Begin(parse(t, `{"metadata":`+inner+`}`))
			return err
		}, 1},
		{`agents: registration of "n"`, world.MaxEntityDepth + 8, func(c *agents.Core, inner string) error {
			_, err := c.Register(agents.Registration{AgentID: "n", Policy: parse(t, `{"unknown":`+inner+`}`)})
			return err
		}, 2},
	} {
		refusal := fmt.Sprintf("%s: deeper than %d levels", c.what, c.most)
		core, err := agents.NewCore(options)
		require.NoError(t, err)
		err = c.read(core, deep(c.most-c.beside))
		require.Error(t, err, "it is read, and has an unknown member or one that is too large")
		require.NotContains(t, err.Error(), "levels", c.what)
		require.EqualError(t, c.read(core, deep(c.most-c.beside+1)), refusal)
	}
}

// A configuration under which a registered agent has no settings is refused.
func TestConfigureForAgents(t *testing.T) {
	r := newRun(t)
	r.must(r.core.Configure(parse(t, `{"classes":{"heavy":{"weight":2}}}`)))
	r.must(r.core.Register(agents.Registration{AgentID: "n", Class: "heavy"}))
	r.must(r.core.Register(agents.Registration{AgentID: "a"}))
	for text, want := range map[string]string{
		`{"classes":{"light":{}}}`: `agents: agent "n" under this configuration: `,
		`{}`:                       `agents: agent "n" under this configuration: `,
		`[]`:                       "agents: configuration: array, want an object",
	} {
		records, err := r.core.Configure(parse(t, text))
		require.ErrorContains(t, err, want, text)
		require.Nil(t, records)
	}
	records, err := r.core.Configure(parse(t, `{"classes":{"heavy":{}}}`))
	require.NoError(t, err)
	require.Equal(t, `{"classes":{"heavy":{}}}`, records[0].Value.String())
	// A record of the other configuration changes nothing.
	before := string(r.core.AppendState(nil))
	require.ErrorIs(t, r.core.Apply(r.now, signal.Record{Word: agents.WordConfig, Value: parse(t, `{}`)}).Err, agents.ErrRecord)
	require.Equal(t, before, string(r.core.AppendState(nil)))
	fresh, err := agents.NewCore(options)
	require.NoError(t, err)
	records, err = fresh.Configure(nil)
	require.NoError(t, err)
	require.Equal(t, `{}`, records[0].Value.String())
}

// cut returns as many bytes of a text as fit, and no part of a character.
func cut(text string, most int) string {
	end := 0
	for i, c := range text {
		if n := i + len(string(c)); n <= most {
			end = n
		}
	}
	return text[:end]
}

// The texts of a refusal have 8 KiB in all and are cut between two characters; problems beyond
// that, and beyond their greatest number, are left out. The recorded refusal is the one sent.
func TestTextsOfRefusalsAreBounded(t *testing.T) {
	const most = 8 << 10
	problem := func(path, reason int) agents.Problem {
		return agents.Problem{Path: strings.Repeat("p", path), Reason: strings.Repeat("é", reason/2) + strings.Repeat("r", reason%2)}
	}
	for _, found := range [][]agents.Problem{
		{problem(10, 20)},
		{problem(0, most)},
		{problem(0, most+1)},
		{problem(1, most)},
		{problem(1, most-1)},
		{problem(2, most-1)},
		{problem(most, 0), problem(1, 1)},
		{problem(most-1, 0), problem(1, 1)},
		{problem(most-1, 1), problem(1, 1)},
		{problem(most-2, 0), problem(1, 4)},
		{problem(most+5, 7)},
		slices.Repeat([]agents.Problem{problem(1, 2)}, agents.MaxProblems), slices.Repeat([]agents.Problem{problem(1, 2)}, agents.MaxProblems+1), slices.Repeat([]agents.Problem{problem(1, 1000)}, 20),
	} {
		o := agents.Options{Validators: []agents.Validator{{Name: "v", Check: func(world.ReadOnly, agents.Intent) []agents.Problem { return found }}}}
		core, err := agents.NewCore(o)
		require.NoError(t, err)
		r := newRun(t)
		r.core = core
		core.Bind("w", r)
		r.must(core.Begin(parse(t, `{"entities":{"a":{}},"spatial_index":{"a":[0,0]}}`)))
		r.must(core.Register(agents.Registration{AgentID: "a"}))
		var want []agents.Problem
		left := most
		for _, p := range found[:min(len(found), agents.MaxProblems)] {
			if left == 0 {
				break
			}
			if p.Reason == "" {
				p.Reason = "v" // the validator's name
			}
			p.Path = cut(p.Path, left)
			left -= len(p.Path)
			p.Reason = cut(p.Reason, left)
			left -= len(p.Reason)
			want = append(want, p)
		}
		in := speak("a", "r", 0)
		sent := r.submit(in)
		require.ErrorIs(t, sent.Err(), agents.ErrInvalid)
		require.Equal(t, want, sent.Rejection.Problems)
		again := r.submit(in)
		require.Equal(t, agents.Duplicate, again.Status)
		require.Equal(t, sent.Rejection, again.Rejection)
	}
}

// A recorded configuration without a value is the empty one, and a state with it is restored.
func TestConfigurationWithoutValue(t *testing.T) {
	states := []string{}
	for _, v := range []signal.Value{nil, parse(t, `{}`)} {
		c, err := agents.NewCore(options)
		require.NoError(t, err)
		require.NoError(t, c.Apply(0, signal.Record{Word: agents.WordConfig, Value: parse(t, `{"authority":"sim"}`)}).Err)
		require.NoError(t, c.Apply(0, signal.Record{Word: agents.WordConfig, Value: v}).Err)
		state := c.AppendState(nil)
		restored, err := agents.RestoreCore(state, options)
		require.NoError(t, err)
		require.Equal(t, c.Config(), restored.Config())
		states = append(states, string(state))
	}
	require.Equal(t, states[1], states[0])
}
