// Jobs: the list with its filters, one job with everything about it, and the form to enqueue one.

import { askForTime, attempt, cancelJobs, confirm, deleteJobs, matching, replayJobs, runBulk } from './actions.js';
import { get, patch, post, remove, withQuery } from './api.js';
import { h, icon } from './dom.js';
import { flowOf, meter, relations } from './flow_pages.js';
import { bytes, percent, plural, shortId, span, when, whole } from './format.js';
import { askForEdit, content } from './job_edit.js';
import { card, code, empty, head, link, reason, state, table } from './pages.js';

const kStates = ['ready', 'running', 'scheduled', 'waiting', 'dead', 'done'];
const kFilters = ['state', 'queue', 'kind', 'group', 'flow', 'header', 'error', 'since', 'until'];
const kSince = [['', 'any time'], ['5m', 'last 5 minutes'], ['1h', 'last hour'], ['24h', 'last day'], ['7d', 'last week']];
const kSpans = { '5m': 300_000, '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 };

// As the API has it: the page says "last hour", the API wants a moment.
function filterOf(query) {
  const filter = {};
  for (const name of kFilters) if (name !== 'header') filter[name] = query[name];
  const [, name, value] = /^([^=]+)=(.*)$/.exec(query.header ?? '') ?? [];
  if (name) filter[`header.${name}`] = value;
  if (kSpans[query.since]) filter.since = new Date(Date.now() - kSpans[query.since]).toISOString();
  return filter;
}

function newestError(job) {
  if (job.errors.length > 0) return job.errors.at(-1).text ?? '(bytes that are no text)';
  return job.dead_reason ?? job.note ?? '';
}

function whenColumn(job) {
  if (job.state === 'dead' || job.state === 'done') return when(job.finished);
  return when(job.due);
}

// ---- The list.

async function actOnAll(ctx, count, { title, text, action, danger, verb, act }) {
  const filter = { ...filterOf(ctx.query) };
  if (!filter.until && ctx.query.state === 'dead') filter.until = new Date().toISOString();
  const sure = await confirm({ title: `${title} ${plural(count, 'job')}?`, text, action: `${action} ${whole(count)}`, danger });
  if (!sure) return;
  await runBulk({ title, total: count, verb, pages: (signal) => matching(filter, signal), act });
  ctx.reload();
}

// How many match. Dead jobs are counted by the server; of others we look at some pages, up to a limit.
async function countMatching(ctx) {
  const filter = filterOf(ctx.query);
  if (ctx.query.state === 'dead') {
    const headers = Object.fromEntries(Object.entries(filter).filter(([name]) => name.startsWith('header.')).map(([name, value]) => [name.slice(7), value]));
    const { queue, kind, group, flow, error, since, until } = filter;
    const chosen = Object.fromEntries(Object.entries({ queue, kind, group, flow, error, since, until }).filter(([, value]) => value));
    if (Object.keys(headers).length > 0) chosen.headers = headers;
    return (await post('/v1/dead/replay', { filter: chosen, dry_run: true })).matched;
  }
  let count = 0;
  for await (const ids of matching(filter)) {
    count += ids.length;
    if (count >= 100_000) break;
  }
  return count;
}

function bulkButtons(ctx) {
  const with_count = (options) => async () => {
    let count = 0;
    if (await attempt(async () => { count = await countMatching(ctx); }) && count > 0) await actOnAll(ctx, count, options);
  };
  if (ctx.query.state === 'dead' && ctx.can.admin && ctx.capabilities.dead_set) {
    return [
      h('button', { class: 'small', on: { click: with_count({ title: 'Replay', text: 'All dead jobs that match the filters are put back, each with a fresh budget of attempts.', action: 'Replay', verb: 'replayed', act: replayJobs }) } }, 'Replay all that match'),
      h('button', { class: 'small quiet', on: { click: with_count({ title: 'Delete', text: 'All dead jobs that match the filters are deleted, for good.', action: 'Delete', danger: true, verb: 'deleted', act: deleteJobs }) } }, 'Delete all that match'),
    ];
  }
  if (['ready', 'scheduled', 'waiting'].includes(ctx.query.state) && ctx.can.write && ctx.capabilities.cancel) {
    return [h('button', { class: 'small quiet', on: { click: with_count({ title: 'Cancel', text: 'All jobs that match the filters are taken out, for good.', action: 'Cancel', danger: true, verb: 'cancelled', act: cancelJobs }) } }, 'Cancel all that match')];
  }
  return [];
}

function filterForm(ctx) {
  const change = (name) => (event) => ctx.go(withQuery('/jobs', { ...ctx.query, cursor: '', [name]: event.target.value.trim() }), { replace: true });
  const field = (name, title, list, placeholder = 'any') => h('label', {}, h('span', {}, title), h('input', { name, value: ctx.query[name] ?? '', placeholder, autocomplete: 'off', spellcheck: 'false', list, on: { change: change(name) } }));
  return h('form', { class: 'filter', role: 'search', 'aria-label': 'Filter jobs', on: { submit: (event) => { event.preventDefault(); event.target.querySelector(':focus')?.blur(); } } },
    field('kind', 'Kind'), field('queue', 'Queue'), field('error', 'Error contains'), field('header', 'Header', null, 'tenant=acme'),
    h('label', {}, h('span', {}, ['dead', 'done'].includes(ctx.query.state) ? 'Ended' : 'Due'),
      h('select', { name: 'since', value: ctx.query.since ?? '', on: { change: change('since') } }, kSince.map(([value, text]) => h('option', { value, selected: (ctx.query.since ?? '') === value }, text)))),
    kFilters.some((name) => name !== 'state' && ctx.query[name]) ? link(withQuery('/jobs', { state: ctx.query.state }), { class: 'button small' }, 'Clear') : null);
}

export const jobs = {
  title: 'Jobs',
  every: 2_500,
  async load(ctx) {
    if (!ctx.capabilities.inspect) return { unsupported: true };
    const [page, queues] = await Promise.all([
      get(withQuery('/v1/jobs', { ...filterOf(ctx.query), cursor: ctx.query.cursor, limit: 50 }), ctx.signal),
      get('/v1/queues', ctx.signal),
    ]);
    return { page, queues: queues.queues };
  },
  view(data, ctx) {
    if (data.unsupported) return [head('Jobs'), empty('This broker cannot look at single jobs', ctx.capabilities.why_not)];
    const chosen = ctx.query.state ?? '';
    const relevant = ctx.query.queue ? data.queues.filter((queue) => queue.name === ctx.query.queue) : data.queues;
    const count = (name) => relevant.reduce((all, queue) => all + (queue[name] ?? 0), 0);
    const tab = (name, title) => link(withQuery('/jobs', { ...ctx.query, state: name, cursor: '' }), { 'aria-current': name === chosen ? 'true' : null }, title, name === '' ? null : h('span', { class: 'count' }, whole(count(name))));
    const showsError = ['', 'dead', 'scheduled'].includes(chosen);
    const columns = [{ title: 'Job' }, { title: 'Kind' }, { title: 'Queue' }, { title: 'State' }, { title: ['dead', 'done'].includes(chosen) ? 'Ended' : 'Due' }, { title: 'Attempts', class: 'number' }];
    if (chosen === 'running') columns.push({ title: 'Worker' });
    if (showsError) columns.push({ title: 'Newest error', class: 'wide' });
    const rows = data.page.jobs.map((job) => ({
      key: job.id,
      href: `/jobs/${job.id}`,
      cells: [link(`/jobs/${job.id}`, { class: 'mono', title: job.id }, shortId(job.id)), job.kind, job.queue, state(job.state), whenColumn(job), job.attempts,
        ...(chosen === 'running' ? [job.worker ?? '–'] : []), ...(showsError ? [newestError(job) ? h('span', { class: 'error-text one-line', title: newestError(job) }, newestError(job)) : h('span', { class: 'muted' }, '–')] : [])],
    }));
    const filtered = kFilters.some((name) => name !== 'state' && ctx.query[name]);
    return [
      head('Jobs', ctx.can.write ? link('/enqueue', { class: 'button primary' }, icon('plus'), 'Enqueue') : null),
      h('nav', { class: 'tabs', 'aria-label': 'States' }, tab('', 'All'), kStates.map((name) => tab(name, name[0].toUpperCase() + name.slice(1)))),
      filterForm(ctx),
      rows.length === 0
        ? empty(filtered ? 'No job matches' : `No ${chosen || ''} job`.replace('  ', ' '), filtered ? 'Take away a filter to see more.' : { dead: 'When a job has used up its attempts, it waits here.', running: 'Nobody runs a job at this moment.', done: 'Done jobs are remembered for a while.' }[chosen] ?? 'Enqueue one from a shell, a program, or this page:', filtered || ['dead', 'running', 'done'].includes(chosen) ? null : code('bide enqueue hello \'{"name":"world"}\''))
        : card(null, {}, table('Jobs', columns, rows), h('footer', { class: 'list-foot' },
          h('span', { class: 'row-buttons' }, bulkButtons(ctx)),
          h('span', { class: 'row-buttons' }, ctx.query.cursor ? link(withQuery('/jobs', { ...ctx.query, cursor: '' }), { class: 'button small' }, 'First page') : null,
            data.page.next ? link(withQuery('/jobs', { ...ctx.query, cursor: data.page.next }), { class: 'button small' }, 'Next page') : null))),
    ];
  },
};

// ---- One job.

function contentCard(title, body, type) {
  if (!body || body.text === '') return card(title, {}, h('p', { class: 'muted' }, 'Empty.'));
  const raw = h('details', {}, h('summary', {}, 'Raw'), h('pre', { tabindex: '0' }, body.text));
  return card(title, { class: 'content' }, h('p', { class: 'muted small' }, `${type || 'no content type'} · ${bytes(new Blob([body.text]).size)}${body.binary ? ' as base64' : ''}`),
    body.binary ? h('pre', { tabindex: '0' }, body.text) : h('pre', { tabindex: '0' }, body.pretty), body.binary || body.pretty === body.text ? null : raw);
}

function timeline(job) {
  const events = job.errors.map((error) => ({
    kind: 'bad', at: error.at, title: `Attempt ${error.attempt} ${{ failed: 'failed', timed_out: 'ran out of time', lost: 'was lost: its worker said no more', crashed: 'killed its worker' }[error.fault] ?? error.fault}`, text: error.text,
  }));
  if (job.attempts > job.errors.length && job.errors.length > 0 && job.errors[0].attempt > 1) events.unshift({ kind: 'muted', title: `${plural(job.errors[0].attempt - 1, 'earlier attempt')}`, text: 'Their errors are not kept any more.' });
  if (job.state === 'running') events.push({ kind: 'running', title: `Attempt ${job.attempts} is running`, text: job.worker ? `by ${job.worker}` : '' });
  if (job.state === 'done') events.push({ kind: 'ok', at: job.finished, title: `Done in attempt ${job.attempts}` });
  if (job.state === 'dead') events.push({ kind: 'dead', at: job.finished, title: `Dead: ${({ exhausted: 'its attempts are used up', rejected: 'its handler rejected it', expired: 'it did not start in time', poison: 'it killed its workers' })[job.dead_reason] ?? job.dead_reason ?? ''}` });
  if (job.state === 'scheduled') events.push({ kind: 'muted', at: job.due, title: job.attempts > 0 ? `Attempt ${job.attempts + 1} is due` : 'It is due' });
  if (job.state === 'ready') events.push({ kind: 'muted', at: job.due, title: 'Ready, and waits for a worker' });
  if (job.state === 'waiting') events.push({ kind: 'muted', title: `Waits for ${plural(job.waits_for ?? 0, 'other job')}` });
  if (job.note) events.push(job.note.startsWith('edited') ? { kind: 'muted', title: 'Changed by hand', text: job.note } : { kind: 'muted', title: 'Given back', text: job.note });
  return h('ol', { class: 'timeline' }, events.map((event) => h('li', { class: event.kind }, h('div', {}, h('strong', {}, event.title), ' ', event.at ? h('span', { class: 'muted' }, when(event.at)) : null), event.text ? h('p', { class: 'error-text' }, event.text) : null)));
}

function stepsCard(steps) {
  if (steps.length === 0) return null;
  return card('Steps that are done', {}, h('ol', { class: 'timeline' }, steps.map((step) => h('li', { key: step.name, class: 'ok' }, h('div', {}, h('strong', {}, step.name)), step.result || step.result_base64 ? h('p', { class: 'mono wrap' }, step.result ?? `${step.result_base64} (base64)`) : null))));
}

function jobButtons(job, ctx) {
  const buttons = [];
  const missing = [];
  const change = (text, properties, what) => buttons.push(h('button', { ...properties, on: { click: what } }, text));
  const waits = job.state === 'scheduled' || job.state === 'ready';
  const edit = () => change('Edit', {}, async () => { if (await askForEdit(job, ctx)) ctx.reload(); });
  if (job.state === 'scheduled' && ctx.can.write) {
    if (ctx.capabilities.hasten) change('Run now', { class: 'primary' }, async () => { if (await attempt(() => patch(`/v1/jobs/${job.id}`, { delay_ms: 0 }), 'It is due now')) ctx.reload(); });
    else missing.push('run a job before it is due');
  }
  if (waits && ctx.can.write) {
    if (ctx.capabilities.reschedule) {
      change('Set the time', {}, async () => {
        const delay = await askForTime();
        if (delay && await attempt(() => patch(`/v1/jobs/${job.id}`, { delay }), `It runs in ${delay}`)) ctx.reload();
      });
    } else missing.push('change when a job is due');
  }
  if (job.state === 'dead' && ctx.can.admin) {
    change('Replay', { class: 'primary' }, async () => { if (await attempt(() => replayJobs([job.id]), 'It is put back, with a fresh budget of attempts')) ctx.reload(); });
    if (ctx.can.write && ctx.capabilities.edit) edit();
    else if (ctx.can.write) change('Edit and enqueue', {}, () => ctx.go(withQuery('/enqueue', { from: job.id })));
    change('Delete', { class: 'quiet' }, async () => {
      if (await confirm({ title: 'Delete this job?', text: 'It is gone for good.', action: 'Delete', danger: true }) && await attempt(() => deleteJobs([job.id]), 'Deleted')) ctx.go('/dead');
    });
  }
  if (waits && ctx.can.write && ctx.capabilities.edit) edit();
  if ((waits || ['running', 'waiting'].includes(job.state)) && ctx.can.write) {
    if (ctx.capabilities.cancel) {
      change('Cancel', { class: 'quiet' }, async () => {
        const text = job.state === 'running' ? 'Its worker is told to stop. If it does not finish the job, no other will.' : 'It is taken out for good.';
        if (await confirm({ title: 'Cancel this job?', text, action: 'Cancel the job', danger: true }) && await attempt(() => remove(`/v1/jobs/${job.id}`), 'Cancelled')) ctx.reload();
      });
    } else missing.push('cancel a job');
  }
  return { buttons, missing };
}

export const job = {
  title: 'Job',
  every: 2_000,
  async load(ctx) {
    const [info, explanation] = await Promise.all([get(`/v1/jobs/${ctx.id}`, ctx.signal), get(`/v1/jobs/${ctx.id}/explain`, ctx.signal).catch(() => null)]);
    return { info, explanation, inFlow: await flowOf(info, ctx.signal) };
  },
  view({ info, explanation, inFlow }, ctx) {
    const row = (name, ...value) => [h('dt', {}, name), h('dd', {}, ...value)];
    const headers = Array.isArray(info.headers) ? info.headers : Object.entries(info.headers ?? {});
    const { buttons, missing } = jobButtons(info, ctx);
    const result = content(info, 'result');
    return [
      h('header', { class: 'page-head job-head' },
        h('div', {}, h('p', { class: 'crumbs' }, link('/jobs', {}, 'Jobs'), ' / ', h('span', { class: 'mono' }, info.id)), h('h1', {}, info.kind, ' ', state(info.state))),
        h('div', { class: 'row-buttons' }, buttons)),
      explanation ? h('p', { class: `explanation ${info.state}` }, icon(info.state === 'dead' ? 'alert' : info.state === 'done' ? 'check' : 'clock'), explanation.text) : null,
      info.progress ? h('p', { class: 'job-progress' }, meter(info.progress.part, 'Progress of the attempt'), h('span', {}, percent(info.progress.part, 1), info.progress.note ? `, ${info.progress.note}` : '')) : null,
      missing.length > 0 ? reason(`This broker cannot ${missing.join(', nor ')}. ${ctx.capabilities.why_not}`) : null,
      h('div', { class: 'columns job-columns' },
        h('div', { class: 'stack' },
          card('Timeline', {}, timeline(info)),
          stepsCard(info.steps ?? []),
          info.state === 'done' ? contentCard('Result', result, info.result_content_type) : null,
          info.state !== 'done' || info.whole ? contentCard('Body', content(info, 'body'), info.content_type) : null),
        h('div', { class: 'stack' },
          card('Facts', {}, h('dl', { class: 'facts' },
            row('Queue', link(withQuery('/jobs', { queue: info.queue, state: 'ready' }), {}, info.queue)),
            row('Due', when(info.due)), row('Attempts', whole(info.attempts)),
            info.finished ? row(info.state === 'dead' ? 'Died' : 'Done', when(info.finished)) : null,
            info.worker ? row('Worker', info.worker) : null,
            info.priority !== undefined ? row('Priority', info.priority) : null,
            info.retry !== undefined ? row('Retry', h('span', { class: 'mono wrap' }, typeof info.retry === 'string' ? info.retry : JSON.stringify(info.retry))) : null,
            info.time_limit_ms !== undefined ? row('Time limit', span(info.time_limit_ms)) : null,
            info.group ? row('Group', link(withQuery('/jobs', { group: info.group }), {}, info.group)) : null,
            info.unique_key ? row('Unique key', h('span', { class: 'mono wrap' }, info.unique_key)) : null,
            info.expires ? row('Expires', when(info.expires)) : null,
            info.callback ? row('Callback', h('span', { class: 'mono wrap' }, info.callback)) : null,
            info.counts && info.counts.failed + info.counts.timed_out + info.counts.lost + info.counts.crashed > 0 ? row('Ended badly', Object.entries(info.counts).filter(([, count]) => count > 0).map(([name, count]) => `${count} ${name.replace('_', ' ')}`).join(', ')) : null)),
          relations(info, inFlow),
          headers.length > 0 ? card('Headers', {}, h('dl', { class: 'facts headers' }, headers.map(([name, value]) => row(h('span', { class: 'mono wrap' }, name), h('span', { class: 'mono wrap' }, value))))) : null)),
    ];
  },
};

// ---- Enqueue.

export const enqueue = {
  title: 'Enqueue',
  every: 0,
  async load(ctx) {
    if (!ctx.query.from) return { from: null };
    return { from: await get(`/v1/jobs/${ctx.query.from}`, ctx.signal) };
  },
  view({ from }, ctx) {
    if (!ctx.can.write) return [head('Enqueue'), empty('This token may not enqueue', 'It needs the scope write.')];
    const field = (name, title, properties, note) => h('div', { class: 'field' }, h('label', { for: name }, title), h('input', { id: name, name, autocomplete: 'off', spellcheck: 'false', ...properties }), note ? h('span', { class: 'muted small' }, note) : null);
    const given = from ? content(from, 'body') : null;
    const submit = async (event) => {
      event.preventDefault();
      const form = new FormData(event.target);
      const wanted = { kind: form.get('kind').trim(), queue: form.get('queue').trim() || 'default' };
      for (const name of ['delay', 'retry', 'unique_key']) if (form.get(name).trim() !== '') wanted[name] = form.get(name).trim();
      const body = form.get('body');
      if (body.trim() !== '') {
        try {
          wanted.body = JSON.parse(body);
        } catch {
          wanted.body_text = body;
        }
      }
      let id = null;
      if (await attempt(async () => { id = (await post('/v1/jobs', wanted)).id; }, `${wanted.kind} is enqueued, and durable`)) ctx.go(`/jobs/${id}`);
    };
    return [
      head(from ? 'Enqueue an edited copy' : 'Enqueue a job'),
      card(null, { class: 'narrow' }, from ? h('p', { class: 'muted' }, 'A new job with what ', link(`/jobs/${from.id}`, { class: 'mono' }, shortId(from.id)), ' carries. The old one stays as it is.') : null,
        h('form', { class: 'enqueue', on: { submit } },
          field('kind', 'Kind', { required: true, value: from?.kind ?? '', placeholder: 'send_mail' }, 'It chooses the handler.'),
          field('queue', 'Queue', { value: from?.queue ?? 'default' }),
          h('div', { class: 'field' }, h('label', { for: 'body' }, 'Body'), h('textarea', { id: 'body', name: 'body', rows: '8', spellcheck: 'false', value: given?.binary ? '' : given?.pretty ?? '', placeholder: '{"to": "ann@example.com"}' }), h('span', { class: 'muted small' }, 'JSON, or any text.')),
          h('div', { class: 'field-row' }, field('delay', 'Delay', { placeholder: '0s' }, '30s, 10m, 2h'), field('retry', 'Retry', { placeholder: 'exponential' }, 'none, fixed(10s,x3) …'), field('unique_key', 'Unique key', {}, 'At most one live job has it.')),
          h('div', { class: 'buttons' }, h('button', { class: 'primary' }, 'Enqueue')))),
    ];
  },
};
