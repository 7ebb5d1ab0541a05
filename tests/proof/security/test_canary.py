"""A canary token and canary texts pass every process; then no log tells them, whatever went wrong meanwhile.

First it is shown that each process had them in hand. What is scanned is scanned a second time with the canaries planted
in it: a scan that finds nothing there would prove nothing.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Collection, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from oncebox_operate.embedded import EmbeddedPostgres
from tests.proof.security import echoing, provoking
from tests.proof.security.aviary import SEND, Aviary
from tests.proof.security.canary import Canary, secret_of
from tests.proof.security.scanner import Find, Scanner
from tests.proof.security.watching import Watch
from tests.support.polling import eventually
from tests.support.processes import Processes

RABBITMQ_LOGS = Path("/var/log/rabbitmq")


@pytest.fixture
def aviary(tmp_path: Path, broker_url: str, queue_prefix: str, processes: Processes) -> Generator[Aviary]:
    for file in rabbitmq_logs():
        (tmp_path / f"{file.name}.before").write_text(str(file.stat().st_size), encoding="ascii")
    with EmbeddedPostgres(tmp_path / "postgres") as server:
        aviary = Aviary(server, broker_url, queue_prefix, tmp_path, processes)
        aviary.type("migrate", "up")
        with aviary:
            made = aviary.type(
                "token", "create", "--tenant", "demo", "--principal", "canary-worker", "--delegate"
            )
            # The command had it in hand: it is what it printed.
            aviary.token = made.strip()
            yield aviary


@pytest.mark.timeout(300)
def test_no_log_tells_a_token_or_a_text(aviary: Aviary, tmp_path: Path) -> None:
    by_agent, by_command = Canary.hatch(), Canary.hatch()
    with Watch(aviary.server.url()) as watch:
        passes_every_process(aviary, by_agent, by_command)
        in_trouble = provoking.everything(aviary, by_agent)
        provoking.a_write_that_lasts(aviary, in_trouble, lambda: any(map(is_the_write, watch.queries)))
        ask_everything(aviary)
        left_at_broker = "\n".join(aviary.at_broker())
        metrics = scrape(aviary)
        stop(aviary)

    scanner = Scanner(
        {
            "the worker's token": secret_of(aviary.token),
            "the database's password": str(urlsplit(aviary.places.sender_database).password),
            **by_agent.named("the agent's note"),
            **by_command.named("the command's note"),
            **in_trouble.named("the note in trouble"),
        }
    )
    logs = logs_of(aviary, tmp_path)
    finds = scanner.look_at_files(logs)
    for where, told in {
        **aviary.outputs,
        "what is left at the broker": left_at_broker,
        **metrics,
        "pg_stat_activity": "\n".join(watch.queries),
    }.items():
        finds += scanner.look_at(where, told)
    finds += scanner.look_at("command lines", b"\n".join(watch.command_lines))
    finds += [find for find in scanner.look_at("show", aviary.evidence) if "note" not in find.secret]
    assert finds == [], "\n".join(map(str, finds))

    assert "Authorization: Bearer (our token)" in aviary.evidence
    assert watch.looks > 50
    assert any(b"oncebox_operate.main worker" in line for line in watch.command_lines)
    assert any(map(is_the_write, watch.queries))
    assert_right_logs(aviary, logs)
    assert_planted_are_found(
        scanner, logs, tmp_path / "planted", [aviary.token, by_agent.text, in_trouble.text]
    )


def is_the_write(query: str) -> bool:
    """The statement by which the note service writes notes."""
    return query.lstrip().startswith("WITH item AS") and "INSERT INTO operation_record" in query


def passes_every_process(aviary: Aviary, by_agent: Canary, by_command: Canary) -> None:
    """Both canaries pass agent or command, sender's database, relay, broker, worker, note service and its database, and
    are seen there."""
    (first,) = aviary.open()
    # Stopped again, so that messages stay at the broker for us to see; the relay publishes once a receiver was seen.
    assert first.terminate() == 0
    agent = aviary.agent("from-agent", by_agent)
    assert json.loads(agent.stdout)["sha256"] == hashlib.sha256(by_agent.text.encode()).hexdigest()
    aviary.type(
        *("enqueue", "--operation-id", "from-command", "--folder", "drafts", "--text", "-"),
        stdin=by_command.text,
        ONCEBOX_TITLE=by_command.title,
    )
    notes = {"from-agent": by_agent, "from-command": by_command}
    for key, canary in notes.items():
        arguments = aviary.sender.value(
            "SELECT arguments FROM oncebox.operation WHERE operation_id = %s", key
        )
        assert json.loads(arguments)["text"] == canary.text

    ids = {str(id) for (id,) in aviary.sender.rows("SELECT id FROM oncebox.operation")}
    messages = eventually(lambda: _with_all(ids, aviary.at_broker()), what="both were handed to the broker")
    assert aviary.in_environment_of(aviary.relay)["ONCEBOX_TOKEN"] == aviary.token
    aviary.outputs["messages at the broker"] = str(messages)

    # A receiver that repeats all that it was sent, headers and text, as debug pages do; first as problems, then worse.
    for reply in echoing.echoes(aviary.token, by_agent):
        aviary.proxy.answer(reply, match=SEND)
    (worker,) = aviary.start_workers()
    assert aviary.in_environment_of(worker)["ONCEBOX_TOKEN"] == aviary.token
    for key, canary in notes.items():
        settled = aviary.wait(key, timeout=40)
        assert settled.state == "saved", settled.say
        assert aviary.notes.text_of(key) == (canary.title, canary.text)
    sent = [exchange for exchange in aviary.proxy.requests(SEND) if exchange.forwarded]
    assert {exchange.headers["authorization"] for exchange in sent} == {f"Bearer {aviary.token}"}
    texts = {item["arguments"]["text"] for exchange in sent for item in json.loads(exchange.body)["items"]}
    assert texts == {by_agent.text, by_command.text}
    verified = json.loads(aviary.type("verify", "--deep", "--json"))
    assert verified["saved"] == 2
    read = [json.loads(found.reply_body or b"")["text"] for found in aviary.proxy.requests("GET /v1/notes/*")]
    assert sorted(read) == sorted(texts), "the command read both texts"


def _with_all(ids: Collection[str], messages: list[str]) -> str | None:
    """The messages, once each id is in one of them."""
    told = "\n".join(messages)
    return told if all(id in told for id in ids) else None


def ask_everything(aviary: Aviary) -> None:
    """All that the command can say of them. `show` has the receiver's own words on one operation, which may quote a
    text to those who may see it, and never our token."""
    commands = [
        *(f"{name} --json" for name in ("config", "env", "list", "lag", "doctor", "verify --deep")),
        *("config", "list", "status from-agent"),
    ]
    with ThreadPoolExecutor(3) as pool:
        for asked in [pool.submit(aviary.type, *command.split(), expected=(0, 8)) for command in commands]:
            asked.result()
    aviary.evidence = "".join(aviary.type("show", key, "--json") for key in ("from-agent", "from-command"))


def scrape(aviary: Aviary) -> dict[str, str]:
    """The metrics of the relay and of the note service."""
    address = aviary.relay.wait_for_log(r"http://127\.0\.0\.1:\d+/metrics")[0]
    scraped = {"relay's metrics": httpx2.get(address).text}
    scraped["note service's metrics"] = httpx2.get(f"{aviary.notes_url}/metrics").text
    assert "outbox_entries{" in scraped["relay's metrics"]
    assert "notes_requests_total" in scraped["note service's metrics"]
    return scraped


def stop(aviary: Aviary) -> None:
    """End everything in order: what a process says at its end is in its log, too."""
    for process in aviary.processes.started:
        if process.returncode() is None:
            process.terminate(timeout=30)


def logs_of(aviary: Aviary, folder: Path) -> dict[str, Path]:
    """Every file that a process wrote for people: by name."""
    logs = {file.name: file for file in folder.iterdir() if file.suffix in (".log", ".jsonl")}
    logs["PostgreSQL's log"] = aviary.server.log
    for file in rabbitmq_logs():
        before = int((folder / f"{file.name}.before").read_text(encoding="ascii"))
        new = folder / f"{file.name}.new"
        new.write_bytes(file.read_bytes()[before:])
        logs[f"RabbitMQ's {file.name}"] = new
    return logs


def rabbitmq_logs() -> list[Path]:
    """Only where the broker runs here, and we may read them."""
    return list(RABBITMQ_LOGS.glob("*.log")) if os.access(RABBITMQ_LOGS, os.R_OK) else []


def assert_right_logs(aviary: Aviary, logs: Mapping[str, Path]) -> None:
    """They are those of the processes that had the canaries, and they tell of the trouble."""
    call = next(exchange for exchange in aviary.proxy.requests(SEND) if exchange.status == 200).headers[
        "call-id"
    ]
    told = {name: file.read_text(encoding="utf-8", errors="replace") for name, file in logs.items()}
    assert call in told["access.jsonl"]
    assert call in told["worker-2.log"]
    assert "chunk_published" in told["relay.log"]
    for name, words in provoking.TOLD.items():
        for word in words:
            assert word in told[name], (name, word)


def assert_planted_are_found(
    scanner: Scanner, logs: Mapping[str, Path], folder: Path, planted: list[str]
) -> None:
    """The same logs with a canary in their middle, as a JSON logger would have written it."""
    folder.mkdir()
    for name, file in logs.items():
        copy = folder / file.name
        shutil.copyfile(file, copy)
        data = copy.read_bytes()
        for number, secret in enumerate(planted):
            at = data.find(b"\n", len(data) * (number + 1) // 4) + 1
            line = json.dumps({"event": "log", "message": f"sent {secret}"}).encode() + b"\n"
            data = data[:at] + line + data[at:]
        copy.write_bytes(data)
        found: list[Find] = scanner.look_at(name, copy.read_bytes())
        assert len({find.secret for find in found}) == len(planted), name
