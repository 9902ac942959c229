import json
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

from distpaml.dashboard import main, serve


@pytest.fixture
def dashboard():
    """Serve directories; the address of the page."""
    servers = []

    def start(*paths):
        server = serve(paths, port=0)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def get(address, **headers):
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=200) as answer:
        return answer.status, answer.headers, answer.read()


def test_a_page_follows_the_sweep_and_keeps_what_its_reader_chose(dashboard, visit, sweep_made, tmp_path):
    sweep = tmp_path / "sweep"
    (sweep / "trials").mkdir(parents=True)
    names = ["cartpole-uni-seed0", "cartpole-lhs-seed0", "cartpole-paml-seed0"]
    page = visit(dashboard(sweep))
    assert "no finished round yet" in page.locator("h1").inner_text()
    page.locator("#live.on").wait_for()
    for name in names[:2]:
        shutil.copytree(sweep_made / "trials" / name, sweep / "trials" / name)
    page.locator(".chip[data-group=lhs]").wait_for(timeout=200_000)
    page.locator(".chip[data-group=lhs]").click()
    page.get_by_role("button", name="training outputs").click()
    page.locator("[data-figure=curves-rmse] details.numbers > summary").click()
    page.evaluate("scrollTo({ top: 700, behavior: 'instant' })")
    shutil.copytree(sweep_made / "trials" / names[2], sweep / "trials" / names[2])
    page.locator(".chip[data-group=paml]").wait_for(timeout=200_000)
    assert page.locator(".chip[data-group=lhs]").get_attribute("aria-pressed") == "false"
    assert page.get_by_role("button", name="training outputs").get_attribute("aria-pressed") == "true"
    assert page.locator("[data-figure=curves-rmse] details").get_attribute("open") is not None
    assert page.evaluate("scrollY") == 700
    assert {url.partition("/")[2].split("/")[1].split(":")[0] for url in page.requests} == {"127.0.0.1"}


def test_only_news_are_sent_and_only_to_this_machine(dashboard, sweep_made):
    address = dashboard(sweep_made / "trials" / "cartpole-uni-seed0")
    status, headers, body = get(address + "data.json")
    assert status == 200 and json.loads(body)["runs"] == 1
    with pytest.raises(urllib.error.HTTPError, match="304"):
        get(address + "data.json", **{"If-None-Match": headers["ETag"]})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        get(address, Host="evil.example:80")
    for wrong in ("../../etc/passwd", "trials", "config.yaml"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(address + wrong)


def test_a_reader_who_leaves_in_the_middle_is_no_traceback(dashboard, tmp_path, capsys):
    address = dashboard(tmp_path)
    place = "127.0.0.1", int(address.rstrip("/").rpartition(":")[2])
    for asked in (b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        with socket.create_connection(place) as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing it is a reset
            reader.sendall(asked)
    assert get(address)[0] == 200  # by now they are gone
    time.sleep(0.5)
    assert capsys.readouterr().err == ""


def test_a_taken_port_and_a_missing_directory_are_sentences(tmp_path, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main([str(tmp_path), "--port", str(port)]) == 2
    assert (
        capsys.readouterr().err
        == f"error: Port {port} is taken; choose another one with --port, or --port 0 for any.\n"
    )
    assert main([str(tmp_path), "--port", "70000"]) == 2
    assert "ports are from 0 to 65535" in capsys.readouterr().err
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "is not a directory" in capsys.readouterr().err


def test_ctrl_c_ends_it_without_noise(tmp_path):
    command = [sys.executable, "-m", "distpaml", "dashboard", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == f"{tmp_path} has no run yet; the page will show the first finished round.\n"
        assert process.stdout.readline().startswith("Dashboard: http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        try:
            out, error = process.communicate(timeout=100)
        finally:
            process.kill()
    assert (out, error, process.returncode) == ("Dashboard stopped; the runs continue.\n", "", 0)
