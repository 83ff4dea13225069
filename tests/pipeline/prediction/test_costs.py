"""Costs of a demand whose figures are round."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from longwall.pipeline.prediction.costs import Demand, predict_cost
from longwall.pipeline.prediction.phase_sample import PhaseSample, Stratum
from longwall.pipeline.prediction.rates import Rates

OWN = Rates(threads=2, steps=1e9, disk_read=1e9, disk_write=1e8, network=1e9, start_seconds=1.0, request_seconds=0.0)
SAMPLE = PhaseSample("count", 0.5, 2.0, (Stratum(1.0, 0.0),) * 100, 0.1)


def demand(**more: Any) -> Demand:
    plain = {"samples": (SAMPLE,), "own": OWN, "read_bytes": 8 * 10**9, "read_seconds": 4.0, "graph_bytes": 10**10}
    return Demand(**(plain | {"host_bytes": 11 * 10**9} | more))


def test_this_machine_takes_what_was_measured() -> None:
    cost = predict_cost(demand(), OWN)
    assert [(part.name, part.seconds) for part in cost.parts] == [
        ("start", 1.5),
        ("reading", 4.0),
        ("tables", 2.0),
        ("computing", 50.0),
        ("results", 0.0),
    ]
    assert cost.seconds == 57.5
    assert cost.bottleneck.name == "computing"
    assert (cost.disk, cost.network, cost.host, cost.device) == (8e9, 0.0, 11e9, 0)


def test_machines_share_the_work_and_each_reads_the_graph() -> None:
    cost = predict_cost(demand(), OWN, workers=10)
    assert cost.of("computing") == pytest.approx(5.0, rel=0.15)
    assert cost.of("reading") == 8.0
    assert cost.of("tables") == 2.0
    assert cost.network == 80e9
    assert cost.bottleneck.name == "reading"


def test_a_machine_with_other_rates() -> None:
    faster = replace(OWN, threads=4, steps=2e9, disk_read=1e8)
    cost = predict_cost(demand(), faster)
    assert cost.of("computing") == pytest.approx(12.5, rel=0.05)
    assert cost.of("tables") == 0.5
    assert cost.of("reading") == 80.0


def test_devices_are_workers_and_get_the_graph_over_their_links() -> None:
    rates = replace(OWN, devices=8, steps=1e11, link=5e10, memory=1e12)
    cost = predict_cost(demand(), rates, workers=2)
    assert cost.of("link") == pytest.approx(0.2)
    assert cost.of("computing") == pytest.approx(100 / 100 / 16, rel=0.2)
    assert cost.device == 10**10
    assert predict_cost(demand(), replace(rates, memory=1e11), workers=2).of("link") == pytest.approx(0.8)


def test_a_graph_that_a_device_does_not_hold_crosses_its_link_for_every_part_that_it_holds() -> None:
    rates = replace(OWN, devices=8, steps=1e11, link=5e10, memory=1e12, device_memory=1e9)
    cost = predict_cost(demand(), rates)
    assert cost.of("link") == pytest.approx(10 * 0.2)
    assert cost.device == 10**9


def test_files_of_results_are_written_and_cross_the_network() -> None:
    cost = predict_cost(demand(samples=(replace(SAMPLE, file_bytes=4e9),)), OWN)
    assert cost.of("results") == 40.0
    assert cost.network == 0
    several = predict_cost(demand(samples=(replace(SAMPLE, file_bytes=4e9),)), OWN, workers=4)
    assert several.of("results") == 10.0
    assert several.network == 4 * 8e9 + 4e9


def test_requests_are_a_part_of_their_own() -> None:
    cost = predict_cost(demand(), replace(OWN, request_seconds=1.0), workers=10)
    assert cost.of("dispatching") > 100
    assert cost.bottleneck.name == "dispatching"


def test_processes_of_a_machine_share_the_graph() -> None:
    rates = replace(OWN, devices=8, steps=1e11)
    assert predict_cost(demand(), rates).host == 10e9 + 8 * 1e9
    assert predict_cost(demand(), rates, workers=4).of("reading") == 8.0, "decoded once on each machine"
    assert predict_cost(demand(), replace(rates, device_memory=1e9)).host == 9 * 10e9 + 8 * 1e9
    assert predict_cost(demand(), replace(rates, devices=1, device_memory=1e9)).host == 11e9
    assert predict_cost(demand(), OWN, workers=4).host == 11e9
