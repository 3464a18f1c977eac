"""The API document, in the form that both generators use."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

METHODS = ("get", "post", "put", "patch", "delete")
# The tools of agents have clients of their own: those of the Model Context Protocol.
SKIPPED_TAGS = {"mcp"}
LISTING = "Listing_"


@dataclass
class Parameter:
    name: str
    schema: Schema
    required: bool
    description: str


@dataclass
class Operation:
    id: str
    method: str
    path: str
    summary: str
    description: str
    path_parameters: list[Parameter]
    query: list[Parameter]
    takes_key: bool
    body: Schema | None
    body_required: bool
    # "json", "text", "bytes", "events" or "none".
    answer: str
    answer_schema: Schema | None


@dataclass
class Property:
    name: str
    schema: Schema
    required: bool


@dataclass
class Shape:
    """An object schema: the schemas that it extends, and its own properties."""

    bases: list[str] = field(default_factory=list)
    properties: list[Property] = field(default_factory=list)


class Api:
    def __init__(self, document: Schema) -> None:
        self.schemas: dict[str, Schema] = document["components"]["schemas"]
        self.operations = [
            operation(path, method, item[method])
            for path, item in sorted(document["paths"].items())
            for method in METHODS
            if method in item and not SKIPPED_TAGS & set(item[method]["tags"])
        ]
        self.operations.sort(key=lambda operation: operation.id)
        self.codes = error_codes(document)

    def reachable(self, roots: list[Schema]) -> list[str]:
        """Returns the names of the schemas that the roots refer to, directly or through others, sorted."""
        found: set[str] = set()
        open_schemas: list[Any] = list(roots)
        while open_schemas:
            for name in references(open_schemas.pop()):
                if name not in found:
                    found.add(name)
                    open_schemas.append(self.schemas[name])
        return sorted(found)

    def outputs(self) -> list[str]:
        # Events and errors are read by code that is not generated.
        roots = [reference("FeedEvent"), reference("Problem")]
        roots += [operation.answer_schema for operation in self.operations if operation.answer_schema]
        data = set(self.event_data().values())
        return [name for name in self.reachable(roots) if not name.startswith(LISTING) and name not in data]

    def event_data(self) -> dict[str, str]:
        """Returns the names of the schemas of the data of events, by kind."""
        return {schema["x-event-kind"]: name for name, schema in self.schemas.items() if "x-event-kind" in schema}

    def inputs(self) -> list[str]:
        bodies = [operation.body for operation in self.operations if operation.body]
        parameters = [one.schema for operation in self.operations for one in operation.query]
        return self.reachable(bodies + parameters)

    def resolve(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = self.schemas[name_of(schema)]
        return schema

    def is_object(self, name: str) -> bool:
        return self.shape(self.schemas[name]) is not None

    def shape(self, schema: Schema) -> Shape | None:
        """Returns the shape of an object with known properties, and `None` for other schemas."""
        if "allOf" in schema:
            shape = Shape()
            for part in schema["allOf"]:
                if "$ref" in part:
                    shape.bases.append(name_of(part))
                elif part.get("type") == "object":
                    shape.properties += properties(part)
                else:
                    return None
            return shape
        if schema.get("type") == "object" and ("properties" in schema or schema.get("additionalProperties") is False):
            return Shape([], properties(schema))
        return None

    def all_properties(self, schema: Schema) -> list[Property]:
        shape = self.shape(schema)
        assert shape is not None, schema
        inherited = [one for base in shape.bases for one in self.all_properties(self.schemas[base])]
        return inherited + shape.properties


def read(path: Path) -> Api:
    return Api(json.loads(path.read_text()))


def reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def name_of(schema: Schema) -> str:
    return str(schema["$ref"]).rsplit("/", 1)[1]


def references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for one in value for name in references(one)]
    if not isinstance(value, dict):
        return []
    own = [name_of(value)] if isinstance(value.get("$ref"), str) else []
    return own + [name for one in value.values() for name in references(one)]


def listed_item(schema: Schema) -> Schema | None:
    """Returns the schema of the items, if this is a page of a list."""
    if "$ref" in schema and name_of(schema).startswith(LISTING):
        return reference(name_of(schema).removeprefix(LISTING))
    return None


def nullable(schema: Schema) -> tuple[Schema, bool]:
    """Splits a schema into the schema of its values and whether they can be null."""
    if isinstance(schema.get("type"), list):
        types = [name for name in schema["type"] if name != "null"]
        assert len(types) == 1, schema
        return {**schema, "type": types[0]}, "null" in schema["type"]
    if "oneOf" in schema:
        others = [one for one in schema["oneOf"] if one != {"type": "null"}]
        if len(others) < len(schema["oneOf"]):
            return (others[0] if len(others) == 1 else {**schema, "oneOf": others}), True
    return schema, False


def properties(schema: Schema) -> list[Property]:
    required = schema.get("required", [])
    return [Property(name, value, name in required) for name, value in schema.get("properties", {}).items()]


def operation(path: str, method: str, item: Schema) -> Operation:
    parameters = item.get("parameters", [])
    body = item.get("requestBody")
    answer, answer_schema = answer_of(item)
    return Operation(
        id=item["operationId"],
        method=method.upper(),
        path=path,
        summary=item.get("summary", ""),
        description=item.get("description", ""),
        path_parameters=[parameter(one, path) for one in parameters if one["in"] == "path"],
        query=[parameter(one, path) for one in parameters if one["in"] == "query"],
        takes_key=any(one["name"] == "Idempotency-Key" for one in parameters),
        body=body["content"]["application/json"]["schema"] if body else None,
        body_required=bool(body and body.get("required")),
        answer=answer,
        answer_schema=answer_schema,
    )


def parameter(item: Schema, path: str) -> Parameter:
    name = item["name"]
    if item["in"] == "path":
        name = path_name(path, name)
    return Parameter(name, item["schema"], item.get("required", False), item.get("description", ""))


def path_name(path: str, name: str) -> str:
    """Names a parameter after its noun: `id` in `/v1/tasks/{id}` is `task_id`."""
    noun = re.search(r"([a-z-]+)/\{" + name + r"\}", path)
    if noun is None:
        return name
    singular = noun[1].replace("-", "_")
    singular = singular[:-3] + "y" if singular.endswith("ies") else singular.removesuffix("s")
    return f"{singular}_{name}" if name in ("id", "name", "number", "kind") else name


def answer_of(item: Schema) -> tuple[str, Schema | None]:
    contents = [answer["content"] for status, answer in item["responses"].items() if status[0] == "2" and answer.get("content")]
    if not contents:
        return "none", None
    (kind,) = {kind for content in contents for kind in content}
    schemas = [content[kind]["schema"] for content in contents]
    assert all(schema == schemas[0] for schema in schemas), item["operationId"]
    match kind:
        case "application/json":
            return "json", schemas[0]
        case "text/event-stream":
            return "events", None
        case "application/octet-stream":
            return "bytes", None
        case _:
            return "text", None


def error_codes(document: Schema) -> list[str]:
    codes: set[str] = set()
    for item in document["paths"].values():
        for method in METHODS:
            for answer in item.get(method, {}).get("responses", {}).values():
                for content in answer.get("content", {}).values():
                    for part in content["schema"].get("allOf", []):
                        codes.update(part.get("properties", {}).get("code", {}).get("enum", []))
    return sorted(codes)


def text(words: str) -> str:
    """Joins the lines of a description."""
    return " ".join(words.split())
