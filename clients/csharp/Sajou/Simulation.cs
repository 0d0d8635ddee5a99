using System;
using System.Collections.Generic;
using System.Threading.Tasks;

namespace Sajou
{
    /// <summary>The answer to a tick, with all effects since the tick before.</summary>
    public sealed class Ticked
    {
        public double SimTime { get; internal set; }
        public long Decided { get; internal set; }
        public long Waiting { get; internal set; }
        public long Seq { get; internal set; }
        /// <summary>Each has seq, at_ms and effect, as docs/protocol.md has them.</summary>
        public IReadOnlyList<Json> Effects { get; internal set; }
    }

    /// <summary>
    /// The holder of a session's time; there is one. After a loss it connects again and continues without a gap of effects; drafts
    /// and ticks without an answer fail with RequestFailedException.
    /// </summary>
    public sealed class Simulation : Link
    {
        const int MaxEffects = 65536;

        // These are guarded by Sync.
        readonly Dictionary<string, TaskCompletionSource<Outcome>> requests = new Dictionary<string, TaskCompletionSource<Outcome>>();
        List<Json> effects = new List<Json>();
        TaskCompletionSource<Ticked> tick;
        long seq;
        double simTime;

        Simulation(Server server, string session, long seq, Backoff backoff)
            : base(server, Server.Path(session, "sim", "ws"), "sajou.sim.v1", backoff)
        {
            this.seq = seq;
        }

        /// <summary>Connects. A second holder is refused with 4007. With seq the effects after that entry come first.</summary>
        public static async Task<Simulation> Connect(Server server, string session, long seq = -1, Backoff backoff = null)
        {
            var link = new Simulation(server, session, seq, backoff);
            await link.Start().ConfigureAwait(false);
            return link;
        }

        /// <summary>Session time in seconds, as of the welcome or the last tick.</summary>
        public double SimTime { get { lock (Sync) return simTime; } }

        /// <summary>Moves session time, and decides what waits. The task ends when the tick is durable.</summary>
        public async Task<Ticked> Tick(double at, double deltaTime = 0, long frameNumber = 0)
        {
            var answer = NewSource<Ticked>();
            lock (Sync)
            {
                Check();
                if (tick != null) throw new InvalidOperationException("an earlier tick has no answer yet; wait for it");
                tick = answer;
            }
            if (!Send(Json.Object("type", "tick", "sim_time", at, "delta_time", deltaTime, "frame_number", frameNumber)))
            {
                FailTick("lost", "there is no connection at this moment; tick again");
            }
            var ticked = await Within(answer.Task, "the tick").ConfigureAwait(false);
            ticked.Effects = TakeEffects();
            return ticked;
        }

        /// <summary>Returns the effects that came since they were last taken, also by a tick.</summary>
        public IReadOnlyList<Json> TakeEffects()
        {
            lock (Sync)
            {
                var taken = effects;
                effects = new List<Json>();
                return taken;
            }
        }

        /// <summary>
        /// Makes an effect from outside of the world. Where ticks decide, its outcome comes with the next one. A draft that is sent
        /// twice happens twice: give a uuid, and look for it among the effects after a fault.
        /// </summary>
        public Task<Outcome> Draft(string kind, Json payload, string sourceId, double simTime = -1, int priority = 0, string uuid = null)
        {
            var message = Json.Object("type", "draft", "req_id", Agent.NewId(), "kind", kind, "payload", payload ?? Json.Empty, "source_id", sourceId);
            if (uuid != null) message = message.With("uuid", uuid);
            return Submit(message, simTime, priority);
        }

        /// <summary>Submits an intent of an agent that the simulation plays; the token must permit to act as it.</summary>
        public Task<Outcome> Intent(string agentId, string kind, Json payload, long contextSeq, string reqId = null, double simTime = -1, int priority = 0)
        {
            return Submit(Json.Object("type", "intent", "req_id", reqId ?? Agent.NewId(), "agent_id", agentId, "kind", kind,
                "payload", payload ?? Json.Empty, "context_seq", contextSeq), simTime, priority);
        }

        Task<Outcome> Submit(Json message, double at, int priority)
        {
            if (at >= 0) message = message.With("sim_time", at);
            if (priority != 0) message = message.With("priority", priority);
            var answer = NewSource<Outcome>();
            string reqId = message["req_id"].AsText();
            lock (Sync)
            {
                Check();
                if (requests.ContainsKey(reqId)) throw new InvalidOperationException("request " + reqId + " waits for its outcome already");
                requests.Add(reqId, answer);
            }
            if (!Send(message)) Fail(reqId, "lost", "there is no connection at this moment; send it again");
            return answer.Task;
        }

        TaskCompletionSource<Outcome> Take(string reqId)
        {
            lock (Sync)
            {
                TaskCompletionSource<Outcome> found;
                if (requests.TryGetValue(reqId, out found)) requests.Remove(reqId);
                return found;
            }
        }

        TaskCompletionSource<Ticked> TakeTick()
        {
            lock (Sync)
            {
                var taken = tick;
                tick = null;
                return taken;
            }
        }

        void Fail(string reqId, string code, string detail)
        {
            var answer = Take(reqId);
            if (answer != null) answer.TrySetException(new RequestFailedException(reqId, code, detail));
        }

        void FailTick(string code, string detail)
        {
            var answer = TakeTick();
            if (answer != null) answer.TrySetException(new RequestFailedException("tick", code, detail));
        }

        /// <summary>The server may not have seen the end of this program's earlier connection.</summary>
        protected override bool Temporary(Exception why)
        {
            var ended = why as ConnectionEndedException;
            return base.Temporary(why) || (ended != null && ended.Code == 4007);
        }

        protected override Json Hello()
        {
            lock (Sync) return seq < 0 ? Json.Object("type", "hello") : Json.Object("type", "hello", "seq", seq);
        }

        protected override void Welcomed(Json welcome)
        {
            lock (Sync)
            {
                simTime = welcome["sim_time"].AsDouble();
                if (seq < 0) seq = welcome["seq"].AsLong();
            }
        }

        protected override void Lost(Exception why, bool last)
        {
            List<string> all;
            lock (Sync) all = new List<string>(requests.Keys);
            foreach (string reqId in all) Fail(reqId, "lost", why.Message + "; what was not decided was withdrawn");
            FailTick("lost", why.Message + "; read SimTime, and tick again");
        }

        protected override void Received(Json m)
        {
            switch (m["type"].AsText())
            {
                case "effect":
                    lock (Sync)
                    {
                        long entry = m["seq"].AsLong();
                        if (entry <= seq) break;
                        if (effects.Count >= MaxEffects) throw new ProtocolException(MaxEffects + " effects wait to be read; call TakeEffects or Tick more often");
                        seq = entry;
                        effects.Add(m);
                    }
                    break;
                case "ticked":
                    var ticked = new Ticked { SimTime = m["sim_time"].AsDouble(), Decided = m["decided"].AsLong(), Waiting = m["waiting"].AsLong(), Seq = m["seq"].AsLong() };
                    lock (Sync)
                    {
                        simTime = Math.Max(simTime, ticked.SimTime);
                        seq = Math.Max(seq, ticked.Seq);
                    }
                    var answer = TakeTick();
                    if (answer != null) answer.TrySetResult(ticked);
                    break;
                case "outcome":
                    var request = Take(m["req_id"].AsText());
                    if (request != null) request.TrySetResult(new Outcome(m["outcome"]));
                    break;
                case "error":
                    if (m.Has("req_id")) Fail(m["req_id"].AsText(), m["code"].AsText(), m["detail"].AsText());
                    else FailTick(m["code"].AsText(), m["detail"].AsText());
                    break;
            }
        }
    }
}
