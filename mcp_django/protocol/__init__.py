"""MCP as data and rules: no sockets, no clock, no Django."""
