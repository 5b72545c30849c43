// Tasks, for the previous TypeScript SDK, which supports those of sessions.

/** The capabilities of a client that supports tasks. */
export const TASKS = { tasks: { list: {}, cancel: {} } };

/** Calls tools as tasks; `known` is true if the server can identify its caller. */
export async function tasks(client, person, known, check) {
  const { tasks } = client.experimental;
  const call = (name, args) => tasks.callToolStream({ name, arguments: args }, undefined, { task: { ttl: 60_000 } });
  const all = async (name, args) => {
    const messages = [];
    for await (const message of call(name, args)) messages.push(message);
    return messages;
  };

  let messages = await all('slow_compute', { seconds: 1, label: 'it' });
  const kinds = new Set(messages.map(({ type }) => type));
  check('a call is a task', messages[0].task?.ttl === 60_000 && kinds.has('taskStatus'), messages);
  check('a task has its result', messages.at(-1).result?.content[0].text === 'it: computed for 1 s', messages);
  messages = await all('failing_job', {});
  check('a tool that fails has failed its task', messages.at(-2).task?.status === 'failed', messages);
  person.asked = [];
  messages = await all('multi_input', {});
  const { text } = messages.at(-1).result?.content[0] ?? {};
  check('a task asks in the middle', person.asked.join() === 'Who is first?,Who is second?', person.asked);
  check('and has the answers', text?.split('my name').length === 3, messages);
  const { value } = await call('slow_compute', { seconds: 20 }).next();
  const cancelled = await tasks.cancelTask(value.task.taskId);
  check('a task is cancelled', cancelled.status === 'cancelled', cancelled);
  const found = await tasks.getTask(value.task.taskId);
  check('and stays so', found.status === 'cancelled', found);
  const listed = await tasks.listTasks().then(({ tasks }) => tasks.length, ({ code }) => code);
  check('tasks are listed for a caller who is known', known ? listed > 3 : listed === -32601, listed);
}
