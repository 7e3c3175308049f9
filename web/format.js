// Numbers, spans and times for people.

import { h } from './dom.js';

const kWhole = new Intl.NumberFormat('en');
const kShort = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export const whole = (number) => kWhole.format(number);
export const short = (number) => (Math.abs(number) < 10_000 ? kWhole.format(Math.round(number)) : kShort.format(number));
export const rate = (number) => (number >= 100 || number === 0 ? short(number) : String(Math.round(number * 10) / 10));
export const plural = (count, one, many = one + 's') => `${whole(count)} ${count === 1 ? one : many}`;
export const percent = (part, all) => {
  if (all === 0) return '0 %';
  const value = (100 * part) / all;
  return `${value > 0 && value < 10 ? Math.round(value * 10) / 10 : Math.round(value)} %`;
};

const kUnits = [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'm'], [1_000, 's']];

// 1500 -> "1.5 s", 3 720 000 -> "1 h 2 m".
export function span(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1_000) return `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`;
  if (ms < 10_000) return `${Math.round(ms / 100) / 10} s`;
  const at = kUnits.findIndex(([unit]) => ms >= unit);
  const [unit, name] = kUnits[at];
  const count = Math.floor(ms / unit);
  const below = kUnits[at + 1];
  const rest = below ? Math.floor((ms - count * unit) / below[0]) : 0;
  return rest > 0 && count < 10 ? `${count} ${name} ${rest} ${below[1]}` : `${count} ${name}`;
}

export function relative(time, now = Date.now()) {
  const away = new Date(time).getTime() - now;
  if (Math.abs(away) < 1_000) return 'now';
  return away < 0 ? `${span(-away)} ago` : `in ${span(away)}`;
}

const kExact = { year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3, hour12: false };

export const exact = (time) => `${new Date(time).toLocaleString('en', kExact)} · ${new Date(time).toISOString()}`;

// Relative, with the exact value on hover and for readers of the screen.
export function when(time) {
  if (!time) return '–';
  return h('time', { datetime: time, title: exact(time) }, relative(time));
}

export const clock = (ms, withDay) =>
  new Date(ms).toLocaleString('en', withDay
    ? { weekday: 'short', hour: '2-digit', minute: '2-digit', hour12: false }
    : { hour: '2-digit', minute: '2-digit', hour12: false });

export function bytes(count) {
  if (count < 1024) return `${count} B`;
  return count < 1024 * 1024 ? `${(count / 1024).toFixed(1)} KiB` : `${(count / 1024 / 1024).toFixed(1)} MiB`;
}

// Ids begin with their time and are alike there: the end tells them apart.
export const shortId = (id) => `${id.slice(0, 8)}…${id.slice(-6)}`;
