"""The mixtures of `ControlEnv`."""

import numpy as np

from pull_env.envs.control_accounts import mixture


def test_numbers_mean_weights():
    numbers = np.array([[1.0, -1.0, -1.0], [1.0, 1.0, -1.0], [0.0, 1.0, -1.0], [-1.0, -1.0, -1.0]])
    expected = [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 17, 16 / 17, 0], [1 / 3, 1 / 3, 1 / 3]]
    np.testing.assert_allclose(mixture(numbers), expected, atol=1e-15)
    drawn = mixture(np.random.default_rng(0).uniform(-1, 1, (1000, 9)))
    assert (drawn >= 0).all()
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)
