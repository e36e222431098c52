"""The definitions of a text by its layout: what is found in each language, and where it ends."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import sidecar
from sidecar.context.excerpts.outline import Outline, outline

SAMPLES = {
    "a.js": """
import x from "x";
export class Box extends Base {
  #size = 1;
  grow(by) {
    if (by) {
      call(() => {
        go();
      });
    }
  }
}
const add = (a, b) => {
  return `
} at the margin
`;
};
app.get = function get(req) {
};
""",
    "a.ts": """
interface Shape<T> {
  area(): number;
}
export async function draw<T extends a.B>(
  shape: Shape<T>,
): Promise<void> {
  await paint(shape);
}
""",
    "a.go": """
package main
type Box struct {
	Size int `json:"size"`
}
func (b *Box) Grow(by int) error {
again:
	b.Size += by
	return nil
}
""",
    "a.rs": """
use std::fmt;
impl<T> fmt::Display for Box<T>
where
    T: Copy,
{
    fn fmt(&self) -> Result {
        write("\\
at the margin")
    }
}
""",
    "A.java": """
/** A box. */
public class Box<T> {
  // It grows.
  @Override
  public static <T> Box<T> grow(int by)
      throws Refused {
    if (by > 0) {
      check(by);
    }
  }
}
""",
    "a.cpp": """
#include <map>
namespace shop {
template <typename T>
class Box : public Base {
 public:
  int size() const { return 1; }
};
#ifdef BIG
void Box::grow(int by)
{
again:
  grow(by);
}
#endif
}
""",
    "a.cs": """
using System;
namespace Shop
{
    public class Box
    {
        public void Grow<T>(int by)
        {
            Check(by);
        }
    }
}
""",
    "a.rb": """
require "set"
module Shop
  class Box < Base
    def grow(by)
      puts <<-TEXT
at the margin
      TEXT
    end
  end
end
""",
    "a.php": """
namespace Shop;
class Box {
    public function grow(int $by): void {
        array_map(function ($x) { return $x; }, []);
    }
}
""",
    "a.kt": """
class Box(val size: Int) {
    fun List<Int>.grow(by: Int): Int {
        return by
    }
    fun half() = size / 2
}
""",
    "a.sh": """
grow() {
  echo hi
}
""",
    "a.css": """
.box,
.tin {
  color: red;
}
""",
    "a.yaml": """
jobs:
  build:
    runs-on: linux
    steps:
      - run: make
""",
    "a.json": """
{
  "jobs": {
    "build": [
      1
    ]
  }
}
""",
    "a.toml": """
[tool.box]
size = 1

[tool.tin]
size = 2
""",
    "a.md": """
# Boxes
```
# no heading
```
## Tins
text
# Jars
""",
}

FOUND = {
    "a.js": ["Box 2-11", " grow 4-10", "add 12-16", "get 17-18"],
    "a.ts": ["Shape 1-3", "draw 4-8"],
    "a.go": ["Box 2-4", "Grow 5-9"],
    "a.rs": ["Box 2-10", " fmt 6-9"],
    "A.java": ["Box 1-11", " grow 3-10"],
    "a.cpp": ["shop 2-2", "Box 3-7", " size 6-6", "grow 9-13"],
    "a.cs": ["Shop 2-11", " Box 4-10", "  Grow 6-9"],
    "a.rb": ["Shop 2-10", " Box 3-9", "  grow 4-8"],
    "a.php": ["Shop 1-1", "Box 2-6", " grow 3-5"],
    "a.kt": ["Box 1-6", " grow 2-4", " half 5-5"],
    "a.sh": ["grow 1-3"],
    "a.css": [".tin 2-4"],
    "a.yaml": ["jobs 1-5", " build 2-5", "  steps 4-5"],
    "a.json": ["jobs 2-6", " build 3-5"],
    "a.toml": ["tool.box 1-3", "tool.tin 4-5"],
    "a.md": ["Boxes 1-6", " Tins 5-6", "Jars 7-7"],
}


def drawn(found: Outline) -> list[str]:
    """`name first-last`, indented by depth; lines count from 0, and each sample begins with an empty one."""
    return [f"{' ' * one.depth}{one.name} {one.first}-{one.last}" for one in found.definitions]


@pytest.mark.parametrize("path", SAMPLES)
def test_definitions_are_found_with_their_ends_and_nesting(path: str) -> None:
    assert drawn(outline(SAMPLES[path].splitlines(), path)) == FOUND[path]


@pytest.mark.slow
def test_every_definition_of_our_own_source_is_found_where_python_itself_finds_it() -> None:
    for path in sorted(Path(sidecar.__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        expected = [
            (node.name, node.lineno - 1, node.end_lineno)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
        lines = text.split("\n")
        found = [(one.name, one.head, one.last + 1) for one in outline(lines, path.name).definitions]
        found = [(name, _past_decorators(lines, head), last) for name, head, last in found]
        assert sorted(found) == sorted(expected), path


def _past_decorators(lines: list[str], head: int) -> int:
    while not lines[head].lstrip().startswith(("def ", "async def ", "class ")):
        head += 1
    return head


def test_decorators_belong_to_the_head_and_comments_to_the_definition() -> None:
    lines = ["# Why.", "@cache", "def f(", "    a,", "):", "    return a"]
    (one,) = outline(lines, "a.py").definitions
    assert (one.first, one.head, one.head_last, one.last) == (0, 1, 4, 5)


def test_text_of_strings_at_the_margin_ends_nothing() -> None:
    lines = ["def f():", '    x = """', "class NotOne:", '"""', "    return x", "def g():", "    pass"]
    assert drawn(outline(lines, "a.py")) == ["f 0-4", "g 5-6"]


def test_a_definition_that_is_never_closed_ends_before_the_next_one() -> None:
    lines = ["function f() {", "  if (a {", "function g() {", "}"]
    assert drawn(outline(lines, "a.js")) == ["f 0-1", "g 2-3"]


@pytest.mark.parametrize(
    "line", ["f(a, () => {", "if (a) {", "return f(a) {", "for (;;) {", "f(a);", "x.f(a) {"]
)
def test_statements_are_no_definitions(line: str) -> None:
    assert outline([line, "  b;", "});"], "a.js").definitions == []


@pytest.mark.parametrize("path", ["", "notes", "a.unknown", "a.txt"])
def test_a_text_of_no_known_language_has_no_outline(path: str) -> None:
    assert outline(["def f():", "    pass"], path) == Outline()


def test_imports_are_told_apart() -> None:
    lines = ["import a", "from b import c", "def f():", "    import d", '"""', "import e", '"""']
    assert outline(lines, "a.py").imports == [0, 1]
