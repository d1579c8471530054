import { type WalletRuleStatus, WalletRulesDocument, type WalletRulesQuery } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { type Column, List, nodesOf, Table, usePages } from '../kit/list.ts';
import { Answer, type Crumb, Empty, may, Page } from '../kit/page.ts';
import { Badge, Time, words } from '../kit/text.ts';
import { linkTo } from '../router.ts';

type Wallet = NonNullable<WalletRulesQuery['wallet']>;
type Rule = Wallet['rules']['edges'][number]['node'];
type Network = Wallet['networks']['edges'][number]['node'];

const NETWORK_COLUMNS: readonly Column<Network>[] = [
  { title: 'Name', cell: ({ name }) => name },
  { title: 'Id', cell: ({ id }) => html`<code>${id}</code>` },
];

const columnsIn = (walletId: string): readonly Column<Rule>[] => [
  { title: 'Name', cell: ({ id, name }) => html`<a href=${linkTo(['wallets', walletId, 'rules', id])}>${name || id}</a>` },
  { title: 'Type', cell: ({ type }) => words(type) },
  { title: 'Status', cell: ({ status }) => html`<${RuleStatus} status=${status} />` },
  { title: 'Priority', isNumber: true, cell: ({ priority }) => priority ?? '–' },
  { title: 'Version', isNumber: true, cell: ({ version }) => version },
  { title: 'Updated', cell: ({ updatedAt }) => html`<${Time} at=${updatedAt} />` },
];

/** Returns the way to a wallet, as far as it is known. */
export function trailOf(wallet: Wallet | null | undefined): Crumb[] {
  const { account } = wallet ?? {};
  const accounts = { text: 'Accounts', link: linkTo(['accounts']) };
  return account ? [accounts, { text: account.name || account.id, link: linkTo(['accounts', account.id]) }] : [accounts];
}

/** Whether a rule can fire. */
export function RuleStatus({ status }: { status: WalletRuleStatus }) {
  return html`<${Badge} tone=${status === 'ACTIVE' ? 'good' : ''}>${words(status)}<//>`;
}

/** Names the permission to change rules, where it is missing. */
export function WriteNeeded() {
  if (may('wallet-rules:write')) return null;
  return html`<p class="muted">To change rules, you need the permission <code>wallet-rules:write</code>.</p>`;
}

export function show(id?: string, ...others: string[]) {
  return id !== undefined && others.length === 0 ? html`<${WalletPage} key=${id} id=${id} />` : undefined;
}

/** One wallet with its networks and rules. */
function WalletPage({ id }: { id: string }) {
  const asked = usePages(WalletRulesDocument, { id, withAccount: may('accounts:read') });
  const wallet = asked.data?.wallet;
  return html`<${Page} title=${wallet ? `Wallet on ${wallet.chain}` : 'Wallet'} trail=${trailOf(wallet)}
    actions=${wallet && may('wallet-rules:write') && html`<a class="button primary" href=${linkTo(['wallets', id, 'rules', 'new'])}>New rule</a>`}>
    <${Answer} asked=${asked}>${({ wallet }: WalletRulesQuery) => {
      if (!wallet) return html`<${Empty}>There is no wallet with this id, or it belongs to another tenant.<//>`;
      const { networks, rules } = wallet;
      return html`<p class="muted">Created <${Time} at=${wallet.createdAt} />. Id: <code>${wallet.id}</code></p>
        <h2>Rules</h2>
        <${WriteNeeded} />
        <${List} label="Rules" of=${rules} pages=${asked.pages} columns=${columnsIn(id)} keyOf=${({ id }: Rule) => id}
          empty="No rules yet." />
        <h2>Networks</h2>
        ${networks.edges.length === 0 ? html`<${Empty}>No networks are assigned to the wallet.<//>` : html`<${Table} label="Networks" columns=${NETWORK_COLUMNS} rows=${nodesOf(networks)} keyOf=${({ id }: Network) => id} />`}
        <p class="muted">${networks.edges.length} of ${networks.totalCount} networks, in the order of their assignment.</p>`;
    }}<//>
  <//>`;
}
