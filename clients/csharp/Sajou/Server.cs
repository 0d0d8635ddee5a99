using System;
using System.Globalization;
using System.IO;
using System.Net;
using System.Text;
using System.Threading.Tasks;

namespace Sajou
{
    /// <summary>A server: its address, such as http://127.0.0.1:5175, and the caller's token.</summary>
    public sealed class Server
    {
        /// <summary>Bounds what is read of an answer and of a message, in bytes.</summary>
        public const int MaxMessage = 16 << 20;

        public Uri Url { get; }
        internal string Token { get; }

        /// <summary>Bounds each wait for the server.</summary>
        public TimeSpan Timeout { get; }

        /// <summary>A token is sent over https or to this machine alone, unless insecure is true. The timeout is 30 s if it is not given.</summary>
        public Server(string url, string token = null, TimeSpan? timeout = null, bool insecure = false)
        {
            Url = new Uri(url.TrimEnd('/'));
            if (Url.Scheme != "http" && Url.Scheme != "https") throw new ArgumentException("write the address of the server as http://HOST:PORT", "url");
            if (Url.UserInfo != "" || Url.Query != "" || Url.Fragment != "") throw new ArgumentException("the address has no user, query or fragment; give the token as token", "url");
            if (token != null && Url.Scheme == "http" && !Url.IsLoopback && !insecure)
            {
                throw new ArgumentException("the token would travel to " + Url.Host + " in plain text; use https, or insecure: true", "url");
            }
            Token = token;
            Timeout = timeout ?? TimeSpan.FromSeconds(30);
        }

        /// <summary>Returns the path of something of a session.</summary>
        public static string Path(string session, params string[] parts)
        {
            var b = new StringBuilder("/api/v1/sessions/").Append(Uri.EscapeDataString(session));
            foreach (string part in parts) b.Append('/').Append(Uri.EscapeDataString(part));
            return b.ToString();
        }

        internal Uri Socket(string path)
        {
            return new Uri((Url.Scheme == "https" ? "wss" : "ws") + Url.AbsoluteUri.Substring(Url.Scheme.Length).TrimEnd('/') + path);
        }

        /// <summary>
        /// Sends a request, and returns the JSON of its answer. A refusal is a ProblemException, a network that fails a
        /// WebException. With repeat, the request is sent again, up to four times, after a fault and after answers that ask for it
        /// (429, 503), and waits as long as they say, for at most 5 s each time. Redirects are not followed.
        /// </summary>
        public async Task<Json> Request(string method, string path, Json body = null, bool repeat = false)
        {
            var delay = TimeSpan.FromMilliseconds(200);
            for (int left = repeat ? 4 : 0; ; left--)
            {
                var wait = delay;
                try
                {
                    return await RequestOnce(method, path, body).ConfigureAwait(false);
                }
                catch (ProblemException e) when (left > 0 && (e.Status == 429 || e.Status == 503))
                {
                    if (e.RetryAfter > wait) wait = e.RetryAfter.Value < longestWait ? e.RetryAfter.Value : longestWait;
                }
                catch (WebException) when (left > 0)
                {
                }
                await Task.Delay(wait).ConfigureAwait(false);
                delay += delay;
            }
        }

        static readonly TimeSpan longestWait = TimeSpan.FromSeconds(5);

        async Task<Json> RequestOnce(string method, string path, Json body)
        {
            var request = (HttpWebRequest)WebRequest.Create(new Uri(Url.AbsoluteUri.TrimEnd('/') + path));
            request.Method = method;
            request.Accept = "application/json";
            request.AllowAutoRedirect = false;
            request.Proxy = Url.IsLoopback ? null : request.Proxy;
            if (Token != null) request.Headers["Authorization"] = "Bearer " + Token;
            var exchange = Exchange(request, body);
            // The property Timeout of the request does not bound asynchronous calls.
            if (await Task.WhenAny(exchange, Task.Delay(Timeout)).ConfigureAwait(false) != exchange)
            {
                request.Abort();
                exchange.ContinueWith(t => t.Exception, TaskContinuationOptions.OnlyOnFaulted).ConfigureAwait(false); // its error is seen
                throw new TimeoutException("no answer to " + method + " " + path + " in " + Timeout);
            }
            return await exchange.ConfigureAwait(false);
        }

        static async Task<Json> Exchange(HttpWebRequest request, Json body)
        {
            if (body != null)
            {
                request.ContentType = "application/json";
                var bytes = Encoding.UTF8.GetBytes(body.ToString());
                using (var to = await request.GetRequestStreamAsync().ConfigureAwait(false)) await to.WriteAsync(bytes, 0, bytes.Length).ConfigureAwait(false);
            }
            HttpWebResponse answer;
            try
            {
                answer = (HttpWebResponse)await request.GetResponseAsync().ConfigureAwait(false);
            }
            catch (WebException e) when (e.Response is HttpWebResponse)
            {
                answer = (HttpWebResponse)e.Response;
            }
            using (answer)
            {
                string text = await Read(answer.GetResponseStream()).ConfigureAwait(false);
                int status = (int)answer.StatusCode;
                if (status >= 200 && status < 300) return Json.Parse(text);
                throw new ProblemException(status, DocumentOf(text), Seconds(answer.Headers["Retry-After"]));
            }
        }

        static TimeSpan? Seconds(string header)
        {
            if (header == null || header.Length > 8 || !int.TryParse(header, NumberStyles.None, CultureInfo.InvariantCulture, out int seconds)) return null;
            return TimeSpan.FromSeconds(seconds);
        }

        /// <summary>A proxy may refuse in other words than JSON.</summary>
        static Json DocumentOf(string text)
        {
            try { return Json.Parse(text); }
            catch (ProtocolException) { return Json.Empty; }
        }

        static async Task<string> Read(Stream from)
        {
            using (from)
            using (var all = new MemoryStream())
            {
                var piece = new byte[1 << 14];
                for (; ; )
                {
                    int n = await from.ReadAsync(piece, 0, piece.Length).ConfigureAwait(false);
                    if (n == 0) return Encoding.UTF8.GetString(all.GetBuffer(), 0, (int)all.Length);
                    all.Write(piece, 0, n);
                    if (all.Length > MaxMessage) throw new ProtocolException("the answer has more than " + MaxMessage + " bytes");
                }
            }
        }
    }
}
