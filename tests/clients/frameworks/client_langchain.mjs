// LangChain's adapters (`@langchain/mcp-adapters`) against the real server: see harness.mjs.

import { MultiServerMCPClient, loadMcpTools } from '@langchain/mcp-adapters';

import { Changed, main } from './harness.mjs';

await main(async ({ transport, command, args, env, url }) => {
  const changed = new Changed();
  const client = new MultiServerMCPClient({
    mcpServers: { toolbay: transport === 'stdio' ? { transport, command, args, env } : { transport, url } },
    onToolsListChanged: changed.heard,
  });
  await client.initializeConnections();
  const session = await client.getClient('toolbay');
  let tools = new Map();
  return {
    changed,
    async names() {
      // `getTools` of the client lists only once.
      tools = new Map((await loadMcpTools('toolbay', session)).map((tool) => [tool.name, tool]));
      return [...tools.keys()];
    },
    async call(name, input) {
      const content = await tools.get(name).invoke(input);
      const text = (block) => block.text ?? '';
      return typeof content === 'string' ? content : [content].flat().map(text).join('');
    },
    uris: async () => (await client.listResources('toolbay')).toolbay.map(({ uri }) => uri),
    close: () => client.close(),
  };
});
