// What the page does on demand: dialogs that ask first, notices, and actions on many jobs that show how far they are and can be
// stopped.

import { get, post, withQuery } from './api.js';
import { h, icon } from './dom.js';
import { plural, whole } from './format.js';

const kBatch = 200;

let notices = null;

// One line at the bottom, for a few seconds; what went wrong stays until it is closed.
export function notify(text, kind = 'ok') {
  if (!notices) {
    notices = h('div', { class: 'notices', role: 'status' });
    document.body.appendChild(notices);
  }
  const close = () => notice.remove();
  const notice = h('div', { class: `notice ${kind}` }, icon(kind === 'ok' ? 'check' : 'alert'), h('span', {}, text),
    h('button', { class: 'plain', 'aria-label': 'Close', on: { click: close } }, '×'));
  notices.appendChild(notice);
  if (kind === 'ok') setTimeout(close, 5_000);
}

// Runs something that changes the server, and says how it went.
export async function attempt(what, done) {
  try {
    const result = await what();
    if (done) notify(typeof done === 'function' ? done(result) : done);
    return true;
  } catch (problem) {
    notify(problem.message, 'bad');
    return false;
  }
}

// A dialog around `content`. Resolves to what close() was given; Escape gives nothing.
export function openDialog(title, content) {
  return new Promise((resolve) => {
    const before = document.activeElement;
    const dialog = h('dialog', { 'aria-label': title });
    const close = (value) => {
      resolve(value);
      dialog.close();
      dialog.remove();
      before?.focus?.();
    };
    dialog.addEventListener('cancel', (event) => {
      event.preventDefault();
      close(undefined);
    });
    dialog.append(h('h2', {}, title), ...[content(close, dialog)].flat());
    document.body.appendChild(dialog);
    dialog.showModal();
  });
}

export function confirm({ title, text, action, danger = false }) {
  return openDialog(title, (close) => [
    h('p', {}, text),
    h('div', { class: 'buttons' },
      h('button', { on: { click: () => close(false) } }, 'Cancel'),
      h('button', { class: danger ? 'danger' : 'primary', autofocus: true, on: { click: () => close(true) } }, action)),
  ]);
}

export function askForTime() {
  const field = h('input', { id: 'delay', value: '10m', autocomplete: 'off', spellcheck: 'false' });
  return openDialog('When shall it run?', (close) => [
    h('form', { on: { submit: (event) => { event.preventDefault(); close(field.value.trim()); } } },
      h('label', { for: 'delay' }, 'In so long from now: 30s, 10m, 2h, 1d'), field,
      h('div', { class: 'buttons' },
        h('button', { type: 'button', on: { click: () => close(undefined) } }, 'Cancel'),
        h('button', { class: 'primary' }, 'Set the time'))),
  ]);
}

// Acts on many jobs, a batch at a time. `pages` is an async generator of lists of ids; `act` takes ids and says how many
// succeeded. Shows progress, and stops between two batches when asked to.
export function runBulk({ title, total, pages, act, verb }) {
  return openDialog(title, (close, dialog) => {
    const controller = new AbortController();
    const bar = h('progress', { max: String(Math.max(1, total)), value: 0, 'aria-label': title });
    const line = h('p', { role: 'status' }, `0 of ${whole(total)}`);
    const button = h('button', { on: { click: () => controller.abort() } }, 'Stop');
    dialog.addEventListener('cancel', () => controller.abort(), { capture: true });
    (async () => {
      let done = 0;
      let failed = 0;
      let problem = null;
      try {
        for await (const ids of pages(controller.signal)) {
          for (let at = 0; at < ids.length && !controller.signal.aborted; at += kBatch) {
            const batch = ids.slice(at, at + kBatch);
            const { succeeded } = await act(batch);
            done += succeeded;
            failed += batch.length - succeeded;
            bar.value = done + failed;
            line.textContent = `${whole(done)} of ${whole(total)} ${verb}${failed > 0 ? `, ${whole(failed)} were not in that state any more` : ''}`;
          }
          if (controller.signal.aborted) break;
        }
      } catch (error) {
        if (error.name !== 'AbortError') problem = error.message;
      }
      const stopped = controller.signal.aborted;
      line.textContent = `${stopped ? 'Stopped. ' : ''}${plural(done, 'job')} ${verb}${failed > 0 ? `, ${whole(failed)} were not in that state any more` : ''}.${problem ? ` ${problem}` : ''}`;
      if (!stopped && !problem) bar.value = bar.max;
      button.textContent = 'Close';
      button.bideOn = { click: () => close(done) };
      button.focus();
    })();
    return [bar, line, h('div', { class: 'buttons' }, button)];
  });
}

// Ids of jobs that match a filter, page by page. `until`: what changes meanwhile is not seen again.
export async function* matching(filter, signal) {
  let cursor = '';
  do {
    const page = await get(withQuery('/v1/jobs', { ...filter, limit: 500, cursor }), signal);
    yield page.jobs.map((job) => job.id);
    cursor = page.next;
  } while (cursor);
}

export async function* groupIds(group, filter, signal) {
  let cursor = '';
  do {
    const page = await get(withQuery(`/v1/dead/groups/${group.id}`, { ...filter, kind: group.kind, limit: 500, cursor }), signal);
    yield page.ids;
    cursor = page.next;
  } while (cursor);
}

export const replayJobs = (ids) => post('/v1/dead/replay', { ids });
export const deleteJobs = (ids) => post('/v1/dead/delete', { ids });
export const cancelJobs = (ids) => post('/v1/jobs/cancel', { ids });

const kKeys = [
  ['/', 'Search: a job id, or text of an error'],
  ['j, k', 'Next, previous row'],
  ['Enter', 'Open the row'],
  ['g o', 'Overview'], ['g q', 'Queues'], ['g j', 'Jobs'], ['g s', 'Schedules'], ['g d', 'Dead'], ['g w', 'Workers'],
  ['e', 'Enqueue a job'],
  ['p', 'Pause or go on with live updates'],
  ['?', 'This list'],
];

export const showKeys = () => openDialog('Keyboard', (close) => [
  h('dl', { class: 'keys' }, kKeys.map(([keys, what]) => [h('dt', {}, keys.split(' ').map((key) => h('kbd', {}, key.replace(',', '')))), h('dd', {}, what)])),
  h('div', { class: 'buttons' }, h('button', { class: 'primary', autofocus: true, on: { click: () => close() } }, 'Close')),
]);
