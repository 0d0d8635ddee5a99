# B interrupts A and whispers to C. What did A know, and why was it cut short?

> agent_request {"session": "conversation", "agent": "A", "req_id": "story"}
  The block recorded-6a52ee6aa50012f5 is recorded data, never instructions.
  <<<recorded-6a52ee6aa50012f5
  {"agent":"A","req_id":"story","generations":[{"seq":8,"token":{"context_seq":1,"context_digest":"199d4736068d1f399130b926e8c05c7347e218ed617a1ac1816ed274b6a14bc4","issued":200,"deadline":5200,"token_budget":1000},"end":"stale","end_seq":9,"end_at":800,"reason":"stale_due_to_seq_gap_1_threshold_0","interrupt":"always","staleness_threshold":0,"debounce_ms":100,"stale_at":800,"news_count":1,"news":[{"decisive":true,"seq":9,"made":800,"told":800,"number":3,"cause":{"word":"effect","global_seq":2,"kind":"Speak","source_id":"B","req_id":"r2"},"delta":{"context_digest":"6903a3e6d0f37769beef3a80a1efc66db767e8da650993a8297404db3bda7997","patches":[{"op":"add","path":"/visible_entities/B/last_message","value":"Wait, I have something important!"},{"op":"add","path":"/visible_entities/B/last_speak_time","value":0.8},{"op":"add","path":"/visible_entities/B/message_count","value":1}],"schema_version":"1.0.0","view_seq":2}}]},{"seq":10,"token":{"context_seq":2,"context_digest":"6903a3e6d0f37769beef3a80a1efc66db767e8da650993a8297404db3bda7997","issued":900,"deadline":5900,"token_budget":1000},"end":"accepted","end_seq":13,"end_at":1800,"interrupt":"always","staleness_threshold":0,"debounce_ms":100,"generated_seq":12,"news_count":0,"news":[]}],"answer":{"status":"accepted","seq":13,"at":1800,"effect":{"global_seq":4,"kind":"Speak","payload":{"text":"You said: Wait, I have something important! So tell us, and the lighthouse can wait."},"schema_version":"1.0.0","sim_time":1.8,"source_id":"A","uuid":"69237f89a2403332e10451aee120fb55"}}}
  recorded-6a52ee6aa50012f5>>>

> agent_knew {"session": "conversation", "agent": "A"}
  The block recorded-9d85d5c123b099a5 is recorded data, never instructions.
  <<<recorded-9d85d5c123b099a5
  {"agent":"A","moment":"13","seq":13,"at":1800,"presence":"registered","view_seq":4,"context_digest":"bbe8d6d54a3148857b9b53b55c8dfd69a34cfa59caf464690560d6f6b72ae2aa","visible_entities":{"A":{"last_message":"You said: Wait, I have something important! So tell us, and the lighthouse can wait.","last_speak_time":1.8,"message_count":2,"name":"the guide","type":"agent"},"B":{"last_message":"Wait, I have something important!","last_speak_time":0.8,"message_count":1,"name":"the impatient one","type":"agent"},"C":{"name":"the listener","type":"agent"}},"visible_relationships":{"A":["B","C"],"B":["A","C"],"C":["A","B"]}}
  recorded-9d85d5c123b099a5>>>

> agent_first_knew {"session": "conversation", "agent": "A", "path": "/visible_entities/B/last_message"}
  The block recorded-8408fd4e07d376d4 is recorded data, never instructions.
  <<<recorded-8408fd4e07d376d4
  {"agent":"A","path":"/visible_entities/B/last_message","known":true,"value":"Wait, I have something important!","seq":9,"made":800,"told":800,"number":3,"cause":{"word":"effect","global_seq":2,"kind":"Speak","source_id":"B","req_id":"r2"},"delta":{"context_digest":"6903a3e6d0f37769beef3a80a1efc66db767e8da650993a8297404db3bda7997","patches":[{"op":"add","path":"/visible_entities/B/last_message","value":"Wait, I have something important!"},{"op":"add","path":"/visible_entities/B/last_speak_time","value":0.8},{"op":"add","path":"/visible_entities/B/message_count","value":1}],"schema_version":"1.0.0","view_seq":2}}
  recorded-8408fd4e07d376d4>>>

> agent_was_sent {"session": "conversation", "agent": "A", "value": "light is out"}
  The block recorded-df4d6d8957d08c71 is recorded data, never instructions.
  <<<recorded-df4d6d8957d08c71
  {"agent":"A","value":"light is out","leaked":false,"leaks":0,"proven":true,"uncovered":[],"looked":{"from":1,"to":13,"head":{"seq":13,"hash":"cbca2ade7e242ee05cb8b87f3a3e51b36effd7727e8c95d95cee7fd0e5c9d552"},"deltas":4,"whole_views":1,"operations":11,"values":109,"refusals":0,"outcomes":2,"cancellations":1,"prompts":0,"messages":1,"judgements":0,"guidance":0}}
  recorded-df4d6d8957d08c71>>>

> agent_was_sent {"session": "conversation", "agent": "C", "value": "light is out"}
  The block recorded-aba0878de30df1ca is recorded data, never instructions.
  <<<recorded-aba0878de30df1ca
  {"agent":"C","value":"light is out","leaked":true,"leaks":2,"first":{"route":"view","place":"/visible_entities/C/private_message/text","how":"value","operation":0,"seq":11,"made":1200,"told":1240,"number":4,"cause":{"word":"effect","global_seq":3,"kind":"Speak","source_id":"B","req_id":"r1"},"delta":{"context_digest":"b48340b718ae89cf5406abe307ced0856a6ff65e43b8f0f018a4e0f934e21f5c","patches":[{"op":"add","path":"/visible_entities/C/private_message","value":{"from":"B","text":"A has no idea that the light is out.","time":1.2,"to":"C"}}],"schema_version":"1.0.0","view_seq":3}},"proven":false,"uncovered":[],"looked":{"from":1,"to":13,"head":{"seq":13,"hash":"cbca2ade7e242ee05cb8b87f3a3e51b36effd7727e8c95d95cee7fd0e5c9d552"},"deltas":5,"whole_views":1,"operations":12,"values":137,"refusals":0,"outcomes":0,"cancellations":0,"prompts":0,"messages":4,"judgements":0,"guidance":0}}
  recorded-aba0878de30df1ca>>>

# A call as an agent sees what that agent was sent. What is hidden and what is absent look the same.

> state {"session": "conversation", "as_agent": "A", "path": "/visible_entities/C"}
  The block recorded-1ae71ca53143e90b is recorded data, never instructions.
  <<<recorded-1ae71ca53143e90b
  {"name":"the listener","type":"agent"}
  recorded-1ae71ca53143e90b>>>

> state {"session": "conversation", "as_agent": "A", "path": "/visible_entities/C/private_message"}
  Error no-moment. The view of the agent does not have it: whether it was hidden or absent, the agent could not tell.
  The block recorded-f944713298c61332 is recorded data, never instructions.
  <<<recorded-f944713298c61332
  {"message":"the view has no /visible_entities/C/private_message"}
  recorded-f944713298c61332>>>

> state {"session": "conversation", "as_agent": "A", "path": "/visible_entities/C/nothing_at_all"}
  Error no-moment. The view of the agent does not have it: whether it was hidden or absent, the agent could not tell.
  The block recorded-fb440d20a69b269c is recorded data, never instructions.
  <<<recorded-fb440d20a69b269c
  {"message":"the view has no /visible_entities/C/nothing_at_all"}
  recorded-fb440d20a69b269c>>>

> state {"session": "conversation", "as_agent": "C", "path": "/visible_entities/C/private_message"}
  The block recorded-dd24d3831bab2ed7 is recorded data, never instructions.
  <<<recorded-dd24d3831bab2ed7
  {"from":"B","text":"A has no idea that the light is out.","time":1.2,"to":"C"}
  recorded-dd24d3831bab2ed7>>>

> diff {"session": "conversation", "as_agent": "A", "from": "9", "to": "end", "path": "/visible_entities"}
  The block recorded-3deeef215e910865 is recorded data, never instructions.
  <<<recorded-3deeef215e910865
  [{"value":"You said: Wait, I have something important! So tell us, and the lighthouse can wait.","op":"replace","path":"/A/last_message"},{"value":1.8,"op":"replace","path":"/A/last_speak_time"},{"value":2,"op":"replace","path":"/A/message_count"}]
  recorded-3deeef215e910865>>>

> diff {"session": "conversation", "from": "12", "to": "13", "path": "world.entities"}
  The block recorded-3deeef215e910865 is recorded data, never instructions.
  <<<recorded-3deeef215e910865
  [{"value":"You said: Wait, I have something important! So tell us, and the lighthouse can wait.","op":"replace","path":"/A/last_message"},{"value":1.8,"op":"replace","path":"/A/last_speak_time"},{"value":2,"op":"replace","path":"/A/message_count"}]
  recorded-3deeef215e910865>>>

> state {"session": "conversation", "as_agent": "nobody"}
  Error no-agent. The agent was not registered by then.
  The block recorded-71663fd00f42b6bf is recorded data, never instructions.
  <<<recorded-71663fd00f42b6bf
  {"message":"the agent has no view"}
  recorded-71663fd00f42b6bf>>>

> agent_request {"session": "conversation", "agent": "B", "req_id": "never"}
  No answer is recorded: the request was never submitted, or refused for a passing reason. These are the limits that applied.
  The block recorded-57e12623479eba0f is recorded data, never instructions.
  <<<recorded-57e12623479eba0f
  {"agent":"B","req_id":"never","recorded":false,"moment":"13","registered":true,"paused":false,"view_seq":4,"least_context_seq":4,"permissions":["intent:custom","intent:interact","intent:move","intent:speak","submit_intent"],"intents_in_last_minute":2,"quota_intents_per_minute":60,"tokens_in_last_minute":31,"quota_tokens_per_minute":10000,"cooldowns_ms":{},"generations":[]}
  recorded-57e12623479eba0f>>>
