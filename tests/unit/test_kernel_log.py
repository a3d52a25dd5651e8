"""How it is seen that the kernel killed a process for want of memory."""

from pathlib import Path

from jobs.node import kernel_log

RECORDS = [
    "6,339,5140900,-;python3 invoked oom-killer: gfp_mask=0xcc0, order=0\n SUBSYSTEM=x\n",
    "3,340,5140950,-;Memory cgroup out of memory: Killed process 4711 (python3) total-vm:9kB\n",
    "3,341,5140990,-;Out of memory: Killed process 4712 (ray::IDLE) total-vm:9kB\n",
    "3,342,5140999,-;oom_reaper: reaped process 4711 (python3), now anon-rss:0kB\n",
]


def test_the_kernels_records_name_who_was_killed() -> None:
    assert [pid for pid, _ in kernel_log.killed(iter(RECORDS))] == [4711, 4712]


def test_the_counter_of_a_control_group_is_found_in_both_versions(tmp_path: Path) -> None:
    first, second = tmp_path / "memory" / "a", tmp_path / "b"
    for group, name in ((first, "memory.oom_control"), (second, "memory.events")):
        group.mkdir(parents=True)
        (group / name).write_text("low 0\noom_kill_disable 0\noom_kill 3\n")

    counters = [
        kernel_log.counter(groups, tmp_path) for groups in ("5:cpu:/\n4:memory:/a\n", "0::/b\n")
    ]

    assert counters == [first / "memory.oom_control", second / "memory.events"]
    assert [kernel_log.kills(counter) for counter in counters] == [3, 3]


def test_where_no_group_counts_nothing_was_killed(tmp_path: Path) -> None:
    assert kernel_log.kills(kernel_log.counter("0::/b\n", tmp_path)) == 0
