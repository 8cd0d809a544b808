"""Credentials in the gVisor tier: the container's own tests with --tier gvisor."""
# lane: full
import os
import shutil

import pytest

from test_credentials import (net, test_a_request_without_the_placeholder_gets_nothing, test_no_memory_inside_holds_the_secret,
                              test_the_server_sees_the_secret_and_the_sandbox_does_not, test_what_the_server_says_back_is_redacted)
from world import World

pytestmark = pytest.mark.skipif(shutil.which("runsc", path="/usr/local/bin:/usr/bin:/usr/sbin") is None or os.getuid() != 0,
                                reason="takes root and gVisor's runsc (tools/install-packages test)")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("world"), tier="gvisor")
    yield made
    made.close()
