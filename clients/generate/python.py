"""Writes the generated modules of the Python client."""

import keyword
import textwrap

from api import Api, Operation, Parameter, Schema, Shape, listed_item, name_of, nullable, text

HEADER = '"""{}. Written by `python3 clients/generate`: do not edit."""\n\nfrom __future__ import annotations\n\n'
WIDTH = 116


def files(api: Api) -> dict[str, str]:
    return {
        "codes.py": codes(api),
        "enums.py": enums(api),
        "event_data.py": event_data(api),
        "models.py": models(api),
        "params.py": params(api),
        "operations.py": operations(api, "Operations", "def", "", "Iterator", "Page"),
        "async_operations.py": operations(api, "AsyncOperations", "async def", "await ", "AsyncIterator", "Page"),
    }


def codes(api: Api) -> str:
    return HEADER.format("Codes of errors") + "from typing import Literal\n\n" + literal("ErrorCode", api.codes)


def enums(api: Api) -> str:
    names = sorted({*api.outputs(), *api.inputs()})
    found = [(name, api.schemas[name]) for name in names if "enum" in api.schemas[name]]
    code = HEADER.format("Enumerations. Newer services may send further values") + "from typing import Literal\n\n"
    return code + "\n".join(comment(schema) + literal(name, schema["enum"]) for name, schema in found)


def comment(schema: Schema) -> str:
    words = text(schema.get("description", ""))
    return "".join(f"# {line}\n" for line in textwrap.wrap(words, WIDTH - 2))


def literal(name: str, values: list[str]) -> str:
    lines = "".join(f'    "{value}",\n' for value in values)
    return f"{name} = Literal[\n{lines}]\n"


def union(kinds: list[str]) -> str:
    return " | ".join(dict.fromkeys(kinds))


class Types:
    """Type expressions for one direction: of answers, or of requests."""

    def __init__(self, api: Api, *, inputs: bool, prefix: str = "") -> None:
        self.api, self.inputs, self.prefix = api, inputs, prefix

    def of(self, schema: Schema) -> str:
        inner, can_be_null = nullable(schema)
        kind = self.of_values(inner)
        return f"{kind} | None" if can_be_null and not kind.endswith("| None") and kind != "Any" else kind

    def of_values(self, schema: Schema) -> str:
        if item := listed_item(schema):
            return f"Page[{self.of(item)}]"
        if "$ref" in schema:
            return self.of_reference(name_of(schema))
        if "enum" in schema:
            return "Literal[" + ", ".join(f'"{value}"' for value in schema["enum"]) + "]"
        if "oneOf" in schema:
            return union([self.of(one) for one in schema["oneOf"]])
        if "allOf" in schema:
            (known,) = (part for part in schema["allOf"] if "$ref" in part or "enum" in part)
            return self.of(known)
        match schema.get("type"):
            case "string":
                return self.of_string(schema.get("format"))
            case "integer":
                return "int"
            case "number":
                return "float"
            case "boolean":
                return "bool"
            case "array":
                return f"{'Sequence' if self.inputs else 'list'}[{self.of(schema['items'])}]"
            case "object":
                values = schema.get("additionalProperties")
                of_values = self.of(values) if isinstance(values, dict) else "Any"
                return f"{'Mapping' if self.inputs else 'dict'}[str, {of_values}]"
            case None:
                return "Any"
        raise ValueError(f"unknown schema {schema}")

    def of_string(self, format: str | None) -> str:
        match format:
            case "date-time":
                return "datetime | str" if self.inputs else "datetime"
            case "uuid" if self.inputs:
                return "str | UUID"
        return "str"

    def of_reference(self, name: str) -> str:
        schema = self.api.schemas[name]
        if "enum" in schema:
            return f"enums.{name}"
        inner, can_be_null = nullable(schema)
        if self.api.is_object(name) or self.is_union_of_objects(inner) and not can_be_null:
            return self.prefix + name
        return self.of(schema)

    def is_union_of_objects(self, schema: Schema) -> bool:
        return "oneOf" in schema and all(one.get("type") == "object" for one in schema["oneOf"])


def models(api: Api) -> str:
    types = Types(api, inputs=False)
    code = HEADER.format("Objects in answers of the service") + textwrap.dedent(
        """\
        from dataclasses import dataclass, field
        from datetime import datetime
        from typing import Any, Generic, Literal, TypeVar

        from . import enums

        T = TypeVar("T")


        @dataclass(frozen=True, kw_only=True)
        class Page(Generic[T]):
            \"\"\"A page of a list. `Client.every` reads all pages.\"\"\"

            items: list[T]
            next: str | None = None
            \"\"\"The `cursor` of the next page; `None` on the last one.\"\"\"
        """
    )
    done: set[str] = set()

    def write(name: str) -> None:
        nonlocal code
        schema = api.schemas[name]
        if name in done:
            return
        done.add(name)
        shape = api.shape(schema)
        if shape is None and types.is_union_of_objects(schema):
            shape = merged(api, schema)
        if shape is None:
            return
        for base in shape.bases:
            write(base)
        code += model(types, name, schema, shape)

    for name in api.outputs():
        write(name)
    return code


def merged(api: Api, schema: Schema) -> Shape:
    """Merges the variants of a union into one object, whose tag has the values of all."""
    shape, by_name = Shape(), {}
    for variant in schema["oneOf"]:
        for one in api.all_properties(variant):
            if one.name not in by_name:
                by_name[one.name] = one
                one.schema = dict(one.schema)
                shape.properties.append(one)
            elif "enum" in one.schema:
                by_name[one.name].schema["enum"] = by_name[one.name].schema["enum"] + one.schema["enum"]
    for one in shape.properties:
        one.required = all(one.name in variant.get("required", []) for variant in schema["oneOf"])
    return shape


def model(types: Types, name: str, schema: Schema, shape: Shape) -> str:
    bases = f"({', '.join(shape.bases)})" if shape.bases else ""
    code = f"\n\n@dataclass(frozen=True, kw_only=True)\nclass {name}{bases}:\n"
    body = docstring(schema.get("description", ""), "    ")
    body += "\n" if body and shape.properties else ""
    for one in shape.properties:
        kind = types.of(one.schema)
        body += f"    {safe(one.name)}: {declared(kind, one.required)}\n"
        body += docstring(one.schema.get("description", ""), "    ")
    return code + (body or "    pass\n")


def declared(kind: str, required: bool) -> str:
    """Declares a field. An older service leaves new ones out."""
    if kind.endswith("| None") or kind == "Any":
        return f"{kind} = None"
    if required:
        return kind
    if kind.startswith(("list[", "dict[")):
        return f"{kind} = field(default_factory={kind[:4]})"
    return f"{kind} | None = None"


def params(api: Api) -> str:
    types = Types(api, inputs=True)
    code = HEADER.format("Fields of requests") + textwrap.dedent(
        """\
        from collections.abc import Mapping, Sequence
        from datetime import datetime
        from typing import Any, Literal, Required, TypedDict
        from uuid import UUID

        from . import enums
        """
    )
    for name in api.inputs():
        schema = api.schemas[name]
        if api.shape(schema):
            code += typed_dict(
                types, name, schema, [(one.name, one.schema, one.required) for one in api.all_properties(schema)]
            )
        elif "oneOf" in schema:
            code += input_union(types, name, schema)
    return code


def input_union(types: Types, name: str, schema: Schema) -> str:
    code, kinds = "", []
    for variant in schema["oneOf"]:
        if shape := types.api.shape(variant):
            variant_name = name + shape.properties[0].name.title()
            code += typed_dict(types, variant_name, variant, [(one.name, one.schema, one.required) for one in shape.properties])
            kinds.append(variant_name)
        else:
            kinds.append(types.of(variant))
    return code + f"\n\n{comment(schema)}{name} = {union(kinds)}\n"


def typed_dict(types: Types, name: str, schema: Schema, fields: list[tuple[str, Schema, bool]]) -> str:
    def kind(field: Schema, required: bool) -> str:
        of = input_kind(types, field)
        return f"Required[{of}]" if required else of

    if any(keyword.iskeyword(name) for name, _, _ in fields):
        listed = ", ".join(f'"{field}": {kind(of, required)!r}' for field, of, required in fields)
        return f'\n\n{comment(schema)}{name} = TypedDict("{name}", {{{listed}}}, total=False)\n'
    code = f"\n\nclass {name}(TypedDict, total=False):\n"
    body = docstring(schema.get("description", ""), "    ")
    body += "\n" if body and fields else ""
    for field, of, required in fields:
        body += f"    {field}: {kind(of, required)}\n" + docstring(of.get("description", ""), "    ")
    return code + (body or "    pass\n")


def input_kind(types: Types, schema: Schema) -> str:
    """Unlike answers, requests have unions under their own names."""
    inner, can_be_null = nullable(schema)
    if "$ref" in inner and "oneOf" in types.api.schemas[name_of(inner)]:
        return types.prefix + name_of(inner) + (" | None" if can_be_null else "")
    if inner.get("type") == "array":
        return f"Sequence[{input_kind(types, inner['items'])}]" + (" | None" if can_be_null else "")
    return types.of(schema)


def event_data(api: Api) -> str:
    types = Types(api, inputs=False)
    code = HEADER.format("Data of events, as it is sent. Newer services may send further kinds and fields") + textwrap.dedent(
        """\
        from collections.abc import Mapping
        from typing import Any, Literal, NotRequired, TypedDict, overload
        """
    )
    by_kind = sorted(api.event_data().items())
    for _, name in sorted(by_kind, key=lambda item: item[1]):
        code += data_class(types, name, api.schemas[name])
    code += textwrap.dedent(
        """\


        class EventData:
            \"\"\"The data of an event, by its kind.\"\"\"

            kind: str

            @property
            def data(self) -> dict[str, Any]:
                raise NotImplementedError
        """
    )
    for kind, name in [*((f'Literal["{kind}"]', name) for kind, name in by_kind), ("str", "Mapping[str, Any]")]:
        code += f"\n    @overload\n    def data_of(self, kind: {kind}) -> {name} | None: ...\n"
    return code + textwrap.indent(
        textwrap.dedent(
            """\

            def data_of(self, kind: str) -> Any:
                \"\"\"Returns the data if the event is of this kind, and `None` for events of other kinds.\"\"\"
                return self.data if self.kind == kind else None
            """
        ),
        "    ",
    )


def data_class(types: Types, name: str, schema: Schema) -> str:
    """Declares data and, before it, its inner objects."""
    required = schema.get("required", [])
    code, kinds = "", {}
    for field, of in schema.get("properties", {}).items():
        kind, classes = data_type(types, name + field.title().replace("_", ""), of)
        code += classes
        kinds[field] = kind if field in required else f"NotRequired[{kind}]"
    if any(keyword.iskeyword(field) for field in kinds):
        listed = ", ".join(f'"{field}": {kind!r}' for field, kind in kinds.items())
        return code + f'\n\n{comment(schema)}{name} = TypedDict("{name}", {{{listed}}})\n'
    head = docstring(schema.get("description", ""), "    ")
    fields = "".join(
        f"    {field}: {kind}\n" + docstring(schema["properties"][field].get("description", ""), "    ")
        for field, kind in kinds.items()
    )
    blank = "\n" if head and fields else ""
    return code + f"\n\nclass {name}(TypedDict):\n" + (head + blank + fields or "    pass\n")


def data_type(types: Types, name: str, schema: Schema) -> tuple[str, str]:
    """Returns a type, and the classes that it needs. Unlike the fields of answers, times are text."""
    values, can_be_null = nullable(schema)
    classes = ""
    if values.get("type") == "object" and "properties" in values:
        kind, classes = name, data_class(types, name, values)
    elif values.get("type") == "array":
        item, classes = data_type(types, name, values["items"])
        kind = f"list[{item}]"
    elif values.get("type") == "string" and "enum" not in values:
        kind = "str"
    else:
        kind = types.of(values)
    return f"{kind} | None" if can_be_null and kind != "Any" else kind, classes


def operations(api: Api, name: str, define: str, wait: str, iterator: str, page: str) -> str:
    inputs, outputs = Types(api, inputs=True, prefix="params."), Types(api, inputs=False, prefix="models.")
    code = HEADER.format("Methods for each operation of the API") + textwrap.dedent(
        f"""\
        from abc import abstractmethod
        from collections.abc import {iterator}, Mapping, Sequence
        from datetime import datetime
        from typing import Any, Literal, TypeVar, Unpack
        from uuid import UUID

        from . import enums, models, params
        from .events import Event
        from .models import Page
        from .request import Request, segment

        T = TypeVar("T")


        class {name}:
            \"\"\"Each method is the operation of the same name in the API document.\"\"\"

            @abstractmethod
            {define} _call(self, request: Request, answer: Any) -> Any: ...

            @abstractmethod
            def _stream(self, request: Request) -> {iterator}[Event]: ...
        """
    )
    return code + "".join(method(inputs, outputs, one, define, wait, iterator) for one in api.operations)


def method(inputs: Types, outputs: Types, operation: Operation, define: str, wait: str, iterator: str) -> str:
    positional = [f"{one.name}: {inputs.of(one.schema)}" for one in operation.path_parameters]
    named = [query_argument(inputs, one) for one in sorted(operation.query, key=lambda one: not one.required)]
    request = [f'"{operation.method}"', path_of(operation)]
    if operation.query:
        request.append("query={" + ", ".join(f'"{one.name}": {safe(one.name)}' for one in operation.query) + "}")
    rest = ""
    if operation.body:
        body = inputs.api.resolve(operation.body)
        if body.get("type") == "array":
            positional.append(f"items: {input_kind(inputs, operation.body)}")
            request.append("body=items")
        elif inputs.api.all_properties(body):
            rest = f"**body: Unpack[params.{name_of(operation.body)}]"
            request.append("body=body" if operation.body_required else "body=body or None")
    if operation.takes_key:
        named.append("idempotency_key: str | None = None")
        request.append("takes_key=True, key=idempotency_key")
    if operation.answer == "events":
        named.append("last_event_id: str | None = None")
        request.append("last_event_id=last_event_id")
    arguments = [
        "self",
        *positional,
        *(["/"] if positional else []),
        *(["*"] if named else []),
        *named,
        *([rest] if rest else []),
    ]
    answer = (
        outputs.of(operation.answer_schema)
        if operation.answer_schema
        else {"text": "str", "bytes": "bytes", "none": "None"}.get(operation.answer, "Any")
    )
    built = f"Request({', '.join(request)})"
    match operation.answer:
        case "events":
            head, call = "def", f"return self._stream({built})"
            answer = f"{iterator}[Event]"
        case "none":
            head, call = define, f"{wait}self._call({built}, None)"
        case _:
            head, call = define, f"answer: {answer} = {wait}self._call({built}, {answer})\n        return answer"
    code = "\n" + wrapped(f"    {head} {operation.id}(", arguments, f") -> {answer}:")
    code += docstring(
        f"{operation.summary}\n\n{operation.description}",
        "        ",
        {one.name: one.description for one in operation.query},
    )
    return code + f"        {call}\n"


def wrapped(before: str, arguments: list[str], after: str) -> str:
    line = f"{before}{', '.join(arguments)}{after}\n"
    if len(line) <= WIDTH:
        return line
    return before + "\n" + "".join(f"        {one},\n" for one in arguments) + "    " + after + "\n"


def query_argument(types: Types, parameter: Parameter) -> str:
    kind = types.of(parameter.schema)
    if parameter.name == "cursor":
        # Pages name the next one in text, also where the cursor is a number.
        kind = "int | str" if kind == "int" else kind
    name = safe(parameter.name)
    return f"{name}: {kind}" if parameter.required else f"{name}: {kind} | None = None"


def path_of(operation: Operation) -> str:
    path = operation.path
    if not operation.path_parameters:
        return f'"{path}"'
    parts = path.split("/")
    names = iter(operation.path_parameters)
    by_place = {place: next(one for one in names) for place, part in enumerate(parts) if part.startswith("{")}
    filled = [f"{{segment({by_place[place].name})}}" if place in by_place else part for place, part in enumerate(parts)]
    return 'f"' + "/".join(filled) + '"'


def safe(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def docstring(words: str, indent: str, arguments: dict[str, str] | None = None) -> str:
    paragraphs = [text(paragraph) for paragraph in words.strip().split("\n\n") if paragraph.strip()]
    listed = [f"- `{safe(name)}`: {text(description)}" for name, description in (arguments or {}).items() if description]
    if not paragraphs and not listed:
        return ""

    def wrap(paragraph: str) -> list[str]:
        return textwrap.wrap(paragraph, WIDTH - len(indent) - 6, break_long_words=False)

    lines = [line for paragraph in paragraphs for line in [*wrap(paragraph), ""]][:-1]
    if listed:
        lines += [
            "",
            *(line for one in listed for line in textwrap.wrap(one, WIDTH - len(indent), subsequent_indent="  ")),
        ]
    joined = "\n".join(f"{indent}{line}".rstrip() for line in lines).strip().replace("\\", "\\\\").replace('"""', "'''")
    if len(lines) == 1:
        joined += " " if joined.endswith('"') else ""
        return f'{indent}"""{joined}"""\n'
    return f'{indent}"""{joined}\n{indent}"""\n'
