// node --import ./toolbay/testing-environment.js --test
//
// Tests run in Node, which has more than a plugin. With this module, the plugin's own files
// fail in a test where they would fail in the plugin: see testing-hooks.js.

import { register } from 'node:module';
import { refuseLocales } from './web/locale.js';

refuseLocales();
register('./testing-hooks.js', import.meta.url);
