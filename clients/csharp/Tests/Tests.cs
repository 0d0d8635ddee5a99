using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Text;
using System.Threading.Tasks;
using Sajou;

/// <summary>
/// Tests against a real server, which SAJOU_URL and SAJOU_TOKEN name; .ci/clients starts one. The argument is the folder clients/testdata,
/// whose README describes the scenarios.
/// </summary>
static class Tests
{
    static readonly Backoff quick = new Backoff { First = TimeSpan.FromMilliseconds(20), Most = TimeSpan.FromMilliseconds(500) };
    static string testdata;

    static int Main(string[] arguments)
    {
        testdata = arguments[0];
        int failed = 0, run = 0;
        var tests = new List<KeyValuePair<string, Func<Task>>>
        {
            new KeyValuePair<string, Func<Task>>("vectors", Vectors),
            new KeyValuePair<string, Func<Task>>("what is not JSON", NotJson),
            new KeyValuePair<string, Func<Task>>("a turn of the director", DirectorTurn),
            new KeyValuePair<string, Func<Task>>("ends of connections", Ends),
            new KeyValuePair<string, Func<Task>>("tokens", Tokens),
            new KeyValuePair<string, Func<Task>>("repeats", Repeats),
        };
        foreach (string file in Directory.GetFiles(Path.Combine(testdata, "scenarios"), "*.json").OrderBy(f => f))
        {
            tests.Add(new KeyValuePair<string, Func<Task>>(Path.GetFileName(file), () => new Player().Play(Json.Parse(File.ReadAllText(file)))));
        }
        foreach (var test in tests)
        {
            run++;
            try
            {
                if (!test.Value().Wait(TimeSpan.FromSeconds(30))) throw new TimeoutException("the test did not end");
            }
            catch (Exception e)
            {
                failed++;
                Console.WriteLine("FAILED " + test.Key + ": " + (e.InnerException ?? e));
            }
        }
        Console.WriteLine("csharp: " + (run - failed) + " of " + run + " tests passed");
        return failed == 0 && tests.Count >= 10 ? 0 : 1;
    }

    static Server TheServer(string token = null)
    {
        string url = Environment.GetEnvironmentVariable("SAJOU_URL");
        if (string.IsNullOrEmpty(url)) throw new Exception("SAJOU_URL and SAJOU_TOKEN name the server of the tests; .ci/clients sets them");
        return new Server(url, token ?? Environment.GetEnvironmentVariable("SAJOU_TOKEN"), TimeSpan.FromSeconds(10));
    }

    static string NewSession() { return "csharp-" + Guid.NewGuid().ToString("N").Substring(0, 12); }

    static void Equal(object want, object got, string what)
    {
        if (!Equals(want, got)) throw new Exception(what + ": want " + want + ", got " + got);
    }

    static async Task<T> Throws<T>(Func<Task> f) where T : Exception
    {
        try { await f(); }
        catch (T e) { return e; }
        throw new Exception("want a " + typeof(T).Name);
    }

    static Task Vectors()
    {
        var vectors = Json.Parse(File.ReadAllText(Path.Combine(testdata, "vectors.json")));
        foreach (var v in vectors["canonical"].Elements)
        {
            Equal(v["canonical"].AsText(), Json.Parse(v["text"].AsText()).ToString(), v["text"].AsText());
        }
        foreach (var v in vectors["digests"].Elements)
        {
            Equal(v["digest"].AsText(), Json.Digest(v["agent"].AsText(), Json.Parse(v["view"].AsText())), "digest");
        }
        foreach (var v in vectors["patches"].Elements)
        {
            var value = Json.Parse(v["value"].AsText());
            string before = value.ToString(), result = null;
            try { result = Patch.Apply(value, Json.Parse(v["patch"].AsText())).ToString(); }
            catch (PatchException) { }
            Equal(v["result"].IsNull ? null : v["result"].AsText(), result, v["patch"].AsText());
            Equal(before, value.ToString(), "the value itself does not change");
        }
        return Task.FromResult(0);
    }

    static async Task NotJson()
    {
        string deep = new string('[', Json.MaxDepth + 1) + new string(']', Json.MaxDepth + 1);
        foreach (string text in new[] { "", "{", "NaN", "[1,]", "01", "1.", "-", "1e400", new string('1', 40), "\"\u0001\"", "\"\\x\"", "\"\\u12\"", "{\"a\":1,\"a\":2}", "{} {}", deep, new string('[', 1000000) })
        {
            await Throws<ProtocolException>(() => { Json.Parse(text); return Task.FromResult(0); });
        }
        Json.Parse(deep.Substring(1, deep.Length - 2));
    }

    static async Task Tokens()
    {
        await Throws<ArgumentException>(() => { new Server("http://sajou.example", "secret"); return Task.FromResult(0); });
        new Server("http://sajou.example", "secret", null, true);
        var ended = await Throws<ConnectionEndedException>(() => Agent.Connect(TheServer("wrong"), NewSession(), "alice"));
        Equal(4001, ended.Code, "the code");
        Equal(401, (await Throws<ProblemException>(() => new Director(TheServer("wrong"), NewSession()).Guide(1))).Status, "the status");
    }

    /// <summary>Answers each connection with the next answer, and counts them.</summary>
    static async Task<int> Answer(TcpListener listener, string[] answers)
    {
        for (int i = 0; i < answers.Length; i++)
        {
            using (var client = await listener.AcceptTcpClientAsync())
            {
                var stream = client.GetStream();
                var request = "";
                var piece = new byte[1 << 12];
                while (!request.EndsWith("\r\n\r\n") && !request.EndsWith("}"))
                {
                    int n = await stream.ReadAsync(piece, 0, piece.Length);
                    if (n == 0) break;
                    request += Encoding.ASCII.GetString(piece, 0, n);
                }
                var bytes = Encoding.ASCII.GetBytes("HTTP/1.1 " + answers[i] + "\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}");
                await stream.WriteAsync(bytes, 0, bytes.Length);
            }
        }
        return answers.Length;
    }

    /// <summary>A request that may be repeated is, after answers that ask for it; another one fails at once.</summary>
    static async Task Repeats()
    {
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        try
        {
            var server = new Server("http://127.0.0.1:" + ((IPEndPoint)listener.LocalEndpoint).Port, null, TimeSpan.FromSeconds(10));
            var answering = Answer(listener, new[] { "429 Too Many Requests\r\nRetry-After: 0", "503 Service Unavailable", "200 OK" });
            Equal("{}", (await server.Request("GET", "/", null, repeat: true)).ToString(), "the answer in the end");
            Equal(3, await answering, "requests");

            answering = Answer(listener, new[] { "429 Too Many Requests\r\nRetry-After: 7" });
            Equal((TimeSpan?)TimeSpan.FromSeconds(7), (await Throws<ProblemException>(() => server.Request("GET", "/"))).RetryAfter, "what the server asks for");
            await answering;

            answering = Answer(listener, new[] { "409 Conflict" });
            Equal(409, (await Throws<ProblemException>(() => server.Request("GET", "/", null, repeat: true))).Status, "another refusal");
            await answering;
        }
        finally
        {
            listener.Stop();
        }
    }

    static async Task DirectorTurn()
    {
        var director = new Director(TheServer(), NewSession());
        var episode = Json.Parse(@"{""director"":1,""id"":""door"",""title"":""The door"",""situation"":""A closed door. Rain."",""genre"":""mystery"",""turn_budget"":10,
            ""beats"":[{""id"":""knock"",""description"":""somebody knocks"",""character_instruction"":""Knock."",""target_turn"":1,""deadline_turn"":3,
            ""detection_type"":""keyword"",""detection_criteria"":""knock"",""choice_point"":{""id"":""open"",""prompt"":""Open?"",
            ""choices"":[{""id"":""yes"",""label"":""I open it."",""sets_flag"":""opened""},{""id"":""no"",""label"":""I wait.""}]}}]}");
        Equal("door", (await director.Start(episode))["episode"].AsText(), "the episode");
        var guidance = await director.Guide(1, "Hello?");
        Equal("knock", guidance["directive"]["beat_id"].AsText(), "the directive");
        Equal(guidance.ToString(), (await director.Guide(1, "Hello?")).ToString(), "a repeat has the first answer");
        var response = await director.Respond(1, "A knock at the door.");
        Equal("open", response["choice"]["id"].AsText(), "the choice point");
        Equal("in-use", (await Throws<ProblemException>(() => director.Guide(2, "typed"))).Code, "a choice is pending");
        Equal("I open it.", (await director.Choose("open", "yes"))["message"]["content"].AsText(), "the message");
        Equal("/turn", (await Throws<ProblemException>(() => director.Guide(0))).Pointer, "the place");
    }

    static async Task Ends()
    {
        string session = NewSession();
        Equal(4004, (await Throws<ConnectionEndedException>(() => Agent.Connect(TheServer(), session, "alice"))).Code, "no session");
        var world = new World(TheServer(), session);
        await world.Begin("manual", Json.Object("cooldowns", "off"));
        await world.Register("alice");
        using (var holder = await Simulation.Connect(TheServer(), session))
        {
            Equal(4007, (await Throws<ConnectionEndedException>(() => Simulation.Connect(TheServer(), session))).Code, "a second holder");
            Equal("bad_tick", (await Throws<RequestFailedException>(() => holder.Tick(1e18))).Code, "a tick beyond time");
            Equal(1.0, (await holder.Tick(1)).SimTime, "the time");
        }
        using (var first = await Agent.Connect(TheServer(), session, "alice"))
        {
            await first.Observe();
            using (await Agent.Connect(TheServer(), session, "alice"))
            {
                Equal(4005, (await Throws<ConnectionEndedException>(() => first.Observe())).Code, "another connection");
                Equal(4005, (await Throws<ConnectionEndedException>(() => first.Submit("Speak"))).Code, "a link that has ended");
            }
        }
    }

    /// <summary>Plays a scenario.</summary>
    sealed class Player
    {
        readonly Dictionary<string, Agent> agents = new Dictionary<string, Agent>();
        readonly Dictionary<string, Task<Outcome>> outcomes = new Dictionary<string, Task<Outcome>>();
        readonly Dictionary<string, Generation> generations = new Dictionary<string, Generation>();
        Simulation simulation;
        World world;

        internal async Task Play(Json story)
        {
            string session = NewSession();
            world = new World(TheServer(), session);
            await world.Begin(story["time"].AsText(), story["config"], story["world"]);
            foreach (var a in story["agents"].Members) await world.Register(a.Key, a.Value);
            try
            {
                if (story["simulation"].IsBool) simulation = await Simulation.Connect(TheServer(), session, -1, quick);
                foreach (var a in story["agents"].Members) agents[a.Key] = await Agent.Connect(TheServer(), session, a.Key, quick);
                int i = 0;
                foreach (var step in story["steps"].Elements)
                {
                    try { await Step(step); }
                    catch (Exception e) { throw new Exception("step " + i + ": " + step + ": " + e.Message, e); }
                    i++;
                }
            }
            finally
            {
                foreach (var a in agents.Values) a.Dispose();
                if (simulation != null) simulation.Dispose();
            }
        }

        async Task Step(Json s)
        {
            string reqId = s.Text("req_id", null), kind = s.Text("kind", null);
            long context = s.Has("context_seq") ? s["context_seq"].AsLong() : -1;
            int priority = s.Has("priority") ? (int)s["priority"].AsLong() : 0;
            if (s.Has("observe"))
            {
                var seen = await agents[s["observe"].AsText()].Observe();
                Equal(s["view_seq"].AsLong(), seen.ViewSeq, "view_seq");
                if (s.Has("full")) Equal(s["full"].AsBool(), seen.Full, "full");
                Equal(0L, seen.Missed, "missed");
                foreach (var place in s["at"].Members) Equal(place.Value.ToString(), At(seen.View, place.Key).ToString(), place.Key);
            }
            else if (s.Has("quiet"))
            {
                string name = s["quiet"].AsText();
                Equal((await world.View(name))["view_seq"].AsLong(), agents[name].ViewSeq, "view_seq");
                Equal(null, agents[name].TryObserve(), "an observation");
            }
            else if (s.Has("act")) Compare(await agents[s["act"].AsText()].Submit(kind, s["payload"], reqId, context, priority), s["expect"]);
            else if (s.Has("submit")) outcomes[reqId] = agents[s["submit"].AsText()].Submit(kind, s["payload"], reqId, context, priority);
            else if (s.Has("outcome")) Compare(await outcomes[s["outcome"].AsText()], s["expect"]);
            else if (s.Has("cancel")) Equal(s["found"].AsBool(), await agents[s["cancel"].AsText()].Cancel(reqId), "found");
            else if (s.Has("begin"))
            {
                var agent = agents[s["begin"].AsText()];
                long budget = s.Has("token_budget") ? s["token_budget"].AsLong() : 0;
                if (!s.Has("code")) generations[reqId] = await agent.Begin(reqId, -1, 0, budget);
                else Equal(s["code"].AsText(), (await Throws<RequestFailedException>(() => agent.Begin(reqId))).Code, "code");
            }
            else if (s.Has("write")) generations[s["write"].AsText()].Write(s["text"].AsText());
            else if (s.Has("end")) Equal(s["finish"].AsText(), await generations[s["end"].AsText()].End(), "finish");
            else if (s.Has("stopped"))
            {
                var generation = generations[s["stopped"].AsText()];
                Equal("stopped", await generation.Over, "the end");
                Equal(s["code"].AsText(), generation.StopCode, "code");
                Equal(true, generation.StopReason.StartsWith(s["reason"].AsText(), StringComparison.Ordinal), generation.StopReason);
            }
            else if (s.Has("reconnect"))
            {
                string name = s["reconnect"].AsText();
                (name == "simulation" ? (Link)simulation : agents[name]).Reconnect();
            }
            else if (s.Has("draft"))
            {
                outcomes[s["draft"].AsText()] = simulation.Draft(kind, s["payload"], s["source_id"].AsText(), s.Double("sim_time", -1), priority);
            }
            else if (s.Has("intent"))
            {
                string name = s["intent"].AsText();
                outcomes[name] = simulation.Intent(s["agent"].AsText(), kind, s["payload"], context, name, -1, priority);
            }
            else if (s.Has("tick"))
            {
                await simulation.WhenConnected();
                var ticked = await simulation.Tick(s["tick"].AsDouble());
                Equal(s["decided"].AsLong(), ticked.Decided, "decided");
                Equal(string.Join(" ", s["effects"].Elements.Select(e => e.AsText())), string.Join(" ", ticked.Effects.Select(e => e["effect"]["kind"].AsText())), "effects");
            }
            else throw new Exception("an unknown step");
        }

        static void Compare(Outcome outcome, Json expect)
        {
            Equal(expect["status"].AsText(), outcome.Status, outcome.Document.ToString());
            if (expect.Has("code")) Equal(expect["code"].AsText(), outcome.Code, "code");
        }

        static Json At(Json value, string pointer)
        {
            foreach (string part in pointer.Split('/').Skip(1))
            {
                string token = part.Replace("~1", "/").Replace("~0", "~");
                value = value.IsArray ? value[int.Parse(token)] : value[token];
            }
            return value;
        }
    }
}
