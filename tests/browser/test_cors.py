"""A client in a page of another origin, over the servers that sites use."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.transports.live_servers import live_server as serve

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.needs("daphne")]

#: As clients of both eras do it. Returns what the page can read of the answers.
CONNECT = """async url => {
  const post = (message, headers) => fetch(url, {
    method: "POST",
    headers: {"Content-Type": "application/json",
              "Accept": "application/json, text/event-stream", ...headers},
    body: JSON.stringify({jsonrpc: "2.0", id: 1, ...message}),
  });
  try {
    const begun = await post({method: "initialize", params: {protocolVersion: "2025-11-25",
      capabilities: {}, clientInfo: {name: "page", version: "1"}}}, {});
    const session = begun.headers.get("Mcp-Session-Id");
    const headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"};
    const pinged = await post({method: "ping"}, headers);
    const ended = await fetch(url, {method: "DELETE", headers});
    const meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                  "io.modelcontextprotocol/clientCapabilities": {},
                  "io.modelcontextprotocol/clientInfo": {name: "page", version: "1"}};
    const called = await post(
      {method: "tools/call", params: {name: "report", arguments: {then: "done"}, _meta: meta}},
      {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "report",
       "Mcp-Param-Any": "x"});
    const text = await called.text();
    return [Boolean(session), "result" in await pinged.json(), ended.status,
            text.includes("done")];
  } catch (error) {
    return error.message;
  }
}"""


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<title>a chat</title>")

    def log_message(self, *args):
        """Pages are not logged."""


@contextmanager
def origin():
    """A page of its own origin. Chromium lets none from elsewhere ask this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_a_page_of_an_allowed_origin_connects_and_no_other_does(browse, server):
    with ExitStack() as stack:
        allowed, other = stack.enter_context(origin()), stack.enter_context(origin())
        _, port = stack.enter_context(serve(server, LIVE_ORIGIN=allowed))
        found = {}
        for page in (allowed, other):
            tab = browse()
            tab.goto(f"{page}/")
            found[page] = tab.evaluate(CONNECT, f"http://127.0.0.1:{port}/mcp")
            complaints, tab.faults = " ".join(tab.faults), []

    assert found == {allowed: [True, True, 204, True], other: "Failed to fetch"}
    assert "No 'Access-Control-Allow-Origin' header" in complaints
