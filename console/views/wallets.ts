import type { ComponentChildren as Content } from 'preact';
import { useState } from 'preact/hooks';
import { mutate } from '../api.ts';
import { AssignNetworkDocument, RulesDocument, type RulesQuery, WalletPartsDocument, type WalletPartsQuery } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { Activity } from '../kit/activity.ts';
import { type Column, Listing, nodesOf, Table } from '../kit/list.ts';
import { ConfirmButton, toast } from '../kit/overlay.ts';
import { type Crumb, Empty, Found, may, Needs, Page, useAsk } from '../kit/page.ts';
import { Named, Picker, useName } from '../kit/picker.ts';
import { actors, networks as known, offering, wallets } from '../kit/sources.ts';
import { Badge, Facts, Id, shortened, Time, words } from '../kit/text.ts';
import { NoTransactions } from '../kit/transactions.ts';
import { linkTo } from '../router.ts';
import { RULE_TYPES } from './rule-draft.ts';

type Wallet = NonNullable<WalletPartsQuery['wallet']>;
type Rule = RulesQuery['walletRules']['edges'][number]['node'];

const NETWORK_COLUMNS: readonly Column<{ id: string; name: string }>[] = [
  { title: 'Name', cell: ({ name }) => name },
  { title: 'Id', cell: ({ id }) => html`<${Id} id=${id} />` },
];

const linkOf = ({ walletId, id }: Rule) => linkTo(['wallets', walletId, 'rules', id]);
const OF_WALLET = { title: 'Wallet', cell: ({ walletId: id }: Rule) => html`<${Named} source=${wallets} id=${id} link=${linkTo(['wallets', id])} />` };
const RULE_COLUMNS: readonly Column<Rule>[] = [
  { title: 'Name', cell: ({ walletId, id, name }) => html`<a href=${linkTo(['wallets', walletId, 'rules', id])}>${name || shortened(id)}</a>` },
  OF_WALLET,
  { title: 'Type', cell: ({ type }) => RULE_TYPES[type] ?? words(type) },
  { title: 'Status', cell: ({ status }) => html`<${RuleStatus} status=${status} />` },
  { title: 'Priority', isNumber: true, cell: ({ priority }) => priority },
  { title: 'Version', isNumber: true, cell: ({ version }) => version },
  { title: 'Changed', cell: ({ updatedAt }) => html`<${Time} at=${updatedAt} isAbsolute />`, sortBy: ({ updatedAt }) => updatedAt },
  { title: 'Changed by', cell: ({ versions }) => html`<${Named} source=${actors} id=${nodesOf(versions)[0]?.subject ?? ''} />` },
];

/** The rules of a wallet, or of all. */
export function Rules({ empty, ...variables }: { walletId?: string; type?: string | null; changedSince?: string | null; empty: Content }) {
  const columns = RULE_COLUMNS.filter((column) => !variables.walletId || column !== OF_WALLET);
  return html`<${Listing} label="Rules" operation=${RulesDocument} ...${{ variables, columns, linkOf, empty }} />`;
}

function trailOf(wallet: Pick<Wallet, 'account'> | null | undefined): Crumb[] {
  const accounts = [wallet?.account ?? []].flat().map(({ id, name }) => ({ text: name || id, link: linkTo(['accounts', id]) }));
  return [{ text: 'Accounts', link: linkTo(['accounts']) }, ...accounts];
}

export const RuleStatus = ({ status }: Pick<Rule, 'status'>) => html`<${Badge} tone=${status === 'ACTIVE' ? 'good' : ''}>${words(status)}<//>`;
export const WriteNeeded = () => html`<${Needs} permission="wallet-rules:write" to="change rules" />`;

export const show = (id?: string, ...others: string[]) => (id !== undefined && others.length === 0 ? html`<${WalletPage} key=${id} id=${id} />` : undefined);

function WalletPage({ id }: { id: string }) {
  const asked = useAsk(WalletPartsDocument, { id, withAccount: may('accounts:read') });
  const wallet = asked.data?.wallet;
  const newRule = may('wallet-rules:write') && html`<a class="button primary" href=${linkTo(['wallets', id, 'rules', 'new'])}>New rule</a>`;
  return html`<${Page} title=${wallet ? `Wallet on ${wallet.chain}` : 'Wallet'} trail=${trailOf(wallet)} actions=${wallet?.rules.totalCount !== 0 && newRule}>
    <${Found} asked=${asked} noun="wallet">${(wallet: Wallet) => {
      const { networks, account } = wallet;
      return html`<${Facts} of=${[
        ['Id', html`<${Id} id=${wallet.id} />`],
        ['Account', account && html`<a href=${linkTo(['accounts', account.id])}>${account.name || account.id}</a>`],
        ['Chain', wallet.chain],
        ['Created', html`<${Time} at=${wallet.createdAt} />`],
      ]} />
        <h2>Rules</h2>
        <${WriteNeeded} />
        <${Rules} walletId=${id} empty=${html`<${Empty} icon="rules" next=${newRule}>No rules yet. Rules automate or limit transfers from this wallet.<//>`} />
        <div class="head"><h2>Networks</h2>${may('wallets:write') && html`<${Assign} wallet=${wallet} onDone=${asked.reload} />`}</div>
        ${networks.totalCount === 0 && html`<${Empty} icon="networks">No networks are assigned to the wallet.<//>`}
        ${networks.totalCount > 0 && html`<${Table} label="Networks" columns=${NETWORK_COLUMNS} rows=${nodesOf(networks)} />`}
        ${networks.totalCount > networks.edges.length && html`<p class="muted">The first ${networks.edges.length} of ${networks.totalCount} networks.</p>`}
        <${NoTransactions} of="wallet" />
        <${Activity} of="wallet" id=${id} round=${networks.totalCount} />`;
    }}<//>
  <//>`;
}

function Assign({ wallet: { id: walletId, chain }, onDone }: { wallet: Wallet; onDone: () => void }) {
  const [networkId, setNetworkId] = useState('');
  const name = useName(known, networkId) ?? 'The network';
  const assign = async () => {
    await mutate(AssignNetworkDocument, { walletId, networkId });
    toast(`${name} is assigned to the wallet.`);
    onDone();
  };
  return html`<${ConfirmButton} title="Assign a network" verb="Assign a network" isHarmless act=${assign}>
    <${Picker} label="Network" required autofocus value=${networkId} onChange=${setNetworkId}
      source=${offering(known, ({ detail }) => detail === chain)} /><//>`;
}
