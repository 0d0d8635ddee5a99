"""Tests. Those against a real server need SAJOU_URL and SAJOU_TOKEN; .ci/clients starts one."""
