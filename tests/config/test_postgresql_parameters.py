import pytest

from config.postgresql_parameters import parameter_faults


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("work_mem", "16MB"),
        ("work_mem", 65536),
        ("shared_buffers", "1GB"),
        ("random_page_cost", "1.1"),
        ("max_connections", 200),
        ("log_min_duration_statement", "250ms"),
        ("autovacuum_naptime", "1min"),
        ("wal_level", "logical"),
        ("synchronous_commit", "on"),
        ("jit", "OFF"),
        ("log_line_prefix", "%m [%p] "),
        ("timezone", "Europe/Zurich"),
        ("datestyle", "iso, dmy"),
        ("pg_stat_statements.max", 1000),
    ],
)
def test_a_valid_parameter_has_no_fault(name: str, value: int | str) -> None:
    """Numbers with and without units, words, texts, and parameters of extensions are accepted."""
    assert list(parameter_faults({name: value}, "17")) == []


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("work_memory", "16MB", "PostgreSQL has no such parameter"),
        ("TimeZone", "UTC", "a parameter's name has lower-case letters, digits and _"),
        ("log_line_prefix", "a\nb", "a value has no line breaks or control characters"),
        ("Work Mem", "16MB", "a parameter's name has lower-case letters, digits and _"),
        ("wal_keep_segments", "64", "version 17 has no such parameter, only 12"),
        ("work_mem", "lots", "must be a number with a unit, such as 64MB"),
        ("work_mem", "16s", "must be a number with a unit, such as 64MB"),
        ("work_mem", "1kB", "must be from 64 to 2147483647, in units of kB"),
        ("max_connections", 5, "must be from 25 to 262143"),
        ("jit", "maybe", "must be one of on, off"),
        ("wal_level", "minimal", "standbys need replica or logical"),
        ("wal_level", "all", "must be one of minimal, replica, logical"),
        ("port", 5433, "the addresses of instances are set by the controller"),
        ("recovery_target", "immediate", "replication is set by Patroni"),
    ],
)
def test_an_invalid_parameter_has_one_fault(name: str, value: int | str, rule: str) -> None:
    """Unknown and reserved names, values of another type, and those out of range are rejected."""
    (fault,) = parameter_faults({name: value}, "17")
    assert (fault.path, fault.rule) == (f"spec.parameters[{name}]", rule)
