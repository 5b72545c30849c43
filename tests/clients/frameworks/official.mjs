// The previous official TypeScript SDK as the client of a bridge or a proxy.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

import { Changed } from './harness.mjs';

/** Returns the transport to a URL. */
export const toUrl = (transport, url) =>
  transport === 'sse' ? new SSEClientTransport(new URL(url)) : new StreamableHTTPClientTransport(new URL(url));

/** Returns the transport to a program. */
export const toProgram = (command, args, env) => new StdioClientTransport({ command, args, env, stderr: 'ignore' });

/** Connects, and returns the interface that harness.mjs requires. `close` also calls `after`. */
export async function official(transport, after = () => {}) {
  const changed = new Changed();
  const client = new Client({ name: 'client', version: '1' });
  client.setNotificationHandler(ToolListChangedNotificationSchema, changed.heard);
  await client.connect(transport);
  return {
    changed,
    client,
    names: async () => (await client.listTools()).tools.map((tool) => tool.name),
    uris: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    async call(name, args) {
      const result = await client.callTool({ name, arguments: args });
      return result.content.map((block) => block.text ?? '').join('');
    },
    async close() {
      await client.close();
      await after();
    },
  };
}
