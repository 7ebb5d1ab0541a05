"""The TCP proxy of `oncebox_operate.faults`, under the name that tests know."""

from oncebox_operate.faults.flow import Way
from oncebox_operate.faults.tcp_proxy import CHUNK, LINE_LIMIT, Mode, TcpProxy, abort

__all__ = ["CHUNK", "LINE_LIMIT", "Mode", "TcpProxy", "Way", "abort"]
