"""The front of the package: what `dir`, tab completion, `help` and `import *` show; what names a policy."""

import subprocess
import sys

import pytest

import baselines
import pull_env
from pull_env.policy.lookup import as_policy
from pull_env.theory import bounds, exact, optimum


def test_dir_shows_the_public_names_and_nothing_else():
    assert set(dir(pull_env)) == {*pull_env.__all__, "__version__"}
    assert all(getattr(pull_env, name) is not None for name in pull_env.__all__)


def test_the_docstring_names_every_public_name_on_one_screen():
    lines = pull_env.__doc__.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 110
    words = pull_env.__doc__.replace("(", " ").replace(",", " ").replace(".", " ").replace(";", " ").split()
    assert not [name for name in pull_env.__all__ if name not in words]


@pytest.mark.parametrize("missing", ["pettingzoo", "torch", "stable_baselines3"])
def test_star_import_gives_the_public_names_without_any_extra(missing):
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from pull_env import *\nimport pull_env\n"
        "print(sorted(set(pull_env.__all__) - set(globals())))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_a_misspelt_name_is_answered_with_the_nearest():
    with pytest.raises(AttributeError, match=r"no attribute 'simulte': did you mean 'simulate'\?"):
        _ = pull_env.simulte
    with pytest.raises(AttributeError, match=r"no attribute 'xyzzy'$"):
        _ = pull_env.xyzzy


@pytest.fixture
def sources(tmp_path):
    """One policy as a value, a name, a path, a text path and a mapping."""
    policy = baselines.make("balanced(2)")
    path = tmp_path / "balanced.toml"
    pull_env.save_policy(policy, path)
    return [policy, "balanced(2)", path, str(path), policy.to_dict()]


def test_a_policy_is_accepted_in_every_form(sources):
    made = [as_policy(source) for source in sources]
    assert all(policy.steps == made[0].steps and policy.announce == made[0].announce for policy in made)
    results = [pull_env.simulate("small-mixed", source, 6400, warmup=100) for source in sources]
    evaluated = [
        pull_env.evaluate(source, "small-mixed", 6400, warmup=100, replications=8) for source in sources
    ]
    assert {result.cost.mean for result in results + evaluated} == {results[0].cost.mean}
    assert len({exact.solve("small-mixed", source).wait for source in sources}) == 1
    assert all(pull_env.theory.predict("two-speeds", source)["wait"].value > 1.6 for source in sources)


def test_theory_takes_a_preset_by_name():
    assert bounds.pooling_bounds("two-speeds").wait > 0
    assert optimum.optimise("small-mixed").exact.wait > 0


def test_tuned_is_the_policy_of_the_preset():
    scenario = pull_env.load_scenario("small-mixed")
    assert as_policy("tuned", scenario) == baselines.tuned(scenario)
    assert pull_env.simulate("small-mixed", "tuned", 6400, warmup=100).stable
    with pytest.raises(ValueError, match="'tuned': each preset has its own, so it needs the scenario"):
        as_policy("tuned")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("balancd(2)", r"did you mean 'balanced'\?"),
        ("", "a name such as"),
        ("zzz", r"policy is 'zzz': it must be one of random, "),
        (7, "policy is 7: it must be a Policy, a name"),
        (None, "policy is None: it must be a Policy, a name"),
        ("nowhere.toml", "'nowhere.toml' cannot be read"),
        ({"name": "x", "steps": []}, "steps"),
    ],
)
def test_a_mistake_gets_a_sentence(source, message):
    with pytest.raises(ValueError, match=message):
        pull_env.simulate("two-speeds", source, 1000)


def test_a_policy_in_place_of_the_scenario_is_seen():
    with pytest.raises(ValueError, match="'pull' is not a known scenario"):
        pull_env.simulate("pull", "two-speeds", 1000)
