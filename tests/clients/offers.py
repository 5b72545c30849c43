"""The prompts, resources, completion and questions of each language's acceptance plugin, through the official client."""

import anyio
from mcp import Client, MCPError, StdioServerParameters, types

from client import PATIENCE, Checks

ANSWERS = [
    ("accept", {"name": "Ada"}, "Hello, Ada."),
    ("decline", None, "declined"),
    ("cancel", None, "cancelled"),
    (None, None, "nobody to ask"),
]
"""What the user does with a form, and what the tool says then. The last client has no forms."""

STYLES = {"": ["formal", "friendly", "funny"], "fr": ["friendly"], "x": []}
"""What completes the beginning of a style."""

MISSING = {-32602, -32002}
"""The errors for a resource that does not exist, of newer and older revisions."""


async def check(server: StdioServerParameters, languages: list[str], checks: Checks) -> None:
    """Tests all offers of the plugins of these languages except tools, in the newest revision and in a session."""
    for mode in ("auto", "legacy"):
        for action, content, said in ANSWERS:
            async with client(server, mode, action, content) as one:
                for language in languages:
                    result = await one.call_tool(f"{language}_ask", {})
                    texts = [block.text for block in result.content if block.type == "text"]
                    checks.check(f"{language}: a form, {mode}, {action}", texts == [said], str(result))
        async with client(server, mode, None, None) as one:
            for language in languages:
                await Offers(one, language, mode, checks).check()


def client(server: StdioServerParameters, mode: str, action: str | None, content: dict | None) -> Client:
    async def answer(context, params) -> types.ElicitResult:
        return types.ElicitResult(action=action, content=content)

    more = {} if action is None else {"elicitation_callback": answer}
    return Client(server, mode=mode, read_timeout_seconds=PATIENCE, **more)


class Offers:
    """Tests the offers of one language's plugin, except tools."""

    def __init__(self, client: Client, language: str, mode: str, checks: Checks) -> None:
        self.client = client
        self.language = language
        self.mode = mode
        self.checks = checks

    def expect(self, what: str, found: object, expected: object) -> None:
        self.checks.check(f"{self.language}: {what}, {self.mode}", found == expected, str(found)[:1_000])

    async def check(self) -> None:
        await self.prompts()
        await self.completion()
        await self.resources()
        await self.updates()

    async def prompts(self) -> None:
        name = f"{self.language}_greeting"
        listed = {prompt.name: prompt for prompt in (await self.client.list_prompts()).prompts}
        prompt = listed[name]
        arguments = [(argument.name, bool(argument.required)) for argument in prompt.arguments or []]
        expected = ("Greets somebody.", [("name", True), ("style", False)])
        self.expect("a prompt is listed", (prompt.description, arguments), expected)
        for given, text in [
            ({"name": "Ada"}, "Greet Ada."),
            ({"name": "Ada", "style": "formal"}, "Greet Ada in a formal style."),
        ]:
            messages = (await self.client.get_prompt(name, given)).messages
            found = [(message.role, message.content.text) for message in messages]
            self.expect(f"a prompt with {len(given)} arguments", found, [("user", text)])

    async def completion(self) -> None:
        prompt = types.PromptReference(type="ref/prompt", name=f"{self.language}_greeting")
        for typed, values in STYLES.items():
            result = await self.client.complete(prompt, {"name": "style", "value": typed})
            self.expect(f"what begins with {typed!r}", result.completion.values, values)

    async def resources(self) -> None:
        about = f"{self.language}://about"
        listed = {str(resource.uri): resource for resource in (await self.client.list_resources()).resources}
        self.expect("a resource is listed", (listed[about].name, listed[about].mime_type), ("about", "text/plain"))
        templates = (await self.client.list_resource_templates()).resource_templates
        notes = {template.uri_template: template for template in templates}[f"{self.language}://notes/{{id}}"]
        self.expect("a template is listed", (notes.name, notes.mime_type), ("note", "text/plain"))
        for uri, text in [(about, f"A plugin in {self.language}."), (f"{self.language}://notes/a%20b", "Note a b.")]:
            items = (await self.client.read_resource(uri)).contents
            found = [(str(item.uri), item.text, item.mime_type) for item in items]
            self.expect(f"{uri} is read", found, [(uri, text, "text/plain")])
        try:
            missing = await self.client.read_resource(f"{self.language}://notes/none")
        except MCPError as error:
            missing = error.code in MISSING
        self.expect("a resource that does not exist", missing, True)

    async def updates(self) -> None:
        about = f"{self.language}://about"
        if self.mode == "legacy":
            # Notifications are sent to the handler of the client, which the tests of clients check.
            await self.client.subscribe_resource(about)
            result = await self.client.call_tool(f"{self.language}_touch", {})
            self.expect("an update is told", [block.text for block in result.content], ["touched"])
            return
        async with self.client.listen(resource_subscriptions=[about]) as events:
            await self.client.call_tool(f"{self.language}_touch", {})
            arrived = None
            with anyio.move_on_after(PATIENCE):
                async for arrived in events:
                    break
            self.expect("an update arrives", arrived is not None, True)
