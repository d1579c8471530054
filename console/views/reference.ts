import { AssetDocument, type AssetQuery, AssetsDocument, FeesDocument, type FeesQuery, NetworksDocument, type NetworksQuery } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { type Column, factsOf, List, Listing, Table, usePages } from '../kit/list.ts';
import { Answer, Empty, Found, may, Needs, Page, useAsk } from '../kit/page.ts';
import { Named, type Option, useFound } from '../kit/picker.ts';
import { currencies, networks } from '../kit/sources.ts';
import { Badge, Explorer, Facts, Id, Time, words } from '../kit/text.ts';
import { linkTo } from '../router.ts';
import { REPORTED, COLUMNS as TRANSACTIONS } from './transactions.ts';

type Network = NetworksQuery['networks']['edges'][number]['node'];
type OneAsset = NonNullable<AssetQuery['asset']>;
type Asset = Omit<OneAsset, 'transactions'>;
type GasFee = FeesQuery['gasFees'][number];

const symbolsOf = (of: readonly Option[]) => of.map(({ text }) => text.split(' · ')[0]).join(', ');

const networkColumns = (all: readonly Option[]): readonly Column<Network>[] => [
  { title: 'Name', cell: ({ name }) => name },
  { title: 'Chain', cell: ({ chain }) => chain },
  { title: 'Currencies', cell: ({ id }) => symbolsOf(all.filter(({ of }) => of === id)) },
  { title: 'Explorer', cell: ({ explorerUrl }) => html`<${Explorer} template=${explorerUrl} />` },
  { title: 'Id', cell: ({ id }) => html`<${Id} id=${id} />` },
];

const ASSETS: readonly Column<Asset>[] = [
  { title: 'Name', cell: ({ id, name }) => html`<a href=${linkTo(['assets', id])}>${name || id}</a>` },
  { title: 'Symbol', cell: ({ symbol }) => symbol },
  { title: 'Type', cell: ({ type }) => words(type) },
  { title: 'Status', cell: ({ status }) => html`<${Badge}>${words(status)}<//>` },
  { title: 'Network', cell: ({ networkId }) => html`<${Named} source=${networks} id=${networkId} />` },
  { title: 'Contract', cell: ({ contractAddress }) => contractAddress && html`<${Id} id=${contractAddress} />` },
  { title: 'Created', cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
];

/** A fee in gwei; in wei in the tooltip. */
const fee = (title: string, of: (row: GasFee) => string | null | undefined): Column<GasFee> => ({
  title,
  isNumber: true,
  cell: (row) => of(row) && html`<span title=${`${of(row)} wei`}>${(Number(of(row)) / 1e9).toLocaleString('en', { maximumSignificantDigits: 4 })}</span>`,
});

const GAS_FEES: readonly Column<GasFee>[] = [
  { title: 'Network', cell: ({ networkId }) => html`<${Named} source=${networks} id=${networkId} />` },
  fee('Slow', ({ priorityFee }) => priorityFee?.slow),
  fee('Standard', ({ priorityFee }) => priorityFee?.standard),
  fee('Fast', ({ priorityFee }) => priorityFee?.fast),
  fee('Gas price', ({ gasPrice }) => gasPrice),
  { title: 'Updated', cell: ({ updatedAt, error }) => (error ? html`<${Badge} tone="bad">No answer from the network<//>` : html`<${Time} at=${updatedAt} />`) },
];

export function NetworksPage() {
  const columns = networkColumns(useFound(currencies, '').options);
  return html`<${Page} title="Networks">
    <${Listing} label="Networks" operation=${NetworksDocument} columns=${columns} empty="No networks yet. The platform adds them." /><//>`;
}

export function AssetsPage({ id }: { id?: string }) {
  const empty = 'No assets yet. The platform adds them when they are tokenized.';
  if (id !== undefined) return html`<${AssetPage} key=${id} id=${id} />`;
  return html`<${Page} title="Assets"><${Listing} label="Assets" operation=${AssetsDocument} columns=${ASSETS} linkOf=${({ id }: Asset) => linkTo(['assets', id])} empty=${empty} /><//>`;
}

/** An asset, and the transactions that were registered with it, the latest first. */
function AssetPage({ id }: { id: string }) {
  const asked = usePages(AssetDocument, { id, withTransactions: may('transactions:read') });
  const trail = [{ text: 'Assets', link: linkTo(['assets']) }];
  return html`<${Page} title=${asked.data?.asset?.name ?? 'Asset'} trail=${trail}>
    <${Found} asked=${asked} noun="asset">${(asset: OneAsset) => html`<${Facts} of=${[...factsOf(ASSETS.slice(1), asset), ['Id', html`<${Id} id=${id} />`]]} />
      <h2>Transactions</h2><${Needs} permission="transactions:read" to="see its transactions" />
      ${
        asset.transactions &&
        html`<${List} label="Transactions" of=${asset.transactions} pages=${asked.pages} columns=${[...TRANSACTIONS, REPORTED]}
          linkOf=${({ id }: { id: string }) => linkTo(['transactions', id])} empty="No transaction was registered with this asset." />`
      }`}<//>
  <//>`;
}

export function GasFeesPage() {
  const asked = useAsk(FeesDocument, {});
  return html`<${Page} title="Gas fees" actions=${html`<button type="button" onClick=${asked.reload}>Refresh</button>`}>
    <${Answer} asked=${asked}>${({ gasFees }: FeesQuery) =>
      gasFees.length === 0
        ? html`<${Empty} icon="fuel">No network has a source of gas fees. Your operator configures one.<//>`
        : html`<p class="muted">In gwei.</p><${Table} label="Gas fees" columns=${GAS_FEES} rows=${gasFees} keyOf=${({ networkId }: GasFee) => networkId} />`}<//><//>`;
}
