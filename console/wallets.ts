import { type WalletRuleStatus, WalletRulesDocument, type WalletRulesQuery } from './generated/graphql.ts';
import { html } from './html.ts';
import { linkTo } from './router.ts';
import { words } from './transactions.ts';
import { Answer, Badge, type Column, type Crumb, Empty, Facts, Id, may, nodesOf, Page, Pager, Table, Time, useAsk, usePages } from './ui.ts';

type Wallet = NonNullable<WalletRulesQuery['wallet']>;
type Rule = Wallet['rules']['edges'][number]['node'];
type Network = Wallet['networks']['edges'][number]['node'];

const NETWORK_COLUMNS: readonly Column<Network>[] = [
  { title: 'Name', cell: ({ name }) => name },
  { title: 'Id', cell: ({ id }) => html`<code>${id}</code>` },
];

/** Returns the way to what is in a wallet; only as far as is known, where the wallet has not come yet. */
export function trailOf(wallet: Wallet | null | undefined): Crumb[] {
  const accounts = { text: 'Accounts', link: linkTo(['accounts']) };
  if (!wallet) return [accounts];
  const { id, name } = wallet.account;
  return [accounts, { text: name || id, link: linkTo(['accounts', id]) }];
}

/** Whether a rule can fire. */
export function RuleStatus({ status }: { status: WalletRuleStatus }) {
  return html`<${Badge} tone=${status === 'ACTIVE' ? 'good' : ''}>${words(status)}<//>`;
}

/** Names the permission that is missing to change rules. */
export function WriteNeeded() {
  return html`<p class="muted">To change rules needs the permission <code>wallet-rules:write</code>, which your sign-in lacks.</p>`;
}

/** One wallet with its networks and rules. */
export function WalletPage({ id }: { id: string }) {
  const pages = usePages(id);
  const asked = useAsk(WalletRulesDocument, { id, ...pages.variables });
  const wallet = asked.data?.wallet;
  const mayWrite = may('wallet-rules:write');
  const columns: readonly Column<Rule>[] = [
    {
      title: 'Name',
      cell: (rule) => html`<a href=${linkTo(['wallets', id, 'rules', rule.id])}>${rule.name || rule.id}</a>`,
    },
    { title: 'Type', cell: ({ type }) => words(type) },
    { title: 'Status', cell: ({ status }) => html`<${RuleStatus} status=${status} />` },
    { title: 'Priority', isNumber: true, cell: ({ priority }) => priority ?? '–' },
    { title: 'Version', isNumber: true, cell: ({ version }) => version },
    { title: 'Updated', cell: ({ updatedAt }) => html`<${Time} at=${updatedAt} />` },
  ];
  return html`<${Page} title=${wallet ? `Wallet on ${wallet.chain}` : 'Wallet'} trail=${trailOf(wallet)}
    actions=${wallet && mayWrite && html`<a class="button primary" href=${linkTo(['wallets', id, 'rules', 'new'])}>New rule</a>`}>
    <${Answer} asked=${asked}>${({ wallet }: WalletRulesQuery) => {
      if (!wallet) return html`<${Empty}>There is no wallet with this id, or it belongs to another node.<//>`;
      const { networks, rules } = wallet;
      return html`<${Facts} of=${[
        ['Id', html`<code>${wallet.id}</code>`],
        ['Chain', wallet.chain],
        ['Account', html`<${Id} id=${wallet.account.id} link=${linkTo(['accounts', wallet.account.id])} />`],
        ['Created', html`<${Time} at=${wallet.createdAt} />`],
      ]} />
        <h2>Rules</h2>
        ${!mayWrite && html`<${WriteNeeded} />`}
        ${rules.edges.length === 0 ? html`<${Empty}>The wallet has no rule yet: transfers are neither made nor limited by one.<//>` : html`<${Table} label="Rules" columns=${columns} rows=${nodesOf(rules)} keyOf=${({ id }: Rule) => id} />`}
        <${Pager} connection=${rules} pages=${pages} noun="rules" />
        <h2>Networks</h2>
        ${networks.edges.length === 0 ? html`<${Empty}>No network is assigned to the wallet.<//>` : html`<${Table} label="Networks" columns=${NETWORK_COLUMNS} rows=${nodesOf(networks)} keyOf=${({ id }: Network) => id} />`}
        <p class="muted">${networks.edges.length} of ${networks.totalCount} networks, in the order of their assignment.</p>`;
    }}<//>
  <//>`;
}
