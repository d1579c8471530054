import { ApolloServer } from '@apollo/server';
import { startStandaloneServer } from '@apollo/server/standalone';
import DataLoader from 'dataloader';
import { edgesOf, TYPE_DEFS } from './documents.ts';
import { peerOptions } from './peer.ts';
import { type AccountRow, openRows, type WalletRow } from './rows.ts';

/** Run as a process of its own: Apollo Server by itself with DataLoader, as its pages say. */
const { port, ...options } = peerOptions();
const rows = openRows({ port, ...options });

interface Context {
  /** A loader for each length of the list, as long as the request. */
  wallets(first: number): DataLoader<string, WalletRow[]>;
}

function newContext(): Context {
  const loaders = new Map<number, DataLoader<string, WalletRow[]>>();
  return {
    wallets(first) {
      const known = loaders.get(first);
      if (known) return known;
      const made = new DataLoader((ids: readonly string[]) => rows.wallets(ids, first));
      loaders.set(first, made);
      return made;
    },
  };
}

interface Page {
  first: number;
}

const server = new ApolloServer<Context>({
  typeDefs: TYPE_DEFS,
  resolvers: {
    Query: { accounts: async (_root: unknown, { first }: Page) => edgesOf(await rows.accounts(first)) },
    Account: {
      wallets: async ({ id }: AccountRow, { first }: Page, { wallets }: Context) =>
        edgesOf(await wallets(first).load(id)),
    },
  },
  introspection: false,
  // A plain GET asks whether it is ready.
  csrfPrevention: false,
});
await startStandaloneServer(server, { listen: { port, host: '127.0.0.1' }, context: async () => newContext() });
