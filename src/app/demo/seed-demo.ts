import { randomUUID } from 'node:crypto';
import { hashClientSecret } from '../../access/clients/clients.service.ts';
import type { Passwords } from '../../access/sessions/passwords.ts';
import type { Transactions } from '../../domain/transactions/transactions.service.ts';
import { TRANSACTION_COLLECTIONS } from '../../domain/transactions/type-codes.rules.ts';
import type { Db } from '../../platform/database/database.ts';
import { asset, clientRow, type Demo, demoAccounts, FIRST_ACCOUNT, globalRows, otherAccounts, wallet } from './demo.ts';

interface SeedParts {
  db: Db;
  passwords: Passwords;
  transactions: Transactions;
  pepper: string;
}

interface NodeSeed {
  nodeId: string;
  name: string;
  supervisor: Demo['supervisor'];
  client: Demo['client'];
}

/** Puts the demo into the database, in one transaction; a demo that is there already stays as it is. */
export async function seedDemo(parts: SeedParts, demo: Demo): Promise<void> {
  const { db } = parts;
  if (await isSeeded(db, demo)) return;
  const other = demo.other_node;
  const hashes = await Promise.all([demo, other].map((node) => parts.passwords.hash(node.supervisor.password)));
  await db.transaction(async () => {
    const chainId = await insertGlobals(db, demo);
    const demoNode = { nodeId: demo.node_id, name: 'Demo', supervisor: demo.supervisor, client: demo.client };
    const otherNode = { nodeId: other.node_id, name: 'Neighbour', supervisor: other.supervisor, client: other.client };
    await insertAccess(parts, demoNode, hashes[0] ?? '');
    await insertAccess(parts, otherNode, hashes[1] ?? '');
    await insertDemoHoldings(db, demo, chainId);
    const neighbour = db.forNode(other.node_id);
    await neighbour.run((k) => k.insertInto('accounts').values(otherAccounts(demo)));
    await neighbour.run((k) => k.insertInto('wallets').values(wallet(other.wallet_id, other.account_id, chainId)));
    await registerTransactions(parts.transactions, demo);
  });
}

/** Whether the database has this demo. */
export async function isSeeded(db: Db, demo: Demo): Promise<boolean> {
  const rows = await db
    .unscoped('whether the demo is there')
    .run((k) => k.selectFrom('nodes').select('id').where('id', '=', demo.node_id));
  return rows.length > 0;
}

/** Whether the database has a demo, were it another one. */
export async function hasDemo(db: Db): Promise<boolean> {
  const rows = await db.unscoped('whether a demo is there').run((k) =>
    k
      .selectFrom('accounts')
      .select('id')
      .where((eb) => eb.and(FIRST_ACCOUNT))
      .limit(1),
  );
  return rows.length > 0;
}

async function insertGlobals(db: Db, demo: Demo): Promise<string> {
  const { chains, networks, network_currencies, ethereum } = globalRows(demo);
  const door = db.unscoped('chains and networks are of no node');
  await door.run((k) => k.insertInto('chains').values(chains));
  await door.run((k) => k.insertInto('networks').values(networks));
  await door.run((k) => k.insertInto('network_currencies').values(network_currencies));
  return ethereum;
}

async function insertAccess({ db, pepper }: SeedParts, node: NodeSeed, passwordHash: string): Promise<void> {
  const { nodeId, name, supervisor } = node;
  await db.unscoped('a node is of no node').run((k) => k.insertInto('nodes').values({ id: nodeId, name }));
  const door = db.forNode(nodeId);
  await door.run((k) => k.insertInto('clients').values(clientRow(node.client.client_id, `${name} client`)));
  const hash = hashClientSecret(pepper, node.client.client_secret);
  await door.run((k) => k.insertInto('client_secrets').values({ hash, client_id: node.client.client_id }));
  await door.run((k) =>
    k.insertInto('supervisors').values({
      id: randomUUID(),
      username: supervisor.username,
      password_hash: passwordHash,
      role: 'admin',
    }),
  );
}

async function insertDemoHoldings(db: Db, demo: Demo, chainId: string): Promise<void> {
  const door = db.forNode(demo.node_id);
  const accounts = demoAccounts(demo);
  await door.run((k) => k.insertInto('accounts').values(accounts));
  const wallets = [
    wallet(demo.wallet_id, demo.account_id, chainId),
    wallet(demo.target_wallet_id, accounts[1]?.id ?? demo.account_id, chainId),
  ];
  await door.run((k) => k.insertInto('wallets').values(wallets));
  await door.run((k) =>
    k.insertInto('wallet_networks').values({ wallet_id: demo.wallet_id, network_id: demo.network_id }),
  );
  await door.run((k) => k.insertInto('assets').values(asset(demo)));
  await door.run((k) =>
    k.insertInto('users').values({
      id: demo.user_id,
      name: 'Ada',
      surname: 'Lovelace',
      email: 'ada@example.com',
      external_id: 'demo-user-1',
      address: '0x00000000000000000000000000000000000ada01',
    }),
  );
}

async function registerTransactions(transactions: Transactions, demo: Demo): Promise<void> {
  for (const collection of TRANSACTION_COLLECTIONS) {
    const assetId = collection === 'token_transactions' ? demo.asset_id : null;
    const id = demo.transactions[collection];
    await transactions.register({ id, nodeId: demo.node_id, collection, type: 1, assetId });
  }
}
