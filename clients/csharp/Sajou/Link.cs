using System;
using System.Collections.Generic;
using System.IO;
using System.Net.WebSockets;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Sajou
{
    /// <summary>The waits before a client connects again: the first, doubled after each failure up to the longest.</summary>
    public sealed class Backoff
    {
        public TimeSpan First { get; set; } = TimeSpan.FromMilliseconds(500);
        public TimeSpan Most { get; set; } = TimeSpan.FromSeconds(30);
    }

    /// <summary>
    /// A connection that is kept: it says hello, notices silence, and connects again when the network or the server failed. All
    /// methods may be called from any thread; results of tasks arrive on threads of the pool, or, awaited in Unity, on the main one.
    /// </summary>
    public abstract class Link : IDisposable
    {
        static readonly HashSet<int> temporary = new HashSet<int> { 1001, 1005, 1006, 1011, 4008 };

        protected readonly object Sync = new object();
        protected readonly Server Server;
        readonly string path, subprotocol;
        readonly Backoff backoff;
        readonly SemaphoreSlim sending = new SemaphoreSlim(1);
        readonly CancellationTokenSource closing = new CancellationTokenSource();
        // These are guarded by Sync.
        ClientWebSocket socket; // of the welcome
        bool welcomed;
        Exception failure;
        TaskCompletionSource<bool> news = NewSource<bool>();

        protected Link(Server server, string path, string subprotocol, Backoff backoff)
        {
            Server = server;
            this.path = path;
            this.subprotocol = subprotocol;
            this.backoff = backoff ?? new Backoff();
        }

        /// <summary>Why the connection has ended for good; null while it lives or is made again.</summary>
        public Exception Failure { get { lock (Sync) return failure; } }

        public bool Connected { get { lock (Sync) return socket != null; } }

        /// <summary>Waits until there is a connection.</summary>
        public async Task WhenConnected()
        {
            if (!await Until(() => socket != null, Server.Timeout).ConfigureAwait(false)) throw new TimeoutException("there is no connection");
        }

        /// <summary>Drops the connection and makes a new one, as after a failed network.</summary>
        public void Reconnect()
        {
            ClientWebSocket dropped;
            lock (Sync)
            {
                dropped = socket;
                socket = null;
            }
            if (dropped != null) dropped.Abort();
        }

        /// <summary>Ends the connection. What waits for an answer fails.</summary>
        public void Dispose()
        {
            ClientWebSocket open;
            lock (Sync)
            {
                open = socket;
                socket = null;
            }
            if (open != null)
            {
                try { open.CloseOutputAsync(WebSocketCloseStatus.NormalClosure, "", CancellationToken.None).Wait(1000); }
                catch (AggregateException) { } // it has ended
            }
            closing.Cancel();
        }

        protected abstract Json Hello();
        /// <summary>Called with the first message of a connection, and with each later one but heartbeats.</summary>
        protected abstract void Welcomed(Json welcome);
        protected abstract void Received(Json message);
        /// <summary>Called when messages can be sent again.</summary>
        protected virtual void Begun() { }
        /// <summary>Called at the end of each connection; last says that there will be no other.</summary>
        protected abstract void Lost(Exception why, bool last);

        protected virtual bool Temporary(Exception why)
        {
            var ended = why as ConnectionEndedException;
            return ended != null && temporary.Contains(ended.Code);
        }

        /// <summary>Connects. The first connection is tried once.</summary>
        protected async Task Start()
        {
            Task.Run(new Func<Task>(Run)).ConfigureAwait(false); // it catches everything
            await Until(() => welcomed, System.Threading.Timeout.InfiniteTimeSpan).ConfigureAwait(false); // Converse bounds it
        }

        /// <summary>Sends a message, unless there is no connection. Returns false if there is none.</summary>
        protected bool Send(Json message)
        {
            ClientWebSocket to;
            lock (Sync) to = socket;
            return SendOn(to, message);
        }

        /// <summary>The connection of now, for what makes sense on no other. The caller holds Sync.</summary>
        protected ClientWebSocket Present { get { return socket; } }

        protected bool SendOn(ClientWebSocket to, Json message)
        {
            if (to == null) return false;
            Write(to, message).ConfigureAwait(false); // it catches everything
            return true;
        }

        async Task Write(ClientWebSocket to, Json message)
        {
            var bytes = Encoding.UTF8.GetBytes(message.ToString());
            await sending.WaitAsync().ConfigureAwait(false);
            try
            {
                using (var late = new CancellationTokenSource(Server.Timeout))
                {
                    await to.SendAsync(new ArraySegment<byte>(bytes), WebSocketMessageType.Text, true, late.Token).ConfigureAwait(false);
                }
            }
            catch (Exception)
            {
                to.Abort(); // the reader sees the end
            }
            finally
            {
                sending.Release();
            }
        }

        /// <summary>Throws the error of a link that has ended. The caller holds Sync.</summary>
        protected void Check()
        {
            if (failure != null) throw failure;
        }

        /// <summary>Tells those who wait that the state has changed. The caller holds Sync.</summary>
        protected void Changed()
        {
            var told = news;
            news = NewSource<bool>();
            told.TrySetResult(true);
        }

        /// <summary>Waits until a condition holds, which is computed under Sync; false if it does not in time.</summary>
        protected async Task<bool> Until(Func<bool> holds, TimeSpan timeout)
        {
            var end = DateTime.UtcNow + (timeout < TimeSpan.Zero ? TimeSpan.FromDays(1) : timeout);
            for (; ; )
            {
                Task next;
                lock (Sync)
                {
                    if (holds()) return true;
                    Check();
                    next = news.Task;
                }
                var left = end - DateTime.UtcNow;
                if (left <= TimeSpan.Zero) return false;
                using (var stop = new CancellationTokenSource())
                {
                    await Task.WhenAny(next, Task.Delay(left, stop.Token)).ConfigureAwait(false);
                    stop.Cancel();
                }
            }
        }

        protected async Task<T> Within<T>(Task<T> answer, string what)
        {
            using (var stop = new CancellationTokenSource())
            {
                if (await Task.WhenAny(answer, Task.Delay(Server.Timeout, stop.Token)).ConfigureAwait(false) != answer)
                {
                    throw new TimeoutException("no answer to " + what + " in " + Server.Timeout + "; it may still come");
                }
                stop.Cancel();
            }
            return await answer.ConfigureAwait(false);
        }

        internal static TaskCompletionSource<T> NewSource<T>()
        {
            return new TaskCompletionSource<T>(TaskCreationOptions.RunContinuationsAsynchronously);
        }

        async Task Run()
        {
            var delay = backoff.First;
            for (; ; )
            {
                Exception why;
                try
                {
                    why = await Converse(() => delay = backoff.First).ConfigureAwait(false);
                }
                catch (SajouException e)
                {
                    why = e;
                }
                catch (Exception e)
                {
                    why = new ConnectionEndedException(1006, e.Message);
                }
                bool again;
                lock (Sync)
                {
                    if (closing.IsCancellationRequested) why = new ConnectionEndedException(1000, "this side closed it");
                    again = welcomed && !closing.IsCancellationRequested && Temporary(why);
                    socket = null;
                    if (!again) failure = why;
                }
                Lost(why, !again);
                lock (Sync) Changed();
                if (!again) return;
                try { await Task.Delay(delay, closing.Token).ConfigureAwait(false); }
                catch (OperationCanceledException) { }
                delay = TimeSpan.FromTicks(Math.Min(2 * delay.Ticks, backoff.Most.Ticks));
            }
        }

        /// <summary>Connects, and reads to the end of the connection.</summary>
        async Task<Exception> Converse(Action reached)
        {
            using (var ws = new ClientWebSocket())
            using (var late = CancellationTokenSource.CreateLinkedTokenSource(closing.Token))
            {
                late.CancelAfter(Server.Timeout);
                ws.Options.AddSubProtocol(subprotocol);
                if (Server.Url.IsLoopback) ws.Options.Proxy = null;
                await ws.ConnectAsync(Server.Socket(path), late.Token).ConfigureAwait(false);
                try
                {
                    var hello = Server.Token == null ? Hello() : Hello().With("token", Server.Token);
                    await Write(ws, hello).ConfigureAwait(false);
                    var idle = Server.Timeout;
                    var piece = new byte[1 << 14];
                    bool first = true;
                    for (; ; )
                    {
                        late.CancelAfter(idle);
                        string text;
                        using (var message = new MemoryStream())
                        {
                            WebSocketReceiveResult part;
                            do
                            {
                                part = await ws.ReceiveAsync(new ArraySegment<byte>(piece), late.Token).ConfigureAwait(false);
                                if (part.MessageType == WebSocketMessageType.Close) return await Closed(ws, part).ConfigureAwait(false);
                                if (part.MessageType != WebSocketMessageType.Text) return new ProtocolException("the server sent a frame that is not text");
                                message.Write(piece, 0, part.Count);
                                if (message.Length > Server.MaxMessage) return new ProtocolException("the server sent a message of more than " + Server.MaxMessage + " bytes");
                            } while (!part.EndOfMessage);
                            text = Encoding.UTF8.GetString(message.GetBuffer(), 0, (int)message.Length);
                        }
                        var m = Json.Parse(text);
                        string type = m["type"].AsText();
                        if (!first)
                        {
                            if (type != "heartbeat") Received(m);
                            continue;
                        }
                        first = false;
                        if (type != "welcome" || m["protocol"].AsLong() != 1) return new ProtocolException("the server sent " + type + " in place of a welcome of protocol 1");
                        idle = TimeSpan.FromMilliseconds(2 * m["heartbeat_ms"].AsDouble());
                        Welcomed(m);
                        reached();
                        lock (Sync)
                        {
                            socket = ws;
                            welcomed = true;
                            Changed();
                        }
                        Begun();
                    }
                }
                finally
                {
                    lock (Sync) socket = null;
                    ws.Abort();
                }
            }
        }

        static async Task<Exception> Closed(ClientWebSocket ws, WebSocketReceiveResult frame)
        {
            try
            {
                using (var late = new CancellationTokenSource(1000))
                {
                    await ws.CloseOutputAsync(frame.CloseStatus ?? WebSocketCloseStatus.NormalClosure, "", late.Token).ConfigureAwait(false);
                }
            }
            catch (Exception) { } // it has ended
            return new ConnectionEndedException((int)(frame.CloseStatus ?? (WebSocketCloseStatus)1005), frame.CloseStatusDescription ?? "");
        }
    }
}
