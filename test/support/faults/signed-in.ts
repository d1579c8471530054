import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { portcullis } from '../cli/in-process.ts';
import type { Cluster, Replica } from './cluster.ts';
import { listening } from './faults.ts';

/** A fault of a store, which lasts from `begin` to `end`. */
export interface LastingFault {
  name: string;
  begin(cluster: Cluster): Promise<unknown>;
  end(cluster: Cluster): Promise<unknown>;
}

/** The tokens of a login. */
export interface Tokens {
  access_token: string;
  refresh_token: string;
}

const SESSIONS = 4;
const REST_MS = 20;
const OUTAGE_MS = 3_000;
/** A process accepts nothing of an ended session after so long. */
const HEARD_MS = 1_000;
const LOOKS = 5;
const LIMIT = 20;
/** A client that sends as many requests at once to each of two gateways uses up any limit on each. */
const BURST = 3 * LIMIT;

/** What callers ask for. */
type Ask = 'login token' | 'API token' | 'sign-in' | 'refresh';

/** What callers were answered around a fault. */
export interface SignedInReport {
  /** How many requests of live sessions and API tokens, sign-ins and refreshes succeeded. */
  succeeded: number;
  /** Those that did not, each with its status. */
  failed: { what: Ask; status: number | 'unanswered' }[];
  /** The statuses of requests of sessions that had ended more than a second before. */
  ended: number[];
  /** How many requests of a limited client passed before, during and after the fault. */
  passed: { before: number; during: number; after: number };
}

/** The limit of the clients whose requests are counted in `passed`. */
export const SIGNED_IN_LIMIT = LIMIT;

/**
 * Brings a fault about under a load of login tokens, API tokens, sign-ins, refreshes and revocations at every gateway,
 * starts the last gateway anew in the middle, and tells what callers were answered.
 */
export async function signedInUnder(
  cluster: Cluster,
  fault: LastingFault,
  { restarts = true } = {},
): Promise<SignedInReport> {
  const doors = listening(cluster);
  const open = new Set(doors);
  const ended: number[] = [];
  const failed: SignedInReport['failed'] = [];
  let succeeded = 0;
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => signIn(doors[0], cluster)));
  const api = await tokenOf(doors[0], cluster.demo.client);
  const before = await tokenOf(doors[0], await limitedClient(cluster));
  const during = await tokenOf(doors[0], await limitedClient(cluster));
  const last = await limitedClient(cluster);
  let isOver = false;

  /** Asks each gateway that runs, one after the other, until the load is over. */
  async function lane(what: Ask, ask: (door: Replica) => Promise<number | 'unanswered'>): Promise<void> {
    for (let turn = 0; !isOver; turn += 1) {
      const door = doors[turn % doors.length];
      if (door && open.has(door)) {
        const status = await ask(door);
        // What was under way when its gateway was stopped says nothing.
        if (status === 200) succeeded += 1;
        else if (open.has(door)) failed.push({ what, status });
      }
      await delay(REST_MS);
    }
  }

  const renewed = await signIn(doors[0], cluster);
  const renew = async (door: Replica) => (await post(door, '/v2/oauth/token', refreshGrant(cluster, renewed))).status;
  const begin = async (door: Replica) => (await post(door, '/v2/oauth/token', passwordGrant(cluster))).status;

  /** Ends a session, and looks at every gateway a second later. */
  async function end(): Promise<void> {
    const { status, json } = await post<Tokens>(doors[0], '/v2/oauth/token', passwordGrant(cluster));
    if (status !== 200 || !json) return;
    for (const door of open) await statusOf(door, json.access_token);
    const revoked = await post(doors[0], '/v2/oauth/revoke', { ...cluster.demo.client, token: json.refresh_token });
    if (revoked.status !== 200) return;
    await delay(HEARD_MS);
    for (let look = 0; look < LOOKS; look += 1) {
      for (const door of open) {
        const seen = await statusOf(door, json.access_token);
        if (seen !== 'unanswered') ended.push(seen);
      }
      await delay(REST_MS);
    }
  }

  const lanes = [
    ...sessions.map(({ access_token }) => lane('login token', (door) => statusOf(door, access_token))),
    lane('API token', (door) => statusOf(door, api)),
    lane('refresh', renew),
    lane('sign-in', async (door) => {
      const status = await begin(door);
      await delay(OUTAGE_MS / 6);
      return status;
    }),
  ];
  const ending = (async () => {
    while (!isOver) await end();
  })();
  try {
    const passedBefore = await passing([...open], before);
    await fault.begin(cluster);
    await delay(OUTAGE_MS);
    const passedDuring = await passing([...open], during);
    const restarted = doors.at(-1);
    if (restarts && restarted) {
      open.delete(restarted);
      await restarted.stop();
      await restarted.restart();
      open.add(restarted);
      await delay(OUTAGE_MS);
    }
    await fault.end(cluster);
    await Promise.all(cluster.replicas.map((replica) => replica.ready()));
    const passedAfter = await passing([...open], await tokenOf(doors[0], last));
    return { succeeded, failed, ended, passed: { before: passedBefore, during: passedDuring, after: passedAfter } };
  } finally {
    isOver = true;
    await Promise.all([...lanes, ending]);
  }
}

/** Sends more requests than allowed to each gateway at once, and returns how many passed. */
async function passing(doors: readonly Replica[], token: string): Promise<number> {
  const requests = doors.flatMap((door) => Array.from({ length: BURST }, () => statusOf(door, token)));
  return (await Promise.all(requests)).filter((status) => status === 200).length;
}

function passwordGrant({ demo }: Cluster): object {
  return { grant_type: 'password', ...demo.client, ...demo.supervisor };
}

function refreshGrant({ demo }: Cluster, { refresh_token }: Tokens): object {
  return { grant_type: 'refresh_token', ...demo.client, refresh_token };
}

/** Redeems the refresh token of a session at a gateway. */
export async function refresh(door: Replica, cluster: Cluster, tokens: Tokens): Promise<Tokens> {
  const { status, json } = await post<Tokens>(door, '/v2/oauth/token', refreshGrant(cluster, tokens));
  if (!json) throw new Error(`a refresh got ${status}`);
  return json;
}

/** Signs the demo supervisor in at a gateway. */
export async function signIn(door: Replica | undefined, cluster: Cluster): Promise<Tokens> {
  const { status, json } = await post<Tokens>(door, '/v2/oauth/token', passwordGrant(cluster));
  if (!json) throw new Error(`a sign-in got ${status}`);
  return json;
}

async function tokenOf(door: Replica | undefined, client: object): Promise<string> {
  const { status, json } = await post<Tokens>(door, '/v2/oauth/token', { grant_type: 'client_credentials', ...client });
  if (!json) throw new Error(`a token request got ${status}`);
  return json.access_token;
}

/** Creates a client that may send so many requests an hour, besides the one for its token. */
async function limitedClient(cluster: Cluster): Promise<object> {
  const { code, out, err } = await portcullis(
    [
      ...['client', 'create', '--node', cluster.demo.node_id, '--name', randomUUID(), '--grants', 'client_credentials'],
      ...['--scopes', 'accounts:read', '--requests-per-hour', `${LIMIT + 1}`, '--json'],
    ],
    cluster.env,
  );
  if (code !== 0) throw new Error(err);
  const { client_id, client_secret } = JSON.parse(out);
  return { client_id, client_secret };
}

/** Posts JSON to a gateway. */
export async function post<Json>(
  door: Replica | undefined,
  path: string,
  body: object,
  retries = 1,
): Promise<{ status: number | 'unanswered'; json?: Json }> {
  try {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const response = await fetch(`${door?.baseUrl}${path}`, init);
    const text = await response.text();
    return { status: response.status, json: JSON.parse(text || '{}') };
  } catch {
    return retries > 0 ? post(door, path, body, retries - 1) : { status: 'unanswered' };
  }
}

/** Returns the status of a request with a token. */
export async function statusOf(door: Replica, token: string, retries = 1): Promise<number | 'unanswered'> {
  try {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${door.baseUrl}/v1/accounts?limit=1`, { headers });
    await response.text();
    return response.status;
  } catch {
    // A kept connection may have been closed as it was used again.
    return retries > 0 ? statusOf(door, token, retries - 1) : 'unanswered';
  }
}
