"""What counts as a change of files."""

import asyncio

import pytest

from webhook.server.content import Content, poll


def test_the_first_look_is_a_change(tmp_path):
    """So whoever asks needs no special case for the start, not even when there is nothing."""
    content = Content([tmp_path / "missing.yaml"])
    assert content.changed()
    assert not content.changed()


def test_a_file_that_appears_changes_and_goes_is_noticed(tmp_path):
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


def test_the_same_content_written_again_is_no_change(tmp_path):
    """Only content counts, not times."""
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
    """A directory stands for everything below it."""
    (tmp_path / "team").mkdir()
    content = Content([tmp_path])
    content.changed()
    (tmp_path / "team" / "more.yaml").write_text("a")
    assert content.changed()


def test_what_cannot_be_read_is_not_an_error(tmp_path):
    """A link to nowhere, or to itself, has a state too."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("missing")
    content = Content([tmp_path])
    assert content.changed()
    assert not content.changed()


async def test_poll_refreshes_again_and_again():
    """Until it is cancelled."""
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
