using System;
using System.Collections.Generic;

namespace Sajou
{
    /// <summary>The class of all errors of this library, except for those of wrong arguments.</summary>
    public class SajouException : Exception
    {
        public SajouException(string message) : base(message) { }
    }

    /// <summary>The server sent something that the protocol does not allow.</summary>
    public class ProtocolException : SajouException
    {
        public ProtocolException(string message) : base(message) { }
    }

    /// <summary>The connection is over. Code is the close code, 1006 if the network failed.</summary>
    public sealed class ConnectionEndedException : SajouException
    {
        static readonly Dictionary<int, string> remedies = new Dictionary<int, string>
        {
            { 1000, "the program closed the connection; connect again" },
            { 1001, "the server stops; connect again later" },
            { 1006, "the network failed, or the server did not answer; connect again" },
            { 1009, "the message was too large; send a smaller one" },
            { 1011, "the server failed; connect again later" },
            { 4001, "give a valid token" },
            { 4003, "give a token with the right scope: act for an agent, tick for a simulation" },
            { 4004, "begin the world and register the agent first" },
            { 4005, "another connection of this agent took over; run one program for each agent" },
            { 4006, "the agent has left the world; register it again" },
            { 4007, "end the other simulation of the session, or wait until the server notices its end" },
            { 4008, "the store takes no entries; connect again later" },
        };

        public int Code { get; }
        public string Reason { get; }

        public ConnectionEndedException(int code, string reason)
            : base("the connection ended with " + code + (reason == "" ? "" : " (" + reason + ")")
                + (remedies.ContainsKey(code) ? ": " + remedies[code] : ""))
        {
            Code = code;
            Reason = reason;
        }
    }

    /// <summary>The server refused a request. Code is the kind of problem, Pointer the place of the faulty value.</summary>
    public sealed class ProblemException : SajouException
    {
        public int Status { get; }
        public string Code { get; }
        public string Pointer { get; }

        /// <summary>How long the server asks to wait before a repeat; null if it does not.</summary>
        public TimeSpan? RetryAfter { get; }

        public ProblemException(int status, Json document, TimeSpan? retryAfter = null)
            : base("the server answered " + status + " " + document.Text("code", "") + ": " + document.Text("detail", ""))
        {
            Status = status;
            Code = document.Text("code", "");
            Pointer = document.Text("pointer", null);
            RetryAfter = retryAfter;
        }
    }

    /// <summary>A request has no outcome. Code is that of an error message, or lost if the connection ended before.</summary>
    public sealed class RequestFailedException : SajouException
    {
        public string ReqId { get; }
        public string Code { get; }

        public RequestFailedException(string reqId, string code, string detail) : base("request \"" + reqId + "\": " + code + ": " + detail)
        {
            ReqId = reqId;
            Code = code;
        }
    }
}
