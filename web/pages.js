// The pages that are not about single jobs. Each has load(), which asks the server, and view(), which makes the elements.

import { deleteJobs, attempt, confirm, groupIds, replayJobs, runBulk } from './actions.js';
import { get, post, withQuery } from './api.js';
import { chart } from './chart.js';
import { h, icon } from './dom.js';
import { percent, plural, rate, short, shortId, span, when, whole } from './format.js';

// ---- Parts that several pages have.

export const link = (to, properties, ...children) => h('a', { href: to, ...properties }, ...children);
export const queueLink = (name) => link(withQuery('/jobs', { queue: name, state: 'ready' }), { class: 'name' }, name);
export const jobsLink = (parameters, text) => link(withQuery('/jobs', parameters), {}, text);
export const state = (name) => h('span', { class: `state ${name}` }, name);

export const head = (title, ...more) => h('header', { class: 'page-head' }, h('h1', {}, title), ...more);
export const card = (title, properties, ...children) =>
  h('section', { ...properties, class: `card ${properties?.class ?? ''}` }, title === null ? null : h('h2', {}, title), ...children);
export const code = (text) => h('code', { class: 'command' }, text);
export const empty = (title, text, ...more) => h('div', { class: 'empty' }, h('strong', {}, title), h('p', {}, text), ...more);
export const reason = (text) => h('p', { class: 'reason' }, icon('about'), text);

// Cells are {text, class}, or nodes; the label of a column is shown beside its cell where the table does not fit.
export function table(label, columns, rows) {
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label },
    h('table', {},
      h('caption', { class: 'hidden-text' }, label),
      h('thead', {}, h('tr', {}, columns.map((column) => h('th', { scope: 'col', class: column.class }, column.title)))),
      h('tbody', {}, rows.map((row) => h('tr', { key: row.key, class: row.class, 'data-href': row.href },
        columns.map((column, i) => h('td', { class: column.class, 'data-label': column.title }, row.cells[i])))))));
}

const kWindows = [['hour', 'Hour'], ['day', 'Day'], ['week', 'Week']];

function windowSwitch(ctx) {
  const now = ctx.query.window ?? 'hour';
  return h('div', { class: 'switch', role: 'group', 'aria-label': 'Time shown' }, kWindows.map(([name, title]) =>
    link(withQuery(ctx.path, { ...ctx.query, window: name === 'hour' ? '' : name }), { 'aria-current': name === now ? 'true' : null }, title)));
}

// Counts of steps as a rate a minute. The step that is going on counts for as long as it has lasted.
function perMinute(stats, values) {
  const from = new Date(stats.from).getTime();
  const begun = from + (values.length - 1) * stats.step_ms;
  const lasted = Math.max(stats.step_ms * 0.2, Math.min(stats.step_ms, Date.now() - begun));
  return values.map((value, i) => (value * 60_000) / (i === values.length - 1 ? lasted : stats.step_ms));
}

// Without the time before anything was counted, but at least this many steps.
const kLeastSteps = 30;
function lately(stats, series) {
  const { steps } = stats;
  const count = steps.done.length;
  const first = steps.enqueued.findIndex((_, i) => steps.enqueued[i] + steps.started[i] + steps.done[i] + steps.failed[i] > 0);
  const from = Math.max(0, Math.min(first < 0 ? 0 : first - 2, count - kLeastSteps));
  return { from: new Date(stats.from).getTime() + from * stats.step_ms, step: stats.step_ms, series: series.map((each) => ({ ...each, values: each.values.slice(from) })) };
}

export function throughputChart(stats) {
  const { steps } = stats;
  return chart({
    label: 'Jobs a minute', unit: (value) => `${rate(value)}/min`, tick: short, least: 6,
    ...lately(stats, [
      { name: 'enqueued', color: 'c-enqueued', values: perMinute(stats, steps.enqueued) },
      { name: 'done', color: 'c-done', values: perMinute(stats, steps.done), area: true },
      { name: 'failed', color: 'c-failed', values: perMinute(stats, steps.failed), area: true },
    ]),
  });
}

export function latenessChart(stats) {
  const { steps } = stats;
  return chart({
    label: 'How late jobs start', unit: span, least: 10,
    ...lately(stats, [
      { name: '99 %', color: 'c-p99', values: steps.lateness_p99_ms },
      { name: '95 %', color: 'c-p95', values: steps.lateness_p95_ms },
      { name: 'half', color: 'c-p50', values: steps.lateness_p50_ms },
    ]),
  });
}

const legend = (...names) => h('p', { class: 'legend' }, names.map(([color, text]) => h('span', {}, h('i', { class: `swatch ${color}` }), text)));

// A caller that is restricted to queues sees the first of them.
const statsPath = (ctx, more = {}) =>
  withQuery('/v1/stats', { window: ctx.query.window, queue: ctx.session.queues[0], ...more });

const sum = (queues, name) => queues.reduce((all, queue) => all + queue[name], 0);

// ---- Overview.

const kLate = 60_000;

// What somebody should look at, worst first.
function findings({ queues, stats, pressure, groups }) {
  const all = [];
  const add = (weight, kind, text, to, action) => all.push({ weight, kind, text, to, action });
  if (pressure.level !== 'ok') {
    add(0, pressure.level === 'blocked' ? 'bad' : 'warn', `The broker ${pressure.level === 'blocked' ? 'takes nothing' : 'wants less'}: ${pressure.reason || 'it does not say why'}`, '/about', 'About');
  }
  for (const queue of queues) {
    const waited = queue.oldest_ready ? Date.now() - new Date(queue.oldest_ready).getTime() : 0;
    if (queue.ready > 0 && queue.paused) {
      add(3, 'warn', `Queue ${queue.name} is paused, and ${plural(queue.ready, 'job waits', 'jobs wait')} in it`, '/queues', 'Queues');
    } else if (queue.ready > 0 && queue.workers === 0) {
      add(1, 'bad', `Nobody works on queue ${queue.name}: ${plural(queue.ready, 'job waits', 'jobs wait')}, the oldest for ${span(waited)}`, withQuery('/jobs', { state: 'ready', queue: queue.name }), 'See them');
    } else if (waited > kLate) {
      add(2, 'warn', `Queue ${queue.name} is behind: the oldest of ${plural(queue.ready, 'job')} has waited for ${span(waited)}`, withQuery('/jobs', { state: 'ready', queue: queue.name }), 'See them');
    }
  }
  for (const group of (groups?.groups ?? []).slice(0, 4)) {
    add(4, 'bad', h('span', {}, `${plural(group.count, 'dead job')} of kind `, h('b', {}, group.kind), ': ', h('q', {}, group.error || 'no error text')), withQuery('/dead', { group: group.id }), 'Look');
  }
  for (const kind of stats?.kinds ?? []) {
    const ended = kind.done + kind.failed;
    if (ended >= 20 && kind.failed / ended > 0.2) add(5, 'warn', `${percent(kind.failed, ended)} of the attempts at ${kind.name} fail`, withQuery('/jobs', { kind: kind.name, state: 'scheduled' }), 'Waiting for a retry');
  }
  return all.sort((one, other) => one.weight - other.weight).slice(0, 8);
}

function attention(data) {
  const all = findings(data);
  if (all.length === 0) {
    return card(null, { class: 'attention fine', 'aria-label': 'What needs attention' }, h('p', {}, icon('check'), h('strong', {}, 'Nothing needs attention'), h('span', { class: 'muted' }, ' No dead jobs, no queue without a worker, nothing late.')));
  }
  return card('Needs attention', { class: 'attention' }, h('ul', {}, all.map((each) => h('li', { class: each.kind },
    icon('alert'), h('span', { class: 'what' }, each.text), link(each.to, { class: 'button small' }, each.action)))));
}

function tile(title, value, note, to, kind) {
  return link(to, { class: `tile ${kind ?? ''}` }, h('span', { class: 'tile-title' }, title), h('span', { class: 'tile-value' }, value), h('span', { class: 'tile-note' }, note));
}

function tiles({ queues, stats }) {
  const ready = sum(queues, 'ready');
  const oldest = Math.max(0, ...queues.filter((queue) => queue.oldest_ready).map((queue) => Date.now() - new Date(queue.oldest_ready).getTime()));
  const dead = sum(queues, 'dead');
  const total = stats?.total;
  const lastMinutes = stats && stats.step_ms === 10_000 ? stats.steps.done.slice(-7, -1).reduce((all, each) => all + each, 0) : null;
  return h('div', { class: 'tiles' },
    tile('Ready', short(ready), ready > 0 ? `oldest ${span(oldest)}` : 'nothing waits', '/jobs?state=ready'),
    tile('Running', short(sum(queues, 'running')), 'at this moment', '/jobs?state=running'),
    tile('Scheduled', short(sum(queues, 'scheduled')), 'due later', '/jobs?state=scheduled'),
    tile('Dead', short(dead), dead > 0 ? 'wait for you' : 'none', '/dead', dead > 0 ? 'bad' : ''),
    total ? tile('Done', short(lastMinutes ?? total.done), lastMinutes === null ? 'in the time shown' : 'in the last minute', '/jobs?state=done') : null,
    total ? tile('Failed attempts', percent(total.failed, total.done + total.failed), `${short(total.failed)} of ${short(total.done + total.failed)}`, '/dead') : null);
}

function kindsTable(stats) {
  const rows = [...stats.kinds].sort((one, other) => other.started + other.enqueued - one.started - one.enqueued).slice(0, 10);
  return table('Kinds of jobs', [{ title: 'Kind' }, { title: 'Enqueued', class: 'number' }, { title: 'Done', class: 'number' }, { title: 'Failed', class: 'number' }, { title: 'Dead', class: 'number' }, { title: 'Late, p95', class: 'number' }],
    rows.map((kind) => ({
      key: kind.name,
      cells: [jobsLink({ kind: kind.name }, kind.name), short(kind.enqueued), short(kind.done),
        kind.failed > 0 ? h('span', { class: 'warn-text' }, short(kind.failed)) : '0',
        kind.dead > 0 ? h('span', { class: 'bad-text' }, short(kind.dead)) : '0', span(kind.lateness_p95_ms)],
    })));
}

export const overview = {
  title: 'Overview',
  every: 3_000,
  async load(ctx) {
    const optional = (promise) => promise.catch((problem) => (problem.status === 401 ? Promise.reject(problem) : null));
    const [queues, stats, pressure, groups] = await Promise.all([
      get('/v1/queues', ctx.signal),
      optional(get(statsPath(ctx), ctx.signal)),
      get('/v1/pressure', ctx.signal),
      optional(get('/v1/dead/groups', ctx.signal)),
    ]);
    return { queues: queues.queues, stats, pressure, groups };
  },
  view(data, ctx) {
    const { queues, stats } = data;
    const isNew = queues.length === 0;
    return [
      head('Overview', windowSwitch(ctx)),
      isNew ? empty('No job has come by yet', 'Enqueue one, and give it somebody who does the work:',
        code('bide enqueue hello \'{"name":"world"}\''), code("bide work --exec 'cat'"), ctx.can.write ? link('/enqueue', { class: 'button primary' }, 'Enqueue from here') : null) : attention(data),
      tiles(data),
      stats ? h('div', { class: 'columns' },
        card('Throughput, jobs a minute', {}, legend(['c-enqueued', 'enqueued'], ['c-done', 'done'], ['c-failed', 'failed attempts']), throughputChart(stats)),
        card('Lateness, from due to start', {}, legend(['c-p50', 'half start within'], ['c-p95', '95 %'], ['c-p99', '99 %']), latenessChart(stats))) : null,
      stats && (stats.kinds.length > 0 || stats.queues.length > 0) ? card('Kinds', {}, kindsTable(stats),
        h('p', { class: 'muted small below' }, 'Counted by this server: what workers and callers do through it, while it runs.')) : null,
    ];
  },
};

// ---- Queues.

async function pauseQueue(queue, ctx) {
  const sure = queue.paused || await confirm({ title: `Pause ${queue.name}?`, text: 'No more of its jobs are handed out until it is resumed. What is running goes on.', action: 'Pause' });
  if (sure && await attempt(() => post(`/v1/queues/${encodeURIComponent(queue.name)}/${queue.paused ? 'resume' : 'pause'}`), `${queue.name} is ${queue.paused ? 'resumed' : 'paused'}`)) ctx.reload();
}

async function purgeQueue(queue, ctx) {
  const sure = await confirm({ title: `Remove ${plural(queue.ready + queue.scheduled + queue.waiting, 'job')} of ${queue.name}?`, text: 'Every job that is ready, scheduled or waits for others is removed, for good. Running and dead ones stay.', action: 'Remove them', danger: true });
  if (sure && await attempt(() => post(`/v1/queues/${encodeURIComponent(queue.name)}/purge`), (answer) => `${plural(answer.removed, 'job')} removed`)) ctx.reload();
}

export const queues = {
  title: 'Queues',
  every: 2_000,
  async load(ctx) {
    const [list, stats] = await Promise.all([get('/v1/queues', ctx.signal), get(statsPath(ctx), ctx.signal).catch(() => null)]);
    return { queues: list.queues, stats };
  },
  view(data, ctx) {
    const counted = new Map((data.stats?.queues ?? []).map((queue) => [queue.name, queue]));
    const columns = [{ title: 'Queue' }, { title: 'Ready', class: 'number' }, { title: 'Oldest', class: 'number' }, { title: 'Running', class: 'number' }, { title: 'Scheduled', class: 'number' }, { title: 'Dead', class: 'number' }, { title: 'Done, 1 h', class: 'number' }, { title: 'Late, p95', class: 'number' }, { title: 'Workers', class: 'number' }];
    if (ctx.can.admin) columns.push({ title: 'Actions', class: 'actions' });
    const rows = data.queues.map((queue) => {
      const count = counted.get(queue.name);
      const waited = queue.oldest_ready ? Date.now() - new Date(queue.oldest_ready).getTime() : null;
      const cells = [
        h('span', {}, queueLink(queue.name), queue.paused ? h('span', { class: 'state paused' }, 'paused') : null),
        jobsLink({ state: 'ready', queue: queue.name }, short(queue.ready)),
        h('span', { class: waited > kLate ? 'warn-text' : '', title: queue.oldest_ready ?? '' }, waited === null ? '–' : span(Math.max(0, waited))),
        jobsLink({ state: 'running', queue: queue.name }, short(queue.running)),
        jobsLink({ state: 'scheduled', queue: queue.name }, short(queue.scheduled)),
        queue.dead > 0 ? link(withQuery('/dead', { queue: queue.name }), { class: 'bad-text' }, short(queue.dead)) : '0',
        count ? short(count.done) : '–', span(count?.lateness_p95_ms),
        h('span', { class: queue.workers === 0 && queue.ready > 0 ? 'bad-text' : '' }, queue.workers),
      ];
      if (ctx.can.admin) {
        cells.push(h('span', { class: 'row-buttons' },
          ctx.capabilities.queue_rules ? link(`/queues/${encodeURIComponent(queue.name)}`, { class: 'button small', 'aria-label': `Rules of ${queue.name}` }, 'Rules') : null,
          ctx.capabilities.pause ? h('button', { class: 'small', on: { click: () => pauseQueue(queue, ctx) }, 'aria-label': `${queue.paused ? 'Resume' : 'Pause'} ${queue.name}` }, icon(queue.paused ? 'play' : 'pause'), queue.paused ? 'Resume' : 'Pause') : null,
          queue.ready + queue.scheduled + queue.waiting > 0 ? h('button', { class: 'small quiet', on: { click: () => purgeQueue(queue, ctx) }, 'aria-label': `Purge ${queue.name}` }, 'Purge') : null));
      }
      return { key: queue.name, cells, class: queue.paused ? 'is-paused' : '', href: withQuery('/jobs', { queue: queue.name, state: 'ready' }) };
    });
    return [
      head('Queues', h('p', { class: 'muted' }, plural(data.queues.length, 'queue'))),
      data.queues.length === 0 ? empty('There is no queue yet', 'A queue is there as soon as a job is in it, or a worker asks for it:', code("bide work --queue mail --exec './send'"))
        : card(null, {}, table('Queues', columns, rows)),
      ctx.can.admin && !ctx.capabilities.pause ? reason(`Queues cannot be paused here. ${ctx.capabilities.why_not}`) : null,
    ];
  },
};

// ---- Dead jobs, by kind and error.

async function replayGroup(group, ctx, filter) {
  const until = new Date().toISOString();
  const sure = await confirm({ title: `Replay ${plural(group.count, 'job')}?`, text: `Jobs of kind ${group.kind} that died of “${group.error}” are put back, each with a fresh budget of attempts.`, action: `Replay ${whole(group.count)}` });
  if (!sure) return;
  await runBulk({ title: 'Replaying', total: group.count, verb: 'replayed', pages: (signal) => groupIds(group, { ...filter, until }, signal), act: replayJobs });
  ctx.reload();
}

async function deleteGroup(group, ctx, filter) {
  const until = new Date().toISOString();
  const sure = await confirm({ title: `Delete ${plural(group.count, 'job')}?`, text: `Jobs of kind ${group.kind} that died of “${group.error}” are deleted, for good.`, action: `Delete ${whole(group.count)}`, danger: true });
  if (!sure) return;
  await runBulk({ title: 'Deleting', total: group.count, verb: 'deleted', pages: (signal) => groupIds(group, { ...filter, until }, signal), act: deleteJobs });
  ctx.reload();
}

export const dead = {
  title: 'Dead',
  every: 4_000,
  async load(ctx) {
    if (!ctx.capabilities.dead_set) return { unsupported: true };
    const { queue, kind, error } = ctx.query;
    return get(withQuery('/v1/dead/groups', { queue, kind, error }), ctx.signal);
  },
  view(data, ctx) {
    const { queue, kind, error } = ctx.query;
    const filter = { queue, error };
    const title = head('Dead', h('p', { class: 'muted' }, 'Jobs that have used up their attempts, were rejected, expired, or killed their worker. They wait for you.'));
    if (data.unsupported) return [title, empty('This broker keeps no dead set', ctx.capabilities.why_not)];
    const filtered = queue || kind || error;
    return [
      title,
      filtered ? h('p', { class: 'filters' }, 'Only ', [['queue', queue], ['kind', kind], ['error', error]].filter(([, value]) => value).map(([name, value]) => h('span', { class: 'chip' }, `${name}: ${value}`)), link('/dead', { class: 'button small' }, 'Show all')) : null,
      data.groups.length === 0 ? empty(filtered ? 'No dead job matches' : 'No dead jobs', filtered ? 'Take away a filter to see more.' : 'When a job dies, it is here with its error, together with others of the same kind.', filtered ? null : code('bide dead list'))
        : h('div', { class: 'groups' }, data.groups.map((group) => card(null, { key: group.id, class: `group ${ctx.query.group === group.id ? 'chosen' : ''}` },
          h('div', { class: 'group-count' }, h('b', {}, short(group.count)), group.count === 1 ? 'job' : 'jobs'),
          h('div', { class: 'group-what' },
            h('h2', {}, link(withQuery('/jobs', { state: 'dead', kind: group.kind, queue }), {}, group.kind), h('span', { class: 'muted' }, ` in ${group.queues.join(', ')}`)),
            h('p', { class: 'error-text' }, group.error || 'It left no error text.'),
            h('p', { class: 'muted small' }, 'last ', when(group.last), group.count > 1 ? [', first ', when(group.first)] : null, ' · newest ', link(`/jobs/${group.example}`, { class: 'mono' }, shortId(group.example)))),
          ctx.can.admin ? h('div', { class: 'row-buttons' },
            h('button', { class: 'primary', on: { click: () => replayGroup(group, ctx, filter) }, 'aria-label': `Replay ${plural(group.count, 'job')} of ${group.kind}` }, 'Replay'),
            h('button', { class: 'quiet', on: { click: () => deleteGroup(group, ctx, filter) }, 'aria-label': `Delete ${plural(group.count, 'job')} of ${group.kind}` }, 'Delete')) : null))),
      data.groups.length > 0 && !data.complete ? reason(`There are more: the newest ${whole(data.looked_at)} dead jobs are grouped here.`) : null,
      data.groups.length > 0 ? h('p', { class: 'muted small' }, 'Numbers, ids and addresses in errors are folded, so that errors of the same cause are together. ', jobsLink({ state: 'dead' }, 'See them one by one')) : null,
    ];
  },
};

// ---- Workers.

export const workers = {
  title: 'Workers',
  every: 3_000,
  async load(ctx) {
    const [list, running] = await Promise.all([
      get('/v1/workers', ctx.signal),
      ctx.capabilities.inspect ? get('/v1/jobs?state=running&limit=100', ctx.signal).catch(() => ({ jobs: [] })) : { jobs: [] },
    ]);
    return { workers: list.workers, running: running.jobs };
  },
  view(data, ctx) {
    const byWorker = new Map();
    for (const job of data.running) byWorker.set(job.worker ?? '', [...(byWorker.get(job.worker ?? '') ?? []), job]);
    const rows = [...data.workers].sort((one, other) => Number(other.connected) - Number(one.connected) || other.started - one.started).map((worker) => {
      const jobs = byWorker.get(worker.name) ?? [];
      return {
        key: worker.name,
        class: worker.connected ? '' : 'is-gone',
        cells: [h('span', {}, h('b', {}, worker.name || '(without a name)'), ' ', worker.connected ? h('span', { class: 'state running' }, 'here') : h('span', { class: 'state done' }, 'gone')),
          worker.queues.join(', '), whole(worker.running),
          jobs.length === 0 ? '–' : h('span', { class: 'job-list' }, jobs.slice(0, 5).map((job) => link(`/jobs/${job.id}`, { class: 'chip', title: job.id }, job.kind)), jobs.length > 5 ? ` and ${jobs.length - 5} more` : null),
          short(worker.done), worker.failed > 0 ? h('span', { class: 'warn-text' }, short(worker.failed)) : '0', when(worker.last_start), when(worker.since)],
      };
    });
    return [
      head('Workers', h('p', { class: 'muted' }, `${data.workers.filter((worker) => worker.connected).length} connected`)),
      data.workers.length === 0 ? empty('Nobody works here yet', 'A worker takes jobs from this server and runs a program for each, in any language:', code(`bide work --url ${location.origin} --exec './handler'`))
        : card(null, {}, table('Workers', [{ title: 'Worker' }, { title: 'Queues' }, { title: 'Running', class: 'number' }, { title: 'Doing' }, { title: 'Done', class: 'number' }, { title: 'Failed', class: 'number' }, { title: 'Last start' }, { title: 'Since' }], rows)),
      h('p', { class: 'muted small' }, 'Those that take jobs through this server, since it was started. Polls without a name share one row.'),
    ];
  },
};

// ---- Callbacks.

export const callbacks = {
  title: 'Callbacks',
  every: 4_000,
  load: (ctx) => get(withQuery('/v1/callbacks', { limit: 50, before: ctx.query.before }), ctx.signal),
  view(data, ctx) {
    const redeliver = async (delivery) => {
      if (await attempt(() => post(`/v1/callbacks/${delivery.id}/replay`), (answer) => `Delivered again: ${answer.how}`)) ctx.reload();
    };
    const columns = [{ title: 'Sent' }, { title: 'Kind' }, { title: 'To' }, { title: 'Attempt', class: 'number' }, { title: 'Answer' }, { title: 'Took', class: 'number' }];
    if (ctx.can.admin) columns.push({ title: 'Actions', class: 'actions' });
    return [
      head('Callbacks', h('p', { class: 'muted' }, `${whole(data.waiting)} waiting, ${whole(data.sending)} being sent, ${whole(data.accepted)} accepted`)),
      data.policy === 'off' ? empty('Callbacks are off', 'The server can deliver jobs to an address of yours, signed and retried. Say where it may send to:', code('[callbacks]\npolicy = "allow-list"\nallow = ["hooks.example.com"]'))
        : data.deliveries.length === 0 ? empty('Nothing has been delivered yet', 'Enqueue a job with an address, and the server brings it there:', code('curl --json \'{"kind":"greet","callback":"https://…"}\' ' + location.origin + '/v1/jobs'))
          : card(null, {}, table('Deliveries', columns, data.deliveries.map((delivery) => ({
            key: delivery.id,
            cells: [when(delivery.at), link(`/jobs/${delivery.job}`, {}, delivery.kind), h('span', { class: 'mono wrap' }, delivery.url), delivery.attempt,
              h('span', {}, h('span', { class: `state ${delivery.outcome === 'done' ? 'done' : delivery.outcome === 'accepted' ? 'running' : 'dead'}` }, delivery.outcome), delivery.status ? ` ${delivery.status}` : '', delivery.error ? h('span', { class: 'error-text' }, ` ${delivery.error}`) : null),
              span(delivery.took_ms), ctx.can.admin ? h('button', { class: 'small', on: { click: () => redeliver(delivery) }, 'aria-label': `Deliver ${delivery.kind} again` }, 'Again') : null],
          })))),
      data.hosts.length > 0 ? card('Receivers', {}, table('Receivers', [{ title: 'Host' }, { title: 'State' }, { title: 'At once', class: 'number' }, { title: 'Waiting', class: 'number' }, { title: 'Typically', class: 'number' }, { title: 'Last error' }],
        data.hosts.map((host) => ({ key: host.host, cells: [h('b', {}, host.host), h('span', { class: `state ${host.breaker === 'closed' ? 'done' : 'dead'}` }, host.breaker === 'closed' ? 'well' : host.breaker), `${host.under_way} of ${host.limit}`, host.waiting, span(host.typical_ms), host.last_error || '–'] })))) : null,
      data.next ? h('p', {}, link(withQuery('/callbacks', { before: data.next }), { class: 'button' }, 'Older')) : null,
    ];
  },
};

// ---- About.

const kCapabilities = {
  inspect: 'Find, list and count jobs', cancel: 'Cancel jobs', reschedule: 'Put jobs off', hasten: 'Run jobs earlier', unique_keys: 'Unique keys', idempotent_ids: 'The same id twice is one job', priorities: 'Priorities', pause: 'Pause queues', results: 'Keep results', expiry: 'Expiry', dead_set: 'Dead set', atomic_effects: 'Effects and outcome in one step', completions: 'Told when a job ends', final_settle: 'A confirmed outcome is final', due_order: 'In the order of due times', lasting_leases: 'Leases survive a restart', audit: 'Audit of every job', carries_past: 'Jobs can be moved here with their past', save_body: 'Save progress in the body', events: 'Events', group_limits: 'Limits of bindings', edit: 'Edit jobs that wait', schedules: 'Schedules', queue_rules: 'Rules of queues, and groups', kinds: 'Workers get their kinds only', unique_windows: 'Unique for a time', dependencies: 'Jobs that wait for jobs', progress: 'Progress of running jobs', steps: 'Steps are done once',
};

export const about = {
  title: 'About',
  every: 15_000,
  async load(ctx) {
    const optional = (promise) => promise.catch((problem) => ({ problem: problem.message }));
    const [server, pressure, audit] = await Promise.all([optional(get('/v1/about', ctx.signal)), get('/v1/pressure', ctx.signal), ctx.capabilities.audit ? optional(get('/v1/audit', ctx.signal)) : null]);
    return { server, pressure, audit };
  },
  view({ server, pressure, audit }, ctx) {
    const row = (name, ...value) => [h('dt', {}, name), h('dd', {}, ...value)];
    const durability = { fsync: 'fsync: confirmed jobs survive power loss', os: 'os: confirmed jobs survive a crash of bide, not of the machine', none: 'none: for tests only' };
    return [
      head('About'),
      h('div', { class: 'columns' },
        card('This server', {}, server.problem ? reason(server.problem) : h('dl', { class: 'facts' },
          row('Version', server.version), row('Broker', h('span', { class: 'mono wrap' }, server.broker)), row('Durability', durability[server.durability] ?? (server.durability || 'as the broker is set up')),
          row('Running since', when(server.started)), row('Pressure', h('span', { class: `state ${pressure.level === 'ok' ? 'done' : 'dead'}` }, pressure.level), ` ${pressure.reason}`),
          row('You are', h('b', {}, ctx.session.name), ` with ${ctx.session.scopes.join(', ')}`, ctx.session.queues.length > 0 ? `, for ${ctx.session.queues.join(', ')}` : ''))),
        card('Every job accounted for', {}, audit === null ? reason(`This broker cannot tell. ${ctx.capabilities.why_not}`) : audit.problem ? reason(audit.problem) : [
          h('p', { class: 'verdict' }, icon(audit.ok ? 'check' : 'alert'), h('strong', { class: audit.ok ? 'ok-text' : 'bad-text' }, audit.ok ? 'Every accepted job is in exactly one place' : plural(audit.problems.length, 'problem'))),
          h('dl', { class: 'facts' }, row('Accepted', whole(audit.accepted)), row('Done', whole(audit.done)), row('Removed', whole(audit.removed)), row('Alive', whole(audit.live))),
          audit.problems.length > 0 ? h('ul', {}, audit.problems.slice(0, 20).map((problem) => h('li', { class: 'bad-text' }, problem))) : null])),
      card('What this broker can do', {}, ctx.capabilities.why_not ? reason(ctx.capabilities.why_not) : null,
        h('ul', { class: 'capabilities' }, Object.entries(kCapabilities).map(([name, text]) => h('li', { class: ctx.capabilities[name] ? 'yes' : 'no' }, icon(ctx.capabilities[name] ? 'check' : 'pause'), h('span', {}, text, h('span', { class: 'hidden-text' }, ctx.capabilities[name] ? ': yes' : ': no')))))),
      card('From a shell', {}, h('p', { class: 'muted' }, 'Everything here can also be done from a command line, and by programs:'), code(`bide dead list --url ${location.origin}`), code(`curl ${location.origin}/v1/openapi.json`)),
    ];
  },
};
