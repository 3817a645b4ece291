"""A mail server on this machine that keeps what it is sent, or refuses it at a step of the conversation."""

import base64
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class MailServer:
    """`mails`: (recipients, message). `says`: command, or what stands behind it, → the reply in place of the
    usual one; `""` hangs up."""

    port: int = 0
    mails: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    logins: list[bytes] = field(default_factory=list)
    connections: int = 0
    says: dict[str, str] = field(default_factory=dict)


class _Conversation(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server: MailServer = self.server.kept  # type: ignore[attr-defined]
        server.connections += 1
        recipients: list[str] = []
        self._reply("220 ready")
        while line := self.rfile.readline().decode().strip():
            command, _, rest = line.partition(" ")
            asked = (command.upper(), rest.upper())  # Python 3.13 writes some of it small
            said = next((reply for step, reply in server.says.items() if step.upper() in asked), None)
            if said == "":
                return None
            if said:
                self._reply(said)
            elif command.upper() == "EHLO":
                self._reply("250-here\r\n250 AUTH PLAIN")
            elif command.upper() == "AUTH":
                server.logins.append(base64.b64decode(rest.partition(" ")[2]))
                self._reply("235 welcome")
            elif command.upper() == "DATA":
                self._reply("354 go on")
                body = self._body()
                if (after := server.says.get("end of data")) is not None:
                    if not after:
                        return None
                    self._reply(after)
                    continue
                server.mails.append((recipients, message_from_bytes(body, policy=policy.default)))  # type: ignore[arg-type]
                self._reply("250 kept")
            elif command.upper() == "QUIT":
                return self._reply("221 bye")
            else:
                recipients += [rest.partition(":")[2].strip("<>")] if command.upper() == "RCPT" else []
                self._reply("250 fine")
        return None

    def _body(self) -> bytes:
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        return b"".join(lines)

    def _reply(self, text: str) -> None:
        self.wfile.write(text.encode() + b"\r\n")


@contextmanager
def serve_mail() -> Iterator[MailServer]:
    """It listens while the context lasts."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Conversation) as server:
        server.daemon_threads = True
        kept = server.kept = MailServer(server.server_address[1])  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield kept
        finally:
            server.shutdown()
            thread.join()
