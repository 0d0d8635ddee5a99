#!/usr/bin/env python3
"""Check the hash chain of a session without trusting sajou-replay.

    sajou-replay export --raw SESSION > session.raw.jsonl
    python3 verify_chain.py session.raw.jsonl [SEQ:HASH]

reads a raw export (or stdin, for -), recomputes every hash from the name of
the session and the stored bytes, and prints the head. A SEQ:HASH that was kept
elsewhere must be in the chain; only this check detects that the newest entries
were cut off. The exit code is 0 if all is as it was recorded, 1 if not, and 2
if the input is not a raw export.

The chain, with H for SHA-256 and + for putting bytes one after the other:

    hash(0) = H("sajou.session/1\\n" + name of the session in UTF-8)
    hash(n) = H(hash(n-1) + stored bytes of entry n)

and the stored bytes are the body's length as a uvarint (seven bits a byte, low
ones first), followed by the body. Only Python's standard library is used.
"""

import base64
import hashlib
import json
import sys


class Broken(Exception):
    """The chain is not what was recorded."""


def uvarint(data):
    """Return the number at the front of data, and how many bytes it takes."""
    value = 0
    for i, byte in enumerate(data[:10]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value, i + 1
    raise Broken("the length in front of the body is cut off")


def verify(lines, kept=None):
    """Check the lines of a raw export; return name, seq and hash of the head.

    kept is a (seq, hash) that must be in the chain, or None.
    """
    header = json.loads(next(lines))
    name = header["session"]
    if not isinstance(name, str):
        raise ValueError("the first line does not name a session")
    link = hashlib.sha256(b"sajou.session/1\n" + name.encode("utf-8")).digest()
    if header["genesis"] != link.hex():
        raise Broken("the genesis hash is not that of a session named %r" % name)
    seq = 0
    met = kept is None
    for line in lines:
        if not line.strip():
            continue
        entry = json.loads(line)
        seq += 1
        if entry["session"] != name:
            raise Broken("entry %d is of another session, %r" % (seq, entry["session"]))
        if entry["seq"] != seq:
            raise Broken("entry %d is missing: %r stands in its place" % (seq, entry["seq"]))
        stored = base64.b64decode(entry["entry"], validate=True)
        length, size = uvarint(stored)
        if size + length != len(stored):
            raise Broken("entry %d is not as long as it says" % seq)
        link = hashlib.sha256(link + stored).digest()
        if entry["hash"] != link.hex():
            raise Broken("entry %d was altered, or is not in its place" % seq)
        met = met or kept == (seq, link.hex())
    if not met:
        raise Broken("the head %d:%s is not in this chain, which ends at %d" % (kept + (seq,)))
    return name, seq, link.hex()


def main(args):
    if len(args) not in (1, 2):
        print("usage: verify_chain.py FILE|- [SEQ:HASH]", file=sys.stderr)
        return 2
    kept = None
    if len(args) == 2:
        number, _, digest = args[1].partition(":")
        if not number.isdecimal() or not digest:
            print("%r is not of the form SEQ:HASH" % args[1], file=sys.stderr)
            return 2
        kept = (int(number), digest.lower())
        if kept[0] == 0:
            print("a head of entry 0 proves nothing: every session of that name has it", file=sys.stderr)
            return 2
    try:
        source = sys.stdin if args[0] == "-" else open(args[0], encoding="utf-8")
        with source:
            name, seq, head = verify(iter(source), kept)
    except Broken as err:
        print("BROKEN: %s" % err)
        return 1
    except (OSError, StopIteration, ValueError, KeyError, TypeError, RecursionError) as err:
        print("not a raw export: %s" % (str(err) or "it is empty"), file=sys.stderr)
        return 2
    print("verified %s: %d entries, head %d:%s" % (name, seq, seq, head))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
