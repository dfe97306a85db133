"""The digest of policy files: it changes with what they hold, and with nothing else."""

from webhook.server.policy_files import digest_of


def digest(path):
    """Return the digest of one path."""
    return digest_of([path], ())


def test_creation_change_and_deletion_are_noticed(tmp_path):
    """An earlier content has its earlier digest."""
    file = tmp_path / "policies.yaml"
    digests = [digest(file)]
    for act in (lambda: file.write_text("a"), lambda: file.write_text("b"), file.unlink):
        act()
        digests.append(digest(file))
    absent, a, b, deleted = digests
    assert (deleted, len({absent, a, b})) == (absent, 3)


def test_rewriting_the_same_content_is_no_change(tmp_path):
    """Only the content counts, not modification times or paths."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.yaml").write_text("a")
    assert digest(tmp_path / "one") == digest(tmp_path / "two")


def test_the_swap_of_a_mounted_directory_is_noticed(tmp_path):
    """The kubelet renames one link, and the names of the files do not change."""
    for state in ("..1", "..2"):
        (tmp_path / state).mkdir()
        (tmp_path / state / "policies.yaml").write_text(state)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "policies.yaml").symlink_to("..data/policies.yaml")
    before = digest(tmp_path)
    (tmp_path / "..tmp").symlink_to("..2")
    assert digest(tmp_path) == before
    (tmp_path / "..tmp").rename(tmp_path / "..data")
    assert digest(tmp_path) != before


def test_a_file_below_a_directory_is_noticed(tmp_path):
    """A directory includes everything below it."""
    (tmp_path / "team").mkdir()
    before = digest(tmp_path)
    (tmp_path / "team" / "more.yaml").write_text("a")
    assert digest(tmp_path) != before


def test_unreadable_files_are_not_an_error(tmp_path):
    """A dangling link or a link to itself has a state too."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("missing")
    assert digest(tmp_path) == digest(tmp_path)
