import { AccountsDocument, type AccountsQuery, AccountWalletsDocument, type AccountWalletsQuery } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Field, inputOf } from '../kit/form.ts';
import { type Column, List, usePages } from '../kit/list.ts';
import { Answer, Empty, may, Page } from '../kit/page.ts';
import { Badge, Id, Time, words } from '../kit/text.ts';
import { go, linkTo, place } from '../router.ts';

type Account = AccountsQuery['accounts']['edges'][number]['node'];
type Wallet = NonNullable<NonNullable<AccountWalletsQuery['account']>['wallets']>['edges'][number]['node'];

const STATUSES: Readonly<Record<string, string>> = { 1: 'Active', 2: 'Suspended', 3: 'Closed' };

function AccountStatus({ status, deletedAt }: Pick<Account, 'status' | 'deletedAt'>) {
  const tone = status === 1 ? 'good' : status === 2 ? 'busy' : '';
  return html`<${Badge} tone=${tone}>${STATUSES[status] ?? `Status ${status}`}<//> ${deletedAt && html`<${Badge} tone="bad">deleted<//>`}`;
}

const COLUMNS: readonly Column<Account>[] = [
  { title: 'Name', cell: ({ id, name }) => html`<a href=${linkTo(['accounts', id])}>${name || id}</a>` },
  { title: 'Type', cell: ({ type }) => words(type) },
  { title: 'Status', cell: (row) => html`<${AccountStatus} ...${row} />` },
  { title: 'Id', cell: ({ id }) => html`<${Id} id=${id} />` },
  { title: 'Created', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
];

export function show(id?: string) {
  return id === undefined ? html`<${AccountsPage} />` : html`<${AccountPage} key=${id} id=${id} />`;
}

/** The accounts of the tenant, filtered by the parameters of the address. */
function AccountsPage() {
  const { query } = place.value;
  const [search, type, status] = ['search', 'type', 'status'].map((name) => query.get(name) ?? '');
  const includeDeleted = query.get('deleted') === 'true';
  const filter = { search: search || null, type: type || null, status: status && STATUSES[status] ? Number(status) : null, includeDeleted };
  const asked = usePages(AccountsDocument, { filter });
  const set = (name: string, value: string) => go(linkTo(['accounts'], { ...Object.fromEntries(query), [name]: value }), { replaces: true });
  const put = (name: string) => (event: Event) => set(name, inputOf(event));
  return html`<${Page} title="Accounts">
    <form class="filters" onSubmit=${(event: Event) => event.preventDefault()}>
      <${Field} label="Name contains">${(described: object) => html`<input ...${described} type="search" maxlength="1000" value=${search} onInput=${put('search')} />`}<//>
      <${Field} label="Type">${(described: object) => html`<input ...${described} list="account-types" value=${type} onChange=${put('type')} />`}<//>
      <datalist id="account-types"><option value="organisation"></option><option value="customer-segregated"></option></datalist>
      <${Field} label="Status">${(described: object) => html`<select ...${described} value=${status} onChange=${put('status')}><option value="">All</option>
        ${Object.entries(STATUSES).map(([code, word]) => html`<option value=${code}>${word}</option>`)}</select>`}<//>
      <label class="check"><input type="checkbox" checked=${includeDeleted} onChange=${() => set('deleted', includeDeleted ? '' : 'true')} />Include deleted</label>
    </form>
    <${Answer} asked=${asked}>${({ accounts }: AccountsQuery) =>
      html`<${List} label="Accounts" of=${accounts} pages=${asked.pages} columns=${COLUMNS} keyOf=${({ id }: Account) => id}
        empty="No account matches. Change the filter, or include deleted accounts." />`}<//>
  <//>`;
}

const WALLET_COLUMNS: readonly Column<Wallet>[] = [
  { title: 'Chain', cell: ({ id, chain }) => html`<a href=${linkTo(['wallets', id])}>${chain}</a>` },
  { title: 'Id', cell: ({ id }) => html`<${Id} id=${id} link=${linkTo(['wallets', id])} />` },
  { title: 'Created', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
];

/** One account and its wallets. */
function AccountPage({ id }: { id: string }) {
  const asked = usePages(AccountWalletsDocument, { id, withWallets: may('wallets:read') });
  const trail = [{ text: 'Accounts', link: linkTo(['accounts']) }];
  return html`<${Page} title=${asked.data?.account?.name || 'Account'} trail=${trail}>
    <${Answer} asked=${asked}>${({ account }: AccountWalletsQuery) => {
      if (!account) return html`<${Empty}>There is no account with this id, or it belongs to another tenant.<//>`;
      const { wallets } = account;
      return html`<p><${AccountStatus} ...${account} /></p>
        <p class="muted">${words(account.type)}, created <${Time} at=${account.createdAt} />. Id: <code>${account.id}</code></p>
        <h2>Wallets</h2>
        ${
          wallets
            ? html`<${List} label="Wallets" of=${wallets} pages=${asked.pages} columns=${WALLET_COLUMNS} keyOf=${({ id }: Wallet) => id} empty="The account has no wallets." />`
            : html`<p class="muted">To see them, you need the permission <code>wallets:read</code>. Ask your administrator for it.</p>`
        }`;
    }}<//>
  <//>`;
}
