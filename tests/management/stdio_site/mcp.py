from __future__ import annotations

import os
import subprocess
import sys
import time

import mcp_django as mcp

print("Discovered.")


@mcp.tool(read_only=True)
def chatter() -> str:
    """Print in every way there is."""
    print("printed")
    print("flushed", flush=True)
    sys.__stdout__.write("from the first stdout")
    sys.__stdout__.flush()
    os.write(1, b"to the descriptor\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    return "said"


@mcp.tool(read_only=True)
def credentials() -> str:
    """Look for what the process was started with."""
    code = "import os, sys; print('MCP_TOKEN' in os.environ, repr(sys.stdin.read()))"
    child = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
    return f"{'MCP_TOKEN' in os.environ} {sys.stdin.read()!r} {child.stdout.decode()}"


@mcp.tool(read_only=True)
def linger() -> str:
    """Work on, whatever anybody wants."""
    print("lingering", file=sys.stderr, flush=True)
    time.sleep(600)
    return "never"
