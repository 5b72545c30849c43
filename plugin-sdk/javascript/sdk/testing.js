// Calls to a tool from a test: the same way through the SDK as in the plugin,
// but in Node, and with a host that records what the tool reports.

import { failure } from './failure.js';
import { Host } from './host.js';

/** Calls `tool` and returns what its client would get, and what it reported to the host. */
export async function call(tool, args = {}, { config = {}, cancelled = false } = {}) {
  const log = [];
  const progress = [];
  const host = new Host({
    log: (level, message) => log.push({ level, message }),
    progress: (done, total, message) => progress.push({ done, total, message }),
    cancelled: () => cancelled,
    config: (key) => config[key],
    configAll: () => Object.entries(config),
  });
  const heard = { log, progress };
  try {
    // Through text and back, as arguments come: no `undefined`, no dates.
    const answer = tool.finish(await tool.start(JSON.parse(JSON.stringify(args)), host));
    return { ...heard, ...told(answer) };
  } catch (thrown) {
    const { tag, val } = failure(thrown);
    return { ...heard, content: [], failure: { kind: tag, message: val } };
  }
}

function told({ content, structured, meta }) {
  const texts = content.filter(({ kind }) => kind === 'text').map(({ text }) => text);
  return {
    content,
    text: texts.length > 0 ? texts.join('\n') : undefined,
    structured: structured && JSON.parse(structured),
    meta: meta && JSON.parse(meta),
  };
}
