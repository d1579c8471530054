import { ask } from '../api.ts';
import {
  FindAccountDocument,
  FindAccountsDocument,
  FindNetworksDocument,
  FindUserDocument,
  FindUsersDocument,
  FindWalletDocument,
  FindWalletsDocument,
} from '../generated/graphql.ts';
import { nodesOf } from './list.ts';
import type { Option, Source } from './picker.ts';
import { shortened, words } from './text.ts';

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

/** The networks. */
export const networks: Source = sourceOf(async () =>
  nodesOf((await ask(FindNetworksDocument, {})).networks).map(({ id, name, chain }) => ({ id, text: name, detail: chain })),
);
