"""Changes of files."""

import asyncio

import pytest

from webhook.server.content import Content, poll


def test_the_first_check_is_a_change(tmp_path):
    """The caller needs no special case at startup, even without files."""
    content = Content([tmp_path / "missing.yaml"])
    assert content.changed()
    assert not content.changed()


def test_creation_change_and_deletion_are_noticed(tmp_path):
    """Each of the three is one change."""
    file = tmp_path / "policies.yaml"
    content = Content([file])
    content.changed()
    for act in (
        lambda: file.write_text("a"),
        lambda: file.write_text("b"),
        file.unlink,
    ):
        act()
        assert content.changed()
        assert not content.changed()


def test_rewriting_the_same_content_is_no_change(tmp_path):
    """Only content counts, not modification times."""
    (tmp_path / "a.yaml").write_text("a")
    content = Content([tmp_path])
    content.changed()
    (tmp_path / "a.yaml").write_text("a")
    assert not content.changed()


def test_the_swap_of_a_mounted_directory_is_noticed(tmp_path):
    """The kubelet renames one link; the files have the same names as before."""
    for state in ("..1", "..2"):
        (tmp_path / state).mkdir()
        (tmp_path / state / "policies.yaml").write_text(state)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "policies.yaml").symlink_to("..data/policies.yaml")
    content = Content([tmp_path])
    content.changed()
    (tmp_path / "..tmp").symlink_to("..2")
    (tmp_path / "..tmp").rename(tmp_path / "..data")
    assert content.changed()
    assert not content.changed()


def test_a_file_below_a_directory_is_noticed(tmp_path):
    """A directory includes everything below it."""
    (tmp_path / "team").mkdir()
    content = Content([tmp_path])
    content.changed()
    (tmp_path / "team" / "more.yaml").write_text("a")
    assert content.changed()


def test_unreadable_files_are_not_an_error(tmp_path):
    """A dangling link or a link to itself has a state too."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("missing")
    content = Content([tmp_path])
    assert content.changed()
    assert not content.changed()


async def test_poll_refreshes_again_and_again():
    """It runs until cancelled."""
    done, calls = asyncio.Event(), []

    def refresh() -> None:
        calls.append(1)
        if len(calls) == 3:
            done.set()

    polling = asyncio.create_task(poll(refresh, 0.001))
    await asyncio.wait_for(done.wait(), 5)
    polling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await polling
