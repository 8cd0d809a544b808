"""Egress of the gVisor tier: the container's own tests with --tier gvisor; IPv6, which it has none of, left out."""
# lane: full
import os
import shutil

import pytest

from test_egress import (net, run, test_a_name_that_is_not_allowed_is_never_asked_for, test_a_port_that_no_rule_names_is_a_true_refusal,
                         test_a_tunnel_is_opaque_and_checked_by_its_name, test_an_allowed_request_is_answered_and_on_record,
                         test_plain_http_is_judged_request_by_request, test_what_a_name_resolves_to_is_judged)
from world import FORBIDDEN, World

pytestmark = pytest.mark.skipif(shutil.which("runsc", path="/usr/local/bin:/usr/bin:/usr/sbin") is None or os.getuid() != 0,
                                reason="takes root and gVisor's runsc (tools/install-packages test)")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("world"), tier="gvisor")
    yield made
    made.close()


def test_literal_addresses_are_refused_on_the_outer_side(net):
    """E80, E81, E114: each is refused, told and reaches nobody; so is the capture port, and IPv6 is not there."""
    for trap in (*net.traps, net.plain, net.lan):
        trap.clear()
    targets = [*FORBIDDEN, "198.18.0.1:65533", "198.18.0.1:80", "1.1.1.1", "[2606:2800:220:1::34]", "[::ffff:10.9.9.9]"]
    result = run(net, "; ".join(f"curl -sS -g -m 10 http://{target}/ >/dev/null 2>&1; echo $?" for target in targets))
    codes = result.text.split()
    assert len(codes) == len(targets) and "0" not in codes, result
    assert all(trap.entries() == [] for trap in (*net.traps, net.plain, net.lan))
    denied = {d["address"] for d in result.of_type("egress.decision") if d["verdict"] == "deny"}
    assert set(FORBIDDEN) <= denied, result.events


def test_packets_of_its_own_making_go_nowhere(net):
    """E114, E51: no raw and no packet sockets, so no other source address."""
    program = ("import socket\n"
               "for family, kind, protocol in ((socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET, socket.SOCK_RAW, 255),\n"
               "                               (socket.AF_PACKET, socket.SOCK_RAW, 3)):\n"
               "    try: socket.socket(family, kind, protocol); print('open')\n"
               "    except OSError as e: print('refused')\n")
    result = net.box.run("--", "python3", "-c", program)
    assert result.text.split() == ["refused"] * 3, result


def test_a_server_inside_is_reached_inside(net):
    program = ("import socket, threading\n"
               "s = socket.create_server(('127.0.0.1', 8080))\n"
               "threading.Thread(target=lambda: s.accept()[0].sendall(b'hello'), daemon=True).start()\n"
               "print(socket.create_connection(('127.0.0.1', 8080)).recv(5).decode())\n")
    assert net.box.run("--", "python3", "-c", program).text == "hello\n"
