"""A host that publishes documents of clients over TLS, and one that does what it should not."""

from __future__ import annotations

import json
import ssl
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.conf import settings

from mcp_django.oauth.client_documents import ClientDocuments

HOST = "claude.example"


def write_certificate(path):
    """Write key and certificate of the host, which nobody else trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(tz=UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )


class Host:
    """`answer` gets the handler of each request, and writes what it likes."""

    def __init__(self, certificate):
        self.certificate = certificate
        self.requests = []
        self.document, self.headers, self.status = {}, {}, 200
        self.answer = None
        self.over = threading.Event()
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                host.requests.append(self.path)
                if host.answer is not None:
                    host.answer(self)
                    return
                body = json.dumps(host.document).encode()
                self.send_response(host.status)
                for name, value in {"Content-Type": "application/json", **host.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"https://{HOST}:{self.port}/client.json"

    def stop(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


class LocalDocuments(ClientDocuments):
    """The name of the host leads to this machine, and its certificate is trusted."""

    def resolve(self, host, port):
        return "127.0.0.1" if host == HOST else super().resolve(host, port)

    def tls(self):
        return ssl.create_default_context(cafile=settings.LOCAL_CERTIFICATE)
