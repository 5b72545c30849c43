// The offers of a server except tools, and the questions of its plugins: for both TypeScript SDKs, which have the same
// methods.
//
// The plugin is that of the conformance suite.

import { isDeepStrictEqual } from 'node:util';

/** The capabilities of a client that can answer questions. */
export const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

const WATCHED = 'test://watched-resource';

/** The user of the client, with a model and a folder. */
export class Person {
  /** The reaction to forms and pages. */
  action = 'accept';
  /** The questions that were asked. */
  asked = [];

  elicit({ message, url, requestedSchema }) {
    this.asked.push(url ?? message);
    if (this.action !== 'accept') return { action: this.action };
    if (url) return { action: 'accept' };
    const content = Object.keys(requestedSchema.properties).map((field) => [field, `my ${field}`]);
    return { action: 'accept', content: Object.fromEntries(content) };
  }

  sample({ messages, maxTokens }) {
    const [{ content }] = messages;
    this.asked.push(`${(content[0] ?? content).text} (${maxTokens})`);
    return { role: 'assistant', model: 'none', content: { type: 'text', text: 'Paris.' }, stopReason: 'endTurn' };
  }

  roots() {
    this.asked.push('roots');
    return { roots: [{ uri: 'file:///home/ada', name: 'home' }] };
  }
}

/** Returns the code of the error with which a promise is rejected. */
async function errorCode(promise) {
  try {
    return `a result: ${JSON.stringify(await promise)}`;
  } catch (error) {
    return error.code;
  }
}

async function offers(client, check) {
  const names = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
  check('lists prompts', names.includes('test_prompt_with_arguments'), names);
  const args = { arg1: 'one', arg2: 'two' };
  const { messages } = await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: args });
  const text = "Prompt with arguments: arg1='one', arg2='two'";
  check('gets a prompt', isDeepStrictEqual(messages, [{ role: 'user', content: { type: 'text', text } }]), messages);
  let code = await errorCode(client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'one' } }));
  check('a prompt without an argument that it needs is error -32602', code === -32602, code);

  const uris = (await client.listResources()).resources.map((resource) => resource.uri);
  check('lists resources', uris.includes('test://static-text') && uris.includes(WATCHED), uris);
  const templates = (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate);
  check('lists templates', templates.includes('test://template/{id}/data'), templates);
  const read = async (uri) => (await client.readResource({ uri })).contents[0];
  const said = (await read('test://static-text')).text;
  check('reads a text', said === 'This is the content of the static text resource.', said);
  const { blob } = await read('test://static-binary');
  check('reads bytes', Buffer.from(blob, 'base64').subarray(1, 4).toString() === 'PNG', blob);
  const data = JSON.parse((await read('test://template/7/data')).text);
  check('reads what fits a template', isDeepStrictEqual(data, { id: '7', templateTest: true, data: 'Data for ID: 7' }), data);
  code = await errorCode(client.readResource({ uri: 'test://nothing' }));
  check('an unknown resource is an error', code === -32602 || code === -32002, code);

  let ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' };
  const completed = async (name, value) => (await client.complete({ ref, argument: { name, value } })).completion.values;
  let values = await completed('arg1', 'par');
  check('completes an argument of a prompt', isDeepStrictEqual(values, ['paris', 'park', 'party']), values);
  ref = { type: 'ref/resource', uri: 'test://template/{id}/data' };
  values = await completed('id', '12');
  check('completes a variable of a template', isDeepStrictEqual(values, ['123', '124']), values);
}

async function questions(client, person, check) {
  /** Calls a tool. Returns its text, and the questions that were asked. */
  const call = async (name, args = {}) => {
    person.asked = [];
    const result = await client.callTool({ name, arguments: args });
    return [result.content[0].text, ...person.asked];
  };
  const expect = (what, found, expected) => check(what, isDeepStrictEqual(found, expected), found);

  const form = () => call('test_elicitation', { message: 'Who?' });
  const content = '{"username":"my username","email":"my email"}';
  expect('a form is accepted', await form(), [`User response: action=accept, content=${content}`, 'Who?']);
  for (const action of ['decline', 'cancel']) {
    person.action = action;
    expect(`a form: ${action}`, await form(), [`User response: action=${action}`, 'Who?']);
  }
  const page = 'https://example.com/sign-in';
  expect('a page: cancel', await call('test_elicitation_url'), ['Elicitation completed: action=cancel', page]);
  person.action = 'accept';
  const opened = ['Elicitation completed: action=accept, content=null', page];
  expect('a page is opened', await call('test_elicitation_url'), opened);
  const sampled = ['LLM response: Paris.', 'The capital of France? (100)'];
  expect('the model is asked', await call('test_sampling', { prompt: 'The capital of France?' }), sampled);
  const roots = ['Roots: file:///home/ada', 'roots'];
  expect('the folders are asked for', await call('test_input_required_result_list_roots'), roots);
  const [all, ...asked] = await call('test_input_required_result_multiple_inputs');
  const together = ['Generate a greeting (50)', 'What is your name?', 'roots'];
  expect('several things are asked at once', asked.sort(), together);
  check('and all are answered', all === 'Paris. action=accept, content={"name":"my name"} 1 roots', all);
  const twice = await call('test_input_required_result_multi_round');
  expect('one thing is asked after the other', twice.slice(1), [
    'Step 1: What is your name?',
    'Step 2: What is your favorite color?',
  ]);
  const { messages } = await client.getPrompt({ name: 'test_input_required_result_prompt' });
  const { text } = messages[0].content;
  check('a prompt asks, too', text === 'Use this context: my context', text);
  const { contents } = await client.readResource({ uri: 'test://greeting/Hello' });
  check('and so does a resource', contents[0].text === 'Hello, my name!', contents);
}

/**
 * Tests all offers. `subscribe` subscribes to a resource and resolves to a function that waits for the URI of the next
 * update.
 */
export async function surface(client, person, subscribe, check) {
  await offers(client, check);
  const update = await subscribe(WATCHED);
  await client.callTool({ name: 'test_trigger_resource_update', arguments: {} });
  const uri = await update();
  check('is told that a resource has changed', uri === WATCHED, uri);
  await questions(client, person, check);
}
