"""The real server of the tests, and where their data is."""

import os
import unittest
import uuid
from pathlib import Path

from sajou import Server

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"


def server() -> Server:
    """Return the server of the environment. Its absence is an error, not a skipped test."""
    url, token = os.environ.get("SAJOU_URL"), os.environ.get("SAJOU_TOKEN")
    if not url or not token:
        raise unittest.TestCase.failureException("SAJOU_URL and SAJOU_TOKEN name the server of the tests; .ci/clients sets them")
    return Server(url, token=token, timeout=10)


def new_session() -> str:
    """Return a name that no session has."""
    return "python-" + uuid.uuid4().hex[:12]
