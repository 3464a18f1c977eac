"""Writes the generated modules of the TypeScript client."""

import re
import textwrap

from api import Api, Operation, Property, Schema, Shape, listed_item, name_of, nullable, text

HEADER = "// {}. Written by `python3 clients/generate`: do not edit.\n\n"
WIDTH = 116


def files(api: Api) -> dict[str, str]:
    return {"types.ts": types(api), "operations.ts": operations(api)}


def types(api: Api) -> str:
    code = HEADER.format("Objects of the API") + textwrap.dedent(
        """\
        /** A page of a list. `every` reads all pages. */
        export interface Page<T> {
          items: T[];
          /** The `cursor` of the next page; null on the last one. */
          next?: string | null;
        }
        """
    )
    code += "\n/** Codes of errors. Newer services may send further codes. */\n" + alias(
        "ErrorCode", [quoted(code) for code in api.codes]
    )
    data = api.event_data()
    for name in sorted({*api.outputs(), *api.inputs(), *data.values()}):
        code += "\n" + declaration(api, name, api.schemas[name])
    code += "\n/** The data of events, by kind. Newer services may send further kinds and fields. */\n"
    code += "export interface EventData {\n"
    code += "".join(f"  {quoted(kind)}: {name};\n" for kind, name in sorted(data.items()))
    return code + "}\n"


def declaration(api: Api, name: str, schema: Schema) -> str:
    head = comment(schema.get("description", ""), "")
    if shape := api.shape(schema):
        extends = f" extends {', '.join(shape.bases)}" if shape.bases else ""
        if not shape.properties and not shape.bases:
            return f"{head}export type {name} = Record<string, never>;\n"
        return f"{head}export interface {name}{extends} {{\n{members(api, shape.properties)}}}\n"
    if "enum" in schema:
        return head + alias(name, [quoted(value) for value in schema["enum"]])
    return f"{head}export type {name} = {type_of(api, schema)};\n"


def alias(name: str, kinds: list[str]) -> str:
    line = f"export type {name} = {' | '.join(kinds)};\n"
    return line if len(line) <= WIDTH else f"export type {name} =\n" + "".join(f"  | {kind}\n" for kind in kinds)[:-1] + ";\n"


def members(api: Api, listed: list[Property]) -> str:
    code = ""
    for one in listed:
        code += comment(one.schema.get("description", ""), "  ")
        kind = type_of(api, one.schema)
        # The service sends null for an absent value, older versions send nothing.
        optional = not one.required or kind.endswith("| null")
        code += f"  {one.name}{'?' if optional else ''}: {kind};\n"
    return code


def quoted(value: str) -> str:
    return f"'{value}'"


def type_of(api: Api, schema: Schema) -> str:
    inner, can_be_null = nullable(schema)
    kind = type_of_values(api, inner)
    return f"{kind} | null" if can_be_null and kind != "unknown" else kind


def type_of_values(api: Api, schema: Schema) -> str:
    if item := listed_item(schema):
        return f"Page<{type_of(api, item)}>"
    if "$ref" in schema:
        return name_of(schema)
    if "enum" in schema:
        return " | ".join(quoted(value) for value in schema["enum"])
    if "oneOf" in schema:
        return " | ".join(type_of(api, one) for one in schema["oneOf"])
    if "allOf" in schema:
        (known,) = (part for part in schema["allOf"] if "$ref" in part or "enum" in part)
        return type_of(api, known)
    match schema.get("type"):
        case "string":
            return "string"
        case "integer" | "number":
            return "number"
        case "boolean":
            return "boolean"
        case "array":
            of = type_of(api, schema["items"])
            return f"({of})[]" if "|" in of else f"{of}[]"
        case "object":
            if shape := object_shape(schema):
                return "{ " + " ".join(line.strip() for line in members(api, bare(shape.properties)).splitlines()) + " }"
            values = schema.get("additionalProperties")
            return f"Record<string, {type_of(api, values) if isinstance(values, dict) else 'unknown'}>"
        case None:
            return "unknown"
    raise ValueError(f"unknown schema {schema}")


def object_shape(schema: Schema) -> Shape | None:
    required = schema.get("required", [])
    listed = [Property(name, value, name in required) for name, value in schema.get("properties", {}).items()]
    return Shape([], listed) if listed else None


def bare(listed: list[Property]) -> list[Property]:
    """Removes the descriptions, which have no place within a line."""
    return [
        Property(one.name, {key: value for key, value in one.schema.items() if key != "description"}, one.required)
        for one in listed
    ]


def operations(api: Api) -> str:
    code = HEADER.format("Methods for each operation of the API")
    code += "import type { Event } from './events.js';\n"
    code += "import type { CallOptions, KeyedOptions, Request, StreamOptions } from './request.js';\n"
    methods = "".join(method(api, one) for one in api.operations)
    used = sorted(name for name in {"Page", *api.outputs(), *api.inputs()} if re.search(rf"\b{name}\b", methods))
    code += "import type {\n" + "".join(f"  {name},\n" for name in used) + "} from './types.js';\n"
    code += textwrap.dedent(
        """
        function segment(value: string | number): string {
          return encodeURIComponent(String(value));
        }

        /** Each method is the operation of the same name in the API document. */
        export abstract class Operations {
          protected abstract call<T>(request: Request): Promise<T>;
          protected abstract follow(request: Request): AsyncGenerator<Event, void, undefined>;
        """
    )
    return code + methods + "}\n"


def method(api: Api, operation: Operation) -> str:
    arguments = [
        f"{camel(one.name)}: {'number' if one.schema.get('type') == 'integer' else 'string'}"
        for one in operation.path_parameters
    ]
    request = [f"method: '{operation.method}'", f"path: {path_of(operation)}"]
    if operation.query:
        required = any(one.required for one in operation.query)
        arguments.append(f"query: {query_type(api, operation)}{'' if required else ' = {}'}")
        request.append("query")
    if operation.body:
        body = api.resolve(operation.body)
        if body.get("type") == "array" or api.all_properties(body):
            kind = type_of(api, operation.body)
            arguments.append(f"body: {kind}" if operation.body_required else f"body?: {kind}")
            request.append("body")
    if operation.takes_key:
        request.append("takesKey: true")
    options = "StreamOptions" if operation.answer == "events" else "KeyedOptions" if operation.takes_key else "CallOptions"
    if operation.answer == "bytes":
        request.append("isBinary: true")
    arguments.append(f"options: {options} = {{}}")
    request.append("options")
    if operation.answer == "events":
        answer, call = "AsyncGenerator<Event, void, undefined>", "follow"
    else:
        of = (
            type_of(api, operation.answer_schema)
            if operation.answer_schema
            else {"text": "string", "bytes": "Uint8Array<ArrayBuffer>", "none": "void"}.get(operation.answer)
        )
        answer, call = f"Promise<{of}>", "call"
    code = "\n" + comment(f"{operation.summary}\n\n{operation.description}", "  ")
    code += signature(f"  {camel(operation.id)}(", arguments, f"): {answer} {{")
    return code + f"    return this.{call}({{ {', '.join(request)} }});\n  }}\n"


def signature(before: str, arguments: list[str], after: str) -> str:
    line = f"{before}{', '.join(arguments)}{after}\n"
    if len(line) <= WIDTH:
        return line
    return before + "\n" + "".join(f"    {one},\n" for one in arguments) + "  " + after + "\n"


def query_type(api: Api, operation: Operation) -> str:
    parts = []
    for one in operation.query:
        kind = type_of(api, one.schema)
        # Pages name the next one in text, also where the cursor is a number.
        kind = "number | string" if one.name == "cursor" and kind == "number" else kind
        parts.append(f"{one.name}{'' if one.required else '?'}: {kind}{'' if one.required else ' | undefined'}")
    return "{ " + "; ".join(parts) + " }"


def path_of(operation: Operation) -> str:
    path = operation.path
    names = iter(operation.path_parameters)
    filled = re.sub(r"\{[^}]*\}", lambda _: "${segment(" + camel(next(names).name) + ")}", path)
    return f"'{path}'" if filled == path else f"`{filled}`"


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def comment(words: str, indent: str) -> str:
    paragraphs = [text(paragraph) for paragraph in words.strip().split("\n\n") if paragraph.strip()]
    if not paragraphs:
        return ""
    safe = [paragraph.replace("*/", "*\\/") for paragraph in paragraphs]
    lines = [line for one in safe for line in [*textwrap.wrap(one, WIDTH - len(indent) - 7, break_long_words=False), ""]][:-1]
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines) + f"{indent} */\n"
