"""The demo, where the host of the tests publishes the document of a client."""

from __future__ import annotations

import os

from demo_project.settings import *  # noqa: F403

OAUTH2_PROVIDER = {"CIMD_METADATA_FETCHER": "tests.oauth.documents.LocalDocuments"}
MCP_DJANGO["ALLOWED_ORIGINS"] = [os.environ["INSPECTOR"]]  # noqa: F405
LOCAL_CERTIFICATE = os.environ.get("LOCAL_CERTIFICATE")
