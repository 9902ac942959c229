"""The report, live while a sweep runs: `python -m distpaml.dashboard DIR [--port 8080]`."""

import os
import sys
from pathlib import Path

from distpaml.command_line import Parser, called, say
from distpaml.errors import UserError
from distpaml.report.live import HOST, PORT, serve, state_of


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog=called("dashboard"), description="The report, live, on this machine only.")
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR", help="a sweep, a run, or a folder of them")
    parser.add_argument("--port", type=int, default=PORT, help=f"default: {PORT}; 0 takes any free port")
    options = parser.parse_args(arguments)
    try:
        for directory in options.directories:
            if not os.path.isdir(directory):  # False also where the name is too long
                raise UserError(f"{directory} is not a directory; name that of a sweep or of a run.")
        with serve(options.directories, options.port) as server:
            if not state_of(options.directories):
                say(f"{options.directories[0]} has no run yet; the page will show the first finished round.")
            print(f"Dashboard: http://{HOST}:{server.server_address[1]}/  (Ctrl-C stops it)", flush=True)
            server.serve_forever()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Dashboard stopped; the runs continue.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
