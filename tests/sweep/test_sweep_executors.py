"""The same bytes from every executor and number of workers."""

import numpy as np
import pytest
from sweeps import OVER, SETTING, SIZES, small

from resolvent import Setting, sweep


def bytes_of(dataset):
    return {str(name): values.values.tobytes() for name, values in dataset.variables.items()}


@pytest.fixture(scope="module")
def reference():
    return bytes_of(small())


@pytest.mark.parametrize("workers", [2, 3])
def test_processes_give_the_same_bytes(workers, reference):
    assert bytes_of(small(workers=workers)) == reference


def test_a_dask_cluster_gives_the_same_bytes(reference, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=3, processes=False, dashboard_address=None
    ) as cluster:
        assert bytes_of(small(executor=cluster)) == reference
        assert bytes_of(small(tmp_path / "s.nc", executor=cluster.scheduler_address)) == reference
        with distributed.Client(cluster, set_as_default=False) as client:
            assert bytes_of(small(executor=client)) == reference
    assert bytes_of(small(tmp_path / "s.nc")) == reference


def test_a_scheduler_that_is_not_there_is_one_line(monkeypatch):
    pytest.importorskip("distributed", reason="needs the extra dask")
    monkeypatch.setattr("resolvent.sweep.dask.PATIENCE", 0.2)
    with pytest.raises(ConnectionError, match=r"no Dask scheduler at tcp://127\.0\.0\.1:9") as caught:
        small(executor="tcp://127.0.0.1:9")
    assert "\n" not in str(caught.value)


def test_the_order_of_axes_moves_the_dims_only():
    swapped = {"ridge": OVER["ridge"], "snr": OVER["snr"], "f": OVER["f"]}  # cells keep their order
    one, other = small(), sweep(SETTING, swapped, simulate=SIZES)
    np.testing.assert_array_equal(one["measured"], other["measured"].transpose(*one["measured"].dims))


def test_a_local_function_runs_here_but_not_in_other_processes():
    setting = Setting(nonlinearity=lambda t: t**3)
    assert np.isfinite(sweep(setting, {"snr": [0.0, 1.0]}, simulate=SIZES)["measured"]).all()
    with pytest.raises(ValueError, match="workers must be 1"):
        sweep(setting, {"snr": [0.0, 1.0]}, simulate=SIZES, workers=2)
