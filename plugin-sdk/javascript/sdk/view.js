// Views: pages that clients show with the results of tools (MCP Apps).

import { members } from './check.js';

const TYPE = 'text/html;profile=mcp-app';

/** The permissions that a view can request, with the name of each list of origins in MCP. */
const ORIGINS = {
  connect: 'connectDomains',
  resources: 'resourceDomains',
  frames: 'frameDomains',
  base: 'baseUriDomains',
};

const PERMISSIONS = ['camera', 'microphone', 'geolocation', 'clipboardWrite'];

const VIEW = {
  connect: 'object',
  resources: 'object',
  frames: 'object',
  base: 'object',
  permissions: 'object',
  border: 'boolean',
  domain: 'string',
};

const isView = (uri) => uri.startsWith('ui://');

/** Returns the MIME type of a resource that has none. */
export const typeOf = (uri) => (isView(uri) ? TYPE : undefined);

/** Returns `_meta` with the permissions that a view requests. */
export function withView(where, uri, view, meta) {
  if (view === undefined) return meta;
  if (!isView(uri)) throw new TypeError(`${where}: the URI of a view begins with ui://`);
  members(`view of ${where}`, view, VIEW);
  const csp = {};
  for (const [key, name] of Object.entries(ORIGINS)) {
    if (view[key] === undefined) continue;
    if (!Array.isArray(view[key])) throw new TypeError(`view of ${where}: \`${key}\` is a list of origins`);
    csp[name] = view[key];
  }
  for (const permission of view.permissions ?? []) {
    if (!PERMISSIONS.includes(permission)) {
      throw new TypeError(`view of ${where}: \`${permission}\` is none of ${PERMISSIONS.join(', ')}`);
    }
  }
  const permissions = Object.fromEntries((view.permissions ?? []).map((permission) => [permission, {}]));
  const ui = {
    csp: Object.keys(csp).length > 0 ? csp : undefined,
    permissions: Object.keys(permissions).length > 0 ? permissions : undefined,
    prefersBorder: view.border,
    domain: view.domain,
  };
  return { ...meta, ui };
}

/** Returns `_meta` with a tool's view, and with the visibility of the tool. */
export function withLink(where, view, appOnly, meta) {
  if (view === undefined && !appOnly) return meta;
  if (view !== undefined && !isView(view)) throw new TypeError(`${where}: the URI of a view begins with ui://`);
  return { ...meta, ui: { resourceUri: view, visibility: appOnly ? ['app'] : undefined } };
}
