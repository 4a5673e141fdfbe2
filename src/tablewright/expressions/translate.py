"""Lance's dialect into DataFusion's: names resolved and quoted, strings in single quotes, the clock read once.

The translator walks over the tokens with one bit of state, *is an operand expected here?* It distinguishes a column
called ``end`` or ``from`` from the keyword, since keywords such as AND, IS, LIKE, FROM follow an operand:

1. Where an operand is expected, a word is a keyword only if it opens an operand (NOT, CASE, CAST, NULL, TRUE…), a
   function if a parenthesis follows, a typed literal if a string follows (``date '2024-01-01'``), else a name.
2. Elsewhere a word is an operator, and is passed on as it stands.
3. Names become ``"top"['child']``, which no dialect reads as table and column.
4. After AS or ``::`` comes a type: passed on as it stands, up to its closing parenthesis.
5. ``now()``, ``current_timestamp``, ``current_date``… become literals, so that all batches of a scan, on every
   worker, see one moment.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tablewright.errors import InvalidRequest
from tablewright.expressions.booleans import match_as_condition
from tablewright.expressions.lexer import Kind, Token, tokenize
from tablewright.expressions.scope import Scope

__all__ = ["Translation", "column_sql", "quote_name", "translate"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OPENERS = _words("NOT CASE NULL TRUE FALSE")
_AFTER_IS = _words("DISTINCT UNKNOWN")
_KEEPS_OPERAND = _words("NOT SIMILAR")  # first word of NOT IN, NOT LIKE, SIMILAR TO
_ENDS_OPERAND = _words("NULL TRUE FALSE UNKNOWN END")
_TYPED_LITERALS = _words("DATE TIME TIMESTAMP TIMESTAMPTZ DATETIME INTERVAL")
_UNITS = _words("YEAR QUARTER MONTH WEEK DAY DOW DOY HOUR MINUTE SECOND MILLISECOND MICROSECOND EPOCH")
_PLURAL_UNITS = frozenset(f"{unit}S" for unit in _UNITS)
_FIRST_ARGUMENT_KEYWORDS = {
    "EXTRACT": _UNITS,
    "TRIM": _words("BOTH LEADING TRAILING"),
}
_CLOCK = _words("NOW CURRENT_TIMESTAMP LOCALTIMESTAMP CURRENT_DATE TODAY CURRENT_TIME LOCALTIME")
_NANOSECOND_YEARS = range(1678, 2262)


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """DataFusion's text of an expression, and the columns and struct paths that it reads.

    ``quoted_names`` are texts in double quotes that are the name of a field as well, with its path.
    ``momentary`` says that it holds the moment at which it was translated.
    """

    sql: str
    columns: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    quoted_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    momentary: bool = False


def quote_name(name: str) -> str:
    """A column's name as DataFusion's generic dialect quotes it."""
    return '"' + name.replace('"', '""') + '"'


def column_sql(path: Sequence[str]) -> str:
    """A column, or a field inside of one, as DataFusion reads it."""
    return quote_name(path[0]) + "".join(f"[{_text(part)}]" for part in path[1:])


def translate(expression: str, scope: Scope, now_ns: int, *, condition: bool = False) -> Translation:
    """Rewrite ``expression`` for DataFusion. ``now_ns`` (since the epoch, UTC) is the moment of ``now()``.

    ``condition`` says that the expression is a filter, where ``regexp_match`` may stand for a boolean.

    >>> import pyarrow as pa
    >>> scope = Scope(pa.schema([("Id", pa.int64()), ("st", pa.struct([("a", pa.int64())]))]))
    >>> translate('id = 1 and st.a <> "x"', scope, 0).sql
    '"Id" = 1 and "st"[\\'a\\'] <> \\'x\\''
    """
    tokens = list(tokenize(expression))
    while tokens and tokens[-1].is_symbol(";"):
        tokens.pop()
    if not tokens:
        raise InvalidRequest(f"Invalid user input: the expression {expression!r} is empty. Expected: an expression")
    if any(token.is_symbol(";") for token in tokens):
        raise InvalidRequest("Invalid user input: only one expression is allowed, and text follows after a ';'.")
    writer = _Writer(match_as_condition(tokens) if condition else tokens, scope, now_ns)
    sql = " ".join(writer.run())
    paths = tuple(dict.fromkeys(writer.paths))
    texts = (token.value for token in tokens if token.double_quoted)
    return Translation(
        sql=sql,
        columns=tuple(dict.fromkeys(path[0] for path in paths)),
        paths=paths,
        quoted_names={text: path for text in texts if (path := scope.named(text)) is not None},
        momentary=writer.momentary,
    )


@dataclass(slots=True)
class _Writer:
    tokens: list[Token]
    scope: Scope
    now_ns: int
    at: int = 0
    operand: bool = True  # is an operand expected?
    depth: int = 0
    type_depth: int | None = None
    calls: list[str] = field(default_factory=list)  # the function (or "") that opened each parenthesis
    paths: list[tuple[str, ...]] = field(default_factory=list)
    momentary: bool = False

    def run(self) -> Iterator[str]:
        while (token := self._peek()) is not None:
            if self.type_depth is not None and not self._leaves_type(token):
                yield self._take_as_it_stands(token)
            elif token.kind is Kind.WORD:
                yield self._word(token)
            elif token.kind is Kind.NAME:
                yield self._name()
            elif token.kind is Kind.SYMBOL:
                yield self._symbol(token)
            else:
                yield self._literal(token)

    def _peek(self, ahead: int = 0) -> Token | None:
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    def _take_as_it_stands(self, token: Token) -> str:
        self.at += 1
        self._count_parenthesis(token)
        return _text(token.value) if token.kind is Kind.TEXT else token.value

    def _leaves_type(self, token: Token) -> bool:
        if token.is_symbol(")") and self.depth == self.type_depth:
            self.type_depth = None
            return True
        return False

    def _count_parenthesis(self, token: Token, call: str = "") -> None:
        if token.is_symbol("("):
            self.depth += 1
            self.calls.append(call)
        elif token.is_symbol(")"):
            self.depth -= 1
            if self.calls:
                self.calls.pop()

    def _literal(self, token: Token) -> str:
        self.at += 1
        self.operand = False
        return _text(token.value) if token.kind is Kind.TEXT else token.value

    def _symbol(self, token: Token) -> str:
        before = self._peek(-1) if self.at else None
        call = before.value.upper() if before is not None and before.kind is Kind.WORD else ""
        self.at += 1
        self._count_parenthesis(token, call)
        if token.value == "::":
            self.operand = False
            following = self._peek()
            if following is not None and following.kind is Kind.WORD:
                self.at += 1
                precision = " PRECISION" if self._takes("PRECISION") else ""
                return token.value + following.value + precision
        else:
            self.operand = token.value not in (")", "]")
        return token.value

    def _word(self, token: Token) -> str:
        word = token.value.upper()
        if not self.operand:
            return self._operator(word, token)
        following = self._peek(1)
        if word in _CLOCK and (moment := self._moment(word, following)) is not None:
            return moment
        if self._opens_operand(word, following):
            self.at += 1
            self.operand = word not in _ENDS_OPERAND and word not in _UNITS
            return token.value
        if word in _TYPED_LITERALS and following is not None and following.kind in (Kind.TEXT, Kind.NUMBER):
            return self._typed_literal(word, token, following)
        if following is not None and following.is_symbol("("):
            self.at += 1
            return token.value
        return self._name()

    def _operator(self, word: str, token: Token) -> str:
        self.at += 1
        if word == "AT" and self._takes("TIME", "ZONE"):
            self.operand = True
            return "AT TIME ZONE"
        if word == "AS" and self.calls and self.calls[-1] in ("CAST", "TRY_CAST"):
            self.type_depth = self.depth
        self.operand = word not in _ENDS_OPERAND and word not in _KEEPS_OPERAND
        return token.value

    def _takes(self, *words: str) -> bool:
        following = self.tokens[self.at : self.at + len(words)]
        taken = len(following) == len(words) and all(map(Token.is_word, following, words))
        self.at += len(words) if taken else 0
        return taken

    def _opens_operand(self, word: str, following: Token | None) -> bool:
        if self.calls and word in _FIRST_ARGUMENT_KEYWORDS.get(self.calls[-1], ()):
            return bool(self.tokens[self.at - 1].is_symbol("("))
        if word == "ARRAY" and following is not None and following.is_symbol("["):
            return True
        before = self.tokens[self.at - 1] if self.at else None
        if word in _AFTER_IS:  # IS [NOT] DISTINCT FROM, IS [NOT] UNKNOWN
            return before is not None and before.is_word("IS", "NOT")
        if word == "WHEN":
            return before is not None and before.is_word("CASE")
        if word == "FROM":
            return before is not None and before.is_word("DISTINCT")
        if word == "SELECT":  # a subquery, refused later with a better message than an unknown name
            return before is not None and before.is_symbol("(") and self.scope.column("select") is None
        return word in _OPENERS

    def _typed_literal(self, word: str, token: Token, following: Token) -> str:
        self.at += 2
        self.operand = False
        if word == "TIMESTAMP" and not _fits_nanoseconds(following.value):
            return f"arrow_cast({_text(following.value)}, 'Timestamp(Microsecond, None)')"
        text = _text(following.value) if following.kind is Kind.TEXT else following.value
        unit = self._peek()
        if word == "INTERVAL" and unit is not None and unit.is_word(*_UNITS, *_PLURAL_UNITS):
            self.at += 1
            text += f" {unit.value}"
        return f"{token.value} {text}"

    def _moment(self, word: str, following: Token | None) -> str | None:
        called = following is not None and following.is_symbol("(")
        if called:
            closing = self._peek(2)
            if closing is None or not closing.is_symbol(")"):
                return None
        elif word in ("NOW", "TODAY") or self.scope.column(self.tokens[self.at].value) is not None:
            return None
        self.at += 3 if called else 1
        self.operand, self.momentary = False, True
        return _moment(word, self.now_ns)

    def _name(self) -> str:
        parts, quoted = [self.tokens[self.at].value], self.tokens[self.at].kind is Kind.NAME
        self.at += 1
        while self._continues_path():
            part = self.tokens[self.at + 1]
            parts.append(part.value)
            self.at += 2
        path = self._resolved(parts, quoted)
        self.paths.append(path)
        self.operand = False
        return column_sql(path)

    def _resolved(self, parts: list[str], quoted: bool) -> tuple[str, ...]:
        """The path of a name. A single word that no column is like may be meant as a value."""
        try:
            return self.scope.resolve(parts, exact=quoted)
        except InvalidRequest as error:
            if quoted or len(parts) > 1 or "Did you mean" in str(error) or "Write " in str(error):
                raise
            hint = f"For a text write '{parts[0]}' in single quotes."
            if parts[0].lower() in ("none", "nan"):
                hint = "Write IS NULL for a missing value, isnan(…) for a float that is not a number."
            raise InvalidRequest(f"{error} {hint}") from error

    def _continues_path(self) -> bool:
        dot, part = self._peek(), self._peek(1)
        return dot is not None and dot.is_symbol(".") and part is not None and part.kind in (Kind.WORD, Kind.NAME)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _fits_nanoseconds(moment: str) -> bool:
    year = moment.strip()[:4]
    return not year.isdigit() or int(year) in _NANOSECOND_YEARS


def _moment(word: str, now_ns: int) -> str:
    seconds, nanos = divmod(now_ns, 1_000_000_000)
    moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    if word in ("CURRENT_DATE", "TODAY"):
        return f"arrow_cast('{moment:%Y-%m-%d}', 'Date32')"
    if word in ("CURRENT_TIME", "LOCALTIME"):
        return f"arrow_cast('{moment:%H:%M:%S}.{nanos:09d}', 'Time64(Nanosecond)')"
    return f"arrow_cast('{moment:%Y-%m-%dT%H:%M:%S}.{nanos:09d}', 'Timestamp(Nanosecond, None)')"
