// The client of the AI SDK (`@ai-sdk/mcp`) against the real server: see harness.mjs.

import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio';

import { main } from './harness.mjs';

/** The options with which each tool is called, as the SDK does it for a model. */
const CALL = { toolCallId: '1', messages: [] };

await main(async ({ mode, transport, command, args, env, url }) => {
  const client = await createMCPClient({
    transport: transport === 'stdio' ? new StdioTransport({ command, args, env }) : { type: transport, url },
    protocolVersionDiscovery: mode === 'auto',
  });
  let tools = {};
  return {
    async names() {
      tools = await client.tools();
      return Object.keys(tools);
    },
    async call(name, input) {
      const result = await tools[name].execute(input, CALL);
      return result.content.map((block) => block.text ?? '').join('');
    },
    uris: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    close: () => client.close(),
  };
});
