// The features of the console that need scripts: it updates pages without reloading them, reads the token of a login
// from the address, and shows that a call is running. The console also works without scripts.
'use strict';

/** The interval of updates, in milliseconds. */
const UPDATE_INTERVAL_MS = 1000;

/** The timeout of an update, in milliseconds. */
const UPDATE_TIMEOUT_MS = 10000;

/** The only place where text is parsed as HTML: pages of this console, which its server generates. */
const pages = window.trustedTypes
  ? window.trustedTypes.createPolicy('toolbay', { createHTML: (text) => text })
  : { createHTML: (text) => text };

const parts = () => [...document.querySelectorAll('[data-live]')];

/** Returns whether the user is interacting with the element. */
function isBusy(part) {
  const selection = document.getSelection();
  const selected = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  // Under the pointer, a question must not be replaced by another.
  if (part.querySelector('.decision:hover')) return true;
  return selected || (part.contains(document.activeElement) && part.matches(':focus-within:hover'));
}

/** Replaces a part by a new version: focus stays on the same link or button, and open elements stay open. */
function replace(part, updated) {
  if (part.innerHTML === updated.innerHTML) return;
  const keys = [...part.querySelectorAll('details[open][data-key]')].map((details) => details.dataset.key);
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const identify = (element) => element.getAttribute('href') || element.dataset.key;
  const target = focused && identify(focused);
  part.replaceChildren(...updated.childNodes);
  for (const details of part.querySelectorAll('details[data-key]')) {
    if (keys.includes(details.dataset.key)) details.open = true;
  }
  if (target) {
    const match = [...part.querySelectorAll('a[href], button[data-key]')].find((one) => identify(one) === target);
    if (match) match.focus({ preventScroll: true });
  }
}

function showStatus(text) {
  const away = document.getElementById('away');
  away.hidden = !text;
  if (away.textContent !== text) away.textContent = text;
}

/** Updates the page once. Returns whether to continue with updates. */
async function updatePage() {
  const signal = AbortSignal.timeout(UPDATE_TIMEOUT_MS);
  const options = { headers: { 'Toolbay-Live': '1' }, cache: 'no-store', redirect: 'error', signal };
  let response;
  try {
    response = await fetch(location.pathname + location.search, options);
  } catch {
    showStatus('The server does not respond. This page shows the last data that it sent.');
    return true;
  }
  if (response.status === 401) {
    showStatus('Your session has ended. Load the page to log in again.');
    return false;
  }
  if (!response.ok) {
    showStatus('The server cannot update this page. It shows the last data that the server sent.');
    return true;
  }
  const text = pages.createHTML(await response.text());
  const page = new DOMParser().parseFromString(text, 'text/html');
  for (const part of parts()) {
    const updated = page.getElementById(part.id);
    if (updated && !isBusy(part)) replace(part, updated);
  }
  showStatus('');
  document.documentElement.dataset.looks = Number(document.documentElement.dataset.looks || 0) + 1;
  return true;
}

function startUpdates() {
  const control = document.querySelector('[data-live-switch]');
  if (!control || parts().length === 0) return;
  control.parentElement.hidden = false;
  const tick = async () => {
    document.documentElement.dataset.ticks = Number(document.documentElement.dataset.ticks || 0) + 1;
    const isActive = control.checked && document.visibilityState === 'visible';
    if (!isActive || await updatePage()) setTimeout(tick, UPDATE_INTERVAL_MS);
  };
  setTimeout(tick, UPDATE_INTERVAL_MS);
}

/**
 * Logs in with the token of an address such as /console/login#TOKEN. This part of the address is not sent to a server.
 */
function logIn() {
  const form = document.querySelector('form[data-login]');
  const token = location.hash.slice(1);
  if (token.length < 40) return;
  // It is removed from the history, even if a session made it unnecessary.
  history.replaceState(null, '', location.pathname);
  if (!form) return;
  form.elements.token.value = token;
  form.requestSubmit();
}

/** Sends one call per press, and shows a text while it runs. */
function guardCallForms() {
  for (const form of document.querySelectorAll('form[data-call]')) {
    form.addEventListener('submit', () => {
      const button = form.querySelector('button[type=submit]');
      button.disabled = true;
      button.textContent = 'Calling…';
    });
  }
  // The user returned to a page that the browser has cached.
  window.addEventListener('pageshow', (event) => event.persisted && location.reload());
}

/** Buttons that copy a text, such as a digest. They are hidden without scripts, or where copying is not possible. */
function addCopyButtons() {
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll('button[data-copy]')) {
    button.hidden = false;
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = 'Copied';
      } catch {
        button.textContent = 'Not copied';
      }
    });
  }
}

/** The key "/" moves the focus to the search field. */
function addSearchKey() {
  document.addEventListener('keydown', (event) => {
    const search = document.querySelector('[data-search]');
    const typing = event.target.closest('input, textarea, select');
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || typing || !search) return;
    event.preventDefault();
    search.focus();
    search.select();
  });
}

/** Moves the focus to the outcome of a call, so that screen readers read it first. */
function focusOutcome() {
  document.querySelector('h2[autofocus]')?.focus();
}

logIn();
// Navigation to such an address in the same tab does not load a page.
window.addEventListener('hashchange', logIn);
startUpdates();
guardCallForms();
addSearchKey();
addCopyButtons();
focusOutcome();
