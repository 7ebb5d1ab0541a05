"""New versions of a note, and reading them."""

from tests.notes.running import RunningService, Sender, item, moment


def test_a_revision_is_a_new_version_and_the_old_one_can_be_read(researcher: Sender) -> None:
    created = researcher.create("note-7")
    location, tag = created.headers["location"], created.headers["etag"]
    note_id = created.json()["note"]["id"]
    revised = researcher.revise(note_id, "note-7-edit", tag)
    assert (revised.status_code, revised.json()["note"]["version"]) == (200, 2)
    assert revised.headers["etag"] != tag
    now = researcher.http.get(location)
    assert (now.json()["text"], now.headers["etag"]) == ("Changed.", revised.headers["etag"])
    before = researcher.http.get(f"{location}?version=1")
    assert (before.json()["text"], before.headers["etag"]) == ("Reef B recovers faster.", tag)
    assert researcher.http.get(f"{location}?version=3").status_code == 404


def test_a_revision_again_is_the_same_answer(service: RunningService, researcher: Sender) -> None:
    """The replay comes before the precondition, which holds no longer."""
    created = researcher.create("note-7")
    note_id, tag = created.json()["note"]["id"], created.headers["etag"]
    first, second = (researcher.revise(note_id, "edit", tag) for _ in range(2))
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert second.headers["idempotent-replayed"] == "true"
    assert researcher.revise(note_id, "edit", tag, text="Other.").status_code == 422
    assert service.rows("SELECT count(*) FROM note_version") == [(2,)]


def test_a_revision_of_an_older_version_fails_and_leaves_the_key_free(researcher: Sender) -> None:
    """R24: nothing is recorded, so that the receiver's state decides the next time too."""
    created = researcher.create("note-7")
    note_id, tag = created.json()["note"]["id"], created.headers["etag"]
    second = researcher.revise(note_id, "edit-1", tag)
    assert researcher.revise(note_id, "edit-2", tag).json()["code"] == "precondition_failed"
    assert researcher.status("edit-2")["state"] == "not_found"
    assert researcher.revise(note_id, "edit-2", second.headers["etag"]).json()["note"]["version"] == 3


def test_a_revision_needs_exactly_one_strong_tag(researcher: Sender) -> None:
    created = researcher.create("note-7")
    note_id, tag = created.json()["note"]["id"], created.headers["etag"]
    assert researcher.revise(note_id, "edit", None).status_code == 428
    for wrong in ("*", f"W/{tag}", f"{tag}, {tag}", tag.strip('"')):
        assert researcher.revise(note_id, "edit", wrong).json()["code"] == "invalid_argument"


def test_a_note_that_may_not_be_seen_and_one_that_is_not_there_answer_alike(
    service: RunningService, researcher: Sender
) -> None:
    created = researcher.create("note-7")
    note_id, tag = created.json()["note"]["id"], created.headers["etag"]
    absent = researcher.revise("00000000-0000-7000-8000-000000000000", "edit", tag)
    for name, tenant in (("writer", "demo"), ("researcher", "other")):
        stranger = service.principal(name, tenant=tenant, folder="elsewhere")
        refused = stranger.revise(note_id, "edit", tag)
        assert (refused.status_code, refused.content) == (404, absent.content)
        assert stranger.http.get(f"/v1/notes/{note_id}").status_code == 404
    assert researcher.http.get("/v1/notes/no-id").status_code == 404


def test_a_colleague_with_a_grant_may_revise_and_both_are_in_the_audit(
    service: RunningService, researcher: Sender
) -> None:
    created = researcher.create("note-7")
    colleague = service.principal("writer")
    note_id, tag = created.json()["note"]["id"], created.headers["etag"]
    assert colleague.revise(note_id, "edit", tag).status_code == 200
    authors = service.rows("SELECT version, principal FROM note_version ORDER BY version")
    assert authors == [(1, "researcher"), (2, "writer")]


def test_revisions_in_a_batch_are_hashed_like_single_ones(researcher: Sender) -> None:
    note = researcher.create("note-7").json()["note"]
    wanted = {
        "note_id": note["id"],
        "if_match": note["etag"],
        "title": "Finding 7",
        "text": "Changed.",
    }
    made = researcher.batch(item("edit", kind="note.revise", arguments=wanted))[0]
    assert (made["status"], made["receipt"]["note"]["version"]) == (200, 2)
    single = researcher.revise(note["id"], "edit", f'"{note["etag"]}"')
    assert single.json() == made["receipt"]
    assert single.headers["idempotent-replayed"] == "true"


def test_a_batch_revises_a_note_once_and_leaves_the_second_for_later(researcher: Sender) -> None:
    """Whether the second may execute depends on the first, so it is told to come back."""
    note = researcher.create("note-7").json()["note"]

    def edit(key: str, tag: str) -> dict[str, object]:
        wanted = {"note_id": note["id"], "if_match": tag, "title": key, "text": "Changed."}
        return item(key, kind="note.revise", arguments=wanted)

    first, second, missing = researcher.batch(
        edit("edit-1", note["etag"]),
        edit("edit-2", note["etag"]),
        item(
            "edit-3",
            kind="note.revise",
            arguments={"note_id": note["id"], "title": "a", "text": "b"},
        ),
    )
    assert (first["status"], second["problem"]["code"]) == (200, "busy")
    assert missing["problem"]["code"] == "precondition_required"
    again = researcher.batch(edit("edit-1", note["etag"]), edit("edit-2", note["etag"]))
    assert [found["status"] for found in again] == [200, 412]


def test_the_note_of_an_operation_is_found_by_its_key(service: RunningService, researcher: Sender) -> None:
    created = researcher.create("note-7").json()
    found = researcher.http.get("/v1/notes", params={"operation": "note-7"})
    assert found.json() == {"notes": [created["note"]]}
    assert researcher.http.get("/v1/notes", params={"operation": "note-8"}).json() == {"notes": []}
    for query in ({}, {"operation": " "}, {"operation": "a", "text": "b"}):
        assert researcher.http.get("/v1/notes", params=query).status_code == 400


def test_a_version_must_be_a_number(researcher: Sender) -> None:
    location = researcher.create("note-7", deadline=moment(60)).headers["location"]
    for version in ("0", "-1", "x", "1.0", "", "9" * 30):
        assert researcher.http.get(location, params={"version": version}).status_code == 400
