// `node:querystring`.

const escape = encodeURIComponent;
const unescape = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

function encode(object, separator = '&', equals = '=') {
  const pair = (key, value) => {
    const isWritten = ['string', 'number', 'bigint', 'boolean'].includes(typeof value) && !Number.isNaN(value);
    return `${encodeURIComponent(key)}${equals}${isWritten && Math.abs(value) !== Infinity ? encodeURIComponent(value) : ''}`;
  };
  return Object.entries(object ?? {})
    .flatMap(([key, value]) => (Array.isArray(value) ? value : [value]).map((one) => pair(key, one)))
    .join(separator);
}

function decode(text, separator = '&', equals = '=') {
  const object = Object.create(null);
  for (const part of text === '' ? [] : String(text).split(separator)) {
    if (part === '') continue;
    const at = part.indexOf(equals);
    const [key, value] = at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + equals.length)];
    const [name, said] = [key, value].map((one) => unescape(one.replaceAll('+', ' ')));
    object[name] = name in object ? [object[name], said].flat() : said;
  }
  return object;
}

module.exports = { encode, stringify: encode, decode, parse: decode, escape, unescape };
