import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { ask } from './api.ts';
import { SearchDocument, type SearchQuery } from './generated/graphql.ts';
import { html } from './html.ts';
import { inputOf } from './kit/form.ts';
import { Icon, type IconName } from './kit/icons.ts';
import { Dialog } from './kit/overlay.ts';
import { useAsk, useSettled } from './kit/page.ts';
import { shortened, words } from './kit/text.ts';
import { go, linkTo } from './router.ts';
import { GROUPS, type View } from './views.ts';

type Hit = SearchQuery['search'][number];

/** Something to choose: what it is, what is said of it, and where it leads. */
interface Choice {
  icon: IconName;
  text: string;
  note: string;
  link: string;
}

/** The icon of a kind, and the place of a hit. */
const PLACES: Readonly<Record<Hit['kind'], readonly [icon: IconName, link: (hit: Hit) => string]>> = {
  TRANSACTION: ['transactions', ({ id }) => linkTo(['transactions', id])],
  USER: ['users', ({ id }) => linkTo(['users', id])],
  ACCOUNT: ['accounts', ({ id }) => linkTo(['accounts', id])],
  WALLET: ['accounts', ({ id }) => linkTo(['wallets', id])],
  RULE: ['rules', ({ id, within }) => linkTo(['wallets', within ?? '', 'rules', id])],
  ASSET: ['assets', ({ id }) => linkTo(['assets', id])],
  MIGRATION: ['imports', ({ id }) => linkTo(['migrations', id])],
  CLIENT: ['clients', ({ id }) => linkTo(['clients', id])],
  SUPERVISOR: ['supervisors', ({ id }) => linkTo(['supervisors', id])],
  REQUEST: ['audit', ({ id }) => linkTo(['audit'], { correlationId: id })],
};

/** What can be done with a hit of a kind, as it is typed before the name. */
const ACTIONS = [
  ['rotate', 'CLIENT', (name: string) => `Rotate the secret of ${name}`],
  ['unlock', 'SUPERVISOR', (name: string) => `Unlock ${name}`],
] as const;
const TYPED_ACTION = /^(rotate|unlock)(?:\s+(?:the\s+)?secret)?(?:\s+of)?\s+(.+)$/i;

const search = async ({ text }: { text: string }) => (await ask(SearchDocument, { search: text })).search;

function choicesOf(hits: readonly Hit[], verb: string | undefined): Choice[] {
  const actions = ACTIONS.filter(([name]) => verb === undefined || name === verb.toLowerCase()).flatMap(([name, kind, say]) =>
    hits
      .filter((hit) => hit.kind === kind)
      .map(({ id, title }) => ({ icon: PLACES[kind][0], text: say(title), note: 'Action', link: linkTo([`${kind.toLowerCase()}s`, id], { do: name }) })),
  );
  if (verb !== undefined) return actions;
  const places = hits.map((hit) => {
    const [icon, link] = PLACES[hit.kind];
    const text = hit.kind === 'TRANSACTION' ? words(hit.title) : hit.title;
    return { icon, text, note: `${words(hit.kind)} ${shortened(hit.id)}`, link: link(hit) };
  });
  return [...places, ...actions];
}

/** Finds any record by an id, its beginning or a name, opens a page, and begins what is often done. */
export function Palette({ permissions, onClose }: { permissions: readonly string[]; onClose: () => void }) {
  const [text, setText] = useState('');
  const [active, setActive] = useState(0);
  const id = useId();
  const list = useRef<HTMLUListElement>(null);
  const [, verb, of] = TYPED_ACTION.exec(text.trim()) ?? [];
  const wanted = useSettled((of ?? text).trim());
  const { data, isLoading, failure } = useAsk(search, wanted === '' ? undefined : { text: wanted });
  // What an earlier text found is not chosen by Enter.
  const hits = wanted === (of ?? text).trim() && !isLoading && data ? data : [];
  const isPage = ({ title, needs }: View) => needs.every((one) => permissions.includes(one)) && title.toLowerCase().includes(text.trim().toLowerCase());
  const pages = verb ? [] : Object.values(GROUPS).flat().filter(isPage);
  const choices: Choice[] = [
    ...pages.map(({ title, path, icon = 'overview' }) => ({ icon, text: title, note: 'Page', link: linkTo([path]) })),
    ...(wanted === '' ? [] : choicesOf(hits, verb)),
  ];
  useEffect(() => setActive(0), [text, data]);
  useEffect(() => list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' }), [active]);
  const choose = (choice: Choice | undefined) => {
    if (!choice) return;
    onClose();
    go(choice.link);
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && choices.length > 0) setActive((active + step + choices.length) % choices.length);
    else if (event.key === 'Enter') choose(choices[active]);
    // In an input of this kind it would only empty it.
    else if (event.key === 'Escape') onClose();
    else return;
    event.preventDefault();
  };
  const isFound = wanted !== '' && !isLoading && choices.length === 0;
  return html`<${Dialog} title="Find" class="palette" onClose=${onClose}>
    <input type="search" role="combobox" aria-label="Find" aria-autocomplete="list" aria-expanded=${choices.length > 0} aria-controls=${id} autocomplete="off" spellcheck=${false}
      aria-activedescendant=${choices.length > 0 ? `${id}-${active}` : undefined} maxlength="200" placeholder="Id, hash, name, or “rotate …”" value=${text}
      onInput=${(event: Event) => setText(inputOf(event))} onKeyDown=${press} />
    <ul role="listbox" id=${id} aria-label="Found" ref=${list} hidden=${choices.length === 0}>${choices.map(
      (choice, at) => html`<li role="option" id=${`${id}-${at}`} key=${choice.link} aria-selected=${at === active} onClick=${() => choose(choice)}>
        <${Icon} name=${choice.icon} /><span>${choice.text}</span><small>${choice.note}</small></li>`,
    )}</ul>
    <p class="muted" role="status">${failure?.message ?? (isFound ? 'Nothing has this id or name. Beginnings of ids need four characters.' : isLoading ? 'Looking …' : '')}</p>
  <//>`;
}
