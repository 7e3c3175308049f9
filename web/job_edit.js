// What a job carries, for people; and the dialog that changes it while it waits or is dead.

import { attempt, openDialog, replayJobs } from './actions.js';
import { patch } from './api.js';
import { h } from './dom.js';

export function content(job, name, type) {
  if (job[name] !== undefined) return { text: typeof job[name] === 'string' ? job[name] : JSON.stringify(job[name]), pretty: typeof job[name] === 'string' ? job[name] : JSON.stringify(job[name], null, 2) };
  if (job[`${name}_text`] !== undefined) {
    const text = job[`${name}_text`];
    try {
      return { text, pretty: JSON.stringify(JSON.parse(text), null, 2) };
    } catch {
      return { text, pretty: text };
    }
  }
  if (job[`${name}_base64`] !== undefined) return { text: job[`${name}_base64`], pretty: null, binary: true, type };
  return null;
}


const linesOf = (headers) => (Array.isArray(headers) ? headers : Object.entries(headers ?? {})).map(([name, value]) => `${name}: ${value}`).join('\n');

// As the API reads it.
function durationOf(ms) {
  const [unit, name] = [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'm'], [1_000, 's'], [1, 'ms']].find(([each]) => ms % each === 0);
  return `${ms / unit}${name}`;
}

// Pairs; throws what is wrong with a line.
function headersOf(text) {
  return text.split('\n').filter((line) => line.trim() !== '').map((line) => {
    const [, name, value] = /^\s*([^:]+?)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    if (!name) throw new Error(`A header is "name: value", not "${line.trim()}"`);
    return [name, value];
  });
}

// What is different from the job, as the API has it.
function changesOf(form, before) {
  const changes = {};
  const given = (name) => form.get(name)?.trim() ?? '';
  for (const name of ['queue', 'retry', 'time_limit']) if (given(name) !== '' && given(name) !== before[name]) changes[name] = given(name);
  if (given('priority') !== '' && given('priority') !== before.priority) {
    changes.priority = Number(given('priority'));
    if (!Number.isInteger(changes.priority)) throw new Error('The priority is a whole number from -100 to 100');
  }
  const headers = headersOf(form.get('headers') ?? '');
  if (JSON.stringify(headers) !== JSON.stringify(headersOf(before.headers))) changes.headers = headers;
  // A textarea has its line ends normalised.
  const body = (form.get('body') ?? '').replaceAll('\r\n', '\n');
  if (before.body !== null && body !== before.body) changes.body_text = body;
  return changes;
}

// Resolves to whether the job was changed.
export function askForEdit(job, ctx) {
  const given = content(job, 'body') ?? { text: '', pretty: '' };
  const before = {
    queue: job.queue, priority: String(job.priority ?? 0), retry: typeof job.retry === 'string' ? job.retry : '', time_limit: durationOf(job.time_limit_ms ?? 0),
    headers: linesOf(job.headers), body: given.binary ? null : given.pretty ?? given.text,
  };
  const isDead = job.state === 'dead';
  return openDialog('Edit this job', (close) => {
    const field = (name, title, properties, note) => h('div', { class: 'field' }, h('label', { for: `edit-${name}` }, title), h('input', { id: `edit-${name}`, name, autocomplete: 'off', spellcheck: 'false', ...properties }), note ? h('span', { class: 'muted small' }, note) : null);
    const wrong = h('p', { class: 'bad-text', role: 'alert' });
    const submit = async (event) => {
      event.preventDefault();
      wrong.textContent = '';
      let changes = {};
      try {
        changes = changesOf(new FormData(event.target), before);
      } catch (problem) {
        wrong.textContent = problem.message;
        return;
      }
      const replays = event.submitter?.value === 'replay';
      if (Object.keys(changes).length === 0 && !replays) return void close(false);
      try {
        if (Object.keys(changes).length > 0) await patch(`/v1/jobs/${job.id}`, changes);
      } catch (problem) {
        wrong.textContent = problem.message;
        return;
      }
      close(true);
      if (replays) await attempt(() => replayJobs([job.id]), 'It is changed and put back');
      else await attempt(async () => null, 'It is changed');
    };
    return h('form', { class: 'edit', on: { submit } },
      h('div', { class: 'field' }, h('label', { for: 'edit-body' }, 'Body'),
        before.body === null
          ? h('span', { class: 'muted small' }, 'It is no text, and stays as it is.')
          : h('textarea', { id: 'edit-body', name: 'body', rows: '9', spellcheck: 'false', autofocus: true, value: before.body }),
        h('span', { class: 'muted small' }, job.content_type || 'no content type')),
      h('div', { class: 'field-row' }, field('queue', 'Queue', { value: before.queue }), field('priority', 'Priority', { value: before.priority, inputmode: 'numeric' }, '-100 to 100')),
      h('div', { class: 'field-row' }, field('retry', 'Retry', { value: before.retry }), field('time_limit', 'Time limit', { value: before.time_limit }, '90s, 10m, 2h')),
      h('div', { class: 'field' }, h('label', { for: 'edit-headers' }, 'Headers'), h('textarea', { id: 'edit-headers', name: 'headers', rows: '3', spellcheck: 'false', value: before.headers, placeholder: 'tenant: acme' }), h('span', { class: 'muted small' }, 'One a line: name: value')),
      wrong,
      h('div', { class: 'buttons' },
        h('button', { type: 'button', on: { click: () => close(false) } }, 'Cancel'),
        h('button', { class: isDead && ctx.can.admin ? '' : 'primary', value: 'save' }, 'Save'),
        isDead && ctx.can.admin ? h('button', { class: 'primary', value: 'replay' }, 'Save and replay') : null));
  });
}
