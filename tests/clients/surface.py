"""The offers of a server except tools, and the questions of its plugins: for the official client and fastmcp.

The plugin is that of the conformance suite.
"""

import base64
import json
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from mcp import MCPDeprecationWarning, MCPError
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    PromptReference,
    ResourceTemplateReference,
    Root,
    TextContent,
)

# A session of an old revision has no other way to subscribe to a resource.
warnings.simplefilter("ignore", MCPDeprecationWarning)

WATCHED = "test://watched-resource"

Check = Callable[[str, bool, object], None]
Subscribe = Callable[[str], AbstractAsyncContextManager[Callable[[], Awaitable[str]]]]


class Person:
    """The user of the client, with a model and a folder."""

    def __init__(self) -> None:
        self.action = "accept"
        """What it does with forms and pages."""
        self.asked: list[str] = []
        """What it was asked."""

    def elicit(self, params: ElicitRequestParams) -> ElicitResult:
        url = getattr(params, "url", None)
        self.asked.append(url or params.message)
        if self.action != "accept" or url:
            return ElicitResult(action=self.action)
        fields = params.requested_schema["properties"]
        yes = lambda field: fields[field]["type"] == "boolean"
        return ElicitResult(action="accept", content={field: yes(field) or f"my {field}" for field in fields})

    def sample(self, params: CreateMessageRequestParams) -> CreateMessageResult:
        content = params.messages[0].content
        block = content[0] if isinstance(content, list) else content
        self.asked.append(f"{block.text} ({params.max_tokens})")
        answer = TextContent(type="text", text="Paris.")
        return CreateMessageResult(role="assistant", model="none", content=answer, stop_reason="endTurn")

    def roots(self) -> list[Root]:
        self.asked.append("roots")
        return [Root(uri="file:///home/ada", name="home")]


def part(result: object, name: str) -> object:
    """Returns a member of a result: fastmcp returns only the member."""
    return getattr(result, name, result)


async def error_code(answer: Awaitable) -> object:
    """Returns the code of the error with which a call ends."""
    try:
        return f"a result: {await answer}"
    except MCPError as error:
        return error.code


async def offers(client, check: Check) -> None:
    prompts = {prompt.name for prompt in part(await client.list_prompts(), "prompts")}
    check("lists prompts", "test_prompt_with_arguments" in prompts, prompts)
    got = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
    text = got.messages[0].content.text
    check("gets a prompt", text == "Prompt with arguments: arg1='one', arg2='two'", got)
    code = await error_code(client.get_prompt("test_prompt_with_arguments", {"arg1": "one"}))
    check("a prompt without an argument that it needs is error -32602", code == -32602, code)

    uris = {str(resource.uri) for resource in part(await client.list_resources(), "resources")}
    check("lists resources", {"test://static-text", WATCHED} <= uris, uris)
    listed = part(await client.list_resource_templates(), "resource_templates")
    templates = {template.uri_template for template in listed}
    check("lists templates", "test://template/{id}/data" in templates, templates)

    async def read(uri: str):
        return part(await client.read_resource(uri), "contents")[0]

    item = await read("test://static-text")
    check("reads a text", item.text == "This is the content of the static text resource.", item)
    item = await read("test://static-binary")
    check("reads bytes", base64.b64decode(item.blob)[1:4] == b"PNG", item)
    item = await read("test://template/7/data")
    data = {"id": "7", "templateTest": True, "data": "Data for ID: 7"}
    check("reads what fits a template", json.loads(item.text) == data, item)
    code = await error_code(client.read_resource("test://nothing"))
    check("an unknown resource is an error", code in (-32602, -32002), code)

    prompt = PromptReference(name="test_prompt_with_arguments")
    completed = part(await client.complete(prompt, {"name": "arg1", "value": "par"}), "completion")
    check("completes an argument of a prompt", completed.values == ["paris", "park", "party"], completed)
    template = ResourceTemplateReference(uri="test://template/{id}/data")
    completed = part(await client.complete(template, {"name": "id", "value": "12"}), "completion")
    check("completes a variable of a template", completed.values == ["123", "124"], completed)


async def questions(client, person: Person, check: Check) -> None:
    async def call(name: str, arguments: dict | None = None) -> list[str]:
        """Calls a tool. Returns its text, and the questions that were asked."""
        person.asked = []
        result = await client.call_tool(name, arguments or {})
        return [result.content[0].text, *person.asked]

    def expect(what: str, found: list[str], expected: list[str]) -> None:
        check(what, found == expected, found)

    async def form() -> list[str]:
        return await call("test_elicitation", {"message": "Who?"})

    content = '{"username":"my username","email":"my email"}'
    expect("a form is accepted", await form(), [f"User response: action=accept, content={content}", "Who?"])
    for action in ["decline", "cancel"]:
        person.action = action
        expect(f"a form: {action}", await form(), [f"User response: action={action}", "Who?"])
    page = "https://example.com/sign-in"
    expect("a page: cancel", await call("test_elicitation_url"), ["Elicitation completed: action=cancel", page])
    person.action = "accept"
    opened = ["Elicitation completed: action=accept, content=null", page]
    expect("a page is opened", await call("test_elicitation_url"), opened)
    sampled = ["LLM response: Paris.", "The capital of France? (100)"]
    expect("the model is asked", await call("test_sampling", {"prompt": "The capital of France?"}), sampled)
    roots = ["Roots: file:///home/ada", "roots"]
    expect("the folders are asked for", await call("test_input_required_result_list_roots"), roots)
    whole, *asked = await call("test_input_required_result_multiple_inputs")
    together = ["Generate a greeting (50)", "What is your name?", "roots"]
    expect("several things are asked at once", sorted(asked), together)
    check("and all are answered", whole == 'Paris. action=accept, content={"name":"my name"} 1 roots', whole)
    _, *asked = await call("test_input_required_result_multi_round")
    steps = ["Step 1: What is your name?", "Step 2: What is your favorite color?"]
    expect("one thing is asked after the other", asked, steps)
    got = await client.get_prompt("test_input_required_result_prompt")
    check("a prompt asks, too", got.messages[0].content.text == "Use this context: my context", got)
    contents = part(await client.read_resource("test://greeting/Hello"), "contents")
    check("and so does a resource", contents[0].text == "Hello, my name!", contents)


async def approvals(client, person: Person, check: Check) -> None:
    """Tests a tool that a user must approve, who accepts and declines."""

    async def call() -> str:
        person.asked = []
        try:
            return (await client.call_tool("test_simple_text", {})).content[0].text
        except Exception as error:  # fastmcp raises what is a result with `isError`.
            return str(error)

    person.action = "accept"
    text = await call()
    check("a call that a person allows is made", text.startswith("This is a simple text response"), text)
    asked = [message for message in person.asked if "    tool    test_simple_text\n" in message]
    check("the person was asked once, by the host", len(asked) == len(person.asked) == 1, person.asked)
    person.action = "decline"
    text = await call()
    check("a call that a person does not allow is not made", "said no" in text and len(person.asked) == 1, text)
    person.action = "accept"


async def surface(client, person: Person, subscribe: Subscribe, check: Check) -> None:
    """Tests all offers.

    The client is subscribed within the context `subscribe(uri)`, which returns a function that waits for the URI of
    an update.
    """
    await offers(client, check)
    async with subscribe(WATCHED) as update:
        await client.call_tool("test_trigger_resource_update", {})
        uri = await update()
        check("is told that a resource has changed", uri == WATCHED, uri)
    await questions(client, person, check)
    await approvals(client, person, check)
