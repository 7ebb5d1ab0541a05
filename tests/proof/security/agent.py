"""An agent as a program of its own, with an engine of its own; what it is to save it reads from stdin, as JSON.

    python -m tests.proof.security.agent

Its uncaught exceptions end it with a traceback, as those of any program. It prints what it had in hand, hashed.
"""

import hashlib
import json
import os
import sys

from sqlalchemy import create_engine, make_url
from sqlalchemy.orm import Session

from oncebox_outbox import Intent, Outbox


def main() -> None:
    asked = json.load(sys.stdin)
    outbox = Outbox(tenant=asked["tenant"], principal=asked["principal"], destination="notes")
    text = asked["text"].encode() if asked.get("as_bytes") else asked["text"]
    url = make_url(os.environ["ONCEBOX_DATABASE_URL"]).set(drivername="postgresql+psycopg")
    engine = create_engine(url, connect_args={"options": "-c lock_timeout=200ms"})
    with Session(engine) as session, session.begin():
        outbox.save_note(
            session,
            Intent(run="canary", step=asked["operation_id"], purpose="be looked for"),
            operation_id=asked["operation_id"],
            folder="drafts",
            title=asked["title"],
            text=text,
        )
    print(json.dumps({"sha256": hashlib.sha256(asked["text"].encode()).hexdigest()}))


if __name__ == "__main__":
    main()
