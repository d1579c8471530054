import { AssetsDocument, type AssetsQuery, GasFeesDocument, type GasFeesQuery, NetworksDocument, type NetworksQuery } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { type Column, Listing, Table } from '../kit/list.ts';
import { Answer, Empty, Page, useAsk } from '../kit/page.ts';
import { Named, type Option, useFound } from '../kit/picker.ts';
import { currencies, networks } from '../kit/sources.ts';
import { Badge, Id, Time, words } from '../kit/text.ts';

type Network = NetworksQuery['networks']['edges'][number]['node'];
type Asset = AssetsQuery['assets']['edges'][number]['node'];
type GasFee = GasFeesQuery['gasFees'][number];

const symbolsOf = (of: readonly Option[]) => of.map(({ text }) => text.split(' · ')[0]).join(', ');

/** A link to the explorer of a network: the page that its addresses of transactions begin with. */
function Explorer({ url }: { url: string | null | undefined }) {
  const { protocol = '', origin: link = '', host = '' } = URL.parse(url?.replaceAll('{hash}', '') ?? '') ?? {};
  return /^https?:$/.test(protocol) ? html`<a href=${link} target="_blank" rel="noreferrer">${host}</a>` : null;
}

const networkColumns = (all: readonly Option[]): readonly Column<Network>[] => [
  { title: 'Name', cell: ({ name }) => name },
  { title: 'Chain', cell: ({ chain }) => chain },
  { title: 'Currencies', cell: ({ id }) => symbolsOf(all.filter(({ of }) => of === id)) },
  { title: 'Explorer', cell: ({ explorerUrl }) => html`<${Explorer} url=${explorerUrl} />` },
  { title: 'Id', cell: ({ id }) => html`<${Id} id=${id} />` },
];

const ASSETS: readonly Column<Asset>[] = [
  { title: 'Name', cell: ({ name }) => name },
  { title: 'Symbol', cell: ({ symbol }) => symbol },
  { title: 'Type', cell: ({ type }) => words(type) },
  { title: 'Status', cell: ({ status }) => html`<${Badge}>${words(status)}<//>` },
  { title: 'Network', cell: ({ networkId }) => html`<${Named} source=${networks} id=${networkId} />` },
  { title: 'Contract', cell: ({ contractAddress }) => html`<${Id} id=${contractAddress} />` },
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
  const columns = networkColumns(useFound(currencies, ''));
  return html`<${Page} title="Networks">
    <${Listing} label="Networks" operation=${NetworksDocument} columns=${columns} empty="No networks yet. The platform adds them." /><//>`;
}

export function AssetsPage() {
  const empty = 'No assets yet. The platform adds them when they are tokenized.';
  return html`<${Page} title="Assets"><${Listing} label="Assets" operation=${AssetsDocument} columns=${ASSETS} empty=${empty} /><//>`;
}

export function GasFeesPage() {
  const asked = useAsk(GasFeesDocument, {});
  return html`<${Page} title="Gas fees" actions=${html`<button type="button" onClick=${asked.reload}>Refresh</button>`}>
    <${Answer} asked=${asked}>${({ gasFees }: GasFeesQuery) =>
      gasFees.length === 0
        ? html`<${Empty} icon="fuel">No network has a source of gas fees. Your operator configures one.<//>`
        : html`<p class="muted">In gwei.</p><${Table} label="Gas fees" columns=${GAS_FEES} rows=${gasFees} keyOf=${({ networkId }: GasFee) => networkId} />`}<//><//>`;
}
