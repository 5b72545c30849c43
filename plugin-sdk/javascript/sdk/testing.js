// Calls from a test, with the same code of the SDK as in the plugin, but in Node, and
// with a host that records reports and questions.

import { failure } from './failure.js';
import { Host } from './host.js';

/** Calls `tool`, and returns the result for the client and the tool's reports to the host. */
export const call = async (tool, args = {}, circumstances) =>
  // Converted to text and back, like real arguments: without `undefined` and dates.
  run(tool, JSON.parse(JSON.stringify(args)), circumstances, called, { content: [] });

/** Fills in `prompt`. */
export const getPrompt = async (prompt, args = {}, circumstances) =>
  run(prompt, pairs(args), circumstances, filledIn, { messages: [] });

/** Reads `uri`, which is that of `resource` or matches its template. */
export async function readResource(resource, uri, circumstances) {
  if (!resource.fits(uri)) throw new TypeError(`${uri} does not fit ${resource.uri}`);
  return run(resource, uri, circumstances, read, { contents: [] });
}

/** Completes an argument of `target`, which is a prompt or a resource, after `value` was typed. */
export async function complete(target, argument, value, given = {}, circumstances) {
  const kind = target.uri === undefined ? 'prompt' : 'resource-template';
  const request = { kind, name: target.uri ?? target.name, argument, value, context: pairs(given) };
  const completer = target.completer(request);
  if (completer === undefined) throw new TypeError(`nothing completes \`${argument}\` of ${request.name}`);
  return run(completer, request, circumstances, (completions) => completions, { values: [], hasMore: false });
}

/** Runs one call. `told` converts the contract's record for the test. `nothing` is the value for a failure. */
async function run(one, input, circumstances, told, nothing) {
  const { host, heard } = recorder(circumstances);
  try {
    return { ...heard, ...told(one.finish(await one.start(input, host), input)) };
  } catch (thrown) {
    const { tag, val } = failure(thrown);
    return { ...heard, ...nothing, failure: { kind: tag, message: val } };
  }
}

/** Returns a host with these settings, and its records. */
function recorder({ config = {}, cancelled = false, answers = {} } = {}) {
  const heard = { log: [], progress: [], updated: [], asked: [] };
  const host = new Host({
    log: (level, message) => heard.log.push({ level, message }),
    progress: (done, total, message) => heard.progress.push({ done, total, message }),
    cancelled: () => cancelled,
    config: (key) => config[key],
    configAll: () => Object.entries(config),
    resourceUpdated: (uri) => heard.updated.push(uri),
    ask(questions) {
      for (const question of questions) heard.asked.push({ ...question, params: JSON.parse(question.params) });
      return questions.map((question) => JSON.stringify(answerTo(question, answers)));
    },
  });
  return { host, heard };
}

/** Returns the client's result, or throws the host's error if there is none. */
function answerTo({ key, kind, required }, answers) {
  const answer = Object.hasOwn(answers, key) ? answers[key] : undefined;
  if (answer === undefined) {
    throw { tag: 'invalid', val: `the test has no answer to the question \`${key}\`: add it to \`answers\`` };
  }
  if (answer === 'unsupported') {
    const why = `the client does not support the question \`${key}\` (${kind})`;
    throw required ? { tag: 'invalid', val: `${why}: the host ends the call here` } : { tag: 'unsupported', val: why };
  }
  return answer;
}

/** Returns arguments in the form of the contract, without those that are left out. */
function pairs(args) {
  const given = Object.entries(args).filter(([, text]) => text !== undefined);
  for (const [key, text] of given) {
    if (typeof text !== 'string') throw new TypeError(`clients give \`${key}\` as text, not as ${typeof text}`);
  }
  return given;
}

function called({ content, structured, meta }) {
  return { content, text: textOf(content), structured: parsed(structured), meta: parsed(meta) };
}

function filledIn({ messages, description, meta }) {
  return { messages, text: textOf(messages.map(({ content }) => content)), description, meta: parsed(meta) };
}

function read(items) {
  const contents = items.map((item) => ({ ...item, meta: parsed(item.meta) }));
  return { contents, text: textOf(contents.map(({ text }) => ({ kind: 'text', text }))) };
}

function textOf(blocks) {
  const texts = blocks.filter(({ kind, text }) => kind === 'text' && text !== undefined).map(({ text }) => text);
  return texts.length > 0 ? texts.join('\n') : undefined;
}

const parsed = (json) => json && JSON.parse(json);
