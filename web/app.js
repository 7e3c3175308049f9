// The frame around the pages: which one is shown, signing in, what is asked again and when, keys.

import { notify, showKeys } from './actions.js';
import { get, post, remove, withQuery } from './api.js';
import { h, icon, morph } from './dom.js';
import { flow } from './flow_pages.js';
import { enqueue, job, jobs } from './job_pages.js';
import { about, callbacks, dead, overview, queues, workers } from './pages.js';
import { queue, schedule as oneSchedule, schedules } from './schedule_pages.js';

const kPages = { '/': overview, '/queues': queues, '/jobs': jobs, '/schedules': schedules, '/dead': dead, '/workers': workers, '/callbacks': callbacks, '/enqueue': enqueue, '/about': about };
// Of one thing, by the first word of the address.
const kPagesOfOne = { jobs: job, flows: flow, queues: queue, schedules: oneSchedule };
const kNavigation = [['/', 'Overview', 'overview', 'o'], ['/queues', 'Queues', 'queues', 'q'], ['/jobs', 'Jobs', 'jobs', 'j'], ['/schedules', 'Schedules', 'schedules', 's'], ['/dead', 'Dead', 'dead', 'd'], ['/workers', 'Workers', 'workers', 'w'], ['/callbacks', 'Callbacks', 'callbacks', 'c'], ['/about', 'About', 'about', 'a']];
const kRetry = 3_000;

const app = { session: null, capabilities: {}, live: true, ctx: null, page: null, data: null, problem: null, timer: null, loading: null };

// ---- Theme.

const kThemes = ['auto', 'light', 'dark'];
const theme = () => document.documentElement.dataset.choice;

function nextTheme() {
  window.chooseTheme(kThemes[(kThemes.indexOf(theme()) + 1) % kThemes.length]);
  draw();
}

// ---- The frame.

function search(event) {
  event.preventDefault();
  const text = new FormData(event.target).get('text').trim();
  if (text === '') return;
  const isId = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(text);
  event.target.reset();
  document.activeElement?.blur();
  go(isId ? `/jobs/${text}` : withQuery('/jobs', { state: 'dead', error: text }));
}

async function signOut() {
  await remove('/v1/session').catch(() => null);
  location.assign('/');
}

function frame(content) {
  const { session } = app;
  const path = app.ctx?.path ?? '/';
  const isCurrent = (to) => (to === '/' ? path === '/' : path.startsWith(to)) || (to === '/jobs' && (path === '/enqueue' || path.startsWith('/flows/')));
  return h('div', { class: 'frame' },
    h('a', { class: 'skip', href: '#content', on: { click: (event) => { event.preventDefault(); document.getElementById('content').focus(); } } }, 'Skip to the content'),
    h('header', { class: 'top' },
      h('a', { class: 'brand', href: '/', 'aria-label': 'bide, overview' }, h('span', { class: 'mark', 'aria-hidden': 'true' }), 'bide'),
      h('form', { class: 'search', role: 'search', 'aria-label': 'Find a job', on: { submit: search } }, icon('search'), h('input', { name: 'text', 'aria-label': 'A job id, or text of an error', placeholder: 'Job id, or text of an error', autocomplete: 'off', spellcheck: 'false' }), h('kbd', {}, '/')),
      h('div', { class: 'top-buttons' },
        h('button', { class: 'plain live', 'aria-pressed': String(app.live), title: app.live ? 'Live: click to pause (p)' : 'Paused: click to go on (p)', on: { click: toggleLive } }, h('i', { class: `dot ${app.problem ? 'bad' : app.live ? 'on' : ''}` }), h('span', {}, app.problem?.code === 'unreachable' ? 'No answer' : app.live ? 'Live' : 'Paused')),
        h('button', { class: 'plain', 'aria-label': `Theme: ${theme()}`, title: `Theme: ${theme()}`, on: { click: nextTheme } }, icon({ auto: 'auto', light: 'sun', dark: 'moon' }[theme()])),
        h('button', { class: 'plain wide-only', 'aria-label': 'Keyboard', title: 'Keyboard (?)', on: { click: showKeys } }, icon('keyboard')),
        session?.by_cookie ? h('button', { class: 'plain', 'aria-label': 'Sign out', title: `Signed in as ${session.name}: sign out`, on: { click: signOut } }, icon('out')) : null)),
    h('nav', { class: 'side', 'aria-label': 'Pages' },
      h('ul', {}, kNavigation.map(([to, title, name]) => h('li', {}, h('a', { href: to, 'aria-current': isCurrent(to) ? 'page' : null }, icon(name), h('span', {}, title), name === 'dead' && app.dead > 0 ? h('span', { class: 'badge' }, app.dead > 999 ? '999+' : app.dead) : null)))),
      session && !session.scopes.some((scope) => scope === 'write' || scope === 'admin') ? h('p', { class: 'read-only' }, 'Read only') : null),
    h('main', { id: 'content', tabindex: '-1' }, content));
}

function skeleton() {
  return h('div', { class: 'skeleton', 'aria-busy': 'true', 'aria-label': 'Loading' }, h('div', {}), h('div', {}), h('div', {}));
}

function problemView(problem) {
  if (problem.status === 404) return [h('header', { class: 'page-head' }, h('h1', {}, 'Not here')), h('div', { class: 'empty' }, h('strong', {}, problem.message), h('p', {}, 'Done jobs are remembered for a while only.'), h('a', { class: 'button', href: '/jobs' }, 'To the jobs'))];
  return [h('header', { class: 'page-head' }, h('h1', {}, app.page?.title ?? 'bide')), h('div', { class: 'empty bad' }, h('strong', {}, problem.message), h('p', {}, problem.status === 0 ? 'Trying again …' : ''))];
}

function draw() {
  let content = skeleton();
  if (app.session && !app.session.signed_in) return drawSignIn();
  if (app.data) content = app.page.view(app.data, app.ctx);
  else if (app.problem) content = problemView(app.problem);
  const key = `${app.ctx?.path}`;
  const tree = frame(h('div', { class: 'page', key }, content));
  const before = document.querySelector('.frame');
  if (before) morph(before, tree);
  else document.body.replaceChildren(tree);
  document.title = `${app.page?.title ?? ''} · bide`;
  return undefined;
}

// ---- Signing in.

async function signIn(wanted) {
  app.session = await post('/v1/session', wanted);
  document.body.replaceChildren();
  await start();
}

function drawSignIn(message = '') {
  clearTimeout(app.timer);
  const submit = async (event) => {
    event.preventDefault();
    const token = new FormData(event.target).get('token').trim();
    try {
      await signIn({ token });
    } catch (problem) {
      drawSignIn(problem.message);
      document.getElementById('token').focus();
    }
  };
  const tree = h('main', { class: 'sign-in' },
    h('div', { class: 'card' }, h('span', { class: 'mark large', 'aria-hidden': 'true' }), h('h1', {}, 'Sign in to bide'),
      h('form', { on: { submit } },
        h('label', { for: 'token' }, 'Token'), h('input', { id: 'token', name: 'token', type: 'password', autocomplete: 'current-password', required: true, placeholder: 'bide_…', 'aria-describedby': 'token-help' }),
        h('p', { class: 'bad-text', role: 'alert' }, message),
        h('button', { class: 'primary' }, 'Sign in')),
      h('p', { class: 'muted small', id: 'token-help' }, 'Make one on the server. With the scope read alone it can look and change nothing:'),
      h('code', { class: 'command' }, 'bide token create me --scope read,write,admin')));
  const before = document.querySelector('main.sign-in');
  if (before) morph(before, tree);
  else document.body.replaceChildren(tree);
  document.title = 'Sign in · bide';
}

// ---- Which page.

function route() {
  const path = location.pathname;
  const one = /^\/(jobs|flows|queues|schedules)\/([^/]+)$/.exec(path);
  const page = one ? kPagesOfOne[one[1]] : kPages[path] ?? overview;
  const query = Object.fromEntries(new URLSearchParams(location.search));
  const scopes = app.session?.scopes ?? [];
  return {
    page,
    ctx: { path, query, id: one ? decodeURIComponent(one[2]) : null, session: app.session, capabilities: app.capabilities, can: { write: scopes.includes('write'), admin: scopes.includes('admin') }, reload: () => load(), go },
  };
}

export function go(to, { replace = false } = {}) {
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  open();
}

function open() {
  const { page, ctx } = route();
  const isSame = app.page === page && app.ctx?.path === ctx.path;
  app.page = page;
  app.ctx = ctx;
  if (!isSame) {
    app.data = null;
    app.problem = null;
    window.scrollTo(0, 0);
    // What comes quickly should not flash something else first.
    setTimeout(() => { if (!app.data && app.ctx === ctx) draw(); }, 150);
  }
  load();
}

// Asks for what the page shows, draws it, and does so again after a while, if it is looked at.
async function load() {
  clearTimeout(app.timer);
  app.loading?.abort();
  const loading = new AbortController();
  app.loading = loading;
  const { page } = app;
  const ctx = { ...app.ctx, signal: loading.signal };
  try {
    const data = await page.load(ctx);
    if (loading.signal.aborted) return;
    app.data = data;
    app.problem = null;
    if (Array.isArray(data.queues)) countDead(data.queues);
  } catch (problem) {
    if (loading.signal.aborted || problem.name === 'AbortError') return;
    if (problem.status === 401) {
      app.session = { signed_in: false, scopes: [], queues: [] };
      return drawSignIn();
    }
    app.problem = problem;
    if (problem.status !== 0) app.data = null;
  }
  app.ctx = { ...app.ctx, signal: undefined };
  draw();
  schedule();
}

function countDead(list) {
  app.dead = list.reduce((all, queue) => all + (queue.dead ?? 0), 0);
}

function schedule() {
  clearTimeout(app.timer);
  const wait = app.problem ? kRetry : app.page.every;
  if (!app.live || document.hidden || wait === 0) return;
  app.timer = setTimeout(load, wait);
}

function toggleLive() {
  app.live = !app.live;
  draw();
  if (app.live) load();
  else clearTimeout(app.timer);
}

// ---- Events.

document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    clearTimeout(app.timer);
    app.loading?.abort();
  } else if (app.live && app.page && app.session?.signed_in) load();
});

window.addEventListener('popstate', () => { if (app.session?.signed_in) open(); });

document.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const anchor = event.target.closest?.('a[href]');
  if (anchor) {
    const to = new URL(anchor.getAttribute('href'), location.href);
    if (to.origin !== location.origin || to.pathname.startsWith('/v1/') || anchor.getAttribute('href').startsWith('#')) return;
    event.preventDefault();
    go(to.pathname + to.search);
    return;
  }
  // A row is as good as its link, unless somebody selects text in it.
  const row = event.target.closest?.('tr[data-href]');
  if (row && !event.target.closest('button, a, input') && String(getSelection()) === '') go(row.dataset.href);
});

function moveRow(by) {
  const rows = [...document.querySelectorAll('main tbody tr')];
  if (rows.length === 0) return;
  const now = rows.findIndex((row) => row.classList.contains('at'));
  const next = rows[Math.max(0, Math.min(rows.length - 1, now + by))];
  rows[now]?.classList.remove('at');
  next.classList.add('at');
  (next.querySelector('a, button') ?? next).focus();
  next.scrollIntoView({ block: 'nearest' });
}

let prefix = null;
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  if (event.target.closest('input, textarea, select')) {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  if (!app.session?.signed_in) return;
  const isSecond = prefix === 'g';
  prefix = null;
  if (isSecond) {
    const page = kNavigation.find(([, , , key]) => key === event.key);
    if (page) go(page[0]);
    return;
  }
  const keys = {
    '/': () => document.querySelector('.search input').focus(),
    j: () => moveRow(1),
    k: () => moveRow(-1),
    g: () => { prefix = 'g'; },
    e: () => { if (app.ctx.can.write) go('/enqueue'); },
    p: toggleLive,
    '?': showKeys,
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

window.addEventListener('error', (event) => notify(`The page made a mistake: ${event.message}`, 'bad'));
window.addEventListener('unhandledrejection', (event) => notify(`The page made a mistake: ${event.reason?.message ?? event.reason}`, 'bad'));

async function start() {
  const code = /^#sign-in=(.+)$/.exec(location.hash)?.[1];
  if (code) history.replaceState(null, '', location.pathname + location.search);
  try {
    [app.session, app.capabilities] = await Promise.all([get('/v1/session'), get('/v1/capabilities')]);
    if (code && !app.session.by_cookie) {
      return await signIn({ link: code });
    }
  } catch (problem) {
    if (code && problem.status !== 0) return drawSignIn(problem.message);
    app.problem = problem;
    setTimeout(start, kRetry);
    return draw();
  }
  if (!app.session.signed_in) return drawSignIn();
  // For the number beside "Dead"; pages that show queues keep it up to date.
  get('/v1/queues').then(({ queues: list }) => countDead(list)).catch(() => null);
  return open();
}

start();
