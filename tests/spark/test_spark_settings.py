"""Settings of Spark and of its residents, from the worker file."""

from __future__ import annotations

import os

import pytest

from headgate.api.errors import ConfigError
from headgate.spark.settings import DEFAULTS, ResidentSettings, on_this_machine, settings_of, ui_host

HERE = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("master", "cores", "tries"),
    [
        ("local", 1, 1),
        ("local[*]", HERE, 1),
        ("local[3]", 3, 1),
        ("local[2,4]", 2, 4),
        ("local[2, 4]", 2, 4),
        ("local[2 ,4]", 2, 4),
        ("local[*,2]", HERE, 2),
    ],
)
def test_the_slots_of_residents_come_on_top_of_those_that_a_local_master_names(
    master: str, cores: int, tries: int
) -> None:
    spark, residents = settings_of({"spark.master": master})
    assert on_this_machine(master)
    assert spark["spark.master"] == f"local[{cores + 4 * cores},{tries}]"
    assert spark["spark.default.parallelism"] == str(cores), "jobs are cut as if there were no residents"
    assert spark["spark.python.daemon.module"] == "headgate.spark.daemon"
    assert (residents.least, residents.most, residents.quick) == (1, 4 * cores, cores)


def test_without_a_master_all_cores_are_used_and_tasks_that_fail_are_repeated() -> None:
    spark, residents = settings_of({})
    assert spark["spark.master"] == f"local[{5 * HERE},4]"
    assert residents == ResidentSettings(least=1, most=4 * HERE, quick=HERE, idle_s=60.0)


def test_the_most_are_as_many_as_the_file_says() -> None:
    spark, residents = settings_of({"spark.master": "local[4]", "headgate.residents.max": "2"})
    assert spark["spark.master"] == "local[6,1]"
    assert (residents.most, residents.quick) == (2, 2)


def test_as_many_stay_as_the_file_says_although_there_are_few_cores() -> None:
    _, residents = settings_of({"spark.master": "local[1]", "headgate.residents.min": "10"})
    assert (residents.least, residents.most) == (10, 10)


def test_the_parallelism_of_the_file_holds() -> None:
    spark, _ = settings_of({"spark.master": "local[2]", "spark.default.parallelism": "7"})
    assert spark["spark.default.parallelism"] == "7"


CLUSTERS = ["spark://there:7077", "yarn", "k8s://https://there", "local-cluster[2,1,1024]", "mesos://x", "localhost"]


@pytest.mark.parametrize("master", CLUSTERS)
def test_a_cluster_is_left_as_it_is(master: str) -> None:
    spark, residents = settings_of({"spark.master": master})
    assert not on_this_machine(master)
    assert spark["spark.master"] == master
    assert "spark.default.parallelism" not in spark
    assert "spark.python.daemon.module" not in spark, "executors elsewhere may have another Headgate, or none yet"
    assert (residents.most, residents.quick) == (0, 0), "not known before it is there"


@pytest.mark.parametrize("master", CLUSTERS)
def test_executors_elsewhere_find_the_driver(master: str) -> None:
    assert "spark.driver.host" not in settings_of({"spark.master": master})[0]
    given = settings_of({"spark.master": master, "spark.driver.host": "here"})[0]
    assert given["spark.driver.host"] == "here"


def test_on_this_machine_nobody_calls_from_elsewhere() -> None:
    assert settings_of({"spark.master": "local"})[0]["spark.driver.host"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("given", "slots", "most", "quick"),
    [
        (ResidentSettings(), 16, 8, 8),
        (ResidentSettings(), 1, 1, 1),
        (ResidentSettings(), 0, 1, 1),
        (ResidentSettings(), 3, 1, 1),
        (ResidentSettings(most=3), 16, 3, 3),
        (ResidentSettings(most=12), 16, 12, 8),
        (ResidentSettings(least=5), 4, 5, 2),
        (ResidentSettings(most=8, quick=2), 2, 8, 2),
    ],
)
def test_half_of_the_slots_of_a_cluster_are_left_to_jobs_unless_the_file_says_otherwise(
    given: ResidentSettings, slots: int, most: int, quick: int
) -> None:
    made = given.on(slots)
    assert (made.most, made.quick) == (most, quick)
    assert (made.least, made.idle_s) == (given.least, given.idle_s)


def test_a_cluster_that_grows_has_room_for_more() -> None:
    settings = ResidentSettings()
    assert [settings.on(slots).most for slots in (2, 4, 32)] == [1, 2, 16]


@pytest.mark.parametrize("key", ["spark.network.crypto.enabled", "spark.ssl.enabled", "spark.ssl.rpc.enabled"])
@pytest.mark.parametrize(("value", "encrypted"), [("true", True), ("TRUE", True), ("false", False), ("no", False)])
def test_residents_are_encrypted_where_spark_is(key: str, value: str, encrypted: bool) -> None:
    assert settings_of({key: value})[1].encrypted is encrypted


def test_nothing_is_encrypted_unless_the_file_says_so() -> None:
    assert not settings_of({"spark.authenticate": "true"})[1].encrypted


def test_every_key_of_residents() -> None:
    _, residents = settings_of(
        {
            "headgate.residents.min": "2",
            "headgate.residents.max": "5",
            "headgate.residents.idle.ms": "1500",
            "headgate.residents.host": "driver.example",
            "headgate.residents.bind.host": "0.0.0.0",
            "headgate.residents.port": "7700",
            "spark.master": "local[2]",
        }
    )
    assert residents == ResidentSettings(2, 5, 2, 1.5, "driver.example", "0.0.0.0", 7700)


@pytest.mark.parametrize("port", ["0", "1", "65535"])
def test_ports(port: str) -> None:
    assert settings_of({"headgate.residents.port": port})[1].port == int(port)


BAD = [
    ("headgate.residents.min", "-1", "at least 0"),
    ("headgate.residents.min", "many", "Not a number of type INT"),
    ("headgate.residents.max", "-1", "at least 0"),
    ("headgate.residents.max", "1.5", "Not a number of type INT"),
    ("headgate.residents.idle.ms", "0", "at least 1"),
    ("headgate.residents.idle.ms", "1s", "Not a number of type LONG"),
    ("headgate.residents.port", "-1", "at least 0"),
    ("headgate.residents.port", "65536", "at most 65535"),
    ("headgate.residents.port", "700000", "at most 65535"),
    ("headgate.residents.port", "http", "Not a number of type INT"),
    ("spark.master", "local[0]", "core"),
]


@pytest.mark.parametrize(("key", "value", "reason"), BAD)
def test_what_is_wrong_is_said_with_its_key(key: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as raised:
        settings_of({key: value})
    assert key in str(raised.value)
    assert value in str(raised.value)


def test_no_more_can_stay_than_there_may_be() -> None:
    with pytest.raises(ConfigError, match=r"5 for configuration headgate.residents.min.*at most.*2"):
        settings_of({"headgate.residents.min": "5", "headgate.residents.max": "2"})


def test_spark_gets_its_own_keys_and_no_others() -> None:
    raw = {"spark.driver.memory": "1g", "spark.some.key": "x", "bootstrap.servers": "b", "headgate.residents.max": "1"}
    spark, _ = settings_of(raw)
    assert (spark["spark.driver.memory"], spark["spark.some.key"]) == ("1g", "x")
    assert all(key.startswith("spark.") for key in spark)
    assert set(DEFAULTS) <= set(spark)
    assert DEFAULTS["spark.driver.memory"] == "2g", "defaults are not touched"


# --- Spark's UI -------------------------------------------------------------------------------------------------------


def ui(**raw: str) -> str | None:
    given = {key.replace("_", "."): value for key, value in raw.items()}
    return ui_host(given, settings_of(given)[0])


def test_there_is_no_ui_unless_it_is_asked_for_and_then_for_this_machine_alone() -> None:
    assert ui() is None
    assert ui(spark_ui_enabled="false", headgate_spark_ui_host="0.0.0.0") is None
    assert ui(spark_ui_enabled=" TRUE ") == "127.0.0.1"
    assert ui(spark_ui_enabled="true", headgate_spark_ui_host="localhost") == "localhost"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "worker.example", ""])
def test_beyond_this_machine_the_ui_asks_who_it_is(host: str) -> None:
    with pytest.raises(ConfigError, match=r"headgate\.spark\.ui\.host.*set spark\.ui\.filters"):
        ui(spark_ui_enabled="true", headgate_spark_ui_host=host, spark_ui_filters=" ")
    assert ui(spark_ui_enabled="true", headgate_spark_ui_host=host, spark_ui_filters="acme.Login") == host


def test_on_a_cluster_the_ui_does_not_take_the_drivers_address() -> None:
    with pytest.raises(ConfigError, match=r"spark\.ui\.enabled.*spark\.driver\.host"):
        ui(spark_master="yarn", spark_ui_enabled="true")
    assert ui(spark_master="yarn", spark_ui_enabled="true", spark_driver_host="here") == "127.0.0.1"
