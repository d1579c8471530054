import { signal } from '@preact/signals';

export const place = signal(placeOf(location.hash));

/** Counts navigations to the current page, each of which loads its data again. */
export const visits = signal(0);

/** Asks before something that is not saved is left; `then` leaves it. */
type Guard = (then: () => void) => void;

let guard: Guard | undefined;
let here = location.hash;

/** Sets what asks before the place is left; undefined: nothing does. */
export function guardLeaving(by: Guard | undefined): void {
  guard = by;
}

/** Does what leaves the place, after asking where there is something to lose. */
export function leave(then: () => void): void {
  if (guard) guard(then);
  else then();
}

addEventListener('click', ({ target, ctrlKey, metaKey, shiftKey }) => {
  const link = target instanceof Element ? target.closest('a') : undefined;
  if (link?.href === location.href && !ctrlKey && !metaKey && !shiftKey) go(link.hash);
});

addEventListener('hashchange', () => {
  const there = location.hash;
  if (guard && there !== here) {
    history.replaceState(null, '', here || '#/');
    guard(() => go(there));
    return;
  }
  here = there;
  place.value = placeOf(there);
});

/** Returns the parts of the path behind `#/`, decoded, and the values behind `?`. */
function placeOf(hash: string) {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  return { parts: path.split('/').filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Returns the link to a place. Values that are empty are left out. */
export function linkTo(parts: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value) as [string, string][];
  const asked = given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
  return `#/${parts.map(encodeURIComponent).join('/')}${asked}`;
}

/** A search, and when it was made. What opens beside its results belongs to it. */
let searched = { link: '', atMs: 0 };

/** Returns the start of a quick range of minutes that ends when the search of the place was made; nothing for another one. */
export function startOf(range: string | undefined): string {
  const { parts, query } = place.value;
  const link = linkTo(parts, { ...Object.fromEntries(query), record: '', exports: '' });
  if (link !== searched.link) searched = { link, atMs: Date.now() };
  return /^[1-9]\d{0,5}$/.test(range ?? '') ? new Date(searched.atMs - Number(range) * 60_000).toISOString() : '';
}

/** Returns the address of what is open, whose times mean the same to others, whenever they open it. It begins no action. */
export function lastingLink(): string {
  const { parts, query } = place.value;
  const { range, since, do: _action, ...others } = Object.fromEntries(query) as Record<string, string | undefined>;
  return new URL(linkTo(parts, { ...others, since: startOf(range) || since }), location.href).href;
}

/** Changes values of the address, as a filter does: without an entry in the history. */
export const setQuery = (given: Readonly<Record<string, string>>) =>
  go(linkTo(place.value.parts, { ...Object.fromEntries(place.value.query), ...given }), { replaces: true });

/** Goes to a page. With replacement there is no entry in the history, as for text typed into a filter. */
export function go(link: string, { replaces = false } = {}): void {
  if (link === location.hash) visits.value += 1;
  else if (!replaces) location.hash = link;
  else {
    history.replaceState(null, '', link);
    here = link;
    place.value = placeOf(link);
  }
}
