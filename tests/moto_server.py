"""moto's S3 server, in which a write is one step: ``python tests/moto_server.py -H HOST -p PORT``.

S3 creates an object that may not exist yet for one writer only. moto looks, then writes, and other threads may do the
same in between: of sixteen writers at once two have been told that they created it. So it gets one PUT at a time.

What moto does for each request and S3 does not is left out: it lists its own modules, which takes half of the time of a
GET, closes the connection, and formats a line for a log that is not read.
"""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

from moto import backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler
from moto.server import main

_lock = threading.Lock()
_answer = DomainDispatcherApplication.__call__
_modules = tuple(backends.list_of_moto_modules())


def _one_put_at_a_time(self: DomainDispatcherApplication, environ: dict[str, Any], start_response: Any) -> Any:
    if environ["REQUEST_METHOD"] != "PUT":
        return _answer(self, environ, start_response)
    with _lock:
        return _answer(self, environ, start_response)


if __name__ == "__main__":
    DomainDispatcherApplication.__call__ = _one_put_at_a_time
    MotoRequestHandler.protocol_version = "HTTP/1.1"
    backends.list_of_moto_modules = lambda: _modules
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    main(sys.argv[1:])
