"""Whatever kills a sweep, nothing is lost but the cells in flight, and the end is the same."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sweeps import CELLS, MANY, many, small

from resolvent.sweep import Stopped
from resolvent.sweep.cells import Measure

PROGRAM = Path(__file__).with_name("sweeps.py")
WORKERS = 2

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")


def start(path):
    command = [sys.executable, str(PROGRAM), str(path), str(WORKERS)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listen_to_ctrl_c
    )


def listen_to_ctrl_c():
    """A process started in the background of a script ignores it otherwise."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def lines(path):
    """Whole lines of the journal beside path."""
    files = sorted(path.with_name(path.name + ".journal").glob("*.jsonl"))
    return [
        line for file in files for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")
    ]


def workers_of(process):
    """Processes that it started, by id."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in children]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, limit=60.0):
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "took too long"
        time.sleep(0.002)


@pytest.fixture(scope="module")
def undisturbed():
    return many()


def killed(path, cells, delay):
    """Whole lines after a run that is killed some time after it finished so many cells more."""
    process, before = start(path), len(lines(path))
    wait_for(lambda: len(lines(path)) >= before + cells or process.poll() is not None)
    time.sleep(delay)
    workers = [] if process.poll() is not None else workers_of(process)
    process.kill()
    process.communicate()
    wait_for(lambda: not any(map(alive, workers)))  # none is left behind to write on
    return lines(path)


def kill_and_resume(path, kills, seed, undisturbed):
    """kill -9 the sweep again and again at random moments, then let it finish."""
    rng, before = random.Random(seed), []
    for _ in range(kills):
        after = killed(path, rng.randint(0, len(MANY["snr"]) // kills), rng.uniform(0.0, 0.02))
        assert set(before) <= set(after), "a finished cell was lost"
        before = after
    done = [json.loads(line)["cell"] for line in before]
    asked, measure = [], Measure.__call__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Measure, "__call__", lambda self, cell: asked.append(cell) or measure(self, cell))
        final = many(path)
    assert sorted(done + asked) == list(range(len(MANY["snr"]))), "a cell was measured twice, or never"
    assert final.identical(undisturbed)


@pytest.mark.filterwarnings("ignore::resolvent.sweep.DamagedJournal")
def test_kill_9_at_five_random_moments(tmp_path, undisturbed):
    kill_and_resume(tmp_path / "s.nc", 5, 0, undisturbed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::resolvent.sweep.DamagedJournal")
@pytest.mark.parametrize("seed", [1, 2])
def test_kill_9_at_twenty_random_moments(seed, tmp_path, undisturbed):
    kill_and_resume(tmp_path / "s.nc", 20, seed, undisturbed)


def test_a_worker_that_is_killed_stops_the_sweep_in_one_line(tmp_path, undisturbed):
    path = tmp_path / "s.nc"
    process = start(path)
    wait_for(lambda: len(lines(path)) > 5)
    victim = next(
        pid for pid in workers_of(process) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    os.kill(victim, signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "ChildProcessError: a worker process died, killed or out of memory, after" in errors
    assert "the same command goes on from there" in errors
    assert many(path).identical(undisturbed)


def test_ctrl_c_keeps_what_is_finished(tmp_path, undisturbed):
    path = tmp_path / "s.nc"
    process = start(path)
    wait_for(lambda: len(lines(path)) > 5)
    workers = workers_of(process)
    for pid in [process.pid, *workers]:  # as a terminal does
        os.kill(pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert errors.count("Traceback") == 1  # the program's own, none from a worker
    assert "interrupted after" in errors.splitlines()[-1]
    wait_for(lambda: not any(map(alive, workers)))
    assert len(lines(path)) > 5
    assert not path.exists()
    assert many(path).identical(undisturbed)


def test_ctrl_c_in_this_process_gives_the_finished_part(tmp_path, monkeypatch):
    measure = Measure.__call__

    def interrupted(self, cell):
        if cell == 3:
            raise KeyboardInterrupt
        return measure(self, cell)

    monkeypatch.setattr(Measure, "__call__", interrupted)
    with pytest.raises(Stopped, match="interrupted after 3 of 8 cells: give a path") as stop:
        small()
    assert int(stop.value.dataset["measured"].notnull().sum()) == 3 * 3 * 4
    with pytest.raises(Stopped, match=r"3 of 8 cells, kept in .*s.nc.journal: the same command goes on"):
        small(tmp_path / "s.nc")
    monkeypatch.undo()
    assert small(tmp_path / "s.nc").identical(small())


@pytest.mark.parametrize("workers", [1, 2])
def test_a_disk_that_is_full_is_one_line_and_keeps_what_fits(workers, tmp_path):
    """A limit on file sizes stands for the disk."""
    code = f"""
import sys; sys.path.insert(0, {str(PROGRAM.parent)!r})
import resource
from sweeps import small
if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
    try:
        small({str(tmp_path / "s.nc")!r}, workers={workers})
    except OSError as error:
        print(error)
"""
    program = tmp_path / "limited.py"
    program.write_text(code)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    assert "File too large, after" in done.stdout, done.stderr
    assert done.stdout.count("\n") == 1
    kept = len(lines(tmp_path / "s.nc"))
    assert 0 < kept < CELLS
    with pytest.warns(UserWarning, match="damaged line"):
        assert small(tmp_path / "s.nc").identical(small())


def test_a_path_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file.nc.journal").write_text("in the way")
    with pytest.raises(OSError, match=r"file.nc.journal") as caught:
        small(tmp_path / "file.nc")
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_dask_worker_that_is_killed_loses_nothing(tmp_path, undisturbed):
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    path = tmp_path / "s.nc"
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        from threading import Thread

        def kill():
            wait_for(lambda: len(lines(path)) > 20)
            nanny = next(iter(cluster.workers.values()))
            os.kill(nanny.pid, signal.SIGKILL)

        killer = Thread(target=kill)
        killer.start()
        result = many(path, executor=cluster)
        killer.join()
    assert result.identical(undisturbed)
    cells = [json.loads(line)["cell"] for line in lines(path)]
    assert sorted(cells) == list(range(len(MANY["snr"])))


def test_a_second_sweep_on_the_same_file_is_refused_until_the_first_ends(tmp_path, undisturbed):
    path = tmp_path / "sweep.nc"
    first = start(path)
    wait_for(lambda: len(lines(path)) > 0)
    with pytest.raises(BlockingIOError, match=r"journal is in use by another sweep: wait for its end$"):
        many(path)
    first.kill()
    first.communicate()
    assert many(path).identical(undisturbed)
