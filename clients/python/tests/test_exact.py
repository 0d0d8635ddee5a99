import copy
import json
import unittest

from sajou import ProtocolError, canonical, digest
from sajou.exact import MAX_DEPTH, parse
from sajou.patch import PatchError, apply

from .real import TESTDATA

VECTORS = json.loads((TESTDATA / "vectors.json").read_text(encoding="utf-8"))


class ExactTest(unittest.TestCase):
    def test_canonical(self) -> None:
        for v in VECTORS["canonical"]:
            with self.subTest(v["text"]):
                self.assertEqual(canonical(parse(v["text"])), v["canonical"])
                self.assertEqual(canonical(parse(v["canonical"])), v["canonical"])

    def test_digests(self) -> None:
        for v in VECTORS["digests"]:
            self.assertEqual(digest(v["agent"], parse(v["view"])), v["digest"])

    def test_patches(self) -> None:
        for v in VECTORS["patches"]:
            with self.subTest(v["patch"]):
                value = parse(v["value"])
                before = copy.deepcopy(value)
                if v["result"] is None:
                    with self.assertRaises(PatchError):
                        apply(value, parse(v["patch"]))
                else:
                    self.assertEqual(canonical(apply(value, parse(v["patch"]))), v["result"])
                self.assertEqual(value, before, "the value itself does not change")

    def test_what_is_not_json(self) -> None:
        deep = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)
        for text in ("", "{", "NaN", "Infinity", "[1,]", "01", deep, "[" * 1_000_000, '{"a":' * 100_000, "1" * 10_000):
            with self.subTest(text[:20]), self.assertRaises(ProtocolError):
                parse(text)
        parse(deep[1:-1])
        for value in (float("nan"), float("inf"), {1}):
            with self.assertRaises(ValueError):
                canonical(value)

    def test_half_a_surrogate_pair_has_no_digest(self) -> None:
        with self.assertRaises(ProtocolError):
            digest("a", {"visible_entities": {"\ud800": 1}, "visible_relationships": {}})
