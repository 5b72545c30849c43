// Messages: of a prompt, and to the client's model.

import { members } from './check.js';

const MESSAGE = { role: 'string', content: undefined };

/** Returns whether `item` names its author. */
export const isMessage = (item) => typeof item === 'object' && item !== null && 'role' in item;

/** Throws unless `item` is a message. */
export function checkMessage(item) {
  members('a message', item, MESSAGE);
  if (item.role !== 'user' && item.role !== 'assistant') {
    throw new TypeError(`the role of a message is 'user' or 'assistant', not ${String(item.role)}`);
  }
}
