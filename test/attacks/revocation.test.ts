import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type Impact, impactOf as impactOn } from '../support/attacks/attack.ts';
import { type Credentials, type Holder, STOLEN, startHolder } from '../support/attacks/holder.ts';
import { listening, tokenOf } from '../support/faults/faults.ts';
import { type Lab, type Replica, startLab } from '../support/faults/lab.ts';
import { REDIS_STATES, type RedisState, type TroubledRedis } from '../support/faults/redis-states.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';

const BASELINE_MS = 3_000;
const BEFORE_MS = 1_000;
const AFTER_MS = 3_000;
/** Within this time every process knows what has ended. */
const KNOWN_MS = 1_000;
/** The attempts of a holder, with the open socket. */
const WAYS = 10;
const PASSWORD = 'the password of the holder';
const ALL = 'accounts:read,clients:manage,transactions:read,wallets:read';

interface Person extends Credentials {
  supervisorId: string;
}

type End = (lab: Lab, token: string, has: Person) => Promise<unknown>;

const changed =
  (mutation: string, more: string): End =>
  (lab, token, { supervisorId }) =>
    graphql(lab, token, `mutation { ${mutation}(id: "${supervisorId}", ${more}) { __typename } }`);

const ENDS: readonly [how: string, end: End][] = [
  ['the supervisor was disabled', changed('setSupervisorStatus', 'status: DISABLED')],
  [
    'the login was revoked',
    (lab, _token, { through, login }) => post(lab, '/v2/oauth/revoke', { ...through, token: login.refresh_token }),
  ],
  ['the password was changed', changed('setSupervisorPassword', `password: "${PASSWORD}, changed"`)],
  ['the role was changed', changed('setSupervisorRole', 'role: "viewer"')],
];

const HEAD = ['Redis', 'and', 'last success, ms', 'requests of others', 'median, ms', 'slowest, ms', 'event loop, ms'];
const reports: string[][] = [HEAD, HEAD.map(() => '---')];
afterAll(() => process.stdout.write(`\n${reports.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`));

describeReal(['postgres', 'redis', 'kafka'], 'who holds credentials that have ended, while Redis', () => {
  let lab: Lab;
  let gateways: Replica[];
  let admin: string;
  let baseline: Impact;

  beforeAll(async () => {
    lab = await startLab(['gateway', 'gateway', 'worker'], { partitions: 3 });
    gateways = listening(lab);
    admin = await tokenOf(lab);
    const holder = await startHolder(gateways, await credentials());
    baseline = await impactOf(() => delay(BASELINE_MS));
    await holder.stop();
    reports.push(['is well', 'nothing ended (baseline)', '–', ...cellsOf(baseline)]);
  });
  afterAll(() => lab?.[Symbol.asyncDispose]());

  /** A new supervisor with every permission, logged in, and a new client with a token. */
  async function credentials(): Promise<Person> {
    const through = lab.demo.client;
    const username = randomUUID();
    const input = `{ username: "${username}", password: "${PASSWORD}", role: "admin" }`;
    const { result } = await graphql(
      lab,
      admin,
      `mutation { result: createSupervisor(input: ${input}) { ... on Supervisor { id } } }`,
    );
    const given = ['--node', lab.demo.node_id, '--name', 'Holder', '--grants', 'client_credentials,refresh_token'];
    const made = JSON.parse(await lab.command(['client', 'create', ...given, '--scopes', ALL, '--json']));
    const client = { client_id: made.client_id, client_secret: made.client_secret };
    const grant = { grant_type: 'password', ...through, username, password: PASSWORD };
    const login = await vi.waitFor(() => post(lab, '/v2/oauth/token', grant));
    const api = await post(lab, '/v2/oauth/token', { grant_type: 'client_credentials', ...client });
    return { login, through, client, api, supervisorId: result.id };
  }

  const cases = REDIS_STATES.flatMap((state, at) =>
    ENDS.filter((_, index) => index === at % ENDS.length).map(([how, end]) => [state.name, how, end, state] as const),
  );

  it.each(cases)('D3-36: %s and %s: nothing succeeds on any process after a second', async (...row) => {
    const [name, how, end, state] = row;
    const has = await credentials();
    const holder = await startHolder(gateways, has);
    const at: TroubledRedis = { redis: lab.servers.redis, folder: lab.folder, defer: lab.defer };
    const times = { begun: 0, told: 0 };
    try {
      await vi.waitFor(() => expect(new Set(holder.successes.map(({ what }) => what)).size).toBe(WAYS));
      await state.begin(at);
      const impact = await impactOf(async () => {
        await delay(BEFORE_MS);
        times.begun = performance.now();
        const disabled = `mutation { setClientStatus(id: "${has.client.client_id}", status: DISABLED) { __typename } }`;
        await Promise.all([end(lab, admin, has), graphql(lab, admin, disabled)]);
        times.told = performance.now();
        await state.goOn?.(at);
        await delay(AFTER_MS);
      });
      expect(await holder.completeLate()).toEqual([401, 401]);
      await endState(state, at);
      await delay(AFTER_MS);
      const last = Math.max(...holder.successes.map(({ beganAtMs }) => beganAtMs)) - times.begun;
      reports.push([name, how, last.toFixed(0), ...cellsOf(impact)]);
      judge(holder, times.told);
      judgeImpact(impact);
      expect(await stolenSince(times.told + KNOWN_MS)).toBe(0);
    } finally {
      await holder.stop();
      await endState(state, at).catch(() => undefined);
    }
  });

  async function endState(state: RedisState, at: TroubledRedis): Promise<void> {
    await state.end(at);
    for (const gateway of gateways) await gateway.ready();
  }

  /** The gateway that made the change knows at once, the other one within a second; what was open is closed by then. */
  function judge({ successes, ended, opened }: Holder, toldAtMs: number): void {
    const [first] = gateways;
    const late = successes.filter(
      ({ gateway, beganAtMs }) => beganAtMs > toldAtMs + (gateway === first ? 0 : KNOWN_MS),
    );
    expect(late.map(({ what, beganAtMs }) => `${what} ${(beganAtMs - toldAtMs).toFixed(0)}`)).toEqual([]);
    expect([...ended].filter(([, atMs]) => atMs <= toldAtMs + 2 * KNOWN_MS)).toHaveLength(opened);
  }

  function judgeImpact({ failed, median, slowest, loop }: Impact): void {
    expect(failed).toEqual([]);
    expect(median).toBeLessThan(3 * baseline.median + 50);
    expect(slowest).toBeLessThan(5 * baseline.slowest + 500);
    expect(loop).toBeLessThan(5 * baseline.loop + 250);
  }

  /** How many clients the holder has created since a time of `performance.now()`. */
  async function stolenSince(sinceMs: number): Promise<number> {
    const since = new Date(Date.now() - (performance.now() - sinceMs)).toISOString();
    const { rows } = await withPostgres(lab.direct.databaseUrl, (client) =>
      client.query('select id from clients where name like $1 and created_at > $2', [`${STOLEN}%`, since]),
    );
    return rows.length;
  }

  /** What somebody of another tenant notices, who uses every gateway with an API token. */
  async function impactOf(work: () => Promise<void>): Promise<Impact> {
    const { node_id: nodeId, client } = lab.demo.other_node;
    return impactOn({ gateways, bystander: { nodeId, token: await tokenOf(lab, client) } }, work);
  }
});

function cellsOf({ requests, median, slowest, loop }: Impact): string[] {
  return [`${requests}`, ...[median, slowest, loop].map((ms) => ms.toFixed(0))];
}

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes.
async function post(lab: Lab, path: string, json: object, headers: Record<string, string> = {}): Promise<any> {
  const [gateway] = listening(lab);
  const response = await fetch(`${gateway?.baseUrl}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(json),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${path} ${response.status} ${text}`);
  return JSON.parse(text);
}

async function graphql(lab: Lab, token: string, query: string) {
  const { data, errors } = await post(lab, '/graphql', { query }, { authorization: `Bearer ${token}` });
  if (errors) throw new Error(JSON.stringify(errors));
  return data;
}
