"""What every setting is here and where that comes from: pure. No secret is said but on demand."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from oncebox_operate.settings_catalogue import PREFIX, Secrecy, Setting

_HIDDEN = "***"


class Origin(StrEnum):
    """Where a value comes from; the first of these that has one."""

    OPTION = "option"
    VARIABLE = "variable"
    STATE_FILE = "state file"
    DEFAULT = "default"
    UNSET = "unset"


@dataclass(frozen=True, slots=True)
class Given:
    """A setting as it is here. value: as it is, secrets too; None when there is none."""

    setting: Setting
    value: str | None
    origin: Origin

    @property
    def secret(self) -> bool:
        """Whether the value must not be printed as it is."""
        return self.value is not None and self.shown != self.value

    @property
    def shown(self) -> str | None:
        """The value as anybody may see it."""
        if self.value is None:
            return None
        match self.setting.secrecy:
            case Secrecy.OPEN:
                return self.value
            case Secrecy.URL:
                return without_password(self.value)
            case Secrecy.SECRET:
                return "set"


def given(
    settings: Sequence[Setting],
    environment: Mapping[str, str],
    options: Mapping[str, str | None],
    state_file: Mapping[str, str],
) -> list[Given]:
    """Each setting with its value.

    options: what the command line says, by variable; where it says nothing, the library puts the variable itself.
    state_file: what a running `up` says, which is among the variables already where none of them was set.
    """
    return [_given(setting, environment, options, state_file) for setting in settings]


def _given(
    setting: Setting,
    environment: Mapping[str, str],
    options: Mapping[str, str | None],
    state_file: Mapping[str, str],
) -> Given:
    option, variable = options.get(setting.variable), environment.get(setting.variable)
    if option is not None and option != variable:
        return Given(setting, option, Origin.OPTION)
    if variable is None:
        return Given(setting, setting.default, Origin.UNSET if setting.default is None else Origin.DEFAULT)
    told = state_file.get(setting.variable)
    return Given(setting, variable, Origin.STATE_FILE if variable == told else Origin.VARIABLE)


def unread(environment: Mapping[str, str], known: Collection[str]) -> dict[str, str | None]:
    """Variables of ours that nothing reads, each with the name that may have been meant."""
    # Those of the note service are another party's; those of the tests are nobody's here.
    theirs = (f"{PREFIX}NOTES_", f"{PREFIX}TEST_")
    return {
        name: next(iter(difflib.get_close_matches(name, known, n=1)), None)
        for name in sorted(environment)
        if name.startswith(PREFIX) and not name.startswith(theirs) and name not in known
    }


def without_password(url: str) -> str:
    """A URL with *** for each password in it. What is no URL may be anything, and is not shown."""
    try:
        parts = urlsplit(url)
        login, at, place = parts.netloc.rpartition("@")
        user, colon, _ = login.partition(":")
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return _HIDDEN
    if not parts.scheme:
        return _HIDDEN
    hidden = [(name, _HIDDEN if "password" in name.lower() else value) for name, value in query]
    netloc = f"{user}:{_HIDDEN}@{place}" if colon else f"{login}{at}{place}"
    # An unchanged query stays as it was written.
    shown_query = urlencode(hidden, safe="*") if hidden != query else parts.query
    if colon or hidden != query:
        return urlunsplit((parts.scheme, netloc, parts.path, shown_query, parts.fragment))
    return url
