"""Enough of a W&B server to see what would be sent: GraphQL, the file stream, and a place to upload to.

with Server() as server:
    …  # with WANDB_BASE_URL = server.url
    server.runs["id"].rows, server.uploads, server.bodies
"""

import gzip
import json
import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import quote, unquote

ENTITY, PROJECT_ID = "team", "project-id"


@dataclass
class Run:
    """What was told of one run."""

    about: dict[str, Any] = field(default_factory=dict)
    """The newest of all that was said: `groupName`, `tags`, `config` and so on."""
    files: dict[str, list[str]] = field(default_factory=dict)
    """The lines of every streamed file."""
    ended: int | None = None
    """The exit code."""

    @property
    def rows(self) -> list[dict]:
        return [json.loads(line) for line in self.files.get("wandb-history.jsonl", [])]


class Server:
    """On a port of its own on this machine, while open."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.uploads: dict[str, bytes] = {}
        self.artifacts: dict[str, dict] = {}
        self.bodies: list[tuple[str, bytes]] = []
        """Path and contents of every request."""
        self.keys: set[str] = set()
        """The headers of authorisation."""
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"behind": self}))
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def answer(self, path: str, body: bytes) -> dict:
        with self._lock:
            self.bodies.append((path, body))
            if path == "/graphql":
                asked = json.loads(body)
                name = re.search(r"(?:query|mutation)\s+(\w+)", asked["query"])[1]
                return {"data": getattr(self, f"_{name}", lambda variables: {})(asked.get("variables") or {})}
            if path.startswith("/upload/"):
                self.uploads[unquote(path.removeprefix("/upload/"))] = body
            elif path.endswith("/file_stream"):
                self._stream(self.runs[path.split("/")[-2]], json.loads(body))
            return {}

    def _stream(self, run: Run, told: dict) -> None:
        for name, part in told.get("files", {}).items():
            if name.endswith(".jsonl"):
                run.files.setdefault(name, [])[part["offset"] :] = part["content"]
            else:
                run.files[name] = part["content"]
        if told.get("complete"):
            run.ended = told["exitcode"]

    def _url(self, name: str) -> str:
        return f"{self.url}/upload/{quote(name)}"

    def _Viewer(self, asked: dict) -> dict:  # noqa: N802
        return {"viewer": {"id": "me", "entity": ENTITY, "username": "me", "email": "", "flags": "{}", "teams": None}}

    def _project(self, name: str) -> dict:
        return {"id": PROJECT_ID, "name": name, "entity": {"id": "entity-id", "name": ENTITY}}

    def _RunResumeStatus(self, asked: dict) -> dict:  # noqa: N802
        run = self.runs.get(asked["name"])
        if run is None:
            return {"model": {**self._project(asked["project"]), "bucket": None}}
        lines = {name: run.files.get(f"wandb-{name}.jsonl", []) for name in ("history", "events")}
        summary = run.files.get("wandb-summary.json", ["{}"])[-1]
        bucket = {
            "id": asked["name"],
            "name": asked["name"],
            "displayName": run.about.get("displayName"),
            "config": run.about.get("config") or "{}",
            "tags": run.about.get("tags") or [],
            "notes": None,
            "summaryMetrics": summary,
            "logLineCount": 0,
            "historyLineCount": len(lines["history"]),
            "eventsLineCount": len(lines["events"]),
            "historyTail": json.dumps(lines["history"][-1:]),
            "eventsTail": json.dumps(lines["events"][-1:]),
            "wandbConfig": json.dumps({"t": 1}),
        }
        return {"model": {**self._project(asked["project"]), "bucket": bucket}}

    def _UpsertBucket(self, asked: dict) -> dict:  # noqa: N802
        new = asked["name"] not in self.runs
        run = self.runs.setdefault(asked["name"], Run())
        run.about |= {key: value for key, value in asked.items() if value is not None}
        bucket = {
            "id": asked["name"],
            "name": asked["name"],
            "displayName": run.about.get("displayName"),
            "config": run.about.get("config"),
            "project": self._project(asked["project"]),
            "historyLineCount": len(run.rows),
        }
        return {"upsertBucket": {"bucket": bucket, "inserted": new}}

    def _CreateRunFiles(self, asked: dict) -> dict:  # noqa: N802
        files = [{"name": name, "uploadUrl": self._url(f"{asked['run']}/{name}")} for name in asked["files"]]
        return {"createRunFiles": {"runID": asked["run"], "uploadHeaders": [], "files": files}}

    def _ArtifactType(self, asked: dict) -> dict:  # noqa: N802
        return {"project": {"artifact": None}}

    def _ServerFeaturesQuery(self, asked: dict) -> dict:  # noqa: N802
        return {"serverInfo": {"features": []}}

    def _CreateArtifact(self, asked: dict) -> dict:  # noqa: N802
        id = f"artifact-{len(self.artifacts)}"
        self.artifacts[id] = asked["input"]
        return {
            "createArtifact": {"artifact": {"id": id, "state": "PENDING", "artifactSequence": {"latestArtifact": None}}}
        }

    def _CommitArtifact(self, asked: dict) -> dict:  # noqa: N802
        return {"commitArtifact": {"artifact": {"id": asked["artifactID"], "digest": ""}}}

    def _CreateArtifactManifest(self, asked: dict) -> dict:  # noqa: N802
        id = asked["artifactID"]
        file = {"id": f"{id}-manifest", "uploadUrl": self._url(f"{id}/manifest.json"), "uploadHeaders": []}
        return {"createArtifactManifest": {"artifactManifest": {"id": f"{id}-manifest", "file": file}}}

    def _CreateArtifactFiles(self, asked: dict) -> dict:  # noqa: N802
        nodes = [
            {
                "storagePath": file["name"],
                "uploadUrl": self._url(f"{file['artifactID']}/{file['name']}"),
                "uploadHeaders": [],
                "artifact": {"id": file["artifactID"]},
            }
            for file in asked["input"]["artifactFiles"]
        ]
        return {"createArtifactFiles": {"files": {"edges": [{"node": node} for node in nodes]}}}


class _Handler(BaseHTTPRequestHandler):
    behind: Server
    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client that was killed, or has enough
            super().handle()

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if given := self.headers.get("Authorization"):
            self.behind.keys.add(given)
        answer = json.dumps(self.behind.answer(self.path, body)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PUT = _any  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass
