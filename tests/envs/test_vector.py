"""`RouterVectorEnv` is bit-identical to Gymnasium's vector of `RouterEnv`."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from pull_env.envs.router import RouterEnv
from pull_env.envs.vector import RouterVectorEnv
from pull_env.policy.policy import Announce, Inspect, Probe, Recall, Send, Take
from pull_env.scenario.scenario import Pool, Scenario, Trace
from tests.oracles.env_twins import MODES, assert_same, assert_twins, pair

ID = "pull_env/Router-v0"


@pytest.fixture
def traced(tmp_path):
    """A scenario whose customers come from a file of 500."""
    rng = np.random.default_rng(0)
    times, sizes = rng.exponential(1.0, 500).cumsum(), rng.exponential(1.0, 500) + 0.01
    rows = "\n".join(f"{time!r},{size!r}" for time, size in zip(times.tolist(), sizes.tolist(), strict=True))
    (tmp_path / "trace.csv").write_text(f"time,size\n{rows}\n")
    trace = Trace(str(tmp_path / "trace.csv"), time="time", size="size")
    return Scenario(
        pools=(Pool(4, rate=1.5), Pool(4, rate=0.5, buffer=3)), routers=2, load=0.9, arrivals=trace
    )


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "arguments",
    [
        {"scenario": "two-speeds"},
        {"scenario": "small-mixed", "observation": "with-state", "announce": Announce(withdraw=False)},
        {"scenario": "finite-buffers", "announce": None, "memory": 2},
        {"catalog": [Probe(weights="rate", at_most=2), Take(), Recall(), Send(1), Inspect()]},
        {"scenario": "small-mixed", "catalog": [Inspect(rank="work"), Take(order="oldest")]},
    ],
)
def test_it_equals_single_envs(arguments, mode, workers):
    assert assert_twins(*pair(mode, 4, workers, customers=13, **arguments), steps=60) >= 12


@pytest.mark.parametrize("mode", MODES)
def test_traces_end_at_their_own_time_and_are_fed_in_time(traced, mode, monkeypatch):
    monkeypatch.setattr("pull_env.simulation.simulator.Simulator.FEED", 32)
    single, native = pair(mode, 3, scenario=traced, customers=700)
    for envs in (single, native):
        envs.reset(seed=[0, 0, 0])
        for env, skipped in zip(envs.envs, (0, 3, 40), strict=True):
            env.skip([Send(0)], skipped)
    rng, ended = np.random.default_rng(1), [0, 0, 0]
    for step in range(1, 560):
        actions = rng.integers(18, size=3)
        expected = single.step(actions)
        assert_same(expected, native.step(actions), f"step {step}")
        for k in np.flatnonzero(expected[3]):
            ended[k] = ended[k] or step
        if mode == AutoresetMode.DISABLED and expected[3].any():
            assert_same(*(envs.reset(options={"reset_mask": expected[3]}) for envs in (single, native)))
    assert ended == [500, 497, 460]


def test_env_i_seeded_s_is_a_single_env_seeded_s_plus_i():
    envs = RouterVectorEnv(3, scenario="two-speeds")
    singles = [RouterEnv("two-speeds") for _ in range(3)]
    for seed, seeds in ((5, [5, 6, 7]), ([9, 2, 40], [9, 2, 40]), (np.int64(8), [8, 9, 10])):
        observations, infos = envs.reset(seed=seed)
        for k, env in enumerate(singles):
            observation, info = env.reset(seed=seeds[k])
            assert np.array_equal(observation, observations[k])
            assert info["router"] == infos["router"][k]
        assert list(envs.np_random_seed) == seeds
        observations, rewards, *_ = envs.step([17, 17, 17])
        for k, env in enumerate(singles):
            observation, reward, *_ = env.step(17)
            assert reward == rewards[k]
            assert np.array_equal(observation, observations[k])


def test_seeds_of_a_list_may_be_none_for_the_next_episode():
    envs, single = RouterVectorEnv(2), RouterEnv()
    envs.reset(seed=0)
    single.reset(seed=0), single.reset()
    observations, _ = envs.reset(seed=[None, 0])
    assert np.array_equal(observations[0], single.reset(options={"episode": 1})[0])
    assert np.array_equal(observations[1], single.reset(seed=0)[0])


def test_gymnasium_makes_it():
    envs = gym.make_vec(ID, num_envs=3, scenario="small-mixed", customers=5)
    assert type(envs) is RouterVectorEnv
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert envs.spec.id == ID
    assert (envs.num_envs, envs.observation_space.shape, envs.action_space.shape) == (3, (3, 22), (3,))
    observations, infos = envs.reset(seed=0)
    assert envs.observation_space.contains(observations)
    assert infos["action_mask"].shape == (3, 18)
    assert np.array_equal(envs.action_masks(), infos["action_mask"].astype(bool))
    actions = envs.action_space.sample()
    for wrapped in (envs, gym.wrappers.vector.RecordEpisodeStatistics(envs)):
        wrapped.reset(seed=0)
        for _ in range(5):
            *_, truncated, infos = wrapped.step(actions)
        assert truncated.all()
    assert infos["episode"]["l"].tolist() == [5, 5, 5]
    envs.close()
    envs.close()


def arrays_in(answer):
    """Yield all arrays of an answer that can be written to."""
    for part in answer.values() if isinstance(answer, dict) else answer:
        if isinstance(part, np.ndarray) and part.flags.writeable:
            if part.dtype == object:
                yield from [row for row in part if row is not None]
            yield part
        elif isinstance(part, dict):
            yield from arrays_in(part)


def test_arrays_are_fresh_at_every_step():
    envs = RouterVectorEnv(3, scenario="two-speeds", customers=3)
    twin = RouterVectorEnv(3, scenario="two-speeds", customers=3)
    kept = []
    for k in range(8):
        answer = envs.step([k, 17 - k, 4]) if k else envs.reset(seed=0)
        expected = twin.step([k, 17 - k, 4]) if k else twin.reset(seed=0)
        assert_same(answer, expected)
        kept.append((answer, copy.deepcopy(answer)))
        for array in arrays_in(expected):  # whoever spoils what was returned spoils nothing else
            array[...] = 1
    for answer, before in kept:
        assert_same(answer, before)


def test_the_final_observation_is_that_of_the_end():
    envs = RouterVectorEnv(2, scenario="two-speeds", customers=4)
    single = RouterEnv("two-speeds", customers=4)
    single.reset(seed=1)
    envs.reset(seed=0)
    for _ in range(4):
        observations, rewards, terminated, truncated, infos = envs.step([5, 5])
        last, reward, _, _, info = single.step(5)
    assert truncated.all()
    assert not terminated.any()
    assert np.array_equal(infos["final_obs"][1], last)
    assert infos["_final_obs"].all()
    assert infos["final_info"]["cost"][1] == info["cost"] == -rewards[1] == -reward
    assert infos["cost"][1] == 0.0
    assert np.array_equal(observations[1], single.reset()[0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda envs: pickle.loads(pickle.dumps(envs))])
def test_copies_continue_as_the_original(clone, mode, traced):
    for arguments in ({"scenario": "two-speeds", "customers": 40}, {"scenario": traced}):
        envs = RouterVectorEnv(3, autoreset_mode=mode, workers=2, **arguments)
        envs.reset(seed=1)
        for k in range(30):
            envs.step([k % 18] * 3)
        twin = clone(envs)
        answers = []
        for each in (envs, twin):
            answers.append([each.step([k % 18] * 3) for k in range(10)])
            answers[-1].append(each.reset(options={"reset_mask": np.array([True, False, True])}))
            answers[-1].append(each.step([17] * 3) if mode != AutoresetMode.DISABLED else each.reset())
            answers[-1].append(each.action_masks())
        assert_same(*answers)
        assert not twin.step([4] * 3)[4]["_cost"].flags.writeable
        envs.close()
        twin.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_reset_of_some_leaves_the_others(mode):
    single, native = pair(
        mode, 3, scenario="two-speeds", customers=70 if mode == AutoresetMode.DISABLED else 50
    )
    assert_twins(single, native, 8)
    for _ in range(3):
        options = {"reset_mask": np.array([False, True, False]), "episode": 4}
        assert_same(single.reset(options=dict(options)), native.reset(options=options))
        assert "reset_mask" in options
        for k in range(18):
            assert_same(single.step(np.array([k, 4, 17 - k])), native.step([k, 4, 17 - k]))


def test_attributes_and_methods_of_the_envs():
    envs = RouterVectorEnv(3, scenario="two-speeds", customers=20)
    envs.reset(seed=0)
    assert envs.get_attr("customers") == (20, 20, 20)
    assert envs.get_attr("render_mode") == (None, None, None)
    assert np.array_equal(envs.call("action_masks"), envs.action_masks())
    envs.set_attr("customers", [2, 3, 20])
    envs.set_attr("label", "x")
    assert envs.get_attr("label") == ("x", "x", "x")
    envs.reset()
    assert [envs.step([4, 4, 4])[3].tolist() for _ in range(3)][1:] == [
        [True, False, False],
        [False, True, False],
    ]
    with pytest.raises(ValueError, match="values has 2 entries: it must have 3"):
        envs.set_attr("customers", [1, 2])
    with pytest.raises(AttributeError):
        envs.get_attr("no_such_thing")


def test_envs_that_are_stepped_one_by_one_stay_in_step():
    envs, singles = RouterVectorEnv(2, scenario="two-speeds", customers=3), []
    envs.reset(seed=3)
    for k in range(2):
        singles.append(RouterEnv("two-speeds", customers=3))
        singles[k].reset(seed=3 + k)
    stepped = envs.call("step", 4)
    for k, env in enumerate(singles):
        assert_same(env.step(4), stepped[k])
    for truncated in (False, True):
        answers = envs.step([3, 3])
        assert answers[3].tolist() == [truncated, truncated]
        expected = [env.step(3) for env in singles]
        assert answers[1].tolist() == [answer[1] for answer in expected]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"num_envs": 0}, "num_envs is 0: it must be a whole number from 1"),
        ({"workers": 0}, "workers is 0: it must be a whole number from 1"),
        ({"autoreset_mode": "never"}, "autoreset_mode is 'never': it must be 'NextStep' or 'SameStep' or"),
        ({"customers": 1}, "customers is 1"),
        ({"scenario": "two-sped"}, "two-speeds"),
    ],
)
def test_arguments_that_are_not_allowed_are_named(keywords, message):
    with pytest.raises(ValueError, match=message):
        RouterVectorEnv(**keywords)


@pytest.mark.parametrize("name", ["SameStep", "SAME_STEP", AutoresetMode.SAME_STEP])
def test_the_mode_by_name_or_member(name):
    assert RouterVectorEnv(autoreset_mode=name).metadata["autoreset_mode"] is AutoresetMode.SAME_STEP


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 1], r"actions has shape \(2,\): it must be \(3,\)"),
        (4, r"actions has shape \(\): it must be \(3,\)"),
        ([0, 18, -1], r"actions\[1\] is 18: it must be a whole number from 0 to 17"),
        ([0, 0, -1], r"actions\[2\] is -1"),
        (np.array([0, 2**63 + 1, 0], np.uint64), r"actions\[1\] is 9223372036854775809"),
        ([0.0, 1.0, 2.0], "actions has dtype float64: it must hold whole numbers"),
        ([True, False, True], "actions has dtype bool"),
    ],
)
def test_actions_that_are_not_allowed_are_named_and_move_nothing(actions, message):
    envs = RouterVectorEnv(3)
    envs.reset(seed=0)
    before = [env.simulator.placed for env in envs.envs]
    with pytest.raises(ValueError, match=message):
        envs.step(actions)
    assert [env.simulator.placed for env in envs.envs] == before


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32])
def test_whole_numbers_of_any_kind_are_actions(kind):
    envs, twin = RouterVectorEnv(3), RouterVectorEnv(3)
    envs.reset(seed=0), twin.reset(seed=0)
    assert_same(envs.step(np.array([1, 17, 4], kind)), twin.step([1, 17, 4]))


def test_steps_out_of_turn_are_refused():
    envs = RouterVectorEnv(2, scenario="small-mixed", customers=2, autoreset_mode="Disabled")
    for call in (lambda: envs.step([0, 0]), envs.action_masks):
        with pytest.raises(ResetNeeded):
            call()
    with pytest.raises(ResetNeeded, match="reset_mask"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    envs.reset(seed=0)
    envs.reset(options={"reset_mask": np.array([True, False])})
    envs.step([0, 0])
    assert envs.step([0, 0])[3].tolist() == [True, True]
    envs.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ResetNeeded, match="the episode of env 1 has ended"):
        envs.step([0, 0])
    assert envs.envs[0].simulator.placed == 0


@pytest.mark.parametrize(
    ("mask", "kind", "message"),
    [
        ([True, False], TypeError, "must be an array of flags"),
        (np.array([1, 0]), TypeError, "must be an array of flags"),
        (np.array([True]), ValueError, r"has shape \(1,\): it must be \(2,\)"),
        (np.array([False, False]), ValueError, "is False for all envs"),
    ],
)
def test_masks_and_seeds_that_are_not_allowed_are_named(mask, kind, message):
    envs = RouterVectorEnv(2)
    envs.reset(seed=0)
    with pytest.raises(kind, match=message):
        envs.reset(options={"reset_mask": mask})
    with pytest.raises(ValueError, match="seed has 1 entries: it must have 2"):
        envs.reset(seed=[1])
    with pytest.raises(ValueError, match=r"options\.mask is not a known key"):
        envs.reset(options={"mask": mask})
