import { randomBytes, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { PERMISSIONS } from '../../access/identity/permissions.rules.ts';
import { TRANSACTION_COLLECTIONS } from '../../domain/transactions/type-codes.rules.ts';

const login = z.object({ username: z.string(), password: z.string() });
const client = z.object({ client_id: z.string(), client_secret: z.string() });

/** What is generated once and kept: `demo.json` without the addresses and the webhook's credentials. */
export const demoSchema = z.object({
  /** That of the embedded database which the demo is in; a demo on a server has none. */
  instance_id: z.string().optional(),
  node_id: z.string(),
  account_id: z.string(),
  wallet_id: z.string(),
  user_id: z.string(),
  asset_id: z.string(),
  network_id: z.string(),
  second_network_id: z.string(),
  other_chain_network_id: z.string(),
  network_currency_id: z.string(),
  target_wallet_id: z.string(),
  supervisor: login,
  client,
  transactions: z.record(z.enum(TRANSACTION_COLLECTIONS), z.string()),
  other_node: z.object({
    node_id: z.string(),
    account_id: z.string(),
    wallet_id: z.string(),
    supervisor: login,
    client,
  }),
});

export type Demo = z.output<typeof demoSchema>;

/** A demo that nobody has yet: new ids, new credentials. */
export function newDemo(): Demo {
  return {
    node_id: randomUUID(),
    account_id: randomUUID(),
    wallet_id: randomUUID(),
    user_id: randomUUID(),
    asset_id: randomUUID(),
    network_id: randomUUID(),
    second_network_id: randomUUID(),
    other_chain_network_id: randomUUID(),
    network_currency_id: randomUUID(),
    target_wallet_id: randomUUID(),
    supervisor: newLogin(),
    client: newClient(),
    transactions: {
      token_transactions: randomUUID(),
      node_transactions: randomUUID(),
      currency_token_transactions: randomUUID(),
      user_transactions: randomUUID(),
      secondary_market_transactions: randomUUID(),
      otc_transactions: randomUUID(),
    },
    other_node: {
      node_id: randomUUID(),
      account_id: randomUUID(),
      wallet_id: randomUUID(),
      supervisor: newLogin(),
      client: newClient(),
    },
  };
}

function newLogin(): Demo['supervisor'] {
  return { username: 'admin', password: randomBytes(15).toString('base64url') };
}

function newClient(): Demo['client'] {
  return { client_id: randomUUID(), client_secret: randomBytes(32).toString('base64url') };
}

const ACCOUNTS = 25;
const DELETED_ACCOUNTS = 2;
const OTHER_ACCOUNTS = 3;
const FIRST_DAY_MS = Date.UTC(2026, 0, 5, 9, 30);
const DAY_MS = 24 * 3600 * 1000;

/** What tells the demo's first account from those that an operator may make. */
export const FIRST_ACCOUNT = { name: 'Acme Treasury', created_at: new Date(FIRST_DAY_MS).toISOString() };

/** What of the demo is the same for every node. */
export function globalRows(demo: Demo) {
  const ethereum = randomUUID();
  const polygon = randomUUID();
  return {
    chains: [
      { id: ethereum, name: 'ethereum' },
      { id: polygon, name: 'polygon' },
    ],
    networks: [
      { id: demo.network_id, chain_id: ethereum, name: 'Ethereum mainnet' },
      { id: demo.second_network_id, chain_id: ethereum, name: 'Ethereum Sepolia' },
      { id: demo.other_chain_network_id, chain_id: polygon, name: 'Polygon mainnet' },
    ],
    network_currencies: [{ id: demo.network_currency_id, network_id: demo.network_id, symbol: 'EURC' }],
    ethereum,
  };
}

/** The accounts of the demo node: 25 that are not deleted, and two that are. */
export function demoAccounts(demo: Demo) {
  return [
    account(demo.account_id, 0, FIRST_ACCOUNT.name, 'organisation'),
    ...Array.from({ length: ACCOUNTS - 1 }, (_, index) =>
      account(randomUUID(), index + 1, `Customer ${index + 1}`, 'customer-segregated'),
    ),
    ...Array.from({ length: DELETED_ACCOUNTS }, (_, index) => {
      const gone = account(randomUUID(), ACCOUNTS + index, `Former customer ${index + 1}`, 'customer-segregated');
      return { ...gone, status: 3, deleted_at: gone.updated_at };
    }),
  ];
}

/** The accounts of the other node. */
export function otherAccounts({ other_node: other }: Demo) {
  return Array.from({ length: OTHER_ACCOUNTS }, (_, index) =>
    account(index === 0 ? other.account_id : randomUUID(), index, `Neighbour ${index + 1}`, 'organisation'),
  );
}

/** A wallet row, made on the demo's first day. */
export function wallet(id: string, accountId: string, chainId: string) {
  const at = new Date(FIRST_DAY_MS).toISOString();
  return { id, account_id: accountId, chain_id: chainId, created_at: at, updated_at: at };
}

/** The asset whose contract address the demo's token transaction sets. */
export function asset(demo: Demo) {
  const at = new Date(FIRST_DAY_MS).toISOString();
  return {
    id: demo.asset_id,
    name: 'Acme Bond 2030',
    symbol: 'ACME30',
    type: 'bond',
    network_id: demo.network_id,
    status: 'draft',
    created_at: at,
    updated_at: at,
  };
}

/** A client with all three grants, every permission and no limits. */
export function clientRow(clientId: string, name: string) {
  return {
    id: clientId,
    name,
    grant_types: ['password', 'client_credentials', 'refresh_token'],
    scopes: [...PERMISSIONS],
  };
}

function account(id: string, day: number, name: string, type: string) {
  const at = new Date(FIRST_DAY_MS + day * DAY_MS).toISOString();
  return { id, name, type, status: 1, created_at: at, updated_at: at, deleted_at: null as string | null };
}
