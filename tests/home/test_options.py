"""Every option of sync and push is declared once, for the command line and the UI, or excepted."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import click
import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.materialize import asset_key
from assets.sources import lists
from home.options import (
    ACTIVATIONS,
    AFTERWARDS,
    JSON,
    OUT,
    PERMANENT,
    PUSH_OPTIONS,
    REJECTED,
    REVERT,
    SANDBOX,
    SYNC,
    UNKNOWN,
    Option,
    click_parameters,
    typed_words,
)
from home.settings import Settings, SettingsError
from marketing_api.client import Connection, Secret
from marketing_api.errors import MarketingApiError
from marketing_sync.commands import Command as TypedCommand
from pipelines.definitions import build_definitions
from pipelines.launchpad import read_values
from pipelines.push_jobs import push_jobs
from pipelines.reading import ReadOptions
from tests.fixtures import Command
from tests.pipelines.running import parsed
from tests.pipelines.test_nightly import failures
from write_back.kinds import KINDS, Kind

pytestmark = pytest.mark.filterwarnings("ignore")

#: Words of the command line → what is declared for them.
COMMANDS: dict[tuple[str, ...], Sequence[Option]] = {
    ("sync",): (*SYNC, JSON),
    **{("push", str(kind)): (*PUSH_OPTIONS[kind].options, JSON) for kind in KINDS.values()},
    ("push", "activations"): ACTIVATIONS,
    ("push", "status"): (*AFTERWARDS, REJECTED, OUT, JSON),
    ("push", "retry"): (*AFTERWARDS, PERMANENT, JSON),
    ("push", "revert"): (*REVERT, JSON),
    ("push", "cancel"): (*AFTERWARDS, UNKNOWN),
}
#: What only one of the two has; `in_ui` and `in_command` of each option say what the other one has in its
#: place, and why.
ONE_SIDED: dict[tuple[str, ...], set[str]] = {
    # the UI's own ways: the selection of assets, the range of partitions
    ("sync",): {"only", "from", "to", "reads_only", "dry_run", "quiet", "json"},
    # what --apply says in one word
    **{("push", str(kind)): {"apply", "dry_run", "confirm", "if_plan", "json"} for kind in KINDS.values()},
    ("push", "activations"): {"apply", "confirm", "if_plan"},
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Of an account that nobody asks anything of."""
    home = tmp_path_factory.mktemp("options") / "home"
    return Settings(home, (Connection("main", "http://127.0.0.1:9/1", Secret("k")),), activations=True)


@pytest.fixture(scope="module")
def run_configs(settings: Settings) -> dict[tuple[str, ...], dict[str, Any]]:
    """The fields of the launchpad, as `COMMANDS` names them."""
    jobs = {job.name: job for job in build_definitions(settings).get_repository_def().get_all_jobs()}
    found: dict[tuple[str, ...], Any] = {
        ("push", str(kind)): jobs[f"push_{kind}"].get_node_named(f"plan_{kind}") for kind in KINDS.values()
    }
    found[("push", "activations")] = jobs["nightly_sync"].get_node_named("activations")
    schemas = {words: node.definition.config_schema for words, node in found.items()}
    schemas[("sync",)] = jobs["nightly_sync"].resource_defs["reader"].config_schema
    return {words: schema.config_type.fields for words, schema in schemas.items()}


def typed(command: Sequence[str]) -> dict[str, click.Parameter]:
    """What a command takes beside `-v`, by name."""
    return {str(each.name): each for each in parsed(command).command.params if each.name != "verbose"}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_command_line_has_what_is_declared_and_nothing_else(command: tuple[str, ...]) -> None:
    actions = typed(command)
    declared = {option.name: option for option in (*COMMANDS[command], SANDBOX) if not option.in_command}
    assert actions.keys() == declared.keys()
    for name, action in actions.items():
        option = declared[name]
        assert isinstance(action, click.Argument if option.is_positional else click.Option)
        assert action.opts == [name if option.is_positional else f"--{name.replace('_', '-')}"]
        assert action.help == option.help
        assert action.default == option.unset


def test_the_run_config_has_what_is_declared_and_nothing_else(
    run_configs: dict[tuple[str, ...], dict[str, Any]],
) -> None:
    for command, fields in run_configs.items():
        declared = {option.name: option for option in COMMANDS[command] if not option.in_ui}
        assert fields.keys() == declared.keys(), command
        for name, field in fields.items():
            assert (field.description, field.default_value) == (declared[name].help, declared[name].unset)


def test_only_these_differ_and_say_why() -> None:
    """Pushes are looked after on the command line alone."""
    for command, names in ONE_SIDED.items():
        reasons = {option.name: option.in_ui or option.in_command for option in COMMANDS[command]}
        assert {name for name, reason in reasons.items() if reason} == names
        assert all(len(reason) > 10 for reason in reasons.values() if reason)


OPTIONS = {
    (option.name, option.read): option
    for options in COMMANDS.values()
    for option in options
    if option.holds is not bool
}


@given(
    st.sampled_from(list(OPTIONS.values())), st.text() | st.from_regex(r"-?[\d:.,%= -]{1,8}", fullmatch=True)
)
def test_both_read_a_text_alike_or_refuse_it_in_the_same_words(option: Option, text: str) -> None:
    """But for a blank text, which in a run config is nothing."""
    option = replace(option, in_command="", is_positional=False, choices=())
    told = [as_(option, text or "?") for as_ in (as_typed, as_launched)]
    assert told[0] == told[1]


def as_typed(option: Option, text: str) -> Any:
    try:
        return read([option], [f"{option.flag}={text}"])[option.name]
    except click.BadParameter as refused:
        return refused.message


def read(options: Iterable[Option], typed_: Sequence[str]) -> dict[str, Any]:
    command = TypedCommand("command", params=click_parameters(options))
    return command.make_context("command", list(typed_)).params


def as_launched(option: Option, text: str) -> Any:
    try:
        return option.read_config([text] if option.holds is list else text)
    except SettingsError as refused:
        return str(refused).removeprefix(f"{option.name}: ")


@pytest.mark.parametrize(
    ("name", "given_", "read"),
    [
        ("max_requests", 5, 5),
        ("max_requests", None, None),
        ("until", "06:30", dt.time(6, 30)),
        ("until", "", None),
        ("all", True, True),
        ("accept_shrink", None, False),
    ],
)
def test_a_run_config_is_read_as_what_is_typed(name: str, given_: Any, read: Any) -> None:
    assert read_values(SYNC, {name: given_})[name] == read


@pytest.mark.parametrize(("name", "wrong"), [("max_requests", 0), ("max_requests", -1), ("until", "25:00")])
def test_what_a_run_config_cannot_say_is_named(name: str, wrong: Any) -> None:
    with pytest.raises(SettingsError, match=f"^{name}: '{wrong}' is not a "):
        read_values(SYNC, {name: wrong})


def test_the_enumerated_are_the_same_in_the_launchpad() -> None:
    (job,) = [job for job in push_jobs() if job.name == "push_tags"]
    ops = {"plan_tags": {"config": {"verify": "some"}}}
    with pytest.raises(dg.DagsterInvalidConfigError, match="some"):
        dg.validate_run_config(job, {"ops": ops, "resources": {}})


@given(st.sampled_from(list(KINDS.values())), st.data())
def test_what_was_chosen_can_be_typed_again(kind: Kind, data: st.DataObject) -> None:
    """The command that a plan ends with says the same as the one that made it."""
    options = [option for option in PUSH_OPTIONS[kind].options if not option.in_command]
    samples: dict[str, Any] = {
        "from": Path("people.csv"),
        "sql": "select 'it''s'",
        "sheet": "Regular customers",
    }
    samples |= {"map": [("email", "E-Mail"), ("list", "a list")], "ignore": ["x", "y z"]}
    samples |= {"verify": "all", "first": 3, "keep": "last", "reject_limit": 0.2}
    samples |= {"if_plan": ["0123abcd"], "account": "hill", "encoding": "mac-roman"}
    chosen = {
        option.name: data.draw(st.sampled_from([option.unset, samples.get(option.name, True)]))
        for option in options
    }
    assert read(options, typed_words(options, chosen)) == chosen


# -- what they bring about


class Opened(MarketingApiError):
    """Instead of a reader."""


@pytest.mark.parametrize(
    ("words_", "config"),
    [
        ([], {}),
        (["--max-requests", "5", "--until", "06:30"], {"max_requests": 5, "until": "06:30"}),
        (["--all", "--accept-shrink"], {"all": True, "accept_shrink": True}),
    ],
)
def test_both_open_the_same_reader(
    command: Command,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    words_: list[str],
    config: dict[str, Any],
) -> None:
    opened: list[ReadOptions] = []

    def open_reader(_: Settings, __: Iterable[Any], options: ReadOptions, **how: Any) -> NoReturn:
        opened.append(options)
        raise Opened("opened")

    monkeypatch.setattr("marketing_sync.commands.sync.open_reader", open_reader)
    monkeypatch.setattr("pipelines.resources.open_reader", open_reader)
    command("sync", "--sandbox", *words_)
    launched(settings, config)
    assert len(opened) == 2
    assert opened[0] == opened[1]
    assert opened[0].accept_shrink == ("--accept-shrink" in words_)


def test_what_the_launchpad_cannot_say_fails_the_run_in_a_sentence(settings: Settings) -> None:
    assert set(failures(launched(settings, {"until": "25:00"})).values()) == {
        "until: '25:00' is not a time of day; write it like 06:00"
    }


def launched(settings: Settings, reader: dict[str, Any]) -> dg.ExecuteInProcessResult:
    """The reads of the lists, as the UI starts them."""
    quiet = {"console": {"config": {"log_level": "CRITICAL"}}}
    config = {"loggers": quiet, "resources": {"reader": {"config": reader}}}
    job = build_definitions(settings, has_models=False).resolve_job_def("nightly_sync")
    with dg.DagsterInstance.ephemeral() as instance:
        keys = [asset_key(table) for table in lists.tables]
        how = {"run_config": config, "asset_selection": keys, "raise_on_error": False}
        return job.execute_in_process(instance=instance, **how)
