"""The published JSON Schemas, and what of them a set of documents leaves unproduced."""

import json
from functools import cache
from pathlib import Path

import jsonschema
from referencing import Registry, Resource

import envdoctor

FOLDER = Path(envdoctor.__file__).parent / "schemas"
NAMES = sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.schema.json"))


def load_schema(name):
    """Return the schema of that name: one of ``NAMES``."""
    return json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))


def validator_of(name):
    """Return a validator of a published schema, which may refer to the others by their files."""
    return jsonschema.Draft202012Validator(load_schema(name), registry=_registry())


@cache
def _registry():
    return Registry().with_resources(
        (f"{name}.schema.json", Resource.from_contents(load_schema(name))) for name in NAMES
    )


def validate(document, name):
    """Hold a document to a published schema."""
    validator_of(name).validate(document)


def subschemas(schema, place="#"):
    """Yield every schema inside a schema with its place."""
    if isinstance(schema, list):
        for number, entry in enumerate(schema):
            yield from subschemas(entry, f"{place}/{number}")
    elif isinstance(schema, dict):
        yield place, schema
        for keyword in ("oneOf", "anyOf", "items", "prefixItems", "additionalProperties"):
            yield from subschemas(schema.get(keyword), f"{place}/{keyword}")
        for keyword in ("properties", "$defs"):
            for name, entry in schema.get(keyword, {}).items():
                yield from subschemas(entry, f"{place}/{keyword}/{name}")


def unproduced(name, documents):
    """Return the places of the properties that none of the documents has, which are all valid."""
    root = load_schema(name)
    left = {
        f"{place}/properties/{member}"
        for place, schema in subschemas(root)
        for member in schema.get("properties", ())
    }

    def fits(schema, value):
        whole = {"$defs": root.get("$defs", {}), **schema}
        return jsonschema.Draft202012Validator(whole, registry=_registry()).is_valid(value)

    def visit(schema, value, place):
        if "$ref" in schema:
            kind = schema["$ref"].rpartition("/")[2]
            if kind not in root.get("$defs", {}):  # another file, held to its own documents
                return None
            return visit(root["$defs"][kind], value, f"#/$defs/{kind}")
        for keyword in ("oneOf", "anyOf"):
            for number, alternative in enumerate(schema.get(keyword, ())):
                if fits(alternative, value):
                    visit(alternative, value, f"{place}/{keyword}/{number}")
        if isinstance(value, dict):
            known = schema.get("properties", {})
            for member in value.keys() & known.keys():
                left.discard(f"{place}/properties/{member}")
                visit(known[member], value[member], f"{place}/properties/{member}")
            others = schema.get("additionalProperties")
            if isinstance(others, dict):
                for member in value.keys() - known.keys():
                    visit(others, value[member], f"{place}/additionalProperties")
        if isinstance(value, list) and isinstance(schema.get("items"), dict):
            for entry in value:
                visit(schema["items"], entry, f"{place}/items")
        return None

    for document in documents:
        validate(document, name)
        visit(root, document, "#")
    return left
