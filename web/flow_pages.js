// Flows: jobs that wait for each other, as a graph that is drawn anew while they run, and as a list.

import { attempt, confirm } from './actions.js';
import { get, post, withQuery } from './api.js';
import { h, svg } from './dom.js';
import { percent, plural, shortId, when, whole } from './format.js';
import { card, link, state, table } from './pages.js';

const kNode = { width: 184, height: 46, across: 22, down: 44, edge: 14 };
const kMostNodes = 400;
const kMostLayers = 300;
const kMostRows = 50;
const kAlike = 3;  // More jobs with the same neighbours and kind are one node.
const kStates = ['done', 'running', 'ready', 'scheduled', 'waiting', 'dead'];

// What a job waited for is forgotten when it is done; the page goes on to draw what it has seen.
let edges = { id: null, after: new Map() };

function withEdges(found) {
  if (edges.id !== found.id) edges = { id: found.id, after: new Map() };
  for (const job of found.jobs) {
    if (job.after.length > 0) edges.after.set(job.id, job.after);
    else job.after = edges.after.get(job.id) ?? [];
  }
  return found;
}

// ---- What waits for what. Jobs that are alike are one node: a thousand parts between a split and a join are one box.

function nodesOf(jobs) {
  const known = new Map(jobs.map((job) => [job.id, job]));
  const before = new Map(jobs.map((job) => [job.id, [...new Set(job.after)].filter((id) => known.has(id))]));
  const behind = new Map(jobs.map((job) => [job.id, []]));
  for (const job of jobs) for (const id of before.get(job.id)) behind.get(id).push(job.id);
  const alike = new Map();
  for (const job of jobs) {
    const key = JSON.stringify([job.kind, before.get(job.id), behind.get(job.id)]);
    if (!alike.has(key)) alike.set(key, []);
    alike.get(key).push(job);
  }
  const nodes = [];
  const nodeOf = new Map();
  for (const group of alike.values()) {
    for (const some of group.length > kAlike ? [group] : group.map((job) => [job])) {
      const node = { key: some[0].id, jobs: some, before: new Set(), layer: 0 };
      nodes.push(node);
      for (const job of some) nodeOf.set(job.id, node);
    }
  }
  for (const job of jobs) for (const id of before.get(job.id)) nodeOf.get(job.id).before.add(nodeOf.get(id));
  return nodes;
}

// Each node a layer below all it waits for, in its layer near the middle of those. An edge over several layers has a place of its
// own in those between, so that it does not cross a box; `edges` are given those places.
function layersOf(nodes, edges) {
  const waits = new Map(nodes.map((node) => [node, node.before.size]));
  const behind = new Map(nodes.map((node) => [node, []]));
  for (const node of nodes) for (const other of node.before) behind.get(other).push(node);
  const ready = nodes.filter((node) => node.before.size === 0);
  for (let i = 0; i < ready.length; ++i) {
    for (const next of behind.get(ready[i])) {
      next.layer = Math.max(next.layer, ready[i].layer + 1);
      waits.set(next, waits.get(next) - 1);
      if (waits.get(next) === 0) ready.push(next);
    }
  }
  const layers = [];
  for (const node of ready) (layers[node.layer] ??= []).push(node);
  for (const node of ready) {
    for (const other of node.before) {
      const edge = { from: other, to: node, over: [] };
      edges.push(edge);
      for (let layer = other.layer + 1; layer < node.layer && edges.length + nodes.length < kMostNodes; ++layer) {
        const place = { layer, before: new Set([edge.over.at(-1) ?? other]) };
        edge.over.push(place);
        layers[layer].push(place);
      }
    }
  }
  for (const layer of layers) {
    const near = (node) => (node.before.size === 0 ? 0 : [...node.before].reduce((all, other) => all + other.at, 0) / node.before.size);
    layer.sort((one, other) => near(one) - near(other));
    layer.forEach((node, i) => { node.at = i - (layer.length - 1) / 2; });
  }
  return layers;
}

function stateOf(jobs) {
  for (const name of ['dead', 'running', 'ready', 'scheduled', 'waiting', 'done']) if (jobs.some((job) => job.state === name)) return name;
  return 'done';
}

function partOf(jobs) {
  const done = jobs.reduce((all, job) => all + (job.state === 'done' ? 1 : job.state === 'running' ? job.progress?.part ?? 0 : 0), 0);
  return done / jobs.length;
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function drawNode(node, x, y, flow) {
  const [first] = node.jobs;
  const many = node.jobs.length > 1;
  const name = stateOf(node.jobs);
  const done = node.jobs.filter((job) => job.state === 'done').length;
  const line = many ? `${whole(done)} of ${whole(node.jobs.length)} done` : first.progress && name === 'running' ? `running, ${percent(first.progress.part, 1)}` : name;
  const part = partOf(node.jobs);
  return svg('a', { key: node.key, class: `node ${name}`, href: many ? withQuery('/jobs', { flow, kind: first.kind }) : `/jobs/${first.id}`, 'aria-label': `${first.kind}${many ? `, ${node.jobs.length} jobs` : ''}: ${line}` },
    svg('title', {}, many ? `${first.kind}: ${kStates.map((each) => [each, node.jobs.filter((job) => job.state === each).length]).filter(([, count]) => count > 0).map(([each, count]) => `${count} ${each}`).join(', ')}` : `${first.kind} ${first.id}`),
    svg('rect', { class: 'box', x, y, width: kNode.width, height: kNode.height, rx: 8 }),
    part > 0 && part < 1 ? svg('rect', { class: 'part', x: x + 1, y: y + kNode.height - 5, width: Math.max(2, (kNode.width - 2) * part), height: 4 }) : null,
    svg('text', { class: 'kind', x: x + 12, y: y + 19 }, many ? `${cut(first.kind, 16 - String(node.jobs.length).length)} × ${whole(node.jobs.length)}` : cut(first.kind, 19)),
    svg('text', { class: 'status', x: x + 12, y: y + 35 }, cut(line, 26)));
}

function graph(flow) {
  const nodes = nodesOf(flow.jobs);
  if (nodes.length > kMostNodes) return h('p', { class: 'muted' }, `${plural(nodes.length, 'job')} are too many to draw; the list has them.`);
  const edges = [];
  const layers = layersOf(nodes, edges);
  if (layers.length > kMostLayers) return h('p', { class: 'muted' }, `${plural(layers.length, 'step')} one after the other are too many to draw; the list has them.`);
  const most = Math.max(...layers.map((layer) => layer.length));
  const width = most * (kNode.width + kNode.across) - kNode.across + 2 * kNode.edge;
  const height = layers.length * (kNode.height + kNode.down) - kNode.down + 2 * kNode.edge;
  const left = (node) => width / 2 + node.at * (kNode.width + kNode.across) - kNode.width / 2;
  const top = (node) => kNode.edge + node.layer * (kNode.height + kNode.down);
  const middle = (place) => left(place) + kNode.width / 2;
  const drawEdge = ({ from, to, over }) => {
    let path = `M${middle(from)} ${top(from) + kNode.height}`;
    let [x, y] = [middle(from), top(from) + kNode.height];
    for (const next of [...over, to]) {
      const [nextX, nextY] = [middle(next), top(next) - (next === to ? 5 : 0)];
      const bend = (nextY - y) / 2;
      path += `C${x} ${y + bend} ${nextX} ${nextY - bend} ${nextX} ${nextY}`;
      if (next !== to) path += `v${kNode.height}`;
      [x, y] = [nextX, nextY + kNode.height];
    }
    const kind = from.jobs.every((job) => job.state === 'done') ? 'done' : stateOf(from.jobs) === 'dead' ? 'dead' : '';
    return svg('path', { key: `${from.key} ${to.key}`, class: `edge ${kind}`, d: path, 'marker-end': 'url(#arrow)' });
  };
  return h('div', { class: 'scroll flow-graph', tabindex: '0', role: 'region', 'aria-label': 'Graph of the flow' },
    svg('svg', { class: 'flow', viewBox: `0 0 ${width} ${height}`, width, height, role: 'group', 'aria-label': 'What waits for what' },
      svg('defs', {}, svg('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 4, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto' }, svg('path', { class: 'head', d: 'M0 0L8 4L0 8z' }))),
      edges.map(drawEdge), nodes.map((node) => drawNode(node, left(node), top(node), flow.id))));
}

// ---- How far it is.

export function meter(part, label) {
  return h('progress', { class: 'meter', max: '1', value: Math.max(0, Math.min(1, part)), 'aria-label': label });
}

function bar(flow) {
  const all = flow.jobs.length;
  return h('div', { class: 'flow-bar', role: 'img', 'aria-label': `${flow.percent} % done` },
    kStates.filter((name) => flow.counts[name] > 0).map((name) => h('i', { key: name, class: name, style: { 'flex-grow': String(flow.counts[name] / all) }, title: `${whole(flow.counts[name])} ${name}` })));
}

function flowButtons(flow, ctx) {
  const buttons = [];
  const live = kStates.filter((name) => !['done', 'dead'].includes(name)).reduce((all, name) => all + flow.counts[name], 0);
  const run = async (path, done) => {
    let answer = null;
    if (await attempt(async () => { answer = await post(`/v1/flows/${flow.id}/${path}`); }, () => `${plural(answer.succeeded, 'job')} ${done}`)) ctx.reload();
  };
  if (flow.counts.dead > 0 && ctx.can.admin) buttons.push(h('button', { class: 'primary', on: { click: () => run('replay', 'put back') } }, `Replay ${plural(flow.counts.dead, 'dead job')}`));
  if (live > 0 && ctx.can.write) {
    buttons.push(h('button', { class: 'quiet', on: { click: async () => {
      if (await confirm({ title: 'Cancel this flow?', text: `${plural(live, 'job')} that have not ended are taken out for good; running ones are told to stop.`, action: 'Cancel the flow', danger: true })) await run('cancel', 'cancelled');
    } } }, 'Cancel'));
  }
  return buttons;
}

export const flow = {
  title: 'Flow',
  every: 2_000,
  load: async (ctx) => withEdges(await get(`/v1/flows/${ctx.id}`, ctx.signal)),
  view(data, ctx) {
    // What is going on first; all that is over is at the end.
    const shown = ['dead', 'running', 'ready', 'scheduled', 'waiting', 'done'].flatMap((name) => data.jobs.filter((job) => job.state === name));
    const rows = shown.slice(0, kMostRows).map((job) => ({
      key: job.id,
      href: `/jobs/${job.id}`,
      cells: [link(`/jobs/${job.id}`, { class: 'mono', title: job.id }, shortId(job.id)), job.kind, state(job.state), job.after.length === 0 ? '–' : plural(job.after.length, 'job'),
        job.state === 'running' && job.progress ? meter(job.progress.part, 'Progress') : job.finished ? when(job.finished) : job.state === 'waiting' ? '–' : when(job.due),
        job.state !== 'done' && job.error ? h('span', { class: 'error-text one-line', title: job.error }, job.error) : h('span', { class: 'muted' }, '–')],
    }));
    const counted = kStates.filter((name) => data.counts[name] > 0).map((name) => h('span', { key: name }, h('i', { class: `swatch ${name}` }), `${whole(data.counts[name])} ${name}`));
    return [
      h('header', { class: 'page-head job-head' },
        h('div', {}, h('p', { class: 'crumbs' }, link('/jobs', {}, 'Jobs'), ' / ', 'flow ', h('span', { class: 'mono' }, data.id)), h('h1', {}, `Flow, ${data.percent} % done`)),
        h('div', { class: 'row-buttons' }, flowButtons(data, ctx))),
      card(null, {}, bar(data), h('p', { class: 'legend' }, counted), data.complete ? null : h('p', { class: 'muted small' }, 'It has more than 10 000 jobs; only the first are counted and shown.')),
      card('Graph', {}, graph(data)),
      card('Jobs', {}, table('Jobs of the flow', [{ title: 'Job' }, { title: 'Kind' }, { title: 'State' }, { title: 'Waits for' }, { title: 'Ended or due' }, { title: 'Newest error', class: 'wide' }], rows),
        data.jobs.length > kMostRows ? h('p', { class: 'muted' }, `${plural(data.jobs.length - kMostRows, 'more job')}: `, link(withQuery('/jobs', { flow: data.id }), {}, 'all of them')) : null),
    ];
  },
};

// ---- On the page of one job: its place among the others.

// The flow of a job is asked for less often than the job: it may be large.
const kFlowFor = 6_000;
let latest = { id: null, at: 0, flow: null };

export async function flowOf(job, signal) {
  if (!job.flow) return null;
  if (latest.id === job.flow && Date.now() - latest.at < kFlowFor) return latest.flow;
  const found = await get(`/v1/flows/${job.flow}`, signal).catch((problem) => { if (problem.name === 'AbortError') throw problem; return null; });
  latest = { id: job.flow, at: Date.now(), flow: found };
  return found;
}

export function relations(job, inFlow) {
  const after = job.after ?? [];
  const others = new Map((inFlow?.jobs ?? []).map((each) => [each.id, each]));
  const successors = [...others.values()].filter((each) => each.after.includes(job.id));
  if (after.length === 0 && successors.length === 0 && !job.flow) return null;
  const one = (id) => h('li', { key: id }, link(`/jobs/${id}`, { class: 'mono', title: id }, shortId(id)), ' ', others.has(id) ? [others.get(id).kind, ' ', state(others.get(id).state)] : null);
  const part = (title, ids) => (ids.length === 0 ? null : [h('h3', {}, title), h('ul', { class: 'relations' }, ids.slice(0, 20).map(one), ids.length > 20 ? h('li', { class: 'muted' }, `and ${whole(ids.length - 20)} more`) : null)]);
  return card('Flow', {},
    job.flow ? h('p', {}, link(`/flows/${job.flow}`, {}, 'The whole flow'), inFlow ? `, ${inFlow.percent} % of ${plural(inFlow.jobs.length, 'job')}` : '') : null,
    part(job.state === 'waiting' ? `Waits for ${whole(job.waits_for ?? after.length)} of` : 'Came after', after),
    part('Waited for by', successors.map((each) => each.id)));
}
