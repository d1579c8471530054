import { randomBytes, randomUUID } from 'node:crypto';
import { createdClient, createdSupervisor, login, PASSWORD } from '../graphql/administration.ts';
import type { Portcullis } from '../harness.ts';
import { type ClientCredentials, rows } from '../oauth/clients.ts';
import { limit } from '../wallet-rules/rules.ts';

/** What a node has, by the ids and names that a caller could ask for. */
export interface Things {
  nodeId: string;
  /** Stands in every name that the node has given, and is the correlation id of its requests. */
  mark: string;
  /** Of the node's client, with every permission. */
  token: string;
  refreshToken: string;
  login: { access_token: string; refresh_token: string };
  client: ClientCredentials;
  account: string;
  wallet: string;
  /** Of the chain, and assigned to no wallet but this node's. */
  network: string;
  asset: string;
  rule: string;
  migration: string;
  auditExport: string;
  exportKey: string;
  transaction: string;
  user: string;
  /** Users who stand for nothing else. */
  users: { email: string; external_id: string; wallet_address: string }[];
  /** A client that nobody speaks through. */
  idleClient: string;
  supervisor: string;
  username: string;
  /** Under which the node has migrated `keyedUser` and made a rule of its wallet. */
  key: string;
}

interface NodeAccess {
  nodeId: string;
  client: ClientCredentials;
  networkId: string;
}

const USERS = 16;
const AT = '2026-02-01T00:00:00Z';

/** Gives a node one of everything, each named by a mark of its own. */
export async function markedNode(p: Portcullis, { nodeId, client, networkId }: NodeAccess): Promise<Things> {
  const mark = `mark${randomBytes(5).toString('hex')}`;
  const pair = (await p.call('POST', '/v2/oauth/token', { json: { grant_type: 'client_credentials', ...client } }))
    .json;
  const token: string = pair.access_token;
  const reference = await referenceRows(p, { nodeId, client, networkId }, mark);
  const key = `${mark}-key`;
  const post = async (path: string, json: unknown, headers = {}) => {
    const answer = await p.call('POST', path, { token, json, headers: { 'x-correlation-id': mark, ...headers } });
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.text}`);
    return answer;
  };
  const rule = await post(`/v1/wallets/${reference.wallet}/rules`, limit({ name: mark }), { 'idempotency-key': key });
  await post(`/v1/wallets/${reference.wallet}/networks/${networkId}`, undefined);
  await p.call('GET', `/v2/admin/tokens/${reference.asset.toUpperCase()}`, { token });
  const users = Array.from({ length: USERS }, (_, at) => ({
    ...{ email: `${mark}-${at}@people.example`, external_id: `${mark}-external-${at}` },
    wallet_address: `0x${mark}-address-${at}`,
  }));
  const named = users.map((user, at) => ({
    ...user,
    name: `${mark}-name-${at}`,
    surname: `${mark}-surname-${at}`,
    kyc_sent: true,
  }));
  const bulk = await post('/v2/users/migrate/with-wallet/bulk', { users: [...named, ...named.slice(0, 1)] });
  await post('/v2/users/migrate/with-wallet', keyedUser(key), { 'idempotency-key': key });
  const idle = await createdClient(p, token, { name: mark });
  const username = `${mark}-boss`;
  const supervisor = await createdSupervisor(p, token, { username });
  const attempt = { grant_type: 'password', ...client, username: strangerOf(mark), password: PASSWORD };
  await p.call('POST', '/v2/oauth/token', { json: attempt });
  const [auditExport, exportKey, now] = [randomUUID(), randomUUID(), new Date().toISOString()];
  await rows(p).run((k) =>
    k.insertInto('audit_exports').values({
      ...{
        id: auditExport,
        node_id: nodeId,
        status: 'ready',
        asked: {},
        filter: {},
        requested_by: mark,
        created_at: now,
      },
      ...{ download_key: exportKey, finished_at: now, expires_at: '2999-01-01T00:00:00Z' },
    }),
  );
  const transaction = `${mark}-transaction`;
  await notified(p, nodeId, transaction, reference.asset);
  // The activity of a user.
  for (const email of [`${mark}@people.example`, users[0]?.email ?? '']) {
    await rows(p).run((k) => k.updateTable('users').set({ email }).where('id', '=', bulk.json.results[0].user_id));
  }
  return {
    ...{ nodeId, mark, token, refreshToken: pair.refresh_token, client, network: networkId, ...reference, key, users },
    ...{ rule: rule.headers.get('location')?.split('/').at(-1) ?? '', user: bulk.json.results[0].user_id },
    ...{
      migration: await migrationOf(p, nodeId),
      auditExport,
      exportKey,
      transaction,
      idleClient: idle.credentials.client_id,
    },
    ...{ supervisor: supervisor.id, username, login: await login(p, username, { client, password: PASSWORD }) },
  };
}

/** Whom a sign-in through the client of the node has named in vain. */
export function strangerOf(mark: string): string {
  return `${mark}-nobody`;
}

/** A user whom the key alone decides. */
export function keyedUser(key: string) {
  return { wallet_address: `0x-of-${key}`, external_id: `of-${key}`, kyc_sent: true };
}

/** What may stand in no answer to another node. */
export function marksOf(things: Things): string[] {
  const { nodeId, mark, account, wallet, asset, rule, migration, user, idleClient, supervisor, client } = things;
  const { auditExport, exportKey } = things;
  const { token, refreshToken, login: session } = things;
  const secrets = [client.client_secret, token, refreshToken, session.access_token, session.refresh_token];
  return [
    ...[nodeId, mark, account, wallet, asset, rule, migration, user, idleClient, supervisor, client.client_id],
    ...[auditExport, exportKey],
    ...secrets,
  ];
}

async function referenceRows(p: Portcullis, { nodeId, networkId }: NodeAccess, mark: string) {
  const door = rows(p);
  const [account, wallet, asset] = [randomUUID(), randomUUID(), randomUUID()];
  const [network] = await door.run((k) => k.selectFrom('networks').select('chain_id').where('id', '=', networkId));
  const own = { node_id: nodeId, created_at: AT, updated_at: AT };
  await door.run((k) =>
    k.insertInto('accounts').values({ ...own, id: account, name: mark, type: 'organisation', status: 1 }),
  );
  await door.run((k) =>
    k.insertInto('wallets').values({ ...own, id: wallet, account_id: account, chain_id: network?.chain_id ?? '' }),
  );
  await door.run((k) =>
    k.insertInto('assets').values({
      ...{ ...own, id: asset, name: mark, symbol: mark, type: 'bond', network_id: networkId, status: 'draft' },
    }),
  );
  return { account, wallet, asset };
}

async function notified({ service }: Portcullis, nodeId: string, id: string, assetId: string): Promise<void> {
  const { transactions } = service.context;
  await transactions.register({ id, nodeId, collection: 'user_transactions', type: 1, assetId });
  for (const status of [1, 2]) {
    const at = `2026-02-0${status}T00:00:00Z`;
    const body = Buffer.from(JSON.stringify({ id, type: 1, status, created_at: at, updated_at: at, error: id }));
    await transactions.applyBatch('transactions.user', [{ body, correlationId: `${id}-${status}` }]);
  }
}

async function migrationOf(p: Portcullis, nodeId: string): Promise<string> {
  const [row] = await rows(p).run((k) =>
    k.selectFrom('migrations').select('id').where('node_id', '=', nodeId).orderBy('created_at').orderBy('id'),
  );
  return row?.id ?? '';
}
