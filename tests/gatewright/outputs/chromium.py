"""A headless Chromium controlled over WebDriver."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

PROGRAMS = ("chromium", "chromedriver")
FLAGS = (
    "headless",
    "no-sandbox",
    "disable-gpu",
    "disable-quic",
    "no-first-run",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
)


def is_installed() -> bool:
    """Return whether the browser and its driver are installed."""
    return all(map(shutil.which, PROGRAMS))


class Page:
    """One browser window."""

    def __init__(self, session: str) -> None:
        self._session = session

    def open(self, file: Path) -> None:
        """Load a file, and wait until it is loaded."""
        self.visit(file.as_uri())

    def visit(self, url: str) -> None:
        """Load a page, and wait until it is loaded."""
        call(f"{self._session}/url", {"url": url})

    def run(self, script: str) -> Any:
        """Return the result of a JavaScript function body."""
        return call(f"{self._session}/execute/sync", {"script": script, "args": []})

    def prefer(self, scheme: str, media: str = "screen") -> None:
        """Emulate a user who prefers the `light` or `dark` scheme, on a `screen` or in `print`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        parameters = {"media": media, "features": features}
        call(
            f"{self._session}/goog/cdp/execute",
            {"cmd": "Emulation.setEmulatedMedia", "params": parameters},
        )

    def press_tab(self, times: int) -> None:
        """Press and release the Tab key."""
        keys = [{"type": kind, "value": "\ue004"} for kind in ("keyDown", "keyUp")] * times
        call(
            f"{self._session}/actions",
            {"actions": [{"type": "key", "id": "keyboard", "actions": keys}]},
        )

    def log(self) -> list[str]:
        """Return new console messages: errors, and violations of the content security policy."""
        return [each["message"] for each in call(f"{self._session}/se/log", {"type": "browser"})]


def call(url: str, body: dict[str, Any] | None, method: str = "POST") -> Any:
    """Send one WebDriver command; return its value."""
    data = None if body is None else json.dumps(body).encode()
    with urlopen(
        Request(url, data, {"Content-Type": "application/json"}, method=method), timeout=60
    ) as answer:
        return json.load(answer)["value"]


@contextmanager
def window(width: int, height: int, profile: Path) -> Iterator[Page]:
    """Open a window of a size in pixels until the end of the block."""
    with subprocess.Popen(
        ["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True
    ) as driver:
        try:
            assert driver.stdout is not None
            started = next(
                found
                for line in driver.stdout
                if (found := re.search(r"started .*on port (\d+)", line))
            )
            root = f"http://127.0.0.1:{started[1]}"
            flags = [f"--{each}" for each in (*FLAGS, f"user-data-dir={profile}")]
            options = {
                "args": flags,
                "binary": shutil.which("chromium"),
                "mobileEmulation": {
                    "deviceMetrics": {"width": width, "height": height, "pixelRatio": 1}
                },
            }
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            session = call(f"{root}/session", {"capabilities": {"alwaysMatch": wanted}})[
                "sessionId"
            ]
            yield Page(f"{root}/session/{session}")
            call(f"{root}/session/{session}", None, "DELETE")
        finally:
            driver.terminate()
