"""YAML text → plain values, within limits, and with the scalars of YAML 1.2: `1e-2` is a number, `no` is text.

Size, depth and aliases are counted while the text is read, so that nothing else ever sees a config that would fill the
memory: an alias counts as everything that it stands for. Only text, numbers, booleans, null, lists and mappings are
built. Everything that is refused is a `yaml.MarkedYAMLError`.
"""

import re
from typing import Any

import yaml
from yaml.composer import Composer, ComposerError
from yaml.constructor import ConstructorError, SafeConstructor

MOST_NODES = 300_000
"""Keys and values, as often as aliases repeat them. The largest configs hold 10 000 rows of up to 25 numbers."""
DEEPEST = 20
"""Levels of lists and mappings; a config has eight, and the rest is for options of environments."""
LONGEST_KEY = 300
"""Characters; the longest are names of files."""

INT = re.compile(r"^[-+]?[0-9]+$")
FLOAT = re.compile(r"^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$")


class Loader(Composer, yaml.CSafeLoader):
    """The C parser, so that even the largest config is read within seconds, under a composer that counts."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def __init__(self, stream: str) -> None:
        yaml.CSafeLoader.__init__(self, stream)
        Composer.__init__(self)
        self.nodes = self.depth = self.deepest = 0
        self.extents: dict[str, tuple[int, int]] = {}
        """Nodes and levels of everything that has an anchor and is complete."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()
        anchor = event.anchor
        if isinstance(event, yaml.AliasEvent):
            mark: Any = event.start_mark
            if anchor in self.anchors and anchor not in self.extents:
                raise ComposerError(None, None, f"the alias {anchor!r} contains itself", mark)
            self._count(*self.extents.get(anchor, (0, 0)), event.start_mark)
            return super().compose_node(parent, index)
        before, above, self.deepest = self.nodes, self.deepest, self.depth
        self._count(1, 1, event.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        if anchor is not None:
            self.extents[anchor] = self.nodes - before, self.deepest - self.depth
        self.deepest = max(above, self.deepest)
        return node

    def _count(self, nodes: int, levels: int, mark: Any) -> None:
        self.nodes += nodes
        self.deepest = max(self.deepest, self.depth + levels)
        if self.deepest > DEEPEST + 1:
            raise ComposerError(None, None, f"it is nested too deeply, in more than {DEEPEST} levels", mark)
        if self.nodes > MOST_NODES:
            raise ComposerError(None, None, f"it has more than {MOST_NODES} keys and values, aliases included", mark)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (LookupError, ValueError, OverflowError) as error:
            said = f"{str(node.value)[:80]!r} cannot be read as {node.tag.rpartition(':')[2]}"
            raise ConstructorError(None, None, said, node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in (
            node.value if isinstance(node, yaml.MappingNode) else ()
        ):  # others, tagged !!map, are refused below
            if isinstance(key, yaml.ScalarNode):
                if len(key.value) > LONGEST_KEY:
                    said = f"the key {key.value[:40]!r}… has more than {LONGEST_KEY} characters"
                    raise ConstructorError(None, None, said, key.start_mark)
                if key.value in seen:
                    raise ConstructorError(None, None, f"the key {key.value!r} appears twice", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _decimal(loader: Loader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|True|TRUE|false|False|FALSE)$"), None)
Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("^(~|null|Null|NULL|)$"), None)
Loader.add_implicit_resolver("tag:yaml.org,2002:int", INT, None)
Loader.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, None)
Loader.yaml_constructors = {
    tag: constructor
    for tag, constructor in SafeConstructor.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] in ("null", "bool", "float", "str", "seq", "map")
}
Loader.add_constructor("tag:yaml.org,2002:int", _decimal)
