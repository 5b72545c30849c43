// The page of a client with MCP Apps: it shows a view, and communicates with it over the official bridge, which
// checks every message. The bridge sends requests to the server with functions that the test exposes to the page.

import { AppBridge, PostMessageTransport } from '@modelcontextprotocol/ext-apps/app-bridge';

/** Shows a view with the call of a tool. Returns when the view is initialized. */
window.show = async ({ sandbox, html, csp, permissions, tool, input, result, theme }) => {
  document.querySelector('iframe')?.remove();
  const frame = document.createElement('iframe');
  frame.setAttribute('sandbox', 'allow-scripts allow-same-origin');
  frame.width = 640;
  document.body.append(frame);
  const capabilities = { serverTools: {}, serverResources: {}, logging: {} };
  const hostContext = { theme, toolInfo: { tool }, displayMode: 'inline', containerDimensions: { width: 640 } };
  const bridge = new AppBridge(null, { name: 'toolbay-test', version: '1.0.0' }, capabilities, { hostContext });
  bridge.oncalltool = (params) => window.callTool(params);
  bridge.onreadresource = (params) => window.readResource(params);
  bridge.onsizechange = ({ height }) => { if (height) frame.height = height; };
  const ready = new Promise((resolve) => { bridge.onsandboxready = resolve; });
  const begun = new Promise((resolve) => { bridge.oninitialized = resolve; });
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  const query = new URLSearchParams({ host: location.origin, csp: JSON.stringify(csp ?? {}) });
  frame.src = `${sandbox}/sandbox.html?${query}`;
  await ready;
  await bridge.sendSandboxResourceReady({ html, csp, permissions });
  await begun;
  await bridge.sendToolInput({ arguments: input });
  if (result) await bridge.sendToolResult(result);
  window.bridge = bridge;
  return bridge.getAppVersion()?.name;
};
