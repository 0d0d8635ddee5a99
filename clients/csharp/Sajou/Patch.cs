using System.Collections.Generic;

namespace Sajou
{
    /// <summary>A patch does not apply to the value.</summary>
    public sealed class PatchException : ProtocolException
    {
        public PatchException(string message) : base(message) { }
    }

    /// <summary>JSON Patch (RFC 6902), with the operations of the protocol: add, remove and replace.</summary>
    public static class Patch
    {
        /// <summary>Returns the value after a patch. If one operation does not apply, none does.</summary>
        public static Json Apply(Json value, Json patch)
        {
            if (!patch.IsArray) throw new PatchException("a patch is an array");
            int i = 0;
            foreach (var operation in patch.Elements)
            {
                string op = operation.Text("op", ""), path = operation.Text("path", null), at = "operation " + i++ + " of the patch does not apply: ";
                if (op != "add" && op != "remove" && op != "replace") throw new PatchException(at + "its op is unknown");
                if (path == null || (path != "" && path[0] != '/')) throw new PatchException(at + "its path is not a JSON Pointer");
                if (op != "remove" && !operation.Has("value")) throw new PatchException(at + "it has no value");
                if (path == "")
                {
                    if (op == "remove") throw new PatchException(at + "the whole value cannot be removed");
                    value = operation["value"];
                    continue;
                }
                value = Change(value, path.Split('/'), 1, op, operation["value"], at);
            }
            return value;
        }

        static Json Change(Json node, string[] path, int depth, string op, Json added, string at)
        {
            string token = path[depth].Replace("~1", "/").Replace("~0", "~");
            bool last = depth == path.Length - 1;
            if (node.IsObject)
            {
                if (!node.Has(token) && !(last && op == "add")) throw new PatchException(at + "there is no " + token);
                var members = new Dictionary<string, Json>();
                foreach (var m in node.Members) members.Add(m.Key, m.Value);
                if (!last) members[token] = Change(node[token], path, depth + 1, op, added, at);
                else if (op == "remove") members.Remove(token);
                else members[token] = added;
                return Json.Of(members);
            }
            if (!node.IsArray) throw new PatchException(at + "the path leads nowhere");
            var elements = new List<Json>(node.Elements);
            bool insert = last && op == "add";
            int index = insert && token == "-" ? elements.Count : Index(token);
            if (index < 0 || index > elements.Count - (insert ? 0 : 1)) throw new PatchException(at + "there is no element " + token);
            if (insert) elements.Insert(index, added);
            else if (!last) elements[index] = Change(elements[index], path, depth + 1, op, added, at);
            else if (op == "remove") elements.RemoveAt(index);
            else elements[index] = added;
            return Json.Of(elements);
        }

        static int Index(string token)
        {
            if (token == "" || token.Length > 9 || (token.Length > 1 && token[0] == '0')) return -1;
            int n = 0;
            foreach (char c in token)
            {
                if (c < '0' || c > '9') return -1;
                n = n * 10 + (c - '0');
            }
            return n;
        }
    }
}
