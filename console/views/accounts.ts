import { AccountsDocument, type AccountsQuery, AccountWalletsDocument, type AccountWalletsQuery } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Check, Input, Select } from '../kit/form.ts';
import { type Column, factsOf, List, Listing, Tabs, usePages } from '../kit/list.ts';
import { Empty, Found, may, Needs, Page } from '../kit/page.ts';
import { Badge, Facts, Id, Time, words } from '../kit/text.ts';
import { linkTo, place, setQuery } from '../router.ts';

type Account = AccountsQuery['accounts']['edges'][number]['node'];
type OneAccount = NonNullable<AccountWalletsQuery['account']>;
type Wallet = NonNullable<OneAccount['wallets']>['edges'][number]['node'];

const STATUSES: Readonly<Record<string, string>> = { 1: 'Active', 2: 'Suspended', 3: 'Closed' };
const TYPES = [['', 'All'], ...['organisation', 'customer-segregated'].map((type) => [type, words(type)])];
const TABS = [['', 'All'], ...Object.entries(STATUSES)];

function AccountStatus({ status, deletedAt }: Pick<Account, 'status' | 'deletedAt'>) {
  const tone = ['', 'good', 'busy'][status] ?? '';
  return html`<${Badge} tone=${tone}>${STATUSES[status] ?? `Status ${status}`}<//> ${deletedAt && html`<${Badge} tone="bad">Deleted<//>`}`;
}

const COLUMNS: readonly Column<Account>[] = [
  { title: 'Name', cell: ({ id, name }) => html`<a href=${linkTo(['accounts', id])}>${name || id}</a>` },
  { title: 'Type', cell: ({ type }) => words(type) },
  { title: 'Status', cell: (row) => html`<${AccountStatus} ...${row} />` },
  { title: 'Id', cell: ({ id }) => html`<${Id} id=${id} />` },
  { title: 'Created', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
];

export const show = (id?: string) => (id === undefined ? html`<${AccountsPage} />` : html`<${AccountPage} key=${id} id=${id} />`);

function AccountsPage() {
  const { query } = place.value;
  const [search = '', type = '', status = ''] = ['search', 'type', 'status'].map((name) => query.get(name) ?? '');
  const includeDeleted = query.get('deleted') === 'true';
  const filter = { search: search || null, type: type || null, status: STATUSES[status] ? Number(status) : null, includeDeleted };
  const put = (name: string) => (value: string) => setQuery({ [name]: value });
  const empty =
    search || type || status
      ? html`<${Empty} icon="search" next=${html`<a href=${linkTo(['accounts'])}>Clear the filters</a>`}>No account matches.<//>`
      : html`<${Empty} icon="accounts">No accounts yet. Accounts of the platform appear here.<//>`;
  return html`<${Page} title="Accounts">
    <${Tabs} label="Status" tabs=${TABS} value=${status} onChange=${put('status')} />
    <form class="filters" onSubmit=${(event: Event) => event.preventDefault()}>
      <${Input} label="Name contains" type="search" maxlength="1000" value=${search} onInput=${put('search')} />
      <${Select} label="Type" value=${type} options=${TYPES} onChange=${put('type')} />
      <${Check} label="Include deleted" checked=${includeDeleted} onChange=${() => put('deleted')(includeDeleted ? '' : 'true')} />
    </form>
    <${Listing} label="Accounts" operation=${AccountsDocument} variables=${{ filter }} columns=${COLUMNS} linkOf=${({ id }: Account) => linkTo(['accounts', id])} empty=${empty} />
  <//>`;
}

const WALLET_COLUMNS: readonly Column<Wallet>[] = [
  { title: 'Chain', cell: ({ id, chain }) => html`<a href=${linkTo(['wallets', id])}>${chain}</a>` },
  { title: 'Id', cell: ({ id }) => html`<${Id} id=${id} link=${linkTo(['wallets', id])} />` },
  { title: 'Created', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
];

function AccountPage({ id }: { id: string }) {
  const asked = usePages(AccountWalletsDocument, { id, withWallets: may('wallets:read') });
  const known = asked.data?.account;
  const trail = [{ text: 'Accounts', link: linkTo(['accounts']) }];
  return html`<${Page} title=${known?.name || 'Account'} trail=${trail} actions=${known && html`<${AccountStatus} ...${known} />`}>
    <${Found} asked=${asked} noun="account">${(account: OneAccount) => html`<${Facts} of=${[
      ...factsOf(COLUMNS.slice(1), account).filter(([name]) => name !== 'Status'),
      ['Updated', html`<${Time} at=${account.updatedAt} />`],
      ['Deleted', account.deletedAt && html`<${Time} at=${account.deletedAt} />`],
    ]} />
      <h2>Wallets</h2>
      <${Needs} permission="wallets:read" to="see its wallets" />
      ${
        account.wallets &&
        html`<${List} label="Wallets" of=${account.wallets} pages=${asked.pages} columns=${WALLET_COLUMNS}
          linkOf=${({ id }: Wallet) => linkTo(['wallets', id])} empty="The account has no wallets." />`
      }`}<//>
  <//>`;
}
