import { randomBytes, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { TRANSACTION_COLLECTIONS } from '../../domain/transactions/type-codes.rules.ts';

const login = z.object({ username: z.string(), password: z.string() });
const client = z.object({ client_id: z.string(), client_secret: z.string() });

/** The schema of what is generated once: `demo.json` without the addresses and the webhook credentials. */
export const demoSchema = z.object({
  /** The id of the embedded database that contains the demo; undefined for a demo on a database server. */
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

/** Returns a new demo, with new ids and credentials. */
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
