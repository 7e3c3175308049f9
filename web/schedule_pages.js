// Schedules, and the rules of a queue.

import { attempt, confirm } from './actions.js';
import { get, post, put, remove, withQuery } from './api.js';
import { h, icon } from './dom.js';
import { relative, shortId, span, when, whole } from './format.js';
import { card, code, empty, head, jobsLink, link, reason, state, table } from './pages.js';

const schedulePath = (name) => `/schedules/${encodeURIComponent(name)}`;
const apiPath = (name) => `/v1/schedules/${encodeURIComponent(name)}`;
const kZone = 'UTC';

const expression = (schedule) => (schedule.cron
  ? h('span', {}, h('span', { class: 'mono' }, schedule.cron), schedule.zone === kZone ? null : h('span', { class: 'muted' }, ` ${schedule.zone}`))
  : `every ${span(schedule.every_ms)}`);

const kMoment = { weekday: 'short', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false };
const moment = (time) => h('time', { datetime: time, title: time }, new Date(time).toLocaleString('en', kMoment));

// What became of one due time.
const became = (occurrence) => (occurrence.note ? h('span', { class: 'muted' }, occurrence.note)
  : occurrence.state ? state(occurrence.state) : h('span', { class: 'muted' }, 'done or removed, and forgotten'));

async function runNow(schedule, ctx) {
  let id = null;
  if (await attempt(async () => { id = (await post(`${apiPath(schedule.name)}/run`)).id; }, `A job of ${schedule.name} is made`)) ctx.go(`/jobs/${id}`);
}

async function setPaused(schedule, ctx) {
  const sure = schedule.paused || await confirm({ title: `Pause ${schedule.name}?`, text: 'It makes no more jobs until it is resumed. Those that it has made go on.', action: 'Pause' });
  if (sure && await attempt(() => post(`${apiPath(schedule.name)}/${schedule.paused ? 'resume' : 'pause'}`), `${schedule.name} is ${schedule.paused ? 'resumed' : 'paused'}`)) ctx.reload();
}

async function removeSchedule(schedule, ctx) {
  const sure = await confirm({ title: `Remove ${schedule.name}?`, text: 'It makes no more jobs, and what is known of its last occurrences is gone. Jobs that it has made stay. A program that puts it makes it again.', action: 'Remove', danger: true });
  if (sure && await attempt(() => remove(apiPath(schedule.name)), `${schedule.name} is removed`)) ctx.go('/schedules');
}

function scheduleButtons(schedule, ctx, small) {
  if (!ctx.can.write) return null;
  const button = (text, properties, what, symbol) => h('button', { ...properties, class: `${small ? 'small ' : ''}${properties.class ?? ''}`, 'aria-label': `${text} ${schedule.name}`, on: { click: what } }, symbol ? icon(symbol) : null, text);
  return h('span', { class: 'row-buttons' },
    button('Run now', small ? {} : { class: 'primary' }, () => runNow(schedule, ctx)),
    button(schedule.paused ? 'Resume' : 'Pause', {}, () => setPaused(schedule, ctx), schedule.paused ? 'play' : 'pause'),
    small ? null : button('Remove', { class: 'quiet' }, () => removeSchedule(schedule, ctx)));
}

const nextOf = (schedule) => (schedule.paused ? h('span', { class: 'state paused' }, 'paused') : when(schedule.next));

export const schedules = {
  title: 'Schedules',
  every: 5_000,
  load: (ctx) => (ctx.capabilities.schedules ? get('/v1/schedules', ctx.signal) : { unsupported: true }),
  view(data, ctx) {
    if (data.unsupported) return [head('Schedules'), empty('This broker makes no jobs by itself', ctx.capabilities.why_not || 'It has no schedules.')];
    const columns = [{ title: 'Schedule' }, { title: 'When' }, { title: 'Next' }, { title: 'Kind' }, { title: 'Last' }];
    if (ctx.can.write) columns.push({ title: 'Actions', class: 'actions' });
    const rows = data.schedules.map((schedule) => {
      const last = schedule.last[0];
      const cells = [link(schedulePath(schedule.name), { class: 'name' }, schedule.name), expression(schedule), nextOf(schedule),
        h('span', {}, jobsLink({ kind: schedule.job.kind }, schedule.job.kind), h('span', { class: 'muted' }, ` in ${schedule.job.queue ?? 'default'}`)),
        last ? h('span', {}, became(last), ' ', h('span', { class: 'muted' }, when(last.due))) : '–'];
      if (ctx.can.write) cells.push(scheduleButtons(schedule, ctx, true));
      return { key: schedule.name, cells, class: schedule.paused ? 'is-paused' : '', href: schedulePath(schedule.name) };
    });
    return [
      head('Schedules', h('p', { class: 'muted' }, 'Jobs that are made again and again.')),
      data.schedules.length === 0 ? empty('There is no schedule yet', 'It makes a job at its times, exactly one however many servers there are. Put one from a shell, or let a program put it at each start:',
        code("bide schedule put report send_report --cron '30 7 * * mon-fri' --zone Europe/Berlin"), code("bide schedule next --cron '30 7 * * mon-fri'"))
        : card(null, {}, table('Schedules', columns, rows)),
    ];
  },
};

// ---- One schedule.

const kMissed = { skip: 'is left out', once: 'is made up for by one job', all: 'is made up for, job by job' };
const kOverlap = { allow: 'both may run', skip: 'the next one is left out', queue: 'the next one waits for its end' };

export const schedule = {
  title: 'Schedule',
  every: 5_000,
  async load(ctx) {
    const [info, times] = await Promise.all([get(apiPath(ctx.id), ctx.signal), get(withQuery(`${apiPath(ctx.id)}/times`, { limit: 6 }), ctx.signal).catch(() => null)]);
    return { info, times };
  },
  view({ info, times }, ctx) {
    const row = (name, ...value) => [h('dt', {}, name), h('dd', {}, ...value)];
    const { job } = info;
    const queue = job.queue ?? 'default';
    return [
      h('header', { class: 'page-head job-head' },
        h('div', {}, h('p', { class: 'crumbs' }, link('/schedules', {}, 'Schedules'), ' / ', info.name), h('h1', {}, info.name, ' ', info.paused ? h('span', { class: 'state paused' }, 'paused') : null)),
        scheduleButtons(info, ctx, false)),
      times ? h('p', { class: 'explanation' }, icon('clock'), times.text) : null,
      h('div', { class: 'columns job-columns' },
        h('div', { class: 'stack' },
          card('Last occurrences', {}, info.last.length === 0 ? empty('None has been due yet', info.paused ? 'It is paused.' : `The first one is due ${info.next ? relative(info.next) : 'never'}.`)
            : table('Last occurrences', [{ title: 'Due' }, { title: 'Became' }, { title: 'Job' }], info.last.map((each) => ({
              key: each.due,
              cells: [when(each.due), became(each), each.job && each.state ? link(`/jobs/${each.job}`, { class: 'mono' }, shortId(each.job)) : '–'],
              href: each.job && each.state ? `/jobs/${each.job}` : null,
            }))))),
        h('div', { class: 'stack' },
          card('Next', {}, info.paused ? h('p', { class: 'muted' }, 'No job is made while it is paused.') : null,
            h('ol', { class: 'times' }, (times?.times ?? []).map((time) => h('li', {}, moment(time), h('span', { class: 'muted' }, ` ${relative(time)}`))))),
          card('Facts', {}, h('dl', { class: 'facts' },
            row('When', expression(info)), info.anchor ? row('Counted from', when(info.anchor)) : null,
            row('Kind', jobsLink({ kind: job.kind }, job.kind)), row('Queue', jobsLink({ queue, state: 'ready' }, queue)),
            job.group ? row('Group', job.group) : null,
            job.retry ? row('Retry', h('span', { class: 'mono wrap' }, job.retry)) : null,
            row('What was missed', kMissed[info.missed] ?? info.missed, info.missed === 'all' ? `, at most ${whole(info.most_missed)}` : ''),
            row('When one lives on', kOverlap[info.overlap] ?? info.overlap),
            info.jitter_ms > 0 ? row('Jitter', span(info.jitter_ms)) : null,
            info.owner ? row('Owner', info.owner) : null,
            row('Version', info.version))))),
    ];
  },
};

// ---- The rules of a queue.

const kFields = [
  ['at_once', 'At once', 'jobs running', /^\d+$/],
  ['rate', 'Rate', '10/s, 100/5m or 10/s,burst=20', null],
  ['group_at_once', 'At once, each group', 'jobs running', /^\d+$/],
  ['group_rate', 'Rate of each group', '10/s', null],
  ['ageing', 'Ageing', 'each 1m of waiting is one priority higher', null],
  ['most_jobs', 'Most jobs waiting', 'beyond it enqueuing is refused', /^\d+$/],
  ['most_bytes', 'Most bytes waiting', 'of their bodies', /^\d+$/],
  ['oldest', 'Oldest', 'when one has waited for 1h, enqueuing is refused', null],
];
const kCounts = new Set(['at_once', 'group_at_once', 'most_jobs', 'most_bytes']);

const kUnits = [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'm'], [1_000, 's'], [1, 'ms']];

// As the server reads it: 90 000 -> "90s".
function duration(ms) {
  const [unit, name] = kUnits.find(([each]) => ms % each === 0);
  return `${ms / unit}${name}`;
}

// A rule as it is typed: nothing is no rule.
function shown(rules, name) {
  if (name === 'ageing' || name === 'oldest') return rules[`${name}_ms`] > 0 ? duration(rules[`${name}_ms`]) : '';
  return rules[name] ? String(rules[name]) : '';
}

const weightLines = (rules) => Object.entries(rules.weights).map(([group, weight]) => `${group}=${weight}`).join('\n');

function weightsOf(text) {
  const weights = {};
  for (const line of text.split('\n').map((each) => each.trim()).filter((each) => each !== '')) {
    const at = line.lastIndexOf('=');
    const weight = Number(line.slice(at + 1));
    if (at < 1 || !Number.isInteger(weight)) throw new Error(`Turns: “${line}” is not a group, =, and a whole number`);
    weights[line.slice(0, at)] = weight;
  }
  return weights;
}

function rulesOf(form) {
  const rules = { fair: form.get('fair') !== null, weights: weightsOf(form.get('weights')) };
  for (const [name, title, , pattern] of kFields) {
    const text = form.get(name).trim();
    if (text === '') continue;
    if (pattern && !pattern.test(text)) throw new Error(`${title}: “${text}” is not a whole number`);
    rules[name] = kCounts.has(name) ? Number(text) : text;
  }
  return rules;
}

function rulesForm(rules, ctx) {
  const path = `/v1/queues/${encodeURIComponent(ctx.id)}/rules`;
  const disabled = !ctx.can.admin;
  const field = ([name, title, note]) => h('div', { class: 'field' }, h('label', { for: name }, title), h('input', { id: name, name, value: shown(rules, name), autocomplete: 'off', spellcheck: 'false', disabled, inputmode: kCounts.has(name) ? 'numeric' : null, placeholder: 'no limit', 'aria-describedby': `${name}-note` }), h('span', { class: 'muted small', id: `${name}-note` }, note));
  const submit = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    if (await attempt(async () => put(path, rulesOf(form)), `${ctx.id} has these rules, from the next job on`)) ctx.reload();
  };
  const clear = async () => {
    const sure = await confirm({ title: `Take away the rules of ${ctx.id}?`, text: 'Its jobs run without limits, in the order in which they are due.', action: 'Take them away', danger: true });
    if (sure && await attempt(() => remove(path), `${ctx.id} has no rules`)) ctx.reload();
  };
  return h('form', { class: 'rules', on: { submit } },
    h('div', { class: 'field-grid' }, kFields.map(field)),
    h('div', { class: 'field' }, h('label', { class: 'check' }, h('input', { type: 'checkbox', name: 'fair', checked: rules.fair, disabled }), ' Groups take turns'), h('span', { class: 'muted small' }, 'Otherwise jobs run in the order in which they are due, and the group with a million of them goes first.')),
    h('div', { class: 'field' }, h('label', { for: 'weights' }, 'Turns'), h('textarea', { id: 'weights', name: 'weights', rows: '3', spellcheck: 'false', disabled, value: weightLines(rules), placeholder: 'tenant:42=3' }), h('span', { class: 'muted small' }, 'A group a line, 1 to 100; all others have 1.')),
    disabled ? null : h('div', { class: 'buttons' }, h('button', { class: 'quiet', type: 'button', on: { click: clear } }, 'Take all away'), h('button', { class: 'primary' }, 'Save')));
}

export const queue = {
  title: 'Queue',
  every: 0,  // What is being typed stays.
  async load(ctx) {
    const rules = ctx.capabilities.queue_rules ? await get(`/v1/queues/${encodeURIComponent(ctx.id)}/rules`, ctx.signal) : null;
    const list = await get('/v1/queues', ctx.signal);
    return { rules, counts: list.queues.find((each) => each.name === ctx.id) ?? null };
  },
  view({ rules, counts }, ctx) {
    const count = (title, name) => h('li', {}, jobsLink({ queue: ctx.id, state: name }, `${whole(counts[name])} ${title}`));
    return [
      h('header', { class: 'page-head' }, h('div', {}, h('p', { class: 'crumbs' }, link('/queues', {}, 'Queues'), ' / ', ctx.id), h('h1', {}, ctx.id, ' ', counts?.paused ? h('span', { class: 'state paused' }, 'paused') : null))),
      counts ? h('ul', { class: 'counts' }, count('ready', 'ready'), count('running', 'running'), count('scheduled', 'scheduled'), count('dead', 'dead')) : null,
      rules === null ? empty('This broker has no rules for queues', ctx.capabilities.why_not || 'Workers limit what they run by their concurrency.')
        : card('Rules', { class: 'narrow' }, h('p', { class: 'muted' }, 'Limits for all workers together, and for each group of jobs in this queue. A field that is empty is no limit.'),
          rulesForm(rules, ctx),
          h('p', { class: 'muted small below' }, 'The same from a shell:'), code(`bide queue rules ${ctx.id} --at-once 50 --group-at-once 3 --fair`)),
      ctx.can.admin || rules === null ? null : reason('This token may look at rules; to change them it needs the scope admin.'),
    ];
  },
};
