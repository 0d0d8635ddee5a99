// Reads MCAP from stdin with the reader of the format's authors and prints its metadata and its
// messages in the order of the file, each as JSON in a line. The argument is a folder of
// node_modules with @mcap/core and fzstd.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
const load = createRequire(process.argv[2] + "/");
const { McapIndexedReader, McapStreamReader } = load("@mcap/core");
const { decompress } = load("fzstd");
const file = readFileSync(0);
const decompressHandlers = { zstd: (data) => decompress(data) };
const out = [], text = new TextDecoder();

// Record by record: this reader checks the sums of all chunks and the section of data.
const channels = new Map();
const stream = new McapStreamReader({ decompressHandlers, validateCrcs: true });
stream.append(file);
let n = 0;
for (let r; (r = stream.nextRecord()); ) {
  if (r.type === "Metadata") out.push({ name: r.name, metadata: Object.fromEntries(r.metadata) });
  if (r.type === "Channel") channels.set(r.id, r.topic);
  if (r.type === "Message") {
    out.push({ topic: channels.get(r.channelId), time: String(r.logTime), data: text.decode(r.data) });
    n++;
  }
}
if (!stream.done()) throw new Error("the file does not end");

// By its index: the same messages, in the order of their times.
const readable = { size: async () => BigInt(file.length), read: async (at, size) => file.subarray(Number(at), Number(at + size)) };
const indexed = await McapIndexedReader.Initialize({ readable, decompressHandlers });
let last = 0n;
for await (const m of indexed.readMessages()) {
  if (m.logTime < last) throw new Error("the index is out of order");
  last = m.logTime;
  n--;
}
if (n !== 0) throw new Error(`the index lacks ${n} messages`);
process.stdout.write(out.map((o) => JSON.stringify(o) + "\n").join(""));
