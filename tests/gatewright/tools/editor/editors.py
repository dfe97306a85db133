"""An editor: pygls' own client, with `gatewright lsp` as its server."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient
from pygls.workspace import TextDocument

from tests.gatewright.started import COMMAND


class Editor:
    """A client with open documents; it stores the diagnostics of the server."""

    def __init__(self, client: LanguageClient, root: Path) -> None:
        self.client = client
        self.root = root
        self.shown: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self.messages: asyncio.Queue[str] = asyncio.Queue()
        client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(partial(self.shown.put_nowait))
        client.feature(lsp.WINDOW_SHOW_MESSAGE)(lambda each: self.messages.put_nowait(each.message))

    def uri(self, name: str) -> str:
        """Return the URI of a file of the workspace."""
        return (self.root / name).as_uri()

    async def open(self, name: str, text: str) -> list[lsp.Diagnostic]:
        """Open a document; return its diagnostics."""
        item = lsp.TextDocumentItem(self.uri(name), "yaml", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return await self.of_version(1)

    async def change(self, name: str, version: int, text: str) -> list[lsp.Diagnostic]:
        """Replace a document's text; return its diagnostics."""
        self.send(name, version, text)
        return await self.of_version(version)

    def send(self, name: str, version: int, text: str) -> None:
        """Replace a document's text."""
        document = lsp.VersionedTextDocumentIdentifier(version, self.uri(name))
        changes = [lsp.TextDocumentContentChangeWholeDocument(text)]
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, changes))

    async def of_version(self, version: int) -> list[lsp.Diagnostic]:
        """Return the next published diagnostics of a document's version."""
        shown = await asyncio.wait_for(self.shown.get(), 30)
        assert shown.version == version
        return list(shown.diagnostics)

    async def hover(self, name: str, line: int, column: int = 0) -> str:
        """Return the hover text at a position."""
        found = await self.client.text_document_hover_async(
            lsp.HoverParams(lsp.TextDocumentIdentifier(self.uri(name)), lsp.Position(line, column))
        )
        return "" if found is None else found.contents.value

    async def complete(self, name: str, line: int, column: int) -> list[lsp.CompletionItem]:
        """Return the completions at a position."""
        where = lsp.TextDocumentIdentifier(self.uri(name))
        found = await self.client.text_document_completion_async(
            lsp.CompletionParams(where, lsp.Position(line, column))
        )
        return list(found)

    async def actions(
        self, name: str, line: int, only: list[str] | None = None
    ) -> list[lsp.CodeAction]:
        """Return the code actions of a line."""
        places = lsp.Range(lsp.Position(line, 0), lsp.Position(line, 0))
        where = lsp.TextDocumentIdentifier(self.uri(name))
        found = await self.client.text_document_code_action_async(
            lsp.CodeActionParams(where, places, lsp.CodeActionContext([], only=only))
        )
        return list(found)


@asynccontextmanager
async def editor(root: Path, *options: str, **given: Any) -> AsyncIterator[Editor]:
    """Start an editor whose workspace is `root`; `given` are its initializationOptions."""
    client = LanguageClient("editor", "1")
    found = Editor(client, root)
    await client.start_io(str(COMMAND), "lsp", *options)
    await client.initialize_async(
        lsp.InitializeParams(
            lsp.ClientCapabilities(),
            process_id=os.getpid(),
            root_uri=root.as_uri(),
            initialization_options=given or None,
        )
    )
    client.initialized(lsp.InitializedParams())
    yield found
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()


def applied(text: str, action: lsp.CodeAction) -> str:
    """Return a text after applying an action."""
    assert action.edit is not None
    assert action.edit.document_changes is not None
    document = TextDocument("file:///text", text)
    for change in action.edit.document_changes:
        assert isinstance(change, lsp.TextDocumentEdit)
        for edit in sorted(change.edits, key=lambda each: -each.range.start.line):
            assert isinstance(edit, lsp.TextEdit)
            begin, end = map(document.offset_at_position, (edit.range.start, edit.range.end))
            text = text[:begin] + edit.new_text + text[end:]
    return text
