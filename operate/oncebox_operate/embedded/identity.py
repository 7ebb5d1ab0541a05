"""Under which user a server runs. PostgreSQL refuses root, and containers often have no other user."""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from oncebox_operate.embedded.errors import EmbeddedError

ACCOUNTS_TRIED = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class RunAs:
    """``prefix`` goes before the server's command; ``owner`` (uid, gid) gets what we create for it."""

    prefix: tuple[str, ...] = ()
    owner: tuple[int, int] | None = None

    def require_reach(self, *paths: Path) -> None:
        """Refuse, with its name, a folder on the way to one of ``paths`` that the server's user may not enter."""
        if self.owner is None:
            return
        for path in paths:
            for folder in (*reversed(path.parents), path):
                if subprocess.run([*self.prefix, "test", "-x", folder], check=False).returncode != 0:
                    raise EmbeddedError(
                        f"PostgreSQL does not run as root, and as user {self.owner[0]} it may not enter {folder}, "
                        f"which is on the way to {path}: choose another place, allow that (chmod o+x), or run "
                        "this command as an ordinary user"
                    )

    def hand_over(self, *created: Path) -> None:
        """Give the server what we have just created; never called for anything that was there before."""
        if self.owner is not None:
            for path in created:
                os.chown(path, *self.owner)


def identity_for(cluster: Path, *, user_namespaces: bool = True) -> RunAs:
    """Who is to run a server on ``cluster``, a folder that may not exist yet.

    An ordinary user: the same user. Root: as another user of a user namespace, where root's files
    look like that user's and nothing changes its owner; where the kernel or the container forbids
    that (or ``user_namespaces`` is false), or where the cluster already belongs to another user,
    as a real other user.
    """
    if os.geteuid() != 0:
        return RunAs()
    if cluster.exists():
        status = cluster.stat()
        if status.st_uid != 0:
            return _as_user(status.st_uid, status.st_gid)
    account = _account()
    if user_namespaces and (prefix := _in_user_namespace(account)) is not None:
        return RunAs(prefix=prefix)
    if cluster.exists():
        raise EmbeddedError(
            f"{cluster} belongs to root, PostgreSQL does not run as root, and user namespaces are not allowed "
            f"here: chown -R {account.pw_name} '{cluster.parent}', or run this command as an ordinary user"
        )
    return _as_user(account.pw_uid, account.pw_gid)


def _account() -> pwd.struct_passwd:
    # It must have an entry in passwd: initdb looks its own user up.
    for name in ACCOUNTS_TRIED:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    for account in pwd.getpwall():
        if account.pw_uid != 0:
            return account
    raise EmbeddedError(
        "PostgreSQL does not run as root, and this system has no other user: "
        "add one (useradd postgres), or run this command as an ordinary user"
    )


def _in_user_namespace(account: pwd.struct_passwd) -> tuple[str, ...] | None:
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    ids = (f"--map-user={account.pw_uid}", f"--map-group={account.pw_gid}")
    prefix = (unshare, "--user", *ids, "--")
    tried = subprocess.run([*prefix, "true"], capture_output=True, check=False)
    return prefix if tried.returncode == 0 else None


def _as_user(uid: int, gid: int) -> RunAs:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise EmbeddedError(
            "PostgreSQL does not run as root, user namespaces are not allowed here and setpriv is missing: "
            "install util-linux, or run this command as an ordinary user"
        )
    prefix = (setpriv, f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--")
    return RunAs(prefix=prefix, owner=(uid, gid))
