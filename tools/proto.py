"""Regenerate the protobuf modules beside their .proto files: ``python tools/proto.py``.

Needs ``grpcio-tools``. The result is committed, so only a change of a .proto file needs it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc

SOURCE = Path(__file__).resolve().parent.parent / "src"


def main() -> int:
    """Run the compiler over every .proto file of the package; 0 means success."""
    files = sorted(SOURCE.glob("tablewright/format/proto/*.proto"))
    names = [str(path.relative_to(SOURCE)) for path in files]
    return int(protoc.main(["protoc", f"-I{SOURCE}", f"--python_out={SOURCE}", f"--pyi_out={SOURCE}", *names]))


if __name__ == "__main__":
    sys.exit(main())
