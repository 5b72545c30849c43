// The URL standard, for host names in ASCII: see idna.cjs.

import { URL as Complete, URLSearchParams } from 'whatwg-url';

export { Complete as URL, URLSearchParams };
