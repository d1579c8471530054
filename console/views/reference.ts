import { AssetsDocument, type AssetsQuery, GasFeesDocument, type GasFeesQuery, NetworksDocument, type NetworksQuery } from '../generated/graphql.ts';
import { html } from '../html.ts';
import { type Column, List, Table, usePages } from '../kit/list.ts';
import { Answer, Empty, Page, useAsk } from '../kit/page.ts';
import { Named, useFound } from '../kit/picker.ts';
import { currenciesOf, networks } from '../kit/sources.ts';
import { Badge, Id, Time, words } from '../kit/text.ts';

type Network = NetworksQuery['networks']['edges'][number]['node'];
type Asset = AssetsQuery['assets']['edges'][number]['node'];
type GasFee = GasFeesQuery['gasFees'][number];

const SHOWN = 5;

/** The symbols of the first currencies of a network. */
function Currencies({ networkId }: { networkId: string }) {
  const found = useFound(currenciesOf(networkId), networkId);
  return html`${found
    .slice(0, SHOWN)
    .map(({ text }) => text.split(' · ')[0])
    .join(', ')}${found.length > SHOWN && ` and ${found.length - SHOWN} more`}`;
}

const NETWORKS: readonly Column<Network>[] = [
  { title: 'Name', cell: ({ name }) => name },
  { title: 'Chain', cell: ({ chain }) => chain },
  { title: 'Currencies', cell: ({ id }) => html`<${Currencies} networkId=${id} />` },
  { title: 'Explorer', cell: ({ explorerUrl }) => explorerUrl && URL.parse(explorerUrl)?.host },
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

/** Every network with its currencies. */
export function NetworksPage() {
  const asked = usePages(NetworksDocument, {});
  return html`<${Page} title="Networks"><${Answer} asked=${asked}>${({ networks: of }: NetworksQuery) => html`<${List} label="Networks" of=${of}
    pages=${asked.pages} columns=${NETWORKS} keyOf=${({ id }: Network) => id} empty="No networks yet. The platform adds them." />`}<//><//>`;
}

/** The tokenized assets of the tenant. */
export function AssetsPage() {
  const asked = usePages(AssetsDocument, {});
  return html`<${Page} title="Assets"><${Answer} asked=${asked}>${({ assets: of }: AssetsQuery) => html`<${List} label="Assets" of=${of}
    pages=${asked.pages} columns=${ASSETS} keyOf=${({ id }: Asset) => id} empty="No assets yet. The platform adds them when they are tokenized." />`}<//><//>`;
}

/** The fees of the networks that the operator has configured. */
export function GasFeesPage() {
  const asked = useAsk(GasFeesDocument, {});
  return html`<${Page} title="Gas fees" actions=${html`<button type="button" onClick=${asked.reload}>Refresh</button>`}>
    <${Answer} asked=${asked}>${({ gasFees }: GasFeesQuery) =>
      gasFees.length === 0
        ? html`<${Empty} icon="fuel">No network has a source of gas fees. Your operator configures one.<//>`
        : html`<p class="muted">In gwei.</p><${Table} label="Gas fees" columns=${GAS_FEES} rows=${gasFees} keyOf=${({ networkId }: GasFee) => networkId} />`}<//><//>`;
}
