"""Builds the objects of `models` from JSON.

Unknown fields and unknown values of enumerations are accepted, because newer services may send them.
"""

from __future__ import annotations

import dataclasses
import keyword
import types
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

Decoder = Callable[[Any], Any]


def decode(kind: Any, value: Any) -> Any:
    return decoder(kind)(value)


@cache
def decoder(kind: Any) -> Decoder:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (types.UnionType, Union):
        return optional(arguments)
    if origin is list:
        return list_of(decoder(arguments[0]))
    if origin is dict:
        return dict_of(decoder(arguments[1]))
    if kind is datetime:
        return datetime.fromisoformat
    if dataclasses.is_dataclass(origin or kind):
        return object_of(origin or kind, arguments)
    return as_is


def as_is(value: Any) -> Any:
    return value


def optional(kinds: tuple[Any, ...]) -> Decoder:
    of_values = [kind for kind in kinds if kind is not type(None)]
    inner = decoder(of_values[0]) if len(of_values) == 1 else as_is
    return lambda value: None if value is None else inner(value)


def list_of(item: Decoder) -> Decoder:
    return lambda values: [item(value) for value in values]


def dict_of(item: Decoder) -> Decoder:
    return lambda values: {name: item(value) for name, value in values.items()}


def object_of(kind: Any, arguments: tuple[Any, ...]) -> Decoder:
    """Resolves the types of the fields with the first object, because types may refer to themselves."""

    @cache
    def fields() -> list[tuple[str, str, bool, Decoder]]:
        hints = get_type_hints(kind)
        return [
            (one.name, json_name(one.name), is_required(one), decoder(bound(hints[one.name], arguments)))
            for one in dataclasses.fields(kind)
        ]

    def build(value: dict[str, Any]) -> Any:
        found = {}
        for name, key, required, item in fields():
            given = value.get(key)
            if given is not None:
                found[name] = item(given)
            elif required:
                found[name] = None
        return kind(**found)

    return build


def bound(hint: Any, arguments: tuple[Any, ...]) -> Any:
    """Puts the type of the items into the fields of a page."""
    return hint[arguments] if arguments and getattr(hint, "__parameters__", ()) else hint


def is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def json_name(name: str) -> str:
    bare = name.removesuffix("_")
    return bare if keyword.iskeyword(bare) else name
