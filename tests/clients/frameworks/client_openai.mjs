// The OpenAI Agents SDK (`@openai/agents`) against the real server: see harness.mjs.

import {
  MCPServerSSE,
  MCPServerStdio,
  MCPServerStreamableHttp,
  RunContext,
  getAllMcpTools,
  setTracingDisabled,
} from '@openai/agents';

import { main } from './harness.mjs';

setTracingDisabled(true);

/** Returns the name of a tool for the model, which has only these characters. */
const toldAs = (name) => name.replaceAll(/[^a-zA-Z0-9]/g, '_');

await main(async ({ transport, command, args, env, url }) => {
  const server = {
    stdio: () => new MCPServerStdio({ command, args, env }),
    http: () => new MCPServerStreamableHttp({ url }),
    sse: () => new MCPServerSSE({ url }),
  }[transport]();
  await server.connect();
  const context = new RunContext();
  let tools = new Map();
  return {
    async names() {
      // Strict schemas if possible, as for OpenAI's models.
      const all = await getAllMcpTools({ mcpServers: [server], convertSchemasToStrict: true, errorFunction: null });
      tools = new Map(all.map((tool) => [tool.name, tool]));
      const names = (await server.listTools()).map((tool) => tool.name);
      return names.filter((name) => tools.has(toldAs(name)));
    },
    async call(name, input) {
      const output = await tools.get(toldAs(name)).invoke(context, JSON.stringify(input));
      const text = (block) => block.text ?? '';
      return typeof output === 'string' ? output : [output].flat().map(text).join('');
    },
    uris: async () => (await server.listResources()).resources.map(({ uri }) => uri),
    close: () => server.close(),
  };
});
