"""Tools over a mailbox in a temporary folder: what comes in is a stranger's, what goes out is kept in `sent`. It is the run's `deps`."""

import email
import mailbox
import tempfile
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Literal

from maymust import FunctionInvocationContext, ToolError, tool

MAILS = Path(__file__).with_name("mails")
Folder = Literal["orders", "questions", "invoices", "newsletters", "unclear"]


class Office:
    """A mailbox with folders (Maildir), fresh from the mails in `mails`."""

    def __init__(self) -> None:
        self._made = tempfile.TemporaryDirectory(prefix="maymust-mail-")
        self.box = mailbox.Maildir(Path(self._made.name) / "box", create=True)
        self.sent = self.box.add_folder("sent")
        self._keys = {path.stem: self.box.add(path.read_bytes()) for path in sorted(MAILS.glob("*.eml"))}

    def inbox(self) -> list[str]:
        """The names of the mails that are still in the inbox."""
        return [name for name, key in self._keys.items() if key in self.box]

    def mail(self, name: str) -> EmailMessage:
        """A mail of the inbox. Raises ToolError for anything else."""
        if name not in self.inbox():
            raise ToolError(f"there is no mail {name!r} in the inbox; there are {', '.join(self.inbox()) or 'none'}")
        return parsed(self.box.get_bytes(self._keys[name]))

    def move(self, name: str, folder: str) -> None:
        """Put a mail of the inbox into a folder."""
        self.box.add_folder(folder).add(self.mail(name).as_bytes())
        self.box.remove(self._keys[name])

    def delete(self, name: str) -> None:
        """Remove a mail of the inbox for good."""
        self.mail(name)
        self.box.remove(self._keys[name])

    def filed(self) -> dict[str, list[str]]:
        """The subjects of the mails in each folder, those that were sent too."""
        folders = {name: self.box.get_folder(name) for name in sorted(self.box.list_folders())}
        return {name: [str(parsed(folder.get_bytes(key))["subject"]) for key in folder.iterkeys()] for name, folder in folders.items()}

    def close(self) -> None:
        """Forget the mails."""
        self.box.close()
        self._made.cleanup()


def parsed(raw: bytes) -> EmailMessage:
    """A mail from its bytes."""
    return email.message_from_bytes(raw, policy=default)


def text_of(mail: EmailMessage) -> str:
    """The text of a mail, as far as it can be read: a charset nobody knows is taken for UTF-8, and what is no UTF-8 is marked."""
    body = mail.get_body(("plain", "html"))
    if body is None:
        return ""
    try:
        return str(body.get_content())
    except LookupError:
        content = body.get_payload(decode=True)
        return content.decode("utf-8", "replace") if isinstance(content, bytes) else str(content)


def office_of(ctx: FunctionInvocationContext) -> Office:
    if not isinstance(ctx.deps, Office):
        raise ToolError("there is no mailbox: start the run with deps=Office()")
    return ctx.deps


@tool(effect="read", untrusted=True)
async def list_mail(ctx: FunctionInvocationContext) -> list[dict[str, str]]:
    """List the mails in the inbox."""
    office = office_of(ctx)
    found = ((name, office.mail(name)) for name in office.inbox())
    return [{"mail": name, "from": str(mail["from"]), "subject": str(mail["subject"])} for name, mail in found]


@tool(effect="read", untrusted=True)
async def read_mail(mail: str, ctx: FunctionInvocationContext) -> str:
    """Read a mail."""
    found = office_of(ctx).mail(mail)
    return f"From: {found['from']}\nSubject: {found['subject']}\n\n{text_of(found)}"


@tool(effect="idempotent")
async def file_mail(mail: str, folder: Folder, ctx: FunctionInvocationContext) -> str:
    """Put a mail that was read into a folder."""
    office_of(ctx).move(mail, folder)
    return f"{mail} is in {folder}"


@tool
async def send_mail(to: str, subject: str, body: str, ctx: FunctionInvocationContext) -> str:
    """Send a mail."""
    message = EmailMessage()
    try:
        message["From"], message["To"], message["Subject"] = "office@bakery.example", to, subject
    except ValueError as error:
        raise ToolError(f"no mail was sent: {error}") from error
    message.set_content(body)
    office_of(ctx).sent.add(message.as_bytes())
    return f"sent to {to}"


@tool
async def delete_mail(mail: str, ctx: FunctionInvocationContext) -> str:
    """Delete a mail for good."""
    office_of(ctx).delete(mail)
    return f"{mail} is deleted"
