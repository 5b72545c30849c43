// Tells an operator that calls wait for an approval: it updates the count in the navigation and in the title, also while
// the page is in the background, and shows a notification of the browser if the operator has turned that on.
'use strict';

/** The interval of the requests, in milliseconds. */
const NOTICE_INTERVAL_MS = 5000;

/** The timeout of a request, in milliseconds. */
const NOTICE_TIMEOUT_MS = 10000;

/** The key in the storage of the browser under which the operator's choice is stored. */
const NOTICE_KEY = 'toolbay-notices';

/** The title of the page, without a count. */
const pageTitle = document.title.replace(/^\(\d+\) /, '');

const supportsNotices = 'Notification' in window && window.isSecureContext;

function noticesAreOn() {
  return supportsNotices && Notification.permission === 'granted' && localStorage.getItem(NOTICE_KEY) === 'on';
}

function showCount(element, count) {
  const text = count ? String(count) : '';
  if (element.textContent !== text) element.textContent = text;
  element.hidden = !count;
  element.setAttribute('aria-label', count === 1 ? '1 call waits' : `${count} calls wait`);
  const title = count ? `(${count}) ${pageTitle}` : pageTitle;
  if (document.title !== title) document.title = title;
}

/** Shows one notification for all calls that began to wait since the last one. */
function notify(count) {
  const body = count === 1 ? '1 call waits for an answer.' : `${count} calls wait for an answer.`;
  const notice = new Notification('Toolbay: approval required', { body, tag: 'toolbay-approval', renotify: true });
  notice.addEventListener('click', () => {
    window.focus();
    location.assign(document.querySelector('[data-waiting]').closest('a').href);
  });
}

function startNotices() {
  const element = document.querySelector('[data-waiting]');
  if (!element) return;
  let newest = Number(element.dataset.newest);
  const look = async () => {
    let response;
    try {
      const signal = AbortSignal.timeout(NOTICE_TIMEOUT_MS);
      const options = { headers: { 'Toolbay-Live': '1' }, cache: 'no-store', redirect: 'error', signal };
      response = await fetch(element.dataset.waiting, options);
    } catch {
      return true;
    }
    // The session has ended.
    if (response.status === 401) return false;
    if (!response.ok) return true;
    const waiting = await response.json();
    showCount(element, waiting.count);
    if (waiting.newest > newest && waiting.count && noticesAreOn() && document.visibilityState !== 'visible') {
      notify(waiting.count);
    }
    newest = Math.max(newest, waiting.newest);
    return true;
  };
  const tick = async () => {
    if (await look()) setTimeout(tick, NOTICE_INTERVAL_MS);
  };
  setTimeout(tick, NOTICE_INTERVAL_MS);
}

/** The button that turns notifications of the browser on and off. Nothing is asked before it is pressed. */
function addNoticeSwitch() {
  const button = document.querySelector('button[data-notices]');
  if (!button || !supportsNotices) return;
  const show = () => {
    button.setAttribute('aria-pressed', String(noticesAreOn()));
    button.textContent = noticesAreOn() ? 'Turn notifications off' : 'Notify me in this browser';
  };
  button.addEventListener('click', async () => {
    const turnOff = noticesAreOn();
    localStorage.setItem(NOTICE_KEY, turnOff ? 'off' : 'on');
    if (!turnOff && Notification.permission !== 'granted') await Notification.requestPermission();
    if (Notification.permission === 'denied') {
      button.disabled = true;
      button.textContent = 'The browser blocks notifications of this page';
      return;
    }
    show();
  });
  show();
  button.hidden = false;
}

startNotices();
addNoticeSwitch();
