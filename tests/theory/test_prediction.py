"""`predict`: policies are recognised by their declaration, kinds are honest, exact values meet simulation."""

import math
import subprocess
import sys

import pytest

import baselines
from pull_env import (
    Announce,
    Cycle,
    Inspect,
    Policy,
    Pool,
    Probe,
    Recall,
    Scenario,
    Send,
    Take,
    Trace,
    simulate,
)
from pull_env.theory import formulas, predict, pull_fluid
from pull_env.theory.prediction import lower_bounds
from tests.oracles.exactness import measure, meets

EQUAL = (Pool(10),)
HALVES = (Pool(5, 1.0), Pool(5, 2.0))
LIMITED = (Pool(5, 1.0, 3), Pool(5, 2.0, 1))


def system(pools=EQUAL, load=0.8, **rest):
    return Scenario(pools, load=load, **rest)


def of(name):
    """Return a policy of the table under another name."""
    return Policy("anything", (made := baselines.make(name)).steps, made.announce)


EXACT = [  # scenario, policy, width of the interval
    (system(HALVES, 0.7, routers=3), "weighted", 0.03),
    (system(HALVES, 0.5), "random", 0.03),
    (system(LIMITED, 0.9), "random", 0.02),
    (system(LIMITED, 0.9), "power-of-d(1)", 0.02),
    (system((Pool(1, 2.0, 4),), 0.9, routers=2), "pull", 0.03),
    (system((Pool(3),), 0.6), "round-robin", 0.03),
    (system(HALVES, 0.5), "round-robin", 0.03),
    (system((Pool(2),), 0.7), "jiq", 0.03),
]


@pytest.mark.parametrize(("scenario", "name", "width"), EXACT, ids=str)
def test_exact_values_meet_simulation(scenario, name, width):
    known = predict(scenario, of(name))
    assert {value.kind for value in known.values()} == {"exact"}
    result = simulate(scenario, of(name), 3_000_000, replications=16, seed=11, workers=1)
    for measured, value in known.items():
        meets(measure(result, measured), value.value, width=width, what=measured)


def test_least_work_is_one_queue():
    known = predict(system((Pool(3),)), Policy("x", (Inspect(rank="work"),)))
    assert known["wait"].value == pytest.approx(formulas.mmc_wait(3, 2.4))
    assert known["p_wait"].value == pytest.approx(0.6471910112359551)
    assert known["probe"].value == known["total"].value == 6.0
    all_asked = Policy("x", (Probe(rank="work", at_most=5),))
    assert predict(system((Pool(2), Pool(1))), all_asked)["wait"].value == known["wait"].value
    assert predict(system(HALVES), Policy("x", (Inspect(rank="work"),))) is None
    assert predict(system(LIMITED[:1]), Policy("x", (Inspect(rank="work"),))) is None


LIMITS = [  # scenario, policy, E[T], word of the source
    (system(load=0.9), "power-of-d(2)", 2.614057, "supermarket"),
    (system(load=0.9), "sed-d(3)", 2.027856, "supermarket"),
    (system(HALVES), "balanced(3)", 1.053924, "balanced"),
    (system(LIMITED), "power-of-d(2)", 1.079941, "shortest of d"),
    (system(load=0.9, routers=1), "pull", 1.0, "fluid"),
    (system(load=0.9, routers=1), "jiq", 1.0, "fluid"),
    (system(HALVES), "pull", 0.680754, "fluid"),
    (system(LIMITED), "pull", 0.680754, "fluid"),
    (system(load=0.9, routers=1), "jbt(3)", 2.324459, "JBT"),
    (system((Pool(100),), 0.9, routers=10), "pull", 1.765375, "mean field"),
    (system((Pool(100),), 0.9, routers=10), "pull-weighted", 1.765375, "mean field"),
    (system((Pool(100),), 0.9, routers=10), "pull-fastest", 1.765375, "mean field"),
    (system((Pool(50, 1.0, 3), Pool(50, 2.0, 1)), routers=10), "pull", 0.834554, "mean field"),
]


@pytest.mark.parametrize(("scenario", "name", "response", "word"), LIMITS, ids=str)
def test_limits(scenario, name, response, word):
    known = predict(scenario, of(name))
    assert {value.kind for value in known.values()} == {"limit"}
    assert known["response"].value == pytest.approx(response, abs=6e-7)
    assert all(word in value.source for value in known.values())
    accepted = scenario.total_arrival_rate * (1 - known["p_block"].value)
    served = sum(p.size * p.rate * known[f"busy {j}"].value for j, p in enumerate(scenario.pools))
    assert served == pytest.approx(accepted, rel=1e-8)
    assert known["mean_number"].value == pytest.approx(accepted * response, rel=1e-5)
    assert known["wait"].value <= known["response"].value


def test_messages():
    pull = predict(system((Pool(50, 1.0, 3), Pool(50, 2.0, 1)), routers=10), of("pull"))
    accepted = 1 - pull["p_block"].value
    assert pull["pull"].value / accepted == pytest.approx(1 - pull["p_wait"].value)
    assert pull["total"].value == pull["pull"].value + pull["remove"].value
    assert predict(system(), of("pull"))["total"].value == 1.0
    assert predict(system(), of("balanced(3)"))["probe"].value == 6.0
    asked = predict(system((Pool(1000),)), of("probe-until-idle(3)"))["probe"].value
    assert asked == pytest.approx(2 * (1 + 0.8 + 0.64))
    assert predict(system(), of("weighted"))["total"].value == 0.0
    assert "total" not in predict(system(), Policy("x", (Send(),), Announce()))


def test_probes_until_idle_by_simulation():
    """At n = 2000 the limit holds to a percent: the bias of order 1/n is below the interval."""
    scenario = system((Pool(1000, 1.0), Pool(1000, 2.0)))
    known = predict(scenario, of("probe-until-idle(3)"))
    result = simulate(
        scenario, of("probe-until-idle(3)"), 1_500_000, warmup=50_000, replications=16, seed=3, workers=1
    )
    for name in ("response", "p_wait", "probe"):
        meets(measure(result, name), known[name].value, width=0.02, what=name)


NOTHING = [
    (system(), Policy("x", (Inspect(),))),
    (system(routers=2), Policy("x", (Cycle(),))),
    (system(HALVES), Policy("x", (Cycle(weights="rate"),))),
    (system(HALVES), baselines.make("sed-d(2)")),
    (system(HALVES), baselines.make("pull-fastest")),
    (system(HALVES), baselines.make("pull-weighted")),
    (system(routers=2), baselines.make("jiq")),
    (system(routers=2), baselines.make("pull-min")),
    (system(routers=2), baselines.make("jbt(2)")),
    (system(routers=2, shares=(0.9, 0.1)), baselines.make("pull")),
    (system(HALVES), Policy("x", (Take(pool=1), Send()), Announce())),
    (system(), Policy("x", (Recall(), Send()))),
    (system(), Policy("x", (Probe(stop_at=1.0),))),
    (system(), Policy("x", (Probe(at_most=10),))),
    (system(load=1.0), baselines.make("weighted")),
    (system((Pool(1),), load=1.5), baselines.make("jsq")),
    (system(HALVES), baselines.make("random")),
    (system((Pool(50, 0.1), Pool(50, 1.9)), load=0.9), baselines.make("power-of-d(2)")),
    (system((Pool(50, 0.5), Pool(50, 1.5)), load=0.9, routers=10), baselines.make("pull")),
    (Scenario((Pool(1, 1.0), Pool(1, 9.0)), arrival_rate=4.773), baselines.make("pull")),
    (system(arrivals=Trace("x.csv", "time", "size")), baselines.make("random")),
]


@pytest.mark.parametrize(("scenario", "policy"), NOTHING, ids=str)
def test_nothing_is_known(scenario, policy):
    assert predict(scenario, policy) is None


def test_one_router_is_stable_below_the_critical_load():
    assert predict(Scenario((Pool(1, 1.0), Pool(1, 9.0)), arrival_rate=4.771), of("pull")) is not None
    assert predict(system((Pool(5000, 0.5), Pool(5000, 1.5)), load=0.95), of("pull")) is not None


def test_every_registered_policy_is_answered():
    for name, entry in baselines.POLICIES.items():
        policy = baselines.make(name, **({"r": 2} if entry.usage == "jbt(r)" else {}))
        for scenario in (system(HALVES, routers=2), system(LIMITED), system(EQUAL)):
            known = predict(scenario, policy)
            assert known is None or all(math.isfinite(value.value) for value in known.values())


def test_a_threshold_that_grows_is_that_of_the_load():
    one_router = system(EQUAL, load=0.9)
    assert predict(one_router, baselines.make("jbt-log")) == predict(one_router, baselines.make("jbt(3)"))
    assert predict(one_router, baselines.make("jbt-log(K=2)")) == predict(
        one_router, baselines.make("jbt(5)")
    )


def test_nothing_is_known_of_a_router_that_remembers():
    assert predict(system(EQUAL), baselines.make("power-of-d-memory")) is None


def test_limits_are_above_bounds():
    """Where all servers together are large, no limit is below what holds for every policy."""
    for pools in ((Pool(100_000),), (Pool(50_000, 1.0), Pool(50_000, 2.0))):
        for name in ("pull", "balanced(2)", "power-of-d(2)", "weighted"):
            scenario = system(pools, routers=1)
            known, least = predict(scenario, of(name)), lower_bounds(scenario)
            assert least["wait"].kind == "bound"
            for measured, bound in least.items():
                if known is not None:
                    assert known[measured].value >= bound.value * (1 - 1e-9), (name, measured)


def test_import_is_light_and_submodules_are_found():
    code = (
        "import sys, pull_env; t = pull_env.theory; assert 'scipy' not in sys.modules; "
        "t.predict; t.pull_fluid.pull_fluid; t.formulas; assert 'scipy' not in sys.modules; "
        "assert not hasattr(t, 'nothing'); assert {'predict', 'exact', 'bounds', 'optimum'} <= set(dir(t))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert pull_fluid.pull_fluid(EQUAL, 0.5).response == pytest.approx(1.0)
