// The URL standard, without the Unicode tables of internationalized host names.

import { URL as Complete, URLSearchParams } from 'whatwg-url-without-unicode';

export { Complete as URL, URLSearchParams };
