"""The Language Server Protocol over standard input and output, with pygls."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import PositionCodec

from gatewright import __version__
from gatewright.tools.editor.diagnostics import EditorDiagnostic, EditorPolicies, OpenText, fixes_of
from gatewright.tools.editor.schema_help import completions, meaning
from gatewright.tools.editor.yaml_parts import TextPart, parts_of

MAX_PAUSE = 0.05  # seconds after the last key
PARENT_SECONDS = 2.0
SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}
FIX_ALL = "source.fixAll.gatewright"
MakePolicies = Callable[[dict[str, Any], Path | None], EditorPolicies]
Shown = list[tuple[lsp.Diagnostic, EditorDiagnostic]]


@dataclass
class EditorSession:
    """The open texts of an editor; they are judged in sequence, in a thread."""

    server: LanguageServer
    make_policies: MakePolicies
    policies: EditorPolicies | None = None
    failure: str = ""  # the shown error about changed policies
    texts: dict[str, OpenText] = field(default_factory=dict)
    duration: float = 0.0  # seconds to judge the last text
    shown: dict[str, Shown] = field(default_factory=dict)
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def begin(self, params: lsp.InitializeParams) -> None:
        """Read the policies that the editor names, or those of the command line."""
        options = params.initialization_options
        path = self.server.workspace.root_path
        root = None if path is None else Path(path)
        try:
            self.policies = self.make_policies(options if isinstance(options, dict) else {}, root)
        except ValueError as error:
            self.say(f"initializationOptions: {error}")
            self.policies = self.make_policies({}, root)
        if params.process_id is not None:
            self.tasks[""] = asyncio.ensure_future(_end_with(params.process_id))

    def say(self, text: str) -> None:
        """Show a message to the user."""
        message = lsp.ShowMessageParams(type=lsp.MessageType.Error, message=f"Gatewright: {text}")
        self.server.window_show_message(message)

    def did_open(self, params: lsp.DidOpenTextDocumentParams) -> None:
        """Judge a text."""
        self._soon(params.text_document.uri, 0)

    def did_change(self, params: lsp.DidChangeTextDocumentParams) -> None:
        """Judge a text when it has not changed for as long as judging takes, or for 50 ms."""
        self._soon(params.text_document.uri, min(self.duration, MAX_PAUSE))

    def did_save(self, _: lsp.DidSaveTextDocumentParams) -> None:
        """Judge every text again: the file may be one of the policies."""
        if self.policies is not None:
            self.policies.definitions.on_saved()
        self._judge_all()

    def did_close(self, params: lsp.DidCloseTextDocumentParams) -> None:
        """Forget a text."""
        uri = params.text_document.uri
        if uri in self.tasks:
            self.tasks.pop(uri).cancel()
        text = self.texts.pop(uri, None)
        self.shown.pop(uri, None)
        self._publish(uri, None)
        if text is not None and self.policies is not None:
            definitions, before = self.policies.definitions, self.policies.definitions.version
            definitions.close(text.source)
            if definitions.version != before:
                self._judge_all()

    def _judge_all(self, besides: str = "") -> None:
        for uri in self.texts:
            if uri != besides:
                self._soon(uri, 0)

    def _soon(self, uri: str, pause: float) -> None:
        if uri in self.tasks:
            self.tasks[uri].cancel()
        self.tasks[uri] = asyncio.ensure_future(self._judge(uri, pause))

    async def _judge(self, uri: str, pause: float) -> None:
        await asyncio.sleep(pause)
        assert self.policies is not None
        document = self.server.workspace.get_text_document(uri)
        text, version = document.source, document.version
        opened = self.texts.setdefault(uri, OpenText(document.filename or uri, self.policies))
        loop, begin = asyncio.get_running_loop(), time.perf_counter()
        try:
            await loop.run_in_executor(self.thread, self.policies.refresh)
        except (OSError, ValueError) as error:
            if str(error) != self.failure:
                self.say(f"the previous policies stay in force: {error}")
            self.failure = str(error)
        defined = self.policies.definitions.version
        diagnostics = await loop.run_in_executor(self.thread, opened.diagnostics, text)
        if self.policies.definitions.version != defined:
            self._judge_all(besides=uri)  # by the changed definitions of this text
        self.duration = time.perf_counter() - begin
        lines = document.lines
        self.shown[uri] = [
            (_diagnostic(document.position_codec, lines, finding), finding)
            for finding in diagnostics
        ]
        self._publish(uri, version)

    def _publish(self, uri: str, version: int | None) -> None:
        diagnostics = [each for each, _ in self.shown.get(uri, ())]
        self.server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri, diagnostics, version)
        )

    def at(self, uri: str, position: lsp.Position) -> tuple[TextPart, int, int]:
        """Return the document at a position, and the line and column in it."""
        document = self.server.workspace.get_text_document(uri)
        place = document.position_from_client_units(position)
        parts = parts_of(document.source)
        part = [each for each in parts if each.line <= place.line][-1]
        return part, place.line - part.line, place.character

    def hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        """Return the violation at a position, or else the meaning of the field."""
        uri, line = params.text_document.uri, params.position.line
        assert self.policies is not None
        here = [each.violation for _, each in self.shown.get(uri, ()) if each.line == line]
        texts = [
            f"**{finding.policy or 'gatewright'}**: {_as_text(finding.message)}\n\n"
            f"{self.policies.page(finding)}"
            for finding in here
        ]
        part, line, _ = self.at(uri, params.position)
        text = "\n\n---\n\n".join(texts) or meaning(part, line)
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text)) if text else None

    def complete(self, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        """Return the fields and values that may be written at a position."""
        return [
            lsp.CompletionItem(
                completion.text,
                kind=lsp.CompletionItemKind.Field
                if completion.is_field
                else lsp.CompletionItemKind.Value,
                documentation=completion.meaning or None,
                insert_text=f"{completion.text}: " if completion.is_field else completion.text,
            )
            for completion in completions(*self.at(params.text_document.uri, params.position))
        ]

    def actions(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        """Return the fixes in a range, safe ones first, and one that makes all safe fixes."""
        return list(self._actions(params))

    def _actions(self, params: lsp.CodeActionParams) -> Iterator[lsp.CodeAction]:
        uri, requested = params.text_document.uri, params.context.only
        shown = self.shown.get(uri, [])
        here = [
            pair
            for pair in shown
            if params.range.start.line <= pair[0].range.start.line <= params.range.end.line
        ]
        if requested is None or lsp.CodeActionKind.QuickFix in requested:
            here.sort(key=lambda each: not each[1].violation.patch_is_safe)
            for diagnostic, finding in here:
                if edit := self._edit(uri, [finding]):
                    is_safe = finding.violation.patch_is_safe
                    unsafe = "" if is_safe else " (unsafe: it may stop an application)"
                    yield lsp.CodeAction(
                        f"Fix {finding.violation.rule_name}{unsafe}",
                        lsp.CodeActionKind.QuickFix,
                        [diagnostic],
                        is_preferred=is_safe,
                        edit=edit,
                    )
        # Editors request actions at each move of the cursor; computing all fixes takes a while.
        is_wanted = any(FIX_ALL.startswith(each) for each in requested or ())
        if is_wanted or (requested is None and here):
            safe = [each for _, each in shown if each.violation.patch_is_safe]
            if edit := self._edit(uri, safe):
                yield lsp.CodeAction("Fix all violations that are safe to fix", FIX_ALL, edit=edit)

    def _edit(self, uri: str, diagnostics: Sequence[EditorDiagnostic]) -> lsp.WorkspaceEdit | None:
        document = self.server.workspace.get_text_document(uri)
        edits = [
            lsp.TextEdit(
                lsp.Range(
                    document.client_position_at_offset(edit.start),
                    document.client_position_at_offset(edit.end),
                ),
                edit.text,
            )
            for edit in fixes_of(document.source, diagnostics)
        ]
        versioned = lsp.OptionalVersionedTextDocumentIdentifier(uri, document.version)
        change = lsp.TextDocumentEdit(versioned, edits)
        return lsp.WorkspaceEdit(document_changes=[change]) if edits else None


def language_server(make_policies: MakePolicies) -> LanguageServer:
    """Return the server; `make_policies` takes the editor's options and the workspace's root."""
    server = LanguageServer("gatewright", __version__)
    session = EditorSession(server, make_policies)
    kinds = lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix, FIX_ALL])
    triggers = lsp.CompletionOptions(trigger_characters=[":", " "])
    for feature, options, work in (
        (lsp.INITIALIZE, None, session.begin),
        (lsp.TEXT_DOCUMENT_DID_OPEN, None, session.did_open),
        (lsp.TEXT_DOCUMENT_DID_CHANGE, None, session.did_change),
        (lsp.TEXT_DOCUMENT_DID_SAVE, None, session.did_save),
        (lsp.TEXT_DOCUMENT_DID_CLOSE, None, session.did_close),
        (lsp.TEXT_DOCUMENT_HOVER, None, session.hover),
        (lsp.TEXT_DOCUMENT_COMPLETION, triggers, session.complete),
        (lsp.TEXT_DOCUMENT_CODE_ACTION, kinds, session.actions),
    ):
        # pygls sets attributes on functions, which bound methods do not allow.
        server.feature(feature, options)(partial(work))
    return server


def _as_text(message: str) -> str:
    """Return a message without Markdown's links, images and elements, which names may contain.

    An editor would load an image when it shows the message.
    """
    return " ".join(message.split()).replace("](", "]\\(").replace("<", "\\<")


def _diagnostic(
    codec: PositionCodec, lines: Sequence[str], diagnostic: EditorDiagnostic
) -> lsp.Diagnostic:
    begin, end = (
        lsp.Position(diagnostic.line, column) for column in (diagnostic.column, diagnostic.end)
    )
    places = lsp.Range(begin, end)
    return lsp.Diagnostic(
        codec.range_to_client_units(lines, places),
        diagnostic.violation.message,
        SEVERITIES[diagnostic.violation.level],
        code=diagnostic.violation.policy or None,
        source="gatewright",
    )


async def _end_with(editor: int) -> None:
    """End the process when the editor ends: another child may keep the input open."""
    while True:
        await asyncio.sleep(PARENT_SECONDS)
        try:
            os.kill(editor, 0)
        except ProcessLookupError:
            os._exit(0)
        except PermissionError:
            pass  # the process exists and belongs to another user
