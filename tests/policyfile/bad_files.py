"""Files that are no policy, each with the code and the place of its first problem and a part of what is said."""

from __future__ import annotations

from dataclasses import dataclass

HEAD = "version: 1\ntools: [think, search, fetch]\n"


@dataclass(frozen=True)
class BadFile:
    """`text` may be bytes; `place` is line and column of the first problem."""

    name: str
    text: str | bytes
    code: str
    place: tuple[int, int]
    says: str


def rule(text: str, rest: str = "") -> str:
    return f"{HEAD}rules:\n  first: {text}\n{rest}"


def bomb(levels: int = 20) -> str:
    """Each line holds the one before nine times."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines) + "\n"


UNREADABLE = (
    BadFile("empty", "", "MF007", (1, 1), "the file is empty"),
    BadFile("only a comment", "# a policy\n", "MF007", (1, 1), "the file is empty"),
    BadFile("only a marker", "---\n", "MF009", (2, 1), "has to be a mapping, got nothing"),
    BadFile("a list", "- version: 1\n", "MF009", (1, 1), "has to be a mapping, got a list"),
    BadFile("a text", "version 1\n", "MF009", (1, 1), "got the text 'version 1'"),
    BadFile("latin-1", "version: 1\ndescription: caf\xe9\n".encode("latin-1"), "MF003", (2, 17), "byte 0xe9 is not UTF-8"),
    BadFile("utf-16", "version: 1\n".encode("utf-16"), "MF003", (1, 1), "save it as UTF-8"),
    BadFile("cut in a character", HEAD.encode() + b"rules: {}\n# caf\xc3", "MF003", (4, 6), "byte 0xc3 is not UTF-8"),
    BadFile("a NUL", b"version: 1\n\x00", "MF003", (2, 1), "U+0000"),
    BadFile("an escape character", "version: 1\ndescription: \x1b[31mred\n", "MF003", (2, 14), "U+001B"),
    BadFile("binary", bytes(range(256)) * 8, "MF003", (3, 115), "byte 0x80"),
    BadFile("an archive", b"PK\x03\x04" + bytes(100), "MF003", (1, 3), "U+0003"),
    BadFile("huge", HEAD + "# " + "x" * 5_000_000, "MF002", (1, 1), "larger than 256 KiB"),
    BadFile("a list without an end", f"version: 1\ntools: [{'a,' * 5_000}", "MF004", (3, 1), "this is no YAML"),
    BadFile("many values", "version: 1\ntools: [" + "a," * 60_000 + "]\n", "MF002", (2, 39997), "more than 20000 values"),
    BadFile("deep lists", "[" * 100_000, "MF002", (1, 1001), "nested more than 24 deep"),
    BadFile("deep mappings", "{a: " * 50_000, "MF002", (1, 97), "nested more than 24 deep"),
    BadFile("deep blocks", "\n".join(" " * n + "a:" for n in range(600)) + " 1\n", "MF002", (25, 25), "nested more than 24 deep"),
)

NOT_OUR_YAML = (
    BadFile("a tab", "version: 1\ntools:\n\t- think\n", "MF004", (3, 1), "a tab indents this line"),
    BadFile("a tab after spaces", "version: 1\nrules:\n  a:\n  \tconditional: b\n", "MF004", (4, 3), "a tab indents this line"),
    BadFile("an open list", "version: 1\ntools: [think\nrules: {}\n", "MF004", (3, 6), "this is no YAML"),
    BadFile("an open quote", 'version: 1\ntools: ["think]\n', "MF004", (3, 1), "this is no YAML"),
    BadFile("bad indentation", "version: 1\n tools: []\n", "MF004", (2, 7), "this is no YAML"),
    BadFile("two colons", "version: 1\nrules: a: b\n", "MF004", (2, 9), "this is no YAML"),
    BadFile("a merge conflict", "<<<<<<< HEAD\nversion: 1\n=======\nversion: 2\n>>>>>>> x\n", "MF004", (2, 8), "this is no YAML"),
    BadFile("a bad directive", "%YAML 9\n---\nversion: 1\n", "MF004", (1, 8), "this is no YAML"),
    BadFile("two documents", HEAD + "rules: {}\n---\nversion: 1\n", "MF006", (4, 1), "a second document"),
    BadFile("an anchor", HEAD + "rules: &all {}\n", "MF006", (3, 8), "the anchor &all"),
    BadFile("an alias", "version: &v 1\ntools: [*v]\nrules: {}\n", "MF006", (1, 10), "the anchor &v"),
    BadFile("a merge key", HEAD + "rules:\n  a: {<<: {conditional: think}}\n", "MF006", (4, 7), "the merge key <<"),
    BadFile("a python tag", HEAD + "rules: !!python/object/apply:os.system [ls]\n", "MF006", (3, 8), "the tag"),
    BadFile("a type tag", "version: !!int 1\ntools: []\nrules: {}\n", "MF006", (1, 10), "the tag"),
    BadFile("a bomb", bomb(), "MF006", (1, 5), "the anchor &a0"),
    BadFile("a list for a key", "version: 1\n? [a, b]\n: 1\n", "MF006", (2, 3), "a list stands for a key"),
    BadFile("a key twice", HEAD + "tools: []\nrules: {}\n", "MF005", (3, 1), "tools is given twice"),
    BadFile("a rule twice", rule("{conditional: think}", "  first: {conditional: search}\n"), "MF005", (5, 3), "line 4, column 3"),
    BadFile("a parameter twice", rule("{conditional: think, reason: a, reason: b}"), "MF005", (4, 42), "reason is given twice"),
)

WRONG_WORDS = (
    BadFile("no version", "tools: []\nrules: {}\n", "MF007", (1, 1), "the key version is missing"),
    BadFile("no tools", "version: 1\nrules: {a: {conditional: b}}\n", "MF007", (1, 1), "the key tools is missing"),
    BadFile("no rules", HEAD, "MF007", (1, 1), "the key rules is missing"),
    BadFile("an unknown key", HEAD + "rulez: {}\n", "MF007", (1, 1), "did you mean rules?"),
    BadFile("another version", "version: 2\ntools: []\nrules: {}\n", "MF009", (1, 10), "version 2 is not known"),
    BadFile("a version in quotes", "version: '1'\ntools: []\nrules: {}\n", "MF009", (1, 10), "got the text '1'"),
    BadFile("tools as a text", "version: 1\ntools: think\nrules: {}\n", "MF009", (2, 8), "has to be a list of names"),
    BadFile("a number for a tool", "version: 1\ntools: [1]\nrules: {}\n", "MF009", (2, 9), 'write "1"'),
    BadFile(
        "a thousand and one tools",
        f"version: 1\ntools: [{','.join(f't{n:04}' for n in range(1001))}]\nrules: {{}}\n",
        "MF002",
        (2, 6009),
        "more than 1000 names",
    ),
    BadFile("a tool twice", "version: 1\ntools: [a, a]\nrules: {}\n", "MF009", (2, 12), "names a twice"),
    BadFile("a reserved name", "version: 1\ntools: [auto]\nrules: {}\n", "MF009", (2, 9), "the name is reserved"),
    BadFile("rules left empty", HEAD + "rules:\n", "MF009", (3, 7), "write {} for none"),
    BadFile("rules as a list", HEAD + "rules:\n  - {conditional: think}\n", "MF009", (4, 3), "under a name of its own"),
    BadFile("a rule that is a text", rule("think"), "MF009", (4, 10), "first has to be a rule"),
    BadFile("a rule of no kind", rule("{only_after: [think]}"), "MF007", (4, 3), "give it one of the keys conditional"),
    BadFile("a rule of two kinds", rule("{conditional: think, ask: think}"), "MF009", (4, 31), "conditional and ask at once"),
    BadFile("a misspelt kind", rule("{conditionl: think}"), "MF008", (4, 11), "did you mean conditional?"),
    BadFile("a misspelt parameter", rule("{conditional: think, only_afer: search}"), "MF008", (4, 31), "did you mean only_after"),
    BadFile("a parameter of Python", rule("{conditional: think, custom_checks: [x]}"), "MF008", (4, 31), "for Python only"),
    BadFile("an unknown tool", rule("{conditional: serch}"), "MF010", (4, 24), "did you mean search or fetch?"),
    BadFile("one unknown tool", rule("{conditional: think, only_after: [search, fetsh]}"), "MF010", (4, 52), "did you mean fetch?"),
    BadFile("a text for a number", rule("{conditional: think, max_invocations: many}"), "MF009", (4, 48), "whole number of at least 0"),
    BadFile("a fraction", rule("{conditional: think, max_invocations: 1.5}"), "MF009", (4, 48), "got 1.5"),
    BadFile("a huge number", rule(f"{{conditional: think, max_invocations: {'9' * 5000}}}"), "MF009", (4, 48), "no number to count with"),
    BadFile("infinity", rule("{conditional: think, max_invocations: .inf}"), "MF009", (4, 48), "no number to count with"),
    BadFile("yes for true", rule("{conditional: think, consecutive_allowed: yes}"), "MF009", (4, 52), "write true"),
    BadFile("step zero", rule("{conditional: think, force_at_step: 0}"), "MF009", (4, 46), "at least 1"),
    BadFile("min above max", rule("{conditional: think, min_invocations: 3, max_invocations: 1}"), "MF011", (4, 31), "could never end"),
    BadFile("after itself", rule("{conditional: think, only_after: think}"), "MF011", (4, 31), "in its own only_after"),
    BadFile("asking for the answer", rule("{ask: final_answer}"), "MF009", (4, 16), "never asked for"),
    BadFile("no fragment", rule("{ask: fetch, when: {amount: 100}}"), "MF009", (4, 38), "write e.g. {maximum: 100}"),
    BadFile("a misspelt fragment", rule("{ask: fetch, when: {amount: {maximun: 1}}}"), "MF008", (4, 39), "did you mean maximum"),
    BadFile(
        "a deep pattern",
        rule(f"{{ask: fetch, when: {{path: {{pattern: '{'(' * 498}{')' * 498}'}}}}}}"),
        "MF009",
        (4, 46),
        "pattern may not be",
    ),
    BadFile(
        "a pattern with huge counts",
        rule("{ask: fetch, when: {path: {pattern: 'a{99999999999}'}}}"),
        "MF009",
        (4, 46),
        "pattern may not be",
    ),
    BadFile("a list of the same", rule("{conditional: fetch, same: [x]}"), "MF009", (4, 37), "same has to be the name of a parameter"),
    BadFile("nothing the same", rule("{conditional: fetch, same: x}"), "MF011", (4, 31), "and there is none of them"),
    BadFile("no parameter", rule("{arguments: fetch, maximum: 1}"), "MF007", (4, 3), "the key param is missing"),
    BadFile("no pair", rule("{arguments: fetch, param: id, from_output: search}"), "MF009", (4, 53), "write e.g. [search, $.id]"),
    BadFile("a bad part", rule("{after_untrusted: fetch, unless_named: {fetch: {to: some}}}"), "MF011", (4, 35), "{parameter: 'all'"),
    BadFile("a question about nothing", rule("{ask: []}"), "MF009", (4, 16), "ask names no tool"),
    BadFile("no path", rule("{arguments: fetch, param: id, from_output: [search, '$[']}"), "MF011", (4, 40), "no JSONPath"),
    BadFile(
        "a pair of an unknown tool",
        rule("{arguments: fetch, param: id, from_argument: [serch, q]}"),
        "MF010",
        (4, 56),
        "did you mean search",
    ),
    BadFile("a bad pattern", rule("{ask: fetch, when: {path: {pattern: '('}}}"), "MF009", (4, 46), "pattern may not be"),
)

BAD_FILES = (*UNREADABLE, *NOT_OUR_YAML, *WRONG_WORDS)
