using System;
using System.Collections.Generic;
using System.Net.WebSockets;
using System.Threading;
using System.Threading.Tasks;

namespace Sajou
{
    /// <summary>A change of what the agent sees. View is the view after it; Missed counts the observations that a full view stands for.</summary>
    public sealed class Observation
    {
        public long ViewSeq { get; internal set; }
        public Json View { get; internal set; }
        public bool Full { get; internal set; }
        public long Missed { get; internal set; }
        public double AtMs { get; internal set; }
    }

    /// <summary>What became of a request: accepted, duplicate (it had its final outcome before) or rejected.</summary>
    public sealed class Outcome
    {
        /// <summary>All members, as docs/protocol.md has them.</summary>
        public Json Document { get; }
        public string Status { get { return Document.Text("status", ""); } }
        public bool Accepted { get { return !Document.Has("rejection"); } }
        /// <summary>The code of a rejection and what may be done about it; null if there is none.</summary>
        public string Code { get { return Document["rejection"].Text("code", null); } }
        public string Recovery { get { return Document["rejection"].Text("recovery", null); } }

        internal Outcome(Json document) { Document = document; }
    }

    /// <summary>
    /// The connection of one agent. Observations arrive as deltas, are applied in order, and their digests compared. After a loss it
    /// connects again and continues: no observation is lost or comes twice, and intents without an outcome are sent again.
    /// </summary>
    public sealed class Agent : Link
    {
        const int MaxWaiting = 4096;
        static readonly Json empty = Json.Object("visible_entities", Json.Empty, "visible_relationships", Json.Empty);

        readonly string agent;
        // These are guarded by Sync.
        readonly Queue<Json> waiting = new Queue<Json>(); // observations that were not read
        readonly Dictionary<string, Request> intents = new Dictionary<string, Request>();
        readonly Dictionary<string, Request> begins = new Dictionary<string, Request>();
        readonly Dictionary<string, Request> cancels = new Dictionary<string, Request>();
        readonly Dictionary<string, Generation> generations = new Dictionary<string, Generation>();
        Json view = empty;
        long viewSeq = -1;
        string digest;
        bool resyncing; // drops what comes until a full view

        sealed class Request
        {
            internal Json Message;
            internal readonly TaskCompletionSource<object> Answer = NewSource<object>();
        }

        Agent(Server server, string session, string agent, Backoff backoff)
            : base(server, Server.Path(session, "agents", agent, "ws"), "sajou.agent.v1", backoff)
        {
            this.agent = agent;
        }

        /// <summary>Connects. A refusal is a ConnectionEndedException.</summary>
        public static async Task<Agent> Connect(Server server, string session, string agent, Backoff backoff = null)
        {
            var link = new Agent(server, session, agent, backoff);
            await link.Start().ConfigureAwait(false);
            return link;
        }

        /// <summary>The view after the last observation that was read, and its number; -1 before the first.</summary>
        public Json View { get { lock (Sync) return view; } }
        public long ViewSeq { get { lock (Sync) return viewSeq; } }

        /// <summary>Returns the next observation, or null if there is none now: for the Update of a game object.</summary>
        public Observation TryObserve()
        {
            for (; ; )
            {
                Json message, answer = null;
                Observation seen = null;
                ClientWebSocket to;
                lock (Sync)
                {
                    if (waiting.Count == 0)
                    {
                        Check();
                        return null;
                    }
                    message = waiting.Dequeue();
                    to = Present; // another connection knows nothing of it
                    bool asked = resyncing;
                    if (Repeats(message)) answer = Json.Object("type", "ack", "view_seq", viewSeq);
                    else if ((seen = Apply(message)) != null) answer = Json.Object("type", "ack", "view_seq", seen.ViewSeq);
                    else if (resyncing && !asked) answer = Json.Object("type", "resync");
                }
                if (answer != null) SendOn(to, answer);
                if (seen != null) return seen;
            }
        }

        /// <summary>Returns the next observation, or null if none comes in time.</summary>
        public async Task<Observation> Observe(TimeSpan? timeout = null)
        {
            var end = DateTime.UtcNow + (timeout ?? Server.Timeout);
            for (; ; )
            {
                var seen = TryObserve();
                if (seen != null) return seen;
                if (!await Until(() => waiting.Count > 0, end - DateTime.UtcNow).ConfigureAwait(false)) return null;
            }
        }

        /// <summary>The first full view comes again to an agent that continues after it.</summary>
        bool Repeats(Json m)
        {
            return m["full"].IsBool && !resyncing && m["view_seq"].AsLong() == viewSeq && m["context_digest"].AsText() == digest;
        }

        /// <summary>Applies an observation; null if it does not fit, and a full view is needed.</summary>
        Observation Apply(Json m)
        {
            long seq = m["view_seq"].AsLong();
            bool full = m["full"].IsBool && m["full"].AsBool();
            if (!full && (resyncing || seq <= viewSeq)) return null;
            resyncing = !full && viewSeq >= 0 && seq != viewSeq + 1;
            if (resyncing) return null;
            Json next;
            try
            {
                next = Patch.Apply(view, m["patches"]);
                if (Json.Digest(agent, next) != m["context_digest"].AsText()) throw new PatchException("the digest of the view is another");
            }
            catch (PatchException e)
            {
                if (full) throw new ProtocolException("full view " + seq + " cannot be used: " + e.Message);
                resyncing = true;
                return null;
            }
            view = next;
            viewSeq = seq;
            digest = m["context_digest"].AsText();
            return new Observation { ViewSeq = seq, View = next, Full = full, Missed = m.Has("missed") ? m["missed"].AsLong() : 0, AtMs = m["at_ms"].AsDouble() };
        }

        /// <summary>Submits an intent, and waits for its outcome. Without a contextSeq it is based on the last observation that was read.</summary>
        public async Task<Outcome> Submit(string kind, Json payload = null, string reqId = null, long contextSeq = -1, int priority = 0)
        {
            if (contextSeq < 0) contextSeq = ViewSeq;
            if (contextSeq < 0) throw new InvalidOperationException("an intent is based on an observation: observe first, or give contextSeq");
            var message = Json.Object("type", "intent", "req_id", reqId ?? NewId(), "kind", kind, "payload", payload ?? Json.Empty, "context_seq", contextSeq);
            if (priority != 0) message = message.With("priority", priority);
            return (Outcome)await Ask(intents, message, true, "the intent " + kind, false).ConfigureAwait(false);
        }

        /// <summary>Cancels a generation, or an intent that waits for its tick. Returns false if there was none.</summary>
        public async Task<bool> Cancel(string reqId)
        {
            return (bool)await Ask(cancels, Json.Object("type", "cancel", "req_id", reqId), true, "the cancel of " + reqId, true).ConfigureAwait(false);
        }

        /// <summary>Begins a generation: the program calls its model. A refusal is a RequestFailedException with the code of the rejection.</summary>
        public async Task<Generation> Begin(string reqId = null, long contextSeq = -1, double deadlineMs = 0, long tokenBudget = 0)
        {
            var message = Json.Object("type", "begin", "req_id", reqId ?? NewId());
            if (contextSeq >= 0) message = message.With("context_seq", contextSeq);
            if (deadlineMs > 0) message = message.With("deadline_ms", deadlineMs);
            if (tokenBudget > 0) message = message.With("token_budget", tokenBudget);
            return (Generation)await Ask(begins, message, false, "the begin of a generation", true).ConfigureAwait(false);
        }

        async Task<object> Ask(Dictionary<string, Request> into, Json message, bool again, string what, bool forget)
        {
            string reqId = message["req_id"].AsText();
            var request = new Request { Message = message };
            lock (Sync)
            {
                Check();
                if (into.ContainsKey(reqId)) throw new InvalidOperationException("request " + reqId + " waits for its answer already");
                into.Add(reqId, request);
            }
            try
            {
                if (!Send(message) && !again) throw new RequestFailedException(reqId, "lost", "there is no connection at this moment; begin again");
                return await Within(request.Answer.Task, what).ConfigureAwait(false);
            }
            finally
            {
                if (forget) lock (Sync) into.Remove(reqId);
            }
        }

        internal void Tell(Generation generation, Json message)
        {
            if (!Send(message)) generation.Stop("LOST", "the connection ended");
        }

        internal TimeSpan Timeout { get { return Server.Timeout; } }

        internal static string NewId() { return Guid.NewGuid().ToString("N"); }

        protected override Json Hello()
        {
            lock (Sync)
            {
                waiting.Clear(); // what was not applied comes again
                var hello = Json.Object("type", "hello");
                return viewSeq >= 0 && !resyncing ? hello.With("view_seq", viewSeq) : hello;
            }
        }

        protected override void Welcomed(Json welcome) { }

        protected override void Begun()
        {
            var again = new List<Json>();
            lock (Sync)
            {
                foreach (var r in intents.Values) again.Add(r.Message);
                foreach (var r in cancels.Values) again.Add(r.Message);
            }
            foreach (var m in again) Send(m);
        }

        protected override void Lost(Exception why, bool last)
        {
            var stopped = new List<Generation>();
            var failed = new List<Request>();
            lock (Sync)
            {
                stopped.AddRange(generations.Values);
                generations.Clear();
                foreach (var list in last ? new[] { begins, intents, cancels } : new[] { begins })
                {
                    failed.AddRange(list.Values);
                    list.Clear();
                }
            }
            foreach (var g in stopped) g.Stop("LOST", "the connection ended");
            foreach (var r in failed)
            {
                r.Answer.TrySetException(new RequestFailedException(r.Message["req_id"].AsText(), "lost", why.Message + "; send it again with the same req_id"));
            }
        }

        protected override void Received(Json m)
        {
            string reqId = m.Text("req_id", "");
            switch (m["type"].AsText())
            {
                case "observation":
                    lock (Sync)
                    {
                        if (waiting.Count >= MaxWaiting) throw new ProtocolException("the server sent more observations than its window");
                        waiting.Enqueue(m);
                        Changed();
                    }
                    break;
                case "outcome":
                    var outcome = new Outcome(m["outcome"]);
                    var begin = Take(begins, reqId);
                    if (begin != null) begin.Answer.TrySetException(new RequestFailedException(reqId, outcome.Code ?? "answered", m["outcome"].ToString()));
                    else Resolve(Take(intents, reqId), outcome);
                    break;
                case "begun":
                    var asked = Take(begins, reqId);
                    if (asked == null)
                    {
                        Send(Json.Object("type", "end", "req_id", reqId, "failed", "the program has stopped waiting"));
                        break;
                    }
                    var generation = new Generation(this, reqId, m["context_seq"].AsLong());
                    lock (Sync) generations[reqId] = generation;
                    Resolve(asked, generation);
                    break;
                case "stop":
                    var stopped = Take(generations, reqId);
                    if (stopped != null) stopped.Stop(m["code"].AsText(), m["reason"].AsText());
                    break;
                case "ended":
                    var ended = Take(generations, reqId);
                    if (ended != null) ended.Close(m["finish"].AsText());
                    break;
                case "cancelled":
                    Resolve(Take(cancels, reqId), m["found"].AsBool());
                    break;
                case "error":
                    var running = m["code"].AsText() == "no_generation" ? Take(generations, reqId) : null;
                    if (running != null) running.Stop("LOST", m["detail"].AsText());
                    var request = Take(begins, reqId) ?? Take(intents, reqId) ?? Take(cancels, reqId);
                    if (request != null) request.Answer.TrySetException(new RequestFailedException(reqId, m["code"].AsText(), m["detail"].AsText()));
                    break;
            }
        }

        static void Resolve(Request request, object answer)
        {
            if (request != null) request.Answer.TrySetResult(answer);
        }

        T Take<T>(Dictionary<string, T> from, string reqId) where T : class
        {
            lock (Sync)
            {
                T found;
                if (from.TryGetValue(reqId, out found)) from.Remove(reqId);
                return found;
            }
        }
    }

    /// <summary>
    /// A generation that runs. Give Stopping to the call of the model: it is cancelled as soon as the world stops the generation.
    /// </summary>
    public sealed class Generation
    {
        readonly Agent agent;
        readonly CancellationTokenSource stopping = new CancellationTokenSource();
        readonly TaskCompletionSource<string> over = Link.NewSource<string>();

        public string ReqId { get; }
        public long ContextSeq { get; }
        /// <summary>Why the world stopped it: GENERATION_CANCELLED, TIMEOUT, or LOST with the connection; null if it did not.</summary>
        public string StopCode { get; private set; }
        public string StopReason { get; private set; }

        public CancellationToken Stopping { get { return stopping.Token; } }

        /// <summary>How it ended: stop, token_budget (the text so far is the answer), error, or stopped.</summary>
        public Task<string> Over { get { return over.Task; } }

        internal Generation(Agent agent, string reqId, long contextSeq)
        {
            this.agent = agent;
            ReqId = reqId;
            ContextSeq = contextSeq;
        }

        /// <summary>Sends text of the model. Returns false if the generation has ended or was stopped.</summary>
        public bool Write(string text, int count = 1)
        {
            if (over.Task.IsCompleted) return false;
            agent.Tell(this, Json.Object("type", "tokens", "req_id", ReqId, "text", text, "count", count));
            return true;
        }

        /// <summary>Says that the model is done, or with a reason that it gave no answer, and waits until that is recorded.</summary>
        public async Task<string> End(string failed = null)
        {
            if (!over.Task.IsCompleted)
            {
                var end = Json.Object("type", "end", "req_id", ReqId);
                agent.Tell(this, failed == null ? end : end.With("failed", failed));
            }
            if (await Task.WhenAny(over.Task, Task.Delay(agent.Timeout)).ConfigureAwait(false) != over.Task)
            {
                throw new TimeoutException("no answer to the end of generation " + ReqId);
            }
            return await over.Task.ConfigureAwait(false);
        }

        internal void Stop(string code, string reason)
        {
            StopCode = code;
            StopReason = reason;
            if (over.TrySetResult("stopped")) ThreadPool.QueueUserWorkItem(_ => stopping.Cancel()); // callbacks are the program's
        }

        internal void Close(string finish) { over.TrySetResult(finish); }
    }
}
