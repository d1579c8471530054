import type { ComponentChildren as Content } from 'preact';
import { ActivityDocument, type ActivityPageFragment, type ActivityQuery } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { linkTo } from '../router.ts';
import { type Column, List, usePages } from './list.ts';
import { Answer } from './page.ts';
import { Named, UUID, useName } from './picker.ts';
import { actors, networks } from './sources.ts';
import { Id, Time, words } from './text.ts';

type Change = ActivityPageFragment['edges'][number]['node'];
type Author = Pick<Change, 'at' | 'subject' | 'clientId' | 'correlationId'>;

/** Who made a change, through which client, when, and in which request. */
export function Author({ subject, clientId, at, correlationId: id }: Author) {
  const client = useName(actors, clientId ?? '');
  return html`<div class="who">${subject ? html`<${Named} source=${actors} id=${subject} />` : html`<span class="muted">not known</span>`}
    ${clientId && clientId !== subject && html`<small>through ${client ?? 'a client'}</small>`}
    <small><${Time} at=${at} isAbsolute /></small><${Id} id=${id} link=${linkTo(['audit'], { correlationId: id ?? '' })} /></div>`;
}

/** What is said of a member that is kept without its values, and of one whose name says little. */
const SAID: Readonly<Record<string, string>> = {
  hash: 'A new secret was made.',
  password_hash: 'The password was set.',
  email: 'The email was changed.',
  erased_at: 'The personal data was erased.',
  unlocked_at: 'The username was unlocked.',
};

function shownValue(value: unknown): Content {
  if (typeof value === 'boolean') return value ? 'Yes' : 'No';
  if (typeof value === 'string' && UUID.test(value)) return html`<${Named} source=${networks} id=${value} />`;
  return value === null || value === '' ? 'nothing' : String(value);
}

/** A member before and after, in words; of a list what has come and what has gone. */
function Member({ name, before, after, isNew }: { name: string; before: unknown; after: unknown; isNew: boolean }) {
  if (SAID[name]) return html`<li>${SAID[name]}</li>`;
  const title = html`<b>${words(name.replace(/_id$/, ''))}</b>`;
  if (Array.isArray(before) && Array.isArray(after)) {
    const [gone, come] = [before.filter((one) => !after.includes(one)), after.filter((one) => !before.includes(one))];
    return html`<li>${title}: ${gone.length > 0 && html`<del>${gone.join(', ')}</del> `}${come.length > 0 && html`<ins>${come.join(', ')}</ins>`}</li>`;
  }
  const fresh = Array.isArray(after) ? after.join(', ') : shownValue(after);
  return html`<li>${title}: ${!isNew && before !== null && html`<del>${shownValue(before)}</del>${' → '}`}<ins>${fresh}</ins></li>`;
}

const What = ({ isNew, changes }: Change) =>
  html`${isNew && html`<p>Created.</p>`}<ul class="changes">${Object.entries(changes as Record<string, [unknown, unknown]>).map(([name, [before, after]]) =>
    isNew && name in SAID ? null : html`<${Member} ...${{ name, before, after, isNew }} />`,
  )}</ul>`;

const COLUMNS: readonly Column<Change>[] = [
  { title: 'What', cell: (change) => html`<${What} ...${change} />` },
  { title: 'Who and when', cell: (change) => html`<${Author} ...${change} />` },
];

type Of = 'client' | 'supervisor' | 'user' | 'wallet';

/** What happened to something, newest first: what, who, when, in which request; asked for again with each `round`. */
export function Activity({ of, id, round }: { of: Of; id: string; round?: number }) {
  const asked = usePages(ActivityDocument, { id, [of]: true }, round);
  return html`<h2>Activity</h2><${Answer} asked=${asked}>${({ [of]: found }: ActivityQuery) =>
    found && html`<${List} label="Activity" noun="changes" of=${found.activity} pages=${asked.pages} columns=${COLUMNS} empty="No changes are known." />`}<//>`;
}
