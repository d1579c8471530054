import { useState } from 'preact/hooks';
import { FindByIdDocument, type FindByIdQuery } from './generated/graphql.ts';
import { html } from './html.ts';
import { Input } from './kit/form.ts';
import { Dialog } from './kit/overlay.ts';
import { may, useAsk } from './kit/page.ts';
import { UUID } from './kit/picker.ts';
import { words } from './kit/text.ts';
import { go, linkTo } from './router.ts';
import { GROUPS, viewAt } from './views.ts';

type Result = { text: string; kind: string; link: string };

/** The least length of what is looked for as an id. */
const LEAST = 8;

/** Returns the views that a person may see, by a part of their titles. */
function views(text: string): Result[] {
  const shown = GROUPS.flatMap(({ views }) => views).filter(({ needs }) => needs.every(may));
  return shown
    .filter(({ title }) => title.toLowerCase().includes(text.toLowerCase()))
    .map(({ title, path }) => ({ text: title, kind: 'View', link: linkTo([path]) }));
}

/** Returns what has an id. */
function things({ transaction, account, wallet, walletRule, user }: FindByIdQuery): Result[] {
  return [
    transaction && { text: words(transaction.typeName ?? `Type ${transaction.type}`), kind: 'Transaction', link: linkTo(['transactions', transaction.id]) },
    account && { text: account.name || account.id, kind: 'Account', link: linkTo(['accounts', account.id]) },
    wallet && { text: `Wallet on ${wallet.chain}`, kind: 'Wallet', link: linkTo(['wallets', wallet.id]) },
    walletRule && { text: walletRule.name || walletRule.id, kind: 'Rule', link: linkTo(['wallets', walletRule.walletId, 'rules', walletRule.id]) },
    user && { text: `${user.name} ${user.surname}`.trim() || user.email || user.id, kind: 'User', link: linkTo(['users', user.id]) },
  ].filter((found) => found != null);
}

/** Goes to a view by its title, or to what an id names: a transaction, an account, a wallet, a rule, a user, a request. */
export function Palette({ onClose }: { onClose: () => void }) {
  const [typed, setTyped] = useState('');
  const id = typed.trim();
  const isLong = id.length >= LEAST && !/\s/.test(id);
  const isAsked = (permission: string) => UUID.test(id) && may(permission);
  const asked = useAsk(
    FindByIdDocument,
    isLong
      ? {
          id,
          transactions: may('transactions:read'),
          accounts: isAsked('accounts:read'),
          wallets: isAsked('wallets:read'),
          rules: isAsked('wallet-rules:read'),
          users: viewAt(['users']) !== undefined && isAsked('users:read'),
        }
      : undefined,
  );
  const requests =
    isLong && may('audit:read') ? [{ text: 'Requests with this correlation id', kind: 'Audit', link: linkTo(['audit'], { correlationId: id }) }] : [];
  const results = [...views(id), ...(asked.data && !asked.isLoading ? things(asked.data) : []), ...requests];
  const choose = (link: string | undefined) => {
    if (link === undefined) return;
    onClose();
    go(link);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    choose(results[0]?.link);
  };
  return html`<${Dialog} title="Go to" onClose=${onClose}><form onSubmit=${submit}>
    <${Input} label="A view, or an id" hint="Enter opens the first result." type="search" value=${typed} onInput=${setTyped} />
    <ul class="results">${results.map(
      ({ text, kind, link }) => html`<li key=${link}><a href=${link} onClick=${() => onClose()}>${text} <small>${kind}</small></a></li>`,
    )}</ul>
  </form><//>`;
}
