import { ask } from '../api.ts';
import type { UserPartsFragment as User, WalletQuery } from '../generated/graphql.ts';
import {
  CurrenciesDocument,
  FindActorsDocument,
  NetworksDocument,
  UserDocument,
  UsersDocument,
  WalletDocument,
  WalletRuleDocument,
  WalletsDocument,
} from '../generated/graphql.ts';
import { onSignOut } from '../remembered.ts';
import { nodesOf } from './list.ts';
import { may } from './page.ts';
import type { Option, Source } from './picker.ts';
import { shortened } from './text.ts';

const MAX_PAGES = 10;

/** Returns a source of options that are all read at once; what is asked meanwhile waits for the same answer. */
function sourceOf(read: () => Promise<readonly Option[]>): Source {
  let reading: Promise<readonly Option[]> | undefined;
  const forget = () => {
    reading = undefined;
  };
  onSignOut(forget);
  const all = () => {
    reading ??= read().finally(forget);
    return reading;
  };
  const isIn = (search: string) => (option: Option) => `${option.text} ${option.detail}`.toLowerCase().includes(search.toLowerCase());
  return {
    search: async (text) => (await all()).filter(isIn(text)),
    find: async (id) => (await all()).find((option) => option.id === id),
  };
}

type Wallet = NonNullable<WalletQuery['wallet']>;
/** An account may have several wallets on a chain: the end of the id, as it is shown, tells them apart. */
const walletOption = ({ id, chain, account }: Wallet) => ({ id, chain, detail: shortened(id), text: `${account.name} › ${chain} …${id.slice(-4)}` });

/** The wallets of the tenant, by the names of their accounts. */
export const wallets: Source = {
  search: async (search, signal) => {
    const { accounts } = await ask(WalletsDocument, { search }, { signal });
    return nodesOf(accounts).flatMap((account) => nodesOf(account.wallets).map((wallet) => walletOption({ ...wallet, account })));
  },
  find: async (id) => {
    const { wallet } = await ask(WalletDocument, { id });
    return wallet ? walletOption(wallet) : undefined;
  },
};

const userOption = ({ id, name, surname, email }: User) => ({ id, text: `${name} ${surname}`.trim() || email || id, detail: email || undefined });

export const users: Source = {
  search: async (search, signal) => nodesOf((await ask(UsersDocument, { filter: { search }, first: 10 }, { signal })).users).map(userOption),
  find: async (id) => {
    const { user } = await ask(UserDocument, { id });
    return user ? userOption(user) : undefined;
  },
};

export const rules: Source = {
  search: async () => [],
  find: async (id) => {
    const { walletRule: rule } = await ask(WalletRuleDocument, { id });
    return rule ? { id, text: rule.name } : undefined;
  },
};

/** The supervisors and clients that act for the tenant, where the person may read them. */
export const actors: Source = sourceOf(async () => {
  if (!may('clients:manage')) return [];
  const { supervisors, clients } = await ask(FindActorsDocument, {});
  const people = nodesOf(supervisors).map(({ id, username }) => ({ id, text: username }));
  return [
    ...people,
    ...nodesOf(clients).map(({ id, name }) => ({ id, isClient: true, text: people.some(({ text }) => text === name) ? `${name} (API client)` : name })),
  ];
});

export const networks: Source = sourceOf(async () =>
  nodesOf((await ask(NetworksDocument, { first: 100 })).networks).map(({ id, name, chain }) => ({ id, text: name, detail: chain, chain })),
);

export const currencies: Source = sourceOf(() => readCurrencies());

/** What any id of a rule names. */
export const anything: Source = {
  search: async () => [],
  find: async (id) => {
    const found = await Promise.allSettled([currencies, networks, wallets, users].map((source) => source.find(id)));
    return found.flatMap((one) => (one.status === 'fulfilled' ? (one.value ?? []) : []))[0];
  },
};

/** Returns a source that offers some of its options; it knows all of them. */
export function offering(source: Source, isOffered: (option: Option) => boolean): Source {
  return { ...source, search: async (...of) => (await source.search(...of)).filter(isOffered) };
}

async function readCurrencies(after: string | null = null, pages = MAX_PAGES): Promise<Option[]> {
  const { networkCurrencies: page, networks } = await ask(CurrenciesDocument, { after });
  const { hasNextPage, endCursor } = page.pageInfo;
  const known = new Map(nodesOf(networks).map((network) => [network.id, network]));
  const found = nodesOf(page).map(({ id, symbol, name, networkId: of }) => ({
    ...{ id, of, detail: name ?? undefined },
    ...{ text: `${symbol} · ${known.get(of)?.name ?? of}`, chain: known.get(of)?.chain },
  }));
  return [...found, ...(hasNextPage && pages > 1 ? await readCurrencies(endCursor ?? null, pages - 1) : [])];
}
