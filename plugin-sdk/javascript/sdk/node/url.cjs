module.exports = { ...require('url/url.js'), URL, URLSearchParams };
