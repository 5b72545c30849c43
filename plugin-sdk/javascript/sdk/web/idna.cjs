// The conversion of host names for `URL`, without the tables of internationalized names.

exports.toASCII = function toASCII(domain) {
  if (/[^\0-\x7f]/.test(domain)) {
    throw new Error(`the host name ${domain} is not ASCII: write it as xn--…, for example with the package tr46`);
  }
  return domain.toLowerCase();
};
