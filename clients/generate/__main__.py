"""Writes the types and methods of the clients from the API document.

    python3 clients/generate            writes the files
    python3 clients/generate --check    writes nothing; exits 1 if a file differs

The same document yields the same files. Requires Python 3.11 and nothing else.
"""

import sys
from pathlib import Path

import api
import python
import typescript

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/reference/openapi.json"


def main() -> int:
    document = api.read(DOCUMENT)
    files = {
        **{ROOT / "clients/python/src/dalsegno" / name: code for name, code in python.files(document).items()},
        **{ROOT / "clients/typescript/src" / name: code for name, code in typescript.files(document).items()},
    }
    stale = [path for path, code in files.items() if not path.exists() or path.read_text() != code]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(
                f"{path.relative_to(ROOT)} differs from {DOCUMENT.relative_to(ROOT)}: run python3 clients/generate",
                file=sys.stderr,
            )
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path])
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
