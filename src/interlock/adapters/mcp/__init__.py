"""MCP: the tools of servers that speak the Model Context Protocol, on the path that every tool call takes."""

from interlock.errors import ConfigError, install_hint

try:
    from interlock.adapters.mcp.gateway import mcp_server, serve_mcp
    from interlock.adapters.mcp.terms import ToolTerms
    from interlock.adapters.mcp.tools import McpTools, mcp_tools, pin_mcp_tools
    from interlock.adapters.mcp.upstream import Upstream
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
        raise
    raise ConfigError(f"interlock.adapters.mcp needs the SDK of MCP: {install_hint('mcp')}") from None

__all__ = ["McpTools", "ToolTerms", "Upstream", "mcp_server", "mcp_tools", "pin_mcp_tools", "serve_mcp"]
