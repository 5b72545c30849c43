"""Tasks, for fastmcp, which supports the extension, but not tasks in sessions."""

from collections.abc import Callable

from fastmcp_tasks import call_tool_task

from surface import Person

Check = Callable[[str, bool, object], None]

WORK = {"seconds": 1, "label": "it"}
DONE = "it: computed for 1 s"


def text(result: object) -> str:
    return result.content[0].text


async def tasks(client, modern: bool, person: Person, check: Check) -> None:
    """Calls tools that take a long time."""
    result = await client.call_tool("slow_compute", WORK)
    check("a call that takes long has its result", text(result) == DONE, result)
    failed = await client.call_tool_mcp("failing_job", {}) if modern else await refused(client)
    if not modern:
        check("a tool that runs only as a task says so", "runs only as a task" in failed, failed)
        return
    check("a tool that fails in a task has failed", failed.is_error and "The job failed." in text(failed), failed)

    task = await call_tool_task(client, "slow_compute", WORK)
    status = await task.status()
    check("a task says how far it is", status.status == "working" and status.task_id == task.task_id, status)
    result = await task.result()
    check("a task has its result", text(result) == DONE, result)
    person.asked = []
    result = await (await call_tool_task(client, "confirm_delete", {"filename": "a.txt"}))
    check("a task asks in the middle", [text(result), *person.asked] == ["a.txt was deleted.", "Delete a.txt?"], result)
    task = await call_tool_task(client, "slow_compute", {"seconds": 20})
    await task.cancel()
    status = await task.status()
    check("a task is cancelled", status.status == "cancelled", status)


async def refused(client) -> str:
    """Returns the response for a tool that runs only as a task."""
    try:
        return f"a result: {await client.call_tool('failing_job', {})}"
    except Exception as error:
        return str(error)
