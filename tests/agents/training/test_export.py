"""Exported routers: the kernel decides as torch does, and files are scored without the model."""

import numpy as np
import pytest

from agents.training import export, score
from agents.training.export import policy_of
from baselines.leaderboard import run as leaderboard
from pull_env.envs.router import RouterEnv
from pull_env.envs.vector import RouterVectorEnv
from pull_env.policy.policy import load_policy, save_policy
from pull_env.reporting.rows import read_rows
from pull_env.reporting.run_folder import POLICY
from pull_env.scenario.scenario import load_scenario
from pull_env.simulation.kernel_data.compiled_network import CompiledNetwork
from pull_env.simulation.policy_runner import PolicyRunner
from tests.oracles.networks import follow

SCENARIO = load_scenario("small-mixed")


def untrained(kind, **options):
    """Return a model with the weights that training begins with, the last layer's made to matter."""
    import sb3_contrib
    import stable_baselines3 as sb3
    import torch

    from pull_env.envs.adapters.stable_baselines3 import VecRouter

    torch.set_num_threads(1)
    known = {"A2C": sb3.A2C, "DQN": sb3.DQN, "PPO": sb3.PPO}
    known |= {"MaskablePPO": sb3_contrib.MaskablePPO, "QRDQN": sb3_contrib.QRDQN}
    if "DQN" in kind:
        options["buffer_size"] = 10
    model = known[kind]("MlpPolicy", VecRouter(SCENARIO, 1), seed=3, device="cpu", **options)
    if "DQN" not in kind:
        model.policy.action_net.weight.data *= 300
    return model


@pytest.fixture(scope="module")
def seen():
    """100,000 observations of routers that act at random."""
    envs = RouterVectorEnv(100, scenario=SCENARIO, customers=5000)
    envs.reset(seed=1)
    rng = np.random.default_rng(0)
    return np.concatenate([envs.step(rng.integers(18, size=100))[0] for _ in range(1000)])


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PPO", {}),
        ("PPO", {"policy_kwargs": {"net_arch": []}}),
        ("A2C", {"policy_kwargs": {"net_arch": [16]}}),
        ("MaskablePPO", {}),
        ("DQN", {}),
        ("QRDQN", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_kernel_decides_as_torch(kind, options, seen):
    model = untrained(kind, **options)
    policy = policy_of(model, {"algo": kind}, SCENARIO)
    seen = seen if kind == "PPO" else seen[::20]
    actions, _ = model.predict(seen, deterministic=True)
    preferred = CompiledNetwork(policy.network).preferences(seen)
    chosen = preferred.argmax(axis=1)
    rows = np.arange(len(seen))
    assert (preferred[rows, chosen] - preferred[rows, actions] < 1e-5).all()
    assert (actions == chosen).mean() > 0.999
    assert policy.network.masked == (kind == "MaskablePPO")
    assert policy.network.activation == ("relu" if "DQN" in kind else "tanh")
    assert (policy_of(model, {"algo": kind}, SCENARIO, sampled=True) is None) == ("DQN" in kind)


@pytest.mark.parametrize("kind", ["PPO", "MaskablePPO"])
def test_a_run_of_the_model_in_the_env_is_one_of_the_kernel(kind):
    model, customers = untrained(kind), 2000
    env, runner = RouterEnv(SCENARIO), PolicyRunner(SCENARIO, policy_of(model, {"algo": kind}, SCENARIO))
    seen, _ = env.reset(seed=9)
    for _ in range(customers):
        masks = {"action_masks": env.action_masks()} if kind == "MaskablePPO" else {}
        seen = env.step(model.predict(seen, deterministic=True, **masks)[0])[0]
    runner.reset(9)
    runner.run(customers)
    for name in ("head", "servers", "lists", "memory"):
        left, right = (getattr(each.simulator.arrays, name) for each in (env, runner))
        for field in left.dtype.names:
            if name != "head" or field in ("now", "streams", "pulls", "removes", "probes"):
                assert (left[field] == right[field]).all(), (name, field)


def test_a_sample_has_the_odds_of_torch():
    """Over observations of a run: shares of each action within five standard deviations."""
    import torch

    model, customers = untrained("PPO"), 20_000
    policy = policy_of(model, {"algo": "ppo"}, SCENARIO, sampled=True)
    env = RouterEnv(SCENARIO, customers=customers)
    seen, _ = env.reset(seed=2)
    counts, all_seen = np.zeros(18), np.zeros((customers, seen.size), np.float32)
    compiled = CompiledNetwork(policy.network)
    for k in range(customers):
        all_seen[k] = seen
        action = compiled.decide(env.simulator.address, env._observed_address)
        counts[action] += 1
        seen = env.step(action)[0]
    with torch.no_grad():
        odds = model.policy.get_distribution(torch.tensor(all_seen)).distribution.probs.numpy()
    spread = np.sqrt((odds * (1 - odds)).sum(axis=0))
    assert (np.abs(counts - odds.sum(axis=0)) < 5 * spread + 1e-9).all()


def test_a_model_that_alters_what_it_sees_is_refused():
    model = untrained("PPO")
    policy = model.policy
    whole = policy.pi_features_extractor.forward
    policy.pi_features_extractor.forward = lambda seen: 1.0 - whole(seen)
    with pytest.raises(ValueError, match="decides otherwise than its layers do"):
        policy_of(model, {"algo": "ppo"}, SCENARIO)


def test_layers_that_are_not_known_are_refused():
    from torch import nn

    with pytest.raises(ValueError, match="must be linear layers with tanh or relu between"):
        policy_of(untrained("PPO", policy_kwargs={"activation_fn": nn.ELU}), {"algo": "ppo"}, SCENARIO)


def test_a_model_is_exported_and_scored(call, monkeypatch, tmp_path):
    configuration = {"algo": "ppo", "seed": 5, "scenario": "small-mixed"}
    monkeypatch.setattr(export, "load", lambda path: (untrained("PPO"), configuration, tmp_path / "model"))
    status, printed, _ = call("export", tmp_path / "model", "--sampled", "--name", "mine")
    folder = tmp_path / "model" / "exported"
    assert status == 0
    assert f"exported to {folder / POLICY} and policy.safetensors" in printed
    policy = load_policy(folder / POLICY)
    assert (policy.name, policy.network.sampled, policy.network.training_seed) == ("mine", True, 5)
    assert policy == export.replace(
        policy_of(untrained("PPO"), configuration, SCENARIO, sampled=True), name="mine"
    )
    status, _, refused = call("export", tmp_path / "model")
    assert status == 2
    assert "exists already" in refused
    monkeypatch.setattr(score, "load", None)  # no model is loaded any more
    short = ("--scenario", "small-mixed", "--customers", "2000", "--replications", "2")
    for given in (folder, folder / POLICY):
        status, printed, _ = call("score", given, *short)
        assert status == 0
        assert "mine" in printed
    rows = read_rows(folder / score.ROWS)
    assert rows[0]["measures"] == rows[len(rows) // 2]["measures"]
    assert rows[0]["policy"]["network"] == {"sha256": policy.network.digest, "training_seed": 5}
    status, _, refused = call("score", folder)
    assert status == 2
    assert refused.startswith("error: scenario is missing")
    assert len(refused.splitlines()) == 1


def test_dqn_has_no_odds(call, monkeypatch, tmp_path):
    configuration = {"algo": "dqn", "seed": 5, "scenario": "small-mixed"}
    monkeypatch.setattr(export, "load", lambda path: (untrained("DQN"), configuration, tmp_path))
    status, _, refused = call("export", tmp_path, "--sampled")
    assert (status, refused) == (2, "error: sampled is True: dqn has no odds, it takes the best action\n")


def test_the_leaderboard_takes_a_network(tmp_path):
    save_policy(follow(SCENARIO, 8), tmp_path / "mine.toml")
    args = leaderboard.Args(scenario=("small-mixed",), policy=("pull", str(tmp_path / "mine.toml")))
    assert [run.policy.name for run in leaderboard.plan_runs(args)] == ["pull", "network"]
    with pytest.raises(ValueError, match="network takes 22 entries: on many-pools"):
        leaderboard.plan_runs(export.replace(args, scenario=("many-pools",)))
