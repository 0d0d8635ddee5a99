using System;
using System.Collections.Generic;
using System.Globalization;
using System.Security.Cryptography;
using System.Text;

namespace Sajou
{
    /// <summary>
    /// A JSON value that never changes. Numbers are exact: 2 and 2.0 differ, and integers have 64 bits, since the digests of views
    /// depend on it. Null is the value <see cref="Null"/>, not the null of C#.
    /// </summary>
    public sealed class Json
    {
        /// <summary>Values are nested at most so deep: 512 levels of a view, and those of the message around it.</summary>
        public const int MaxDepth = 516;

        public static readonly Json Null = new Json(null), True = new Json(true), False = new Json(false);
        public static readonly Json Empty = new Json(new Dictionary<string, Json>());

        // null, bool, string, Number, List<Json> or Dictionary<string, Json>.
        readonly object value;

        sealed class Number
        {
            internal string Canonical;
        }

        Json(object value) { this.value = value; }

        public static implicit operator Json(string s) { return s == null ? Null : new Json(s); }
        public static implicit operator Json(bool b) { return b ? True : False; }
        public static implicit operator Json(int n) { return (long)n; }
        public static implicit operator Json(long n) { return new Json(new Number { Canonical = n.ToString(CultureInfo.InvariantCulture) }); }
        /// <summary>A double is always a float: 2 is sent as 2.0.</summary>
        public static implicit operator Json(double f) { return new Json(new Number { Canonical = FloatText(f) }); }

        /// <summary>Returns an array.</summary>
        public static Json Array(params Json[] elements) { return new Json(new List<Json>(elements)); }

        /// <summary>Returns an object of names and values: Json.Object("to", Json.Array(1.0, 2.0)).</summary>
        public static Json Object(params object[] namesAndValues)
        {
            var members = new Dictionary<string, Json>();
            for (int i = 0; i + 1 < namesAndValues.Length; i += 2)
            {
                members.Add((string)namesAndValues[i], From(namesAndValues[i + 1]));
            }
            return new Json(members);
        }

        static Json From(object v)
        {
            if (v == null) return Null;
            if (v is Json) return (Json)v;
            if (v is string) return (string)v;
            if (v is bool) return (bool)v;
            if (v is int) return (int)v;
            if (v is long) return (long)v;
            if (v is float) return (double)(float)v;
            if (v is double) return (double)v;
            throw new ArgumentException("a " + v.GetType().Name + " is not JSON");
        }

        internal static Json Of(List<Json> elements) { return new Json(elements); }
        internal static Json Of(Dictionary<string, Json> members) { return new Json(members); }

        public bool IsNull { get { return value == null; } }
        public bool IsObject { get { return value is Dictionary<string, Json>; } }
        public bool IsArray { get { return value is List<Json>; } }
        public bool IsText { get { return value is string; } }
        public bool IsNumber { get { return value is Number; } }
        public bool IsBool { get { return value is bool; } }

        /// <summary>The members of an object, the elements of an array; none of other values. Do not change them.</summary>
        public IReadOnlyDictionary<string, Json> Members { get { return (Dictionary<string, Json>)(value as Dictionary<string, Json> ?? Empty.value); } }
        public IReadOnlyList<Json> Elements { get { return value as List<Json> ?? new List<Json>(); } }

        /// <summary>A member of an object; Null if it is not there.</summary>
        public Json this[string name]
        {
            get
            {
                Json member;
                var members = value as Dictionary<string, Json>;
                return members != null && members.TryGetValue(name, out member) ? member : Null;
            }
        }

        /// <summary>An element of an array; Null if it is not there.</summary>
        public Json this[int i]
        {
            get
            {
                var elements = value as List<Json>;
                return elements != null && i >= 0 && i < elements.Count ? elements[i] : Null;
            }
        }

        public bool Has(string name)
        {
            var members = value as Dictionary<string, Json>;
            return members != null && members.ContainsKey(name);
        }

        public string AsText() { return Require<string>("a text"); }
        public bool AsBool() { return Require<bool>("true or false"); }
        public double AsDouble() { return double.Parse(Require<Number>("a number").Canonical, CultureInfo.InvariantCulture); }

        public long AsLong()
        {
            long n;
            if (!long.TryParse(Require<Number>("an integer").Canonical, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out n))
            {
                throw new ProtocolException("want an integer of 64 bits, not " + this);
            }
            return n;
        }

        /// <summary>The text, the number or the bool of a member, or a replacement if it is absent.</summary>
        public string Text(string name, string absent) { return Has(name) && this[name].IsText ? this[name].AsText() : absent; }
        public double Double(string name, double absent) { return Has(name) ? this[name].AsDouble() : absent; }

        T Require<T>(string want)
        {
            if (!(value is T)) throw new ProtocolException("want " + want);
            return (T)value;
        }

        /// <summary>Returns a copy of an object with a member more or another one.</summary>
        public Json With(string name, Json member)
        {
            var members = new Dictionary<string, Json>((Dictionary<string, Json>)value);
            members[name] = member ?? Null;
            return new Json(members);
        }

        /// <summary>Reads a JSON text. Any other text throws a ProtocolException.</summary>
        public static Json Parse(string text)
        {
            return new Reader(text).Whole();
        }

        /// <summary>
        /// The canonical form: members in the order of the code points of their names, no blanks, floats always with a point or
        /// an exponent.
        /// </summary>
        public override string ToString()
        {
            var b = new StringBuilder();
            Append(b);
            return b.ToString();
        }

        void Append(StringBuilder b)
        {
            var members = value as Dictionary<string, Json>;
            var elements = value as List<Json>;
            if (members != null)
            {
                var names = new List<string>(members.Keys);
                names.Sort(ByCodePoints);
                b.Append('{');
                for (int i = 0; i < names.Count; i++)
                {
                    if (i > 0) b.Append(',');
                    AppendText(b, names[i]);
                    b.Append(':');
                    members[names[i]].Append(b);
                }
                b.Append('}');
            }
            else if (elements != null)
            {
                b.Append('[');
                for (int i = 0; i < elements.Count; i++)
                {
                    if (i > 0) b.Append(',');
                    elements[i].Append(b);
                }
                b.Append(']');
            }
            else if (value is string) AppendText(b, (string)value);
            else if (value is Number) b.Append(((Number)value).Canonical);
            else b.Append(value == null ? "null" : (bool)value ? "true" : "false");
        }

        static void AppendText(StringBuilder b, string s)
        {
            b.Append('"');
            foreach (char c in s)
            {
                int i = "\"\\\b\f\n\r\t".IndexOf(c);
                if (i >= 0) b.Append('\\').Append("\"\\bfnrt"[i]);
                else if (c < ' ') b.Append("\\u").Append(((int)c).ToString("x4"));
                else b.Append(c);
            }
            b.Append('"');
        }

        /// <summary>UTF-16 sorts code points beyond 0xffff before some below.</summary>
        static int ByCodePoints(string a, string b)
        {
            for (int i = 0; i < a.Length && i < b.Length; i++)
            {
                if (a[i] != b[i]) return Rank(a[i]) - Rank(b[i]);
            }
            return a.Length - b.Length;
        }

        static int Rank(char c) { return char.IsSurrogate(c) ? c + 0x10000 : c; }

        /// <summary>The context_digest of a view.</summary>
        public static string Digest(string agent, Json view)
        {
            var whole = Object("agent_id", agent, "visible_entities", view["visible_entities"], "visible_relationships", view["visible_relationships"]);
            using (var sha = SHA256.Create())
            {
                return BitConverter.ToString(sha.ComputeHash(Encoding.UTF8.GetBytes(whole.ToString()))).Replace("-", "").ToLowerInvariant();
            }
        }

        /// <summary>The shortest digits that give the same double: plain from 1e-5 up to 1e16, else with an exponent.</summary>
        static string FloatText(double f)
        {
            if (double.IsNaN(f) || double.IsInfinity(f)) throw new ProtocolException(f + " is not a number of JSON");
            bool negative = BitConverter.DoubleToInt64Bits(f) < 0;
            string sign = negative ? "-" : "";
            if (f == 0) return sign + "0.0";
            f = Math.Abs(f);
            string digits = "", exponent = "";
            for (int precision = 1; precision <= 17; precision++)
            {
                // Runtimes differ in R; the first precision that reads back as the same is the shortest everywhere.
                var parts = f.ToString("e" + (precision - 1), CultureInfo.InvariantCulture).Split('e');
                digits = parts[0].Replace(".", "");
                exponent = parts[1];
                double back;
                if (double.TryParse(digits[0] + "." + (digits.Length > 1 ? digits.Substring(1) : "0") + "e" + exponent,
                        NumberStyles.Float, CultureInfo.InvariantCulture, out back) && back == f) break;
            }
            digits = digits.TrimEnd('0');
            int point = int.Parse(exponent, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture) + 1; // 0.DIGITS times ten to its power
            if (point <= -5 || point > 16) return sign + digits[0] + (digits.Length > 1 ? "." + digits.Substring(1) : "") + "e" + (point - 1);
            if (point <= 0) return sign + "0." + new string('0', -point) + digits;
            if (point >= digits.Length) return sign + digits + new string('0', point - digits.Length) + ".0";
            return sign + digits.Substring(0, point) + "." + digits.Substring(point);
        }

        sealed class Reader
        {
            readonly string text;
            int at;

            internal Reader(string text) { this.text = text; }

            ProtocolException Fail(string what) { return new ProtocolException("character " + at + " of the JSON text: " + what); }

            char Next()
            {
                while (at < text.Length && " \t\n\r".IndexOf(text[at]) >= 0) at++;
                return at < text.Length ? text[at] : '\0';
            }

            internal Json Whole()
            {
                var v = Value(MaxDepth);
                Next();
                if (at < text.Length) throw Fail("something follows the value");
                return v;
            }

            Json Value(int depth)
            {
                char c = Next();
                if (c == '{' || c == '[')
                {
                    if (depth == 0) throw Fail("nested deeper than " + MaxDepth + " levels");
                    at++;
                    return c == '{' ? ReadObject(depth - 1) : ReadArray(depth - 1);
                }
                if (c == '"') return ReadText();
                if (Word("true")) return True;
                if (Word("false")) return False;
                if (Word("null")) return Null;
                return ReadNumber();
            }

            bool Word(string word)
            {
                if (string.CompareOrdinal(text, at, word, 0, word.Length) != 0) return false;
                at += word.Length;
                return true;
            }

            Json ReadArray(int depth)
            {
                var list = new List<Json>();
                if (Next() == ']') { at++; return new Json(list); }
                for (; ; )
                {
                    list.Add(Value(depth));
                    char c = Next();
                    at++;
                    if (c == ']') return new Json(list);
                    if (c != ',') throw Fail("no , or ]");
                }
            }

            Json ReadObject(int depth)
            {
                var members = new Dictionary<string, Json>();
                if (Next() == '}') { at++; return new Json(members); }
                for (; ; )
                {
                    if (Next() != '"') throw Fail("no name");
                    string name = ReadText();
                    if (members.ContainsKey(name)) throw Fail("a name stands twice in an object");
                    if (Next() != ':') throw Fail("no :");
                    at++;
                    members.Add(name, Value(depth));
                    char c = Next();
                    at++;
                    if (c == '}') return new Json(members);
                    if (c != ',') throw Fail("no , or }");
                }
            }

            string ReadText()
            {
                at++;
                var b = new StringBuilder();
                for (; ; )
                {
                    if (at >= text.Length || text[at] < ' ') throw Fail("an open text, or a control character in it");
                    char c = text[at++];
                    if (c == '"') return b.ToString();
                    if (c != '\\') { b.Append(c); continue; }
                    char e = at < text.Length ? text[at++] : '\0';
                    int i = "\"\\/bfnrt".IndexOf(e);
                    ushort unit;
                    if (i >= 0) b.Append("\"\\/\b\f\n\r\t"[i]);
                    else if (e == 'u' && at + 4 <= text.Length && ushort.TryParse(text.Substring(at, 4), NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out unit))
                    {
                        b.Append((char)unit);
                        at += 4;
                    }
                    else throw Fail("an unknown escape");
                }
            }

            Json ReadNumber()
            {
                int begin = at;
                if (Here('-')) at++;
                int whole = Digits();
                if (whole == 0 || (whole > 1 && text[at - whole] == '0')) throw Fail("no value");
                bool isFloat = false;
                if (Here('.'))
                {
                    at++;
                    isFloat = true;
                    if (Digits() == 0) throw Fail("no digit after the point");
                }
                if (Here('e') || Here('E'))
                {
                    at++;
                    isFloat = true;
                    if (Here('+') || Here('-')) at++;
                    if (Digits() == 0) throw Fail("no digit in the exponent");
                }
                string s = text.Substring(begin, at - begin);
                double f;
                if (isFloat)
                {
                    if (!double.TryParse(s, NumberStyles.Float, CultureInfo.InvariantCulture, out f)) throw Fail("a number too great for a double");
                    return f == 0 && s[0] == '-' ? -0.0 : f;
                }
                if (s.Length > 20) throw Fail("an integer has 64 bits at most");
                return new Json(new Number { Canonical = s == "-0" ? "0" : s });
            }

            bool Here(char c) { return at < text.Length && text[at] == c; }

            int Digits()
            {
                int begin = at;
                while (at < text.Length && text[at] >= '0' && text[at] <= '9') at++;
                return at - begin;
            }
        }
    }
}
