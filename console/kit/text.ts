import { signal } from '@preact/signals';
import type { ComponentChildren as Content } from 'preact';
import { useState } from 'preact/hooks';
import type { Link } from '../api.ts';
import { html } from '../html.ts';
import { zone } from '../remembered.ts';
import { lastingLink } from '../router.ts';
import { Icon } from './icons.ts';

const SECOND_MS = 1_000;
const TICK_MS = 15_000;
/** The age from which a time is shown as a date. */
const OLD_S = 7 * 86_400;
const UNITS = [
  ['day', 86_400, 'd'],
  ['hour', 3_600, 'h'],
  ['minute', 60, 'min'],
  ['second', 1, 's'],
] as const;
const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const LOCAL_DATE = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const RELATIVE = new Intl.RelativeTimeFormat('en', { style: 'short' });

const now = signal(Date.now());
setInterval(() => {
  now.value = Date.now();
}, TICK_MS);

const utc = (date: Date) => `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;

/** Returns a time in the zone that the person has chosen. */
export function absolute(at: string): string {
  const date = new Date(at);
  return zone.value === 'utc' ? utc(date) : LOCAL.format(date);
}

/** Returns a time of the present day by its hour and minute, another one with its day. */
export function clock(at: string): string {
  const place = zone.value === 'utc' ? { timeZone: 'UTC' } : {};
  const dayOf = (date: Date) => date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', ...place });
  const time = new Date(at).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', ...place });
  const day = dayOf(new Date(at));
  return day === dayOf(new Date()) ? time : `${day}, ${time}`;
}

/** Returns how long ago a time was, or how far ahead it is; in words of the largest unit. */
function relative(at: string): string {
  const seconds = (Date.parse(at) - now.value) / SECOND_MS;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1];
  return unit === 'second' ? 'just now' : RELATIVE.format(Math.trunc(seconds / size), unit).replace(/r?\./, '');
}

/** Returns how much time lies between two times: `3 h 12 min`. */
export function lasting(from: string, to: string): string {
  const seconds = Math.max(0, Math.round((Date.parse(to) - Date.parse(from)) / SECOND_MS));
  const [[, size, unit] = ['second', 1, 's'], next] = UNITS.slice(UNITS.findIndex(([, size]) => seconds >= size));
  const rest = next && Math.floor((seconds % size) / next[1]);
  return `${Math.floor(seconds / size)} ${unit}${rest ? ` ${rest} ${next[2]}` : ''}`;
}

/** A time as its age, an old one as its date, or in full; the local time and UTC are in the tooltip. */
export function Time({ at, isAbsolute = false }: { at: string | null | undefined; isAbsolute?: boolean }) {
  const date = new Date(at ?? '');
  if (Number.isNaN(date.getTime())) return at ? html`<span class="muted">${at}</span>` : null;
  const isOld = Math.abs(date.getTime() - now.value) > OLD_S * SECOND_MS;
  const day = zone.value === 'utc' ? date.toISOString().slice(0, 10) : LOCAL_DATE.format(date);
  const shown = isAbsolute ? absolute(String(at)) : isOld ? day : relative(String(at));
  return html`<time datetime=${at} title=${`${LOCAL.format(date)}\n${utc(date)}`}>${shown}</time>`;
}

/** Returns both ends of a long id: neighbours often begin alike. */
export function shortened(id: string): string {
  return id.length <= 14 ? id : `${id.slice(0, 8)}…${id.slice(-4)}`;
}

/** An id by both ends, or what it names; in full in the tooltip, and to who copies it with a click. */
export function Id({ id, link, name }: { id: string | null | undefined; link?: string | undefined; name?: string | null | undefined }) {
  const [isCopied, setCopied] = useState(false);
  if (!id) return null;
  const copy = () => navigator.clipboard.writeText(id).then(() => setCopied(true));
  const text = name ? html`<span>${name}</span>` : html`<code>${shortened(id)}</code>`;
  const shown = link === undefined ? text : html`<a href=${link}>${text}</a>`;
  return html`<span class="id" title=${id} onMouseLeave=${() => setCopied(false)}>${shown}${
    isSecureContext &&
    html`<button type="button" class="quiet" tabindex=${link && -1} aria-label=${isCopied ? 'Copied' : `Copy ${id}`} onClick=${copy}><${Icon} name=${isCopied ? 'check' : 'copy'} /></button>`
  }</span>`;
}

/** A link into the explorer of a network, to a transaction or to where it begins; nothing where no address is known. */
export function Explorer({ template, hash = '' }: { template: string | null | undefined; hash?: string }) {
  const url = URL.parse(template?.replaceAll('{hash}', encodeURIComponent(hash)) ?? '');
  if (!url || !/^https?:$/.test(url.protocol) || url.username) return null;
  const link = hash ? url.href : url.origin;
  return html`<a href=${link} target="_blank" rel="noreferrer">${hash ? 'Open in explorer' : url.host}</a>`;
}

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(true));
  return isSecureContext && html`<button type="button" onClick=${copy}>${label}</button> <small role="status">${isCopied && 'Copied'}</small>`;
}

/** Copies the link to what is open. */
export const CopyLink = () => html`<${Copy} text=${lastingLink()} label="Copy link" />`;

/** Returns a name of the API as words: `TOKEN_TRANSACTIONS` as `Token transactions`, `OpenToMarket` as `Open to market`. */
export function words(name: string): string {
  const spaced = name
    .replaceAll('_', ' ')
    .replaceAll(/(\p{Ll})(?=\p{Lu})/gu, '$1 ')
    .toLowerCase()
    .replaceAll(/\b(?:otc|kyc|nft|id)\b/g, (short) => short.toUpperCase());
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

/** Returns a number of things: `1 row`, `2,000 rows`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}

/** A word with a colour that says the same: `good`, `bad`, `busy`, or none. */
export function Badge({ tone = '', children }: { tone?: 'good' | 'bad' | 'busy' | ''; children?: Content }) {
  return html`<span class=${`badge ${tone}`}>${children}</span>`;
}

export function LinkBadge({ link }: { link: Link }) {
  if (link.state === 'waiting') return html`<${Badge} tone="bad">Connection lost. Next attempt at ${new Date(link.untilMs).toLocaleTimeString()}<//>`;
  return link.state === 'live' ? html`<${Badge} tone="good">Live<//>` : html`<${Badge} tone="busy">Connecting …<//>`;
}

/** Names and values of one thing; a value that is missing is left out. */
export function Facts({ of }: { of: readonly (readonly [name: string, value: Content])[] }) {
  const known = of.filter(([, value]) => value !== null && value !== undefined && value !== '' && value !== false);
  return html`<dl class="facts">${known.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}
