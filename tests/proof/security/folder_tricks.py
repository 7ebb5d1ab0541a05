"""Ways to write a folder that is not, or not quite, one's own: each with what must come of it."""

from dataclasses import dataclass
from typing import Literal

# The folders of the principal who tries are `drafts`, `only-demo` and the composed `résumé`.
ACUTE = "re\u0301sume\u0301"
COMPOSED = "r\u00e9sum\u00e9"
Means = Literal["drafts", "résumé", "no folder", "not writable"]


@dataclass(frozen=True, slots=True)
class Trick:
    """`sent` as the folder. `means`: the one that it is; `no folder`: a 400; `not writable`: the 403 of all others."""

    sent: str
    means: Means


def _tricks(means: Means, *sent: str) -> list[Trick]:
    return [Trick(each, means) for each in sent]


TRICKS = [
    # The folder meant, written otherwise: an escape that is not needed, and the other form of a letter.
    *_tricks("drafts", "drafts", "%64rafts", "draft%73", "%64%72%61%66%74%73", "dra%66ts"),
    *_tricks("résumé", COMPOSED, ACUTE, "r%C3%A9sum%C3%A9", "re%CC%81sume%CC%81", "r\u00e9sume\u0301"),
    # Up, down and around.
    *_tricks("no folder", ".", "..", "./drafts", "../drafts", "drafts/..", "drafts/.", "drafts/../drafts"),
    *_tricks("no folder", "a/../../acme/drafts", "../acme/drafts", "../../drafts", "drafts/./x"),
    # The same once encoded: decoded once, and then looked at.
    *_tricks("no folder", "%2e%2e", "%2E%2E/drafts", "%2e", "drafts%2F..", "%2e%2e%2facme%2fdrafts", ".%2e/x"),
    *_tricks("no folder", "drafts%2f", "%2Fdrafts", "drafts%2F%2Fx", "drafts%00", "%00", "drafts%5C..%5Cx"),
    # Encoded twice: names with a percent sign in them, which nobody has.
    *_tricks("not writable", "%252e%252e", "%252e%252e/drafts", "drafts%252f..", "%2564rafts", "%252F", "drafts%2500"),
    # Empty segments, and slashes at the ends.
    *_tricks("no folder", "", "/", "//", "/drafts", "drafts/", "drafts//", "drafts//x", "//drafts", " ", "\t"),
    # NUL, backslash and other control characters.
    *_tricks("no folder", "\x00", "drafts\x00", "drafts\x00.md", "\\", "drafts\\", "..\\acme", "acme\\drafts"),
    *_tricks("no folder", "drafts\n", "drafts\r\nX: y", "\x1b[2Jdrafts", "drafts\x7f", "drafts\x85", "drafts%0a"),
    # Broken escapes and bytes that are no text.
    *_tricks("no folder", "%", "drafts%", "drafts%2", "%zz", "%u002e", "%ff", "%c0%ae%c0%ae", "%ed%a0%80", "%C3"),
    # Spaces and dots at the ends are letters like others, so this is another folder.
    *_tricks("not writable", "drafts ", " drafts", "drafts.", ".drafts", "drafts..", "...", "drafts%20", "drafts\u00a0"),
    # Case counts.
    *_tricks("not writable", "Drafts", "DRAFTS", "draftS", "R\u00c9SUM\u00c9", "drafts".title(), "ONLY-DEMO"),
    # Looks like it, and is not: other scripts, wide letters, joiners, a letter that only compatibility would change.
    *_tricks("not writable", "dr\u0430fts", "\u0501rafts", "\uff44\uff52\uff41\uff46\uff54\uff53", "draf\u200bts"),
    *_tricks("not writable", "drafts\u200d", "\ufeffdrafts", "\u202estfard", "draf\u00adts", "\u2215drafts", "dra\ufb00ts"),
    *_tricks("not writable", "resume", "r\u00e8sum\u00e9", "drafts\u2024", "\u2025", "\u2024\u2024", "drafts\uff0fx", "dr\u0227fts"),
    # Somebody else's, by every way to name it; what it looks like must not depend on whether it is there.
    *_tricks("not writable", "only-acme", "acme/drafts", "acme/only-acme", "demo/drafts", "demo/only-demo", "private"),
    *_tricks("not writable", "acme%2Fdrafts", "acme:drafts", "tenant=acme", "drafts?tenant=acme", "drafts#acme", "drafts;acme"),
    *_tricks("not writable", "drafts/private", "only-demo/x", "nowhere", "a/b/c/d/e/f/g/h", "~", "*", "drafts*", "%25"),
    # What other programs would make something of.
    *_tricks("not writable", "drafts' OR '1'='1", "drafts'; DROP TABLE note;--", "${HOME}", "{{7*7}}", "$(id)", "drafts\u037e"),
    *_tricks("not writable", "file:etc", "CON", "drafts:$DATA", "C:", "NULL", "None", "undefined"),
    *_tricks("no folder", "file:///etc/passwd", "https://acme/drafts", "C:\\drafts", "\\\\acme\\drafts"),
    # Longer and deeper than any.
    *_tricks("no folder", "a/b/c/d/e/f/g/h/i", "x" * 513, "drafts/" * 200 + "x", "%41" * 600, "e\u0301" * 513),
    *_tricks("not writable", "x" * 512, "drafts" + "s" * 500, "\u00e9" * 512),
]  # fmt: skip
