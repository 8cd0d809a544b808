#!/usr/bin/env python3
"""The API of the demo, on the host's loopback: it asks for a key and answers exchange rates."""
import hmac
import http.server
import os
import sys

KEY = os.environ["REPORTS_API_KEY"]


class Rates(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        known = hmac.compare_digest(self.headers.get("Authorization", ""), f"Bearer {KEY}")
        body = b'{"EUR": 1.0, "USD": 0.93, "GBP": 1.16}\n' if known else b'{"error": "who are you?"}\n'
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Rates)
print("ready", flush=True)
server.serve_forever()
