"""Servers of the small internet that speak HTTP/2: any request answered with what was asked, and gRPC."""
import json
import socket
import ssl
import threading
from concurrent import futures

LARGE = 3_000_000  # bytes of /large


def context_of(config):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(config["certificate"])
    context.set_alpn_protocols(["h2"])
    return context


class Connection:
    """One connection: bodies are read whole, answers sent as far as the client's windows allow."""

    def __init__(self, stream, say):
        import h2.config
        import h2.connection

        self.stream, self.say = stream, say
        self.h2 = h2.connection.H2Connection(config=h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.asked, self.bodies, self.waiting = {}, {}, {}

    def serve(self):
        self.h2.initiate_connection()
        self.stream.sendall(self.h2.data_to_send())
        while data := self.stream.recv(65536):
            for event in self.h2.receive_data(data):
                self.take(event)
            for stream in list(self.waiting):
                self.send(stream)
            self.stream.sendall(self.h2.data_to_send())

    def take(self, event):
        import h2.events as events

        if isinstance(event, events.RequestReceived):
            self.asked[event.stream_id] = dict(event.headers)
            self.bodies[event.stream_id] = b""
        elif isinstance(event, events.DataReceived):
            self.bodies[event.stream_id] += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, events.StreamEnded):
            self.answer(event.stream_id)
        elif isinstance(event, events.StreamReset):
            self.say(event="reset")
            self.waiting.pop(event.stream_id, None)

    def answer(self, stream):
        headers, body = self.asked.pop(stream), self.bodies.pop(stream)
        self.say(event="request", method=headers[":method"], path=headers[":path"], headers=headers, size=len(body))
        if headers[":path"] == "/large":
            content = b"x" * LARGE
        else:
            content = json.dumps({"path": headers[":path"], "headers": headers, "size": len(body)}).encode()
        self.h2.send_headers(stream, [(":status", "200"), ("content-length", str(len(content)))])
        self.waiting[stream] = content

    def send(self, stream):
        content = self.waiting[stream]
        while content and (room := min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)) > 0:
            self.h2.send_data(stream, content[:room])
            content = content[room:]
        self.waiting[stream] = content
        if not content:
            self.h2.end_stream(stream)
            del self.waiting[stream]


def serve_h2(connection, context, say):
    try:
        stream = context.wrap_socket(connection, server_side=True)
        say(event="connection", protocol=stream.selected_alpn_protocol())
        Connection(stream, say).serve()
    except (OSError, ValueError) as error:
        say(event="broken", error=str(error))
    finally:
        connection.close()


def h2(config, listen, say):
    context = context_of(config)
    server = listen(config["address"], config["port"])
    say(ready=True)
    while True:
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve_h2, args=(connection, context, say), daemon=True).start()


def grpc(config, say):
    """The service demo.Echo without a schema: messages are bytes."""
    import grpc as library

    def note(name, call):
        say(event="call", name=name, metadata={key: str(value) for key, value in call.invocation_metadata()})

    def unary(message, call):
        note("Unary", call)
        call.send_initial_metadata((("x-first", "1"),))
        call.set_trailing_metadata((("x-last", "2"), ("x-last-bin", b"\x00\xff")))
        return b"<" + message + b">"

    def fail(message, call):
        note("Fail", call)
        call.set_trailing_metadata((("x-why", "because"),))
        call.abort(library.StatusCode.FAILED_PRECONDITION, "not today")

    def download(message, call):
        note("Download", call)
        for number in range(int(message)):
            yield b"%d" % number

    def upload(messages, call):
        note("Upload", call)
        return b"%d" % sum(len(message) for message in messages)

    def talk(messages, call):
        note("Talk", call)
        for message in messages:
            yield message[::-1]

    handlers = {"Unary": library.unary_unary_rpc_method_handler(unary),
                "Fail": library.unary_unary_rpc_method_handler(fail),
                "Download": library.unary_stream_rpc_method_handler(download),
                "Upload": library.stream_unary_rpc_method_handler(upload),
                "Talk": library.stream_stream_rpc_method_handler(talk)}
    server = library.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((library.method_handlers_generic_handler("demo.Echo", handlers),))
    with open(config["certificate"], "rb") as file:
        pem = file.read()
    server.add_secure_port(f"{config['address']}:{config['port']}", library.ssl_server_credentials([(pem, pem)]))
    server.start()
    say(ready=True)
    server.wait_for_termination()
