"""The kinds of content blocks."""

from dataclasses import fields as fields_of
from typing import Any, get_args

import toolbay
from tests.support import TestCase
from toolbay import Audio, Content, Failed, Image, Output, Resource, ResourceLink, Text, testing, tool
from toolbay.block import Block, Fields, fields

#: A block of each kind, with all fields that it may have.
BLOCKS: list[tuple[Block, Fields]] = [
    (Text("a"), Fields("text", text="a")),
    (Image(b"a", "image/gif"), Fields("image", data=b"a", mime_type="image/gif")),
    (Audio(b"a", "audio/mpeg"), Fields("audio", data=b"a", mime_type="audio/mpeg")),
    (
        ResourceLink("a:b", "b", title="B", description="The b.", mime_type="text/plain", size=1),
        Fields(
            "resource-link", uri="a:b", name="b", title="B", description="The b.", mime_type="text/plain", size=1
        ),
    ),
    (Resource("a:b", "c", "text/plain"), Fields("embedded-resource", uri="a:b", text="c", mime_type="text/plain")),
    (Resource("a:b", b"c"), Fields("embedded-resource", uri="a:b", data=b"c")),
]


class Kinds(TestCase):
    def test_each_has_its_fields(self) -> None:
        for block, expected in BLOCKS:
            with self.subTest(expected.kind):
                self.assertEqual(fields(block), expected)

    def test_none_is_forgotten(self) -> None:
        kinds = set(Content.__subclasses__())
        self.assertEqual(set(get_args(Block)), kinds)
        self.assertEqual({type(block) for block, _ in BLOCKS}, kinds)
        self.assertLessEqual({kind.__name__ for kind in kinds}, set(toolbay.__all__))

    def test_no_field_is_forgotten(self) -> None:
        of_every_kind = {field.name for field in fields_of(Content)}
        for kind in get_args(Block):
            given = {field.name for field in fields_of(kind)} - of_every_kind
            used = {name for block, found in BLOCKS if type(block) is kind for name in vars(found) if vars(found)[name]}
            # A resource's contents are its text or its data.
            if "contents" in given:
                given = given - {"contents"} | {"text", "data"}
            with self.subTest(kind.__name__):
                self.assertEqual(used - {"kind"}, given)

    def test_nothing_else_is_a_block(self) -> None:
        @tool
        def returns() -> Any:
            """Returns what is no block."""
            return Output([Content()])

        with self.assertRaisesRegex(Failed, "a block of content is a `Text`, `Image` or the like, not a `Content`"):
            testing.call(returns)
