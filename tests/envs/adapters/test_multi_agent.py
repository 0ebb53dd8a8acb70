"""`aec_env` and `parallel_env` import PettingZoo when they are called."""

import subprocess
import sys


def test_pettingzoo_is_imported_when_needed_and_missed_by_name():
    program = (
        "import sys; sys.modules['pettingzoo'] = None\n"
        "import pull_env, pull_env.envs.router\n"
        "try:\n    pull_env.aec_env()\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert found.stdout == "pettingzoo is missing: pip install 'pull-env[pettingzoo]'\n"
