import type { ComponentChildren as Content } from 'preact';
import { useState } from 'preact/hooks';
import type { TypedDocumentString } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { go, linkTo } from '../router.ts';
import type { IconName } from './icons.ts';
import { type Column, List, type ListOf, nodesOf, usePages } from './list.ts';
import { Dialog, Sheet, toast } from './overlay.ts';
import { Answer, Empty, Page, useAsk } from './page.ts';
import { Copy, Time, words } from './text.ts';

type Registered = { id: string; secret?: string; previousSecretExpiresAt?: string | null };

/** Says what was done, and shows what has come of it in the sheet; without that the sheet closes. */
export type Done<Row> = (said: string, now?: Row) => void;

interface RegisterInput<Row> {
  /** The id of the row that is open, as the address has it. */
  id: string | undefined;
  title: string;
  /** What one of the rows is called in a sentence. */
  noun: string;
  icon: IconName;
  empty: string;
  operation: TypedDocumentString<{ list: ListOf<Row> }, object>;
  nameOf(row: Row): string;
  columns: readonly Column<Row>[];
  sheet(row: Row | undefined, done: Done<Row>): Content;
}

/** A list of what the tenant administers: each row opens in a sheet with an address of its own, and so does a new one. */
export function Register<Row extends Registered>({ id, title, noun, icon, empty, operation, nameOf, columns, sheet }: RegisterInput<Row>) {
  const asked = usePages(operation, {});
  const path = title.toLowerCase();
  /** What has just been made or changed, which is newer than the list. */
  const [changed, setChanged] = useState<Row>();
  const listed = asked.data && nodesOf(asked.data.list).find((row) => row.id === id);
  // The address may name a row of another page.
  const others = useAsk(operation, asked.data && id !== undefined && id !== 'new' && !listed ? { first: 100 } : undefined);
  const row = changed?.id === id ? changed : (listed ?? (others.data && nodesOf(others.data.list).find((one) => one.id === id)));
  const isMissing = id !== undefined && id !== 'new' && !row && others.data !== undefined && !others.isLoading;
  const show = (one?: Row) => go(linkTo([path, one?.id ?? 'new']));
  const close = () => {
    setChanged(undefined);
    go(linkTo([path]), { replaces: true });
  };
  const done: Done<Row> = (said, now) => {
    toast(said);
    setChanged(now);
    go(linkTo(now ? [path, now.id] : [path]), { replaces: true });
    asked.reload();
  };
  const name: Column<Row> = {
    title: 'Name',
    cell: (row) => html`<button type="button" class="plain" aria-haspopup="dialog" onClick=${() => show(row)}>${nameOf(row)}</button>`,
  };
  const add = html`<button type="button" class="primary" onClick=${() => show()}>New ${noun}</button>`;
  const nothing = html`<${Empty} icon=${icon} next=${add}>${empty}<//>`;
  return html`<${Page} title=${title} actions=${add}>
    <${Answer} asked=${asked}>${({ list }: { list: ListOf<Row> }) =>
      html`<${List} label=${title} of=${list} pages=${asked.pages} columns=${[name, ...columns]} onOpen=${show} empty=${nothing} />`}<//>
    ${row?.secret && html`<${SecretOnce} title=${`The secret of ${nameOf(row)}`} noun=${words(noun)} of=${row} onClose=${close} />`}
    ${(row || id === 'new') && !row?.secret && html`<${Sheet} key=${row?.id} title=${row ? nameOf(row) : `New ${noun}`} onClose=${close}>${sheet(row, done)}<//>`}
    ${isMissing && html`<${Sheet} title=${words(noun)} onClose=${close}><${Empty} icon="search">There is no ${noun} with this id, or it belongs to another tenant.<//><//>`}
  <//>`;
}

/** A secret that is never shown again: only who says that it is stored leaves. */
function SecretOnce({ title, noun, of, onClose }: { title: string; noun: string; of: Registered; onClose: () => void }) {
  const part = (name: string, text: string) =>
    html`<div><dt>${noun} ${name}</dt><dd><code>${text}</code> <${Copy} text=${text} label=${`Copy the ${name}`} /></dd></div>`;
  return html`<${Dialog} title=${title} onClose=${() => undefined}>
    <p>Store it now: it is not shown again.</p>
    <dl class="stack copied">${part('id', of.id)}${part('secret', of.secret ?? '')}</dl>
    ${of.previousSecretExpiresAt && html`<p>The old secret works until <${Time} at=${of.previousSecretExpiresAt} isAbsolute />.</p>`}
    <p class="actions end"><button type="button" class="primary" onClick=${onClose}>I have stored it</button></p>
  <//>`;
}
