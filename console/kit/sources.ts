import { ask } from '../api.ts';
import {
  CurrenciesDocument,
  FindActorsDocument,
  FindUserDocument,
  NetworksDocument,
  UserDocument,
  WalletDocument,
  WalletsDocument,
} from '../generated/graphql.ts';
import { nodesOf } from './list.ts';
import { may } from './page.ts';
import type { Option, Source } from './picker.ts';
import { shortened } from './text.ts';

const MAX_PAGES = 10;

/** Returns a source of options that are all known. */
function sourceOf(read: () => Promise<readonly Option[]> | readonly Option[]): Source {
  const isIn = (search: string) => (option: Option) => `${option.text} ${option.detail}`.toLowerCase().includes(search.toLowerCase());
  return {
    search: async (text) => (await read()).filter(isIn(text)),
    find: async (id) => (await read()).find((option) => option.id === id),
  };
}

/** Returns a source of options that two operations read: those that a text finds, and the one with an id. */
function searched<Row>(
  search: (...of: Parameters<Source['search']>) => Promise<readonly Row[]>,
  find: (id: string) => Promise<Row | null | undefined>,
  optionOf: (row: Row) => Option,
): Source {
  return {
    search: async (...of) => (await search(...of)).map(optionOf),
    find: async (id) => [await find(id)].flatMap((row) => (row ? optionOf(row) : []))[0],
  };
}

/** The wallets of the tenant, by the names of their accounts. */
export const wallets: Source = searched(
  async (search, signal) => {
    const found = nodesOf((await ask(WalletsDocument, { search }, { signal })).accounts);
    return found.flatMap((account) => nodesOf(account.wallets).map((wallet) => ({ ...wallet, account })));
  },
  async (id) => (await ask(WalletDocument, { id })).wallet,
  ({ id, chain, account }) => ({ id, text: `${account.name} › ${chain}`, detail: shortened(id) }),
);

export const users: Source = searched(
  async (search, signal) => nodesOf((await ask(FindUserDocument, { search }, { signal })).users),
  async (id) => (await ask(UserDocument, { id })).user,
  ({ id, name, surname, email }) => ({ id, text: `${name} ${surname}`.trim() || email || id, detail: email || undefined }),
);

/** The supervisors and clients that act for the tenant, where the person may read them. */
export const actors: Source = sourceOf(async () => {
  if (!may('clients:manage')) return [];
  const { supervisors, clients } = await ask(FindActorsDocument, {});
  const people = nodesOf(supervisors).map(({ id, username }) => ({ id, text: username }));
  return [...people, ...nodesOf(clients).map(({ id, name }) => ({ id, text: name, detail: 'API client' }))];
});

export const networks: Source = sourceOf(async () =>
  nodesOf((await ask(NetworksDocument, { first: 100 })).networks).map(({ id, name, chain }) => ({ id, text: name, detail: chain })),
);

export const currencies: Source = sourceOf(() => readCurrencies());

/** Returns a source that offers some of its options; it knows all of them. */
export function offering(source: Source, isOffered: (option: Option) => boolean): Source {
  return { ...source, search: async (...of) => (await source.search(...of)).filter(isOffered) };
}

async function readCurrencies(after: string | null = null, pages = MAX_PAGES): Promise<Option[]> {
  const { networkCurrencies: page, networks } = await ask(CurrenciesDocument, { after });
  const { hasNextPage, endCursor } = page.pageInfo;
  const names = new Map(nodesOf(networks).map(({ id, name }) => [id, name]));
  const found = nodesOf(page).map(({ id, symbol, name, networkId: of }) => ({ id, of, text: `${symbol} · ${names.get(of) ?? of}`, detail: name ?? undefined }));
  return [...found, ...(hasNextPage && pages > 1 ? await readCurrencies(endCursor ?? null, pages - 1) : [])];
}
