"""Servers of the small internet: `servers.py KIND CONFIG LOG`. Each writes what it saw as JSON lines."""
import base64
import contextlib
import json
import os
import pathlib
import select
import socket
import ssl
import struct
import sys
import threading
import time

LOG = None
LOCK = threading.Lock()


def say(**entry):
    with LOCK:
        with open(LOG, "a") as log:
            log.write(json.dumps(entry) + "\n")


def listen(address, port, kind=socket.SOCK_STREAM):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.socket(family, kind)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, port))
    if kind == socket.SOCK_STREAM:
        server.listen(128)
    return server


# --- HTTP and HTTPS ---------------------------------------------------------------------------------

def read_head(stream):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = stream.recv(1)
        if not byte:
            return None if not head else head
        head += byte
        if len(head) > 1 << 20:
            return None
    return head


def read_exactly(stream, size):
    body = b""
    while len(body) < size:
        part = stream.recv(min(65536, size - len(body)))
        if not part:
            break
        body += part
    return body


def read_body(stream, headers):
    if "chunked" in headers.get("transfer-encoding", ""):
        body = b""
        while True:
            line = b""
            while not line.endswith(b"\r\n"):
                line += stream.recv(1)
            size = int(line.split(b";")[0], 16)
            body += read_exactly(stream, size)
            read_exactly(stream, 2)
            if size == 0:
                return body
    return read_exactly(stream, int(headers.get("content-length", "0")))


def answer_for(config, method, path, headers, body):
    """Status, headers and body of the answer; `config.answers` maps a path to {status, headers, body or base64}."""
    if "tokens" in config:
        import token_server
        return token_server.answer(config["tokens"], method, path, headers, body)
    fixed = config.get("answers", {}).get(path.split("?")[0])
    if fixed is not None:
        content = base64.b64decode(fixed["base64"]) if "base64" in fixed else fixed.get("body", "").encode()
        return fixed.get("status", 200), fixed.get("headers", {}), content
    if path.startswith("/echo"):
        text = json.dumps({"method": method, "path": path, "headers": headers, "body": body.decode("latin1")})
        return 200, {"Content-Type": "application/json"}, text.encode()
    if path.startswith("/bytes/"):
        return 200, {"Content-Type": "application/octet-stream"}, b"x" * int(path.split("/")[2].split("?")[0])
    return 200, {"Content-Type": "text/plain"}, config.get("body", "hello\n").encode()


def echo_messages(connection):
    """Short WebSocket messages come back as a server sends them; a close is answered."""
    while True:
        first, size = read_exactly(connection, 2)
        size &= 0x7F
        mask = read_exactly(connection, 4)
        content = bytes(byte ^ mask[at % 4] for at, byte in enumerate(read_exactly(connection, size)))
        connection.sendall(bytes([first, size]) + content)
        if first & 0x0F == 8:
            return


def serve_http(connection, peer, config, context):
    try:
        if context is not None:
            connection = context.wrap_socket(connection, server_side=True)
    except (ssl.SSLError, OSError) as error:
        say(event="handshake failed", error=str(error))
        return
    shown = connection.getpeercert() if context is not None else None
    say(event="connection", peer=peer[0], client=dict(pair[0] for pair in shown["subject"])["commonName"] if shown else None)
    try:
        while True:
            head = read_head(connection)
            if not head:
                return
            lines = head.decode("latin1").split("\r\n")
            method, path, _ = (lines[0].split(" ") + ["", ""])[:3]
            headers = {}
            for line in lines[1:]:
                if ":" in line:
                    name, value = line.split(":", 1)
                    headers.setdefault(name.lower(), value.strip())
            if headers.get("expect", "").lower() == "100-continue":
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            if "websocket" in headers.get("upgrade", "").lower() and config.get("websocket"):
                say(event="request", method=method, path=path, headers=headers, raw=head.decode("latin1"))
                import hashlib
                accept = base64.b64encode(hashlib.sha1((headers["sec-websocket-key"] +
                                                        "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
                connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                   b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
                if config["websocket"] == "messages":
                    return echo_messages(connection)
                if "frames" in config:  # one text message of the server's own, then the end
                    text = config["frames"].encode()
                    connection.sendall(b"\x81" + bytes([len(text)]) + text + b"\x88\x02\x03\xe8")
                while data := connection.recv(65536):
                    if "frames" not in config:
                        connection.sendall(data)
                return
            body = read_body(connection, headers)
            if path.startswith("/stream"):  # an answer without an end
                say(event="request", method=method, path=path, headers=headers, body="", size=0, raw=head.decode("latin1"))
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                while True:
                    connection.sendall(b"5\r\ntick\n\r\n")
                    time.sleep(0.05)
            say(event="request", method=method, path=path, headers=headers, body=body.decode("latin1")[:65536],
                size=len(body), raw=head.decode("latin1"))
            status, more, content = answer_for(config, method, path, headers, body)
            text = f"HTTP/1.1 {status} OK\r\nContent-Length: {len(content)}\r\n"
            text += "".join(f"{name}: {value}\r\n" for name, value in more.items()) + "\r\n"
            connection.sendall(text.encode() + (b"" if method == "HEAD" else content))
            if headers.get("connection", "").lower() == "close":
                return
    except (OSError, ValueError, KeyError) as error:
        say(event="broken", error=str(error))
    finally:
        connection.close()


def http(config):
    context = None
    if "certificate" in config:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(config["certificate"])
        context.set_alpn_protocols(["http/1.1"])
        if "client_authority" in config:  # what clients show must come from there
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(config["client_authority"])
        context.sni_callback = lambda sock, name, ctx: say(event="sni", name=name)
    server = listen(config["address"], config["port"])
    say(ready=True)
    while True:
        connection, peer = server.accept()
        threading.Thread(target=serve_http, args=(connection, peer, config, context), daemon=True).start()


# --- Raw TCP ----------------------------------------------------------------------------------------

def serve_tcp(connection, peer, config):
    say(event="connection", peer=peer[0])
    if config.get("banner"):
        connection.sendall(config["banner"].encode())
    total = b""
    try:
        while data := connection.recv(65536):
            total += data
            if config.get("echo", True):
                connection.sendall(data)
        # Half-close: what was asked to be sent after the client's end goes out now.
        if config.get("after_end"):
            connection.sendall(b"y" * config["after_end"])
    except OSError:
        pass
    say(event="data", size=len(total), text=total[:4096].decode("latin1"))
    connection.close()


def serve_postgres(connection, peer, config):
    """As much of PostgreSQL as one simple query needs: every query is answered with one row, `config.row`."""
    def message(kind, body):
        return kind + struct.pack(">I", len(body) + 4) + body

    try:
        while True:
            size, = struct.unpack(">I", read_exactly(connection, 4))
            start = read_exactly(connection, size - 4)
            if struct.unpack(">I", start[:4])[0] == 196608:
                break
            connection.sendall(b"N")  # neither TLS nor GSS
        ready = message(b"Z", b"I")
        connection.sendall(message(b"R", b"\0\0\0\0") + message(b"S", b"server_version\x0015.0\0") +
                           message(b"S", b"client_encoding\0UTF8\0") + ready)
        while True:
            kind = read_exactly(connection, 1)
            size, = struct.unpack(">I", read_exactly(connection, 4))
            text = read_exactly(connection, size - 4)
            if kind == b"X":
                return
            say(event="query", text=text.rstrip(b"\0").decode())
            row = config["row"].encode()
            connection.sendall(message(b"T", b"\0\1" + b"a\0" + struct.pack(">IhIhih", 0, 0, 25, -1, -1, 0)) +
                               message(b"D", b"\0\1" + struct.pack(">I", len(row)) + row) +
                               message(b"C", b"SELECT 1\0") + ready)
    except (OSError, struct.error, ValueError, IndexError) as error:
        say(event="broken", error=str(error))
    finally:
        connection.close()


def postgres(config):
    server = listen(config["address"], config["port"])
    say(ready=True)
    while True:
        connection, peer = server.accept()
        threading.Thread(target=serve_postgres, args=(connection, peer, config), daemon=True).start()


def tcp(config):
    server = listen(config["address"], config["port"])
    say(ready=True)
    while True:
        connection, peer = server.accept()
        threading.Thread(target=serve_tcp, args=(connection, peer, config), daemon=True).start()


def udp(config):
    server = listen(config["address"], config["port"], socket.SOCK_DGRAM)
    say(ready=True)
    while True:
        data, peer = server.recvfrom(65536)
        say(event="datagram", peer=peer[0], size=len(data))
        server.sendto(data, peer)


# --- Peers that are hard to serve ---------------------------------------------------------------------

def crowd(config):
    """Any number of connections in one thread. `does`: "source" sends without an end, "sink" never reads, "drain"
    reads all; `first`: what is sent before all else. Their own queues are small, so that what is held is held by who is between."""
    server = listen(config["address"], config["port"])
    server.listen(4096)
    server.setblocking(False)
    poll = select.epoll()
    poll.register(server, select.EPOLLIN)
    for queue in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        server.setsockopt(socket.SOL_SOCKET, queue, 65536)
    held, filler = {}, b"z" * 65536
    interest = {"source": select.EPOLLOUT, "sink": 0, "drain": select.EPOLLIN}[config["does"]]
    say(ready=True)
    while True:
        for number, _ in poll.poll():
            if number == server.fileno():
                with contextlib.suppress(OSError):  # a reset may overtake it
                    connection, _ = server.accept()
                    connection.setblocking(False)
                    connection.send(config.get("first", "").encode())
                    held[connection.fileno()] = connection
                    poll.register(connection, interest)
                continue
            try:
                gone = not (held[number].recv(65536) if config["does"] == "drain" else held[number].send(filler))
            except BlockingIOError:
                gone = False
            except OSError:
                gone = True
            if gone:
                held.pop(number).close()


# --- A company's proxy: CONNECT alone -----------------------------------------------------------------

def relay(one, other):
    try:
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve_connect(connection, peer, config, context):
    try:
        if context is not None:
            connection = context.wrap_socket(connection, server_side=True)
        head = read_head(connection)
        if not head:
            return
        first, *lines = head.decode("latin1").split("\r\n")
        shown = next((line.split(" ", 2)[2] for line in lines if line.lower().startswith("proxy-authorization: basic ")), "")
        login = base64.b64decode(shown).decode()
        say(event="connect", target=first.split(" ")[1], method=first.split(" ")[0], login=login, raw=head.decode("latin1"))
        wanted = config.get("login", "")
        status = config.get("status") or (407 if login != wanted else 200)
        if status != 200:
            connection.sendall(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode())
            return
        host, port = first.split(" ")[1].rsplit(":", 1)
        there = socket.create_connection((host.strip("[]"), int(port)), 20)
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        up = threading.Thread(target=relay, args=(connection, there), daemon=True)
        up.start()
        relay(there, connection)
        up.join()
        there.close()
    except (OSError, ValueError, IndexError) as error:
        say(event="broken", error=str(error))
    finally:
        connection.close()


def connect_proxy(config):
    context = None
    if "certificate" in config:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(config["certificate"])
    server = listen(config["address"], config["port"])
    say(ready=True)
    while True:
        connection, peer = server.accept()
        threading.Thread(target=serve_connect, args=(connection, peer, config, context), daemon=True).start()


# --- DNS --------------------------------------------------------------------------------------------
# The zone is a JSON file, read anew for each query: name → list of addresses; a list of lists is answered one after the
# other (rebinding); {"cname": …} points elsewhere; {"rcode": 3}.

def encode_name(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def dns(config):
    server = listen(config["address"], 53, socket.SOCK_DGRAM)
    asked = {}
    say(ready=True)
    while True:
        query, peer = server.recvfrom(4096)
        if len(query) < 17:
            continue
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("latin1"))
            at += 1 + query[at]
        kind = struct.unpack(">H", query[at + 1:at + 3])[0]
        question = query[12:at + 5]
        name = ".".join(labels).lower()
        say(event="query", name=name, type={1: "A", 28: "AAAA", 16: "TXT"}.get(kind, str(kind)))
        zone = json.loads(pathlib.Path(config["zone_file"]).read_text())
        found, chain = zone.get(name), []
        while isinstance(found, dict) and "cname" in found:
            chain.append((name, found["cname"]))
            name = found["cname"]
            found = zone.get(name)
        if isinstance(found, list) and found and isinstance(found[0], list):
            turn = asked.setdefault((name, kind), -1) + 1
            asked[(name, kind)] = turn
            found = found[min(turn, len(found) - 1)]
        answers = [encode_name(owner) + struct.pack(">HHIH", 5, 1, 0, len(encode_name(to))) + encode_name(to)
                   for owner, to in chain]
        for address in found if isinstance(found, list) else []:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            if kind == (28 if family == socket.AF_INET6 else 1):
                data = socket.inet_pton(family, address)
                answers.append(encode_name(name) + struct.pack(">HHIH", kind, 1, 0, len(data)) + data)
        rcode = 3 if found is None else found.get("rcode", 0) if isinstance(found, dict) else 0
        server.sendto(query[:2] + struct.pack(">HHHHH", 0x8180 | rcode, 1, len(answers), 0, 0) + question +
                      b"".join(answers), peer)


if __name__ == "__main__":
    # The server ends with the test that started it.
    import ctypes
    import signal
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    LOG = sys.argv[3]
    if sys.argv[1] in ("h2", "grpc"):
        import h2_servers
        kinds = {"h2": lambda config: h2_servers.h2(config, listen, say), "grpc": lambda config: h2_servers.grpc(config, say)}
    else:
        kinds = {"http": http, "tcp": tcp, "udp": udp, "postgres": postgres, "dns": dns, "connect_proxy": connect_proxy,
                 "crowd": crowd}
    kinds[sys.argv[1]](json.loads(sys.argv[2]))
