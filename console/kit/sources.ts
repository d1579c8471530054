import { ask } from '../api.ts';
import {
  FindAccountDocument,
  FindAccountsDocument,
  FindActorsDocument,
  FindCurrenciesDocument,
  FindNetworksDocument,
  FindUserDocument,
  FindUsersDocument,
  FindWalletDocument,
  FindWalletsDocument,
} from '../generated/graphql.ts';
import { nodesOf } from './list.ts';
import { may } from './page.ts';
import type { Option, Source } from './picker.ts';
import { shortened, words } from './text.ts';

const MAX_CURRENCIES = 1_000;

/** Returns a source of options that are all known. */
export function sourceOf(read: () => Promise<readonly Option[]> | readonly Option[]): Source {
  const isIn = (search: string) => (option: Option) => `${option.text} ${option.detail}`.toLowerCase().includes(search.toLowerCase());
  return {
    search: async (text) => (await read()).filter(isIn(text)),
    find: async (id) => (await read()).find((option) => option.id === id),
  };
}

const ofAccount = ({ id, name, type }: { id: string; name: string; type: string }): Option => ({ id, text: name || id, detail: words(type) });

/** The accounts of the tenant. */
export const accounts: Source = {
  search: async (search, signal) => nodesOf((await ask(FindAccountsDocument, { search }, { signal })).accounts).map(ofAccount),
  find: async (id, signal) => {
    const { account } = await ask(FindAccountDocument, { id }, { signal });
    return account ? ofAccount(account) : undefined;
  },
};

const ofWallet = ({ id, chain }: { id: string; chain: string }, account: string): Option => ({ id, text: `${account} › ${chain}`, detail: shortened(id) });

/** The wallets of the tenant, by the names of their accounts. */
export const wallets: Source = {
  search: async (search, signal) => {
    const found = nodesOf((await ask(FindWalletsDocument, { search }, { signal })).accounts);
    return found.flatMap(({ name, wallets }) => nodesOf(wallets).map((wallet) => ofWallet(wallet, name)));
  },
  find: async (id, signal) => {
    const { wallet } = await ask(FindWalletDocument, { id }, { signal });
    return wallet ? ofWallet(wallet, wallet.account.name) : undefined;
  },
};

type User = { id: string; name: string; surname: string; email: string };
const ofUser = ({ id, name, surname, email }: User): Option => ({ id, text: `${name} ${surname}`.trim() || email || id, detail: email || undefined });

/** The users of the tenant. */
export const users: Source = {
  search: async (search, signal) => nodesOf((await ask(FindUsersDocument, { search }, { signal })).users).map(ofUser),
  find: async (id, signal) => {
    const { user } = await ask(FindUserDocument, { id }, { signal });
    return user ? ofUser(user) : undefined;
  },
};

/** The supervisors and clients that act for the tenant, where the person may read them. */
export const actors: Source = sourceOf(async () => {
  if (!may('clients:manage')) return [];
  const { supervisors, clients } = await ask(FindActorsDocument, {});
  const people = nodesOf(supervisors).map(({ id, username }) => ({ id, text: username }));
  return [...people, ...nodesOf(clients).map(({ id, name }) => ({ id, text: name, detail: 'API client' }))];
});

/** The networks. */
export const networks: Source = sourceOf(async () =>
  nodesOf((await ask(FindNetworksDocument, {})).networks).map(({ id, name, chain }) => ({ id, text: name, detail: chain })),
);

/** The currencies of a network, or of all. */
export function currenciesOf(networkId?: string): Source {
  return sourceOf(async () => {
    const [all, { networks }] = await Promise.all([readCurrencies(), ask(FindNetworksDocument, {})]);
    const names = new Map(nodesOf(networks).map(({ id, name }) => [id, name]));
    const shown = networkId && names.has(networkId) ? all.filter((currency) => currency.networkId === networkId) : all;
    return shown.map(({ id, symbol, name, networkId: of }) => ({ id, text: `${symbol} · ${names.get(of) ?? of}`, detail: name ?? undefined }));
  });
}

export const currencies: Source = currenciesOf();

async function readCurrencies() {
  const found = [];
  for (let after: string | null | undefined; ; ) {
    const { networkCurrencies: page } = await ask(FindCurrenciesDocument, { after: after ?? null });
    found.push(...nodesOf(page));
    if (!page.pageInfo.hasNextPage || found.length >= MAX_CURRENCIES) return found;
    after = page.pageInfo.endCursor;
  }
}
