using System.Threading.Tasks;

namespace Sajou
{
    /// <summary>
    /// The director of one session; the token needs the scope define. The answers are objects as docs/protocol.md has them. Each call
    /// may be repeated after a fault, and then has its first answer.
    /// </summary>
    public sealed class Director
    {
        readonly Server server;
        readonly string session;

        public Director(Server server, string session)
        {
            this.server = server;
            this.session = session;
        }

        /// <summary>Begins an episode, in the form of docs/episodes.md.</summary>
        public Task<Json> Start(Json episode) { return Call("start", Json.Object("episode", episode)); }

        /// <summary>Opens a turn with the user's text; without one after a choice that is a message. section is for the character's prompt.</summary>
        public Task<Json> Guide(int turn, string text = null)
        {
            var body = Json.Object("turn", turn);
            return Call("guide", text == null ? body : body.With("text", text));
        }

        /// <summary>Records the character's response. choice of the answer is the choice that it leads to, or null.</summary>
        public Task<Json> Respond(int turn, string text, int attempt = 0) { return Call("respond", Json.Object("turn", turn, "attempt", attempt, "text", text)); }

        /// <summary>Makes the user's choice. It is recorded as the user's message.</summary>
        public Task<Json> Choose(string choicePoint, string choice) { return Call("choose", Json.Object("choice_point", choicePoint, "choice", choice)); }

        Task<Json> Call(string what, Json body) { return server.Request("POST", Server.Path(session, "director", what), body, repeat: true); }
    }

    /// <summary>The world of one session; the token needs the scope define.</summary>
    public sealed class World
    {
        readonly Server server;
        readonly string session;

        public World(Server server, string session)
        {
            this.server = server;
            this.session = session;
        }

        /// <summary>Begins the session if it is new, with a time authority (wall, sim or manual), configures its world, and brings entities into it.</summary>
        public Task<Json> Begin(string time, Json config = null, Json world = null)
        {
            var body = Json.Object("time", time);
            if (config != null) body = body.With("config", config);
            if (world != null) body = body.With("world", world);
            return server.Request("PUT", Server.Path(session, "world"), body);
        }

        /// <summary>Registers an agent with its observation policy. One that is registered gets the new policy and a full view.</summary>
        public Task<Json> Register(string agent, Json policy = null)
        {
            return server.Request("PUT", Server.Path(session, "agents", agent), policy == null ? Json.Empty : Json.Object("policy", policy));
        }

        /// <summary>Returns the view that was delivered to an agent, with its view_seq.</summary>
        public Task<Json> View(string agent) { return server.Request("GET", Server.Path(session, "agents", agent, "view"), repeat: true); }
    }
}
