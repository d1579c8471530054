import type { ComponentChildren as Content } from 'preact';
import { useState } from 'preact/hooks';
import type { TypedDocumentString } from '../generated/graphql.ts';
import { html } from '../html.ts';
import type { IconName } from './icons.ts';
import { type Column, List, type ListOf, usePages } from './list.ts';
import { Dialog, Sheet, toast } from './overlay.ts';
import { Answer, Empty, Page } from './page.ts';
import { Copy, Time, words } from './text.ts';

type Registered = { id: string; secret?: string; previousSecretExpiresAt?: string | null };

/** Says what was done, and shows what has come of it in the sheet; without that the sheet closes. */
export type Done<Row> = (said: string, now?: Row) => void;

interface RegisterInput<Row> {
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

/** A list of what the tenant administers: each row opens in a sheet, and so does a new one. */
export function Register<Row extends Registered>({ title, noun, icon, empty, operation, nameOf, columns, sheet }: RegisterInput<Row>) {
  const asked = usePages(operation, {});
  const [opened, setOpened] = useState<{ row?: Row | undefined }>();
  const show = (row?: Row) => setOpened({ row });
  const close = () => setOpened(undefined);
  const done: Done<Row> = (said, now) => {
    toast(said);
    setOpened(now && { row: now });
    asked.reload();
  };
  const name: Column<Row> = { title: 'Name', cell: (row) => html`<button type="button" class="plain" onClick=${() => show(row)}>${nameOf(row)}</button>` };
  const add = html`<button type="button" class="primary" onClick=${() => show()}>New ${noun}</button>`;
  const nothing = html`<${Empty} icon=${icon} next=${add}>${empty}<//>`;
  const { row } = opened ?? {};
  return html`<${Page} title=${title} actions=${add}>
    <${Answer} asked=${asked}>${({ list }: { list: ListOf<Row> }) =>
      html`<${List} label=${title} of=${list} pages=${asked.pages} columns=${[name, ...columns]} onOpen=${show} empty=${nothing} />`}<//>
    ${row?.secret && html`<${SecretOnce} title=${`The secret of ${nameOf(row)}`} noun=${words(noun)} of=${row} onClose=${close} />`}
    ${opened && !row?.secret && html`<${Sheet} key=${row?.id} title=${row ? nameOf(row) : `New ${noun}`} onClose=${close}>${sheet(row, done)}<//>`}
  <//>`;
}

/** A secret that is never shown again: only who says that it is stored leaves. */
function SecretOnce({ title, noun, of, onClose }: { title: string; noun: string; of: Registered; onClose: () => void }) {
  const part = (name: string, text: string) =>
    html`<div><dt>${noun} ${name}</dt><dd><code>${text}</code> <${Copy} text=${text} label=${`Copy the ${name}`} /></dd></div>`;
  return html`<${Dialog} title=${title} onClose=${() => undefined}>
    <p>Store it now: it is not shown again.</p>
    <dl class="stack">${part('id', of.id)}${part('secret', of.secret ?? '')}</dl>
    ${of.previousSecretExpiresAt && html`<p>The old secret works until <${Time} at=${of.previousSecretExpiresAt} isAbsolute />.</p>`}
    <p class="actions end"><button type="button" class="primary" onClick=${onClose}>I have stored it</button></p>
  <//>`;
}
