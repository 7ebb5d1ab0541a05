"""A whole installation for two tenants: one outbox, one relay, and workers that act for whom their token lets them."""

from sqlalchemy.orm import Session

from oncebox_notes import administration
from oncebox_outbox import Enqueued, Intent, OperationStatus, Outbox
from tests.acceptance.town import Town
from tests.proof.security.house import PRINCIPALS, TENANTS

OUTBOXES = [Outbox(tenant=tenant, principal=name) for tenant in TENANTS for name in PRINCIPALS]
DEMO = Outbox(tenant="demo", principal="researcher")


class Street(Town):
    """A town with both tenants, whose worker may act in some of them."""

    def token_for(self, *tenants: str) -> str:
        with self._operator() as connection:
            return str(administration.create_token(connection, "demo", "worker", list(tenants))["token"])

    def grant_to(self, outbox: Outbox, folder: str = "drafts") -> None:
        with self._operator() as connection:
            administration.add_grant(connection, outbox.tenant, outbox.principal, folder)

    def revoke_from(self, outbox: Outbox, folder: str = "drafts") -> None:
        with self._operator() as connection:
            administration.revoke_grant(connection, outbox.tenant, outbox.principal, folder)

    def wish(self, outbox: Outbox, key: str, *, folder: str = "drafts", text: str | None = None) -> Enqueued:
        """Commit the wish of one party; its text is nobody else's."""
        why = Intent(run="street", step=key, purpose="keep it apart")
        with Session(self.engine) as session, session.begin():
            return outbox.save_note(
                session, why, operation_id=key, folder=folder, title="T", text=text or own_text(outbox, key)
            )

    def settled(self, outbox: Outbox, key: str) -> OperationStatus:
        return outbox.wait(self.engine, key, timeout=60)

    def known(self, outbox: Outbox, key: str) -> OperationStatus:
        with Session(self.engine) as session:
            return outbox.status(session, key)


def own_text(outbox: Outbox, key: str) -> str:
    return f"{key}: only {outbox.tenant}/{outbox.principal} may read this."
