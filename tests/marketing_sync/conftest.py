from tests.fixtures import *  # noqa: F403 - the fixtures that packages above the warehouse share
