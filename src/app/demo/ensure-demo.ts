import { randomUUID } from 'node:crypto';
import { hashClientSecret } from '../../access/clients/clients.service.ts';
import type { Passwords } from '../../access/credentials/passwords.ts';
import { PERMISSIONS } from '../../access/identity/permissions.rules.ts';
import type { Transactions } from '../../features/transactions/transactions.service.ts';
import { baseUrlOf } from '../../lib/ip-address.ts';
import type { Config } from '../../platform/config/config.ts';
import { instanceOfSecrets, notWhole, PARTS, type Secrets } from '../../platform/config/secrets.ts';
import type { Db } from '../../platform/database/database.ts';
import type { Database } from '../../platform/database/open-database.ts';
import { TRANSACTION_COLLECTIONS } from '../../tables/transaction-content.ts';
import { type Demo, type DemoNode, newDemo, readDemo, writeDemo } from './demo.ts';

interface DemoDependencies {
  config: Config;
  secrets: Secrets;
  database: Database;
  passwords: Passwords;
  transactions: Transactions;
}

/**
 * Creates the demo in `DATA_DIR/demo.json` and in the database, as far as it is missing. The file is written first: if
 * the process is killed, the next start finds the credentials and adds the missing rows.
 * @throws StartError when an embedded database contains a demo and the file is missing or belongs to another one.
 */
export async function ensureDemo(deps: DemoDependencies): Promise<Demo> {
  const { config, secrets, database } = deps;
  const { db, isEmbedded } = database;
  const savedDemo = readDemo(config.dataDir);
  const isAlreadySeeded = savedDemo !== undefined && (await isSeeded(db, savedDemo));
  if (isEmbedded && !isAlreadySeeded && (await hasDemo(db))) {
    throw notWhole(config.dataDir, `${PARTS.demo} ${savedDemo ? 'belongs to another installation' : 'is missing'}`);
  }
  const demo = {
    ...(savedDemo ?? newDemo()),
    ...(isEmbedded ? { instance_id: instanceOfSecrets(config.dataDir) } : {}),
  };
  const baseUrl = config.publicUrl ?? baseUrlOf(config.host, config.port);
  writeDemo(config.dataDir, demo, { baseUrl, webhook: secrets.webhook });
  if (!isAlreadySeeded) await seedDemo(deps, demo);
  const consoleClient = {
    id: demo.console_client_id,
    name: 'Console',
    grant_types: ['password', 'refresh_token'],
    scopes: [],
    refresh_reuse_detection: true,
    is_console: true,
  };
  // An earlier release has inserted none.
  await db.forNode(demo.node_id).run((k) =>
    k
      .insertInto('clients')
      .values(consoleClient)
      .onConflict((conflict) => conflict.doNothing()),
  );
  return demo;
}

/** Inserts the demo into the database in one transaction. */
async function seedDemo(deps: DemoDependencies, demo: Demo): Promise<void> {
  const {
    database: { db },
    passwords,
    transactions,
  } = deps;
  const other = demo.other_node;
  const [hash, otherHash] = await Promise.all([
    passwords.hash(demo.supervisor.password),
    passwords.hash(other.supervisor.password),
  ]);
  await db.transaction(async () => {
    const chainId = await insertGlobals(db, demo);
    await insertAccess(deps, 'Demo', demo, hash);
    await insertAccess(deps, 'Neighbour', other, otherHash);
    await insertDemoHoldings(db, demo, chainId);
    const neighbour = db.forNode(other.node_id);
    const accounts = Array.from({ length: OTHER_ACCOUNTS }, (_, index) =>
      account(index === 0 ? other.account_id : randomUUID(), index, `Neighbour ${index + 1}`, 'organisation'),
    );
    await neighbour.run((k) => k.insertInto('accounts').values(accounts));
    await neighbour.run((k) => k.insertInto('wallets').values(wallet(other.wallet_id, other.account_id, chainId)));
    for (const collection of TRANSACTION_COLLECTIONS) {
      await transactions.register({
        ...{ id: demo.transactions[collection], nodeId: demo.node_id, collection, type: 1 },
        assetId: collection === 'token_transactions' ? demo.asset_id : null,
      });
    }
  });
}

/** Checks whether the database contains this demo. */
async function isSeeded(db: Db, demo: Demo): Promise<boolean> {
  const rows = await db
    .unscoped('whether the demo is there')
    .run((k) => k.selectFrom('nodes').select('id').where('id', '=', demo.node_id));
  return rows.length > 0;
}

/** Checks whether the database contains any demo. */
async function hasDemo(db: Db): Promise<boolean> {
  const rows = await db.unscoped('whether a demo is there').run((k) =>
    k
      .selectFrom('accounts')
      .select('id')
      .where((eb) => eb.and(FIRST_ACCOUNT))
      .limit(1),
  );
  return rows.length > 0;
}

/** Inserts the rows of the demo that belong to no tenant, and returns the id of the chain of its wallets. */
async function insertGlobals(db: Db, demo: Demo): Promise<string> {
  const [ethereum, polygon] = [randomUUID(), randomUUID()];
  const chains = [
    { id: ethereum, name: 'ethereum' },
    { id: polygon, name: 'polygon' },
  ];
  const networks = [
    {
      id: demo.network_id,
      chain_id: ethereum,
      name: 'Ethereum mainnet',
      explorer_url: 'https://etherscan.io/tx/{hash}',
    },
    {
      id: demo.second_network_id,
      chain_id: ethereum,
      name: 'Ethereum Sepolia',
      explorer_url: 'https://sepolia.etherscan.io/tx/{hash}',
    },
    {
      id: demo.other_chain_network_id,
      chain_id: polygon,
      name: 'Polygon mainnet',
      explorer_url: 'https://polygonscan.com/tx/{hash}',
    },
  ];
  const currency = {
    id: demo.network_currency_id,
    network_id: demo.network_id,
    symbol: 'EURC',
    name: 'EURC',
    decimals: 6,
  };
  const unscoped = db.unscoped('chains and networks are global');
  await unscoped.run((k) => k.insertInto('chains').values(chains));
  await unscoped.run((k) => k.insertInto('networks').values(networks));
  await unscoped.run((k) => k.insertInto('network_currencies').values(currency));
  return ethereum;
}

/** Inserts a node with its supervisor and its client, which has all three grants, every permission and no limits. */
async function insertAccess(
  { database: { db }, secrets: { pepper } }: DemoDependencies,
  name: string,
  { node_id: nodeId, supervisor, client }: DemoNode,
  passwordHash: string,
): Promise<void> {
  await db.unscoped('nodes are global').run((k) => k.insertInto('nodes').values({ id: nodeId, name }));
  const scoped = db.forNode(nodeId);
  const grants = ['password', 'client_credentials', 'refresh_token'];
  const row = { id: client.client_id, name: `${name} client`, grant_types: grants, scopes: [...PERMISSIONS] };
  await scoped.run((k) => k.insertInto('clients').values(row));
  await scoped.run((k) =>
    k
      .insertInto('client_secrets')
      .values({ hash: hashClientSecret(pepper.current, client.client_secret), client_id: client.client_id }),
  );
  const person = { id: randomUUID(), username: supervisor.username, password_hash: passwordHash, role: 'admin' };
  await scoped.run((k) => k.insertInto('supervisors').values(person));
}

async function insertDemoHoldings(db: Db, demo: Demo, chainId: string): Promise<void> {
  const scoped = db.forNode(demo.node_id);
  // 25 active ones and two deleted ones.
  const accounts = [
    account(demo.account_id, 0, FIRST_ACCOUNT.name, 'organisation'),
    ...Array.from({ length: ACCOUNTS - 1 }, (_, index) =>
      account(randomUUID(), index + 1, `Customer ${index + 1}`, 'customer-segregated'),
    ),
    ...Array.from({ length: DELETED_ACCOUNTS }, (_, index) => {
      const gone = account(randomUUID(), ACCOUNTS + index, `Former customer ${index + 1}`, 'customer-segregated');
      return { ...gone, status: 3, deleted_at: gone.updated_at };
    }),
  ];
  await scoped.run((k) => k.insertInto('accounts').values(accounts));
  const wallets = [
    wallet(demo.wallet_id, demo.account_id, chainId),
    wallet(demo.target_wallet_id, accounts[1]?.id ?? demo.account_id, chainId),
  ];
  await scoped.run((k) => k.insertInto('wallets').values(wallets));
  await scoped.run((k) =>
    k.insertInto('wallet_networks').values({ wallet_id: demo.wallet_id, network_id: demo.network_id }),
  );
  // The demo's token transaction sets its contract address.
  await scoped.run((k) =>
    k.insertInto('assets').values({
      id: demo.asset_id,
      name: 'Acme Bond 2030',
      symbol: 'ACME30',
      type: 'bond',
      network_id: demo.network_id,
      status: 'draft',
      ...madeOn(0),
    }),
  );
  await scoped.run((k) =>
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

const ACCOUNTS = 25;
const DELETED_ACCOUNTS = 2;
const OTHER_ACCOUNTS = 3;
const FIRST_DAY_MS = Date.UTC(2026, 0, 5, 9, 30);
const DAY_MS = 24 * 3600 * 1000;

/** The name and time by which the demo's first account is distinguished from accounts that an operator creates. */
const FIRST_ACCOUNT = { name: 'Acme Treasury', created_at: new Date(FIRST_DAY_MS).toISOString() };

/** Returns a wallet row that was created on the demo's first day. */
function wallet(id: string, accountId: string, chainId: string) {
  return { id, account_id: accountId, chain_id: chainId, ...madeOn(0) };
}

function account(id: string, day: number, name: string, type: string) {
  return { id, name, type, status: 1, ...madeOn(day), deleted_at: null as string | null };
}

/** Returns the times of a row that was created so many days after the demo's first one, and never changed. */
function madeOn(day: number) {
  const at = new Date(FIRST_DAY_MS + day * DAY_MS).toISOString();
  return { created_at: at, updated_at: at };
}
