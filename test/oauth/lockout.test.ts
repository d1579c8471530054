import { randomUUID } from 'node:crypto';
import { beforeEach, expect, it, vi } from 'vitest';
import { lockedUntilMs } from '../../src/access/credentials/login-locks.ts';
import { deleteExpiredRows } from '../../src/access/tokens/revocations.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import {
  type Answer,
  type Portcullis,
  startOnSharedStores,
  startPortcullis,
  startReplica,
} from '../support/harness.ts';
import { cheapHash } from '../support/oauth/cheap-hash.ts';
import { addClient, rows } from '../support/oauth/clients.ts';
import { describeReal } from '../support/services/real.ts';

const MINUTE = 60_000;
const clock = { skewMs: 0 };
const nowMs = () => Date.now() + clock.skewMs;
const hash = cheapHash('correct');
const p = beforeTests(() => startPortcullis({ overrides: { nowMs } }));
beforeEach(() => rows(p).run((k) => k.deleteFrom('login_failures')));

async function supervisor(settings: { node_id?: string; status?: 'disabled' } = {}): Promise<string> {
  const username = `Person-${randomUUID()}`;
  const row = { id: randomUUID(), node_id: p.demo.node_id, username, password_hash: hash, role: 'viewer', ...settings };
  await rows(p).run((k) => k.insertInto('supervisors').values(row));
  return username;
}

function login(username: string, password = 'wrong', client: object = p.demo.client): Promise<Answer> {
  return p.call('POST', '/v2/oauth/token', { json: { grant_type: 'password', ...client, username, password } });
}

async function fail(username: string, times: number): Promise<void> {
  for (let time = 0; time < times; time++) expect((await login(username)).status).toBe(401);
}

async function failuresOf(username: string): Promise<number> {
  const found = await rows(p).run((k) =>
    k.selectFrom('login_failures').select('id').where('username', '=', username.toLowerCase()),
  );
  return found.length;
}

it('D3-17: five failures lock a username for fifteen minutes, even for the correct password', async () => {
  const username = await supervisor();
  await fail(username, 4);
  expect((await login(username, 'correct')).status).toBe(200);
  expect(await failuresOf(username)).toBe(0);
  await fail(username, 5);
  expect((await login(username, 'correct')).status).toBe(401);
  clock.skewMs += 14 * MINUTE;
  expect((await login(username, 'correct')).status).toBe(401);
  clock.skewMs += MINUTE;
  expect((await login(username, 'correct')).status).toBe(200);
});

it('D3-17: failures during a lock are not counted, so the lock ends on time', async () => {
  const username = await supervisor();
  await fail(username, 5);
  clock.skewMs += 14 * MINUTE;
  await fail(username, 7);
  expect(await failuresOf(username)).toBe(5);
  clock.skewMs += MINUTE;
  await fail(username, 4);
  expect((await login(username, 'correct')).status).toBe(200);
});

it('D3-17: a username is locked in any letter case, and only on its own node', async () => {
  const username = await supervisor();
  await rows(p).run((k) =>
    k.insertInto('supervisors').values({
      id: randomUUID(),
      node_id: p.demo.other_node.node_id,
      username,
      password_hash: hash,
      role: 'viewer',
    }),
  );
  await fail(username.toUpperCase(), 2);
  await fail(username.toLowerCase(), 3);
  expect((await login(username, 'correct')).status).toBe(401);
  expect((await login(username, 'correct', p.demo.other_node.client)).status).toBe(200);
});

it('D3-17: an unknown username is counted and locked like any other', async () => {
  const username = `nobody-${randomUUID()}`;
  await fail(username, 7);
  expect(await failuresOf(username)).toBe(5);
  const { locks } = p.service.context;
  expect(await locks.isLocked(p.demo.node_id, username.toUpperCase(), null)).toBe(true);
});

/** Who is refused, and whose login it would have been. */
const refusals: Record<string, () => Promise<[username: string, password: string]>> = {
  'an unknown user': async () => [`nobody-${randomUUID()}`, 'correct'],
  'a wrong password': async () => [await supervisor(), 'wrong'],
  'a user of another node': async () => [await supervisor({ node_id: p.demo.other_node.node_id }), 'correct'],
  'a disabled supervisor': async () => [await supervisor({ status: 'disabled' }), 'correct'],
  'a locked username': async () => {
    const username = await supervisor();
    await fail(username, 5);
    return [username, 'correct'];
  },
  'a locked unknown username': async () => {
    const username = `nobody-${randomUUID()}`;
    await fail(username, 5);
    return [username, 'correct'];
  },
  'a name of more than 255 characters': async () => ['n'.repeat(256), 'correct'],
  'the password with a space': async () => [await supervisor(), 'correct '],
  'a condition for a name': async () => [`${await supervisor()}' or '1'='1`, 'correct'],
  'a long password': async () => [await supervisor(), 'x'.repeat(50_000)],
};

it('7.2-02 5.2-02 D3-17: every rejected login has the same response, one Argon2 run and the same number of statements', async () => {
  const { passwords, database } = p.service.context;
  const seen = new Map<string, unknown>();
  for (const [who, arrange] of Object.entries(refusals)) {
    const [username, password] = await arrange();
    const statements = vi.spyOn(database.db, 'forNode');
    const runs = passwords.runs;
    const { status, text, headers } = await login(username, password);
    const names = [...headers.keys()].filter((name) => !['date', 'x-correlation-id'].includes(name));
    const shown = names.map((name) => [name, headers.get(name)]);
    seen.set(who, { status, text, shown, runs: passwords.runs - runs, statements: statements.mock.calls.length });
    statements.mockRestore();
  }
  const [first] = seen.values();
  expect(first).toMatchObject({ status: 401, text: envelope('invalid_request'), runs: 1, statements: 3 });
  expect(Object.fromEntries(seen)).toEqual(Object.fromEntries(Object.keys(refusals).map((who) => [who, first])));
});

it('D3-17: failures of a username over the maximum length are not counted; one of maximum length can log in', async () => {
  const username = 'n'.repeat(256);
  const row = { node_id: p.demo.node_id, password_hash: hash, role: 'viewer' };
  for (let time = 0; time < 6; time++) expect((await login(username, 'correct')).status).toBe(401);
  expect(await failuresOf(username)).toBe(0);
  const longest = 'N'.repeat(255);
  await rows(p).run((k) => k.insertInto('supervisors').values({ ...row, id: randomUUID(), username: longest }));
  expect((await login(longest.toLowerCase(), 'correct')).status).toBe(200);
});

it('D3-17: concurrent guesses are counted one by one: from the sixth on the password is not checked', async () => {
  const username = await supervisor();
  const guesses = Array.from({ length: 12 }, (_, index) => login(username, index === 11 ? 'correct' : 'wrong'));
  expect((await Promise.all(guesses)).map(({ status }) => status)).toEqual(guesses.map(() => 401));
  expect(await failuresOf(username)).toBe(5);
});

it('D3-17: concurrent correct logins all succeed', async () => {
  const username = await supervisor();
  const answers = await Promise.all(Array.from({ length: 12 }, () => login(username, 'correct')));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
});

it('D3-17: logins of one username beyond the queue get 503 with Retry-After, and are not counted', async () => {
  const username = await supervisor();
  const waiting = 64;
  const beyond = 5;
  let toRefuse = beyond;
  const gate = Promise.withResolvers<void>();
  const verify = vi.spyOn(p.service.context.passwords, 'verify').mockImplementation(async () => {
    await gate.promise;
    return false;
  });
  const logins = Array.from({ length: 1 + waiting + beyond }, async () => {
    const answer = await login(username);
    if (answer.status === 503) toRefuse -= 1;
    if (toRefuse === 0) gate.resolve();
    return answer;
  });
  const answers = await Promise.all(logins);
  verify.mockRestore();
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(1 + waiting);
  for (const { text, headers } of answers.filter(({ status }) => status !== 401)) {
    expect([text, headers.get('retry-after')]).toEqual([envelope('service_unavailable'), '1']);
  }
  expect(await failuresOf(username)).toBe(5);
});

it('D3-17: a client without the password grant neither counts nor resets failures', async () => {
  const username = await supervisor();
  const client = await addClient(p, { grant_types: ['client_credentials'] });
  await fail(username, 4);
  expect((await login(username, 'correct', client)).status).toBe(403);
  expect((await login(username, 'wrong', client)).status).toBe(403);
  expect(await failuresOf(username)).toBe(4);
});

it('D3-17: locks of many usernames are read in one statement, and an administrator can unlock one', async () => {
  const { locks, database } = p.service.context;
  const [locked, other, free] = [await supervisor(), await supervisor(), await supervisor()];
  await fail(locked, 5);
  const untilMs = nowMs() + 15 * MINUTE;
  await fail(other.toUpperCase(), 5);
  await fail(free, 4);
  const statements = vi.spyOn(database.db, 'forNode');
  const read = await locks.lockedUntil(p.demo.node_id, [locked, other, free]);
  expect(statements).toHaveBeenCalledOnce();
  statements.mockRestore();
  expect([...read.keys()]).toEqual([locked, other]);
  expect(Math.abs((read.get(locked) ?? 0) - untilMs)).toBeLessThan(MINUTE);
  expect(await locks.lockedUntil(p.demo.other_node.node_id, [locked, other])).toEqual(new Map());
  expect(await locks.lockedUntil(p.demo.node_id, [])).toEqual(new Map());
  await locks.unlock(p.demo.node_id, locked);
  expect((await login(locked, 'correct')).status).toBe(200);
  expect((await login(other, 'correct')).status).toBe(401);
});

it('D3-17: housekeeping deletes failures more than an hour old', async () => {
  await fail(await supervisor(), 3);
  clock.skewMs += 61 * MINUTE;
  const username = await supervisor();
  await fail(username, 1);
  await deleteExpiredRows({ db: p.service.context.database.db, nowMs });
  const left = await rows(p).run((k) => k.selectFrom('login_failures').select('username'));
  expect(left).toEqual([{ username: username.toLowerCase() }]);
});

const NOW = Date.UTC(2026, 10, 21, 12);

/** Minutes ago of each failure, and in how many minutes the lock ends. */
const cases: [string, number[], number | undefined][] = [
  ['no failure', [], undefined],
  ['four at once', [0, 0, 0, 0], undefined],
  ['five at once', [0, 0, 0, 0, 0], 15],
  ['five over a little less than fifteen minutes', [0, 1, 2, 3, 14.999], 15],
  ['five over fifteen minutes', [0, 1, 2, 3, 15], undefined],
  ['five, the last a little less than fifteen minutes ago', [14.999, 15, 15, 15, 15], 0.001],
  ['five, the last fifteen minutes ago', [15, 15, 15, 15, 15], undefined],
  ['one more after a lock has ended', [0, 15, 15, 15, 15, 15], undefined],
  ['four more after a lock has ended', [0, 0, 0, 0, 15.1, 15.1, 15.1, 15.1, 15.1], undefined],
  ['five more after a lock has ended', [0, 0, 0, 0, 0, 15.1, 15.1, 15.1, 15.1, 15.1], 15],
  ['many within a minute', [0, 0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1], 15],
  ['a burst, then four now', [0, 5, 10, 14, 16, 16, 16, 16, 16], undefined],
];

it.each(cases)('D3-17: lock after these failures: %s', (_what, minutesAgo, endsInMinutes) => {
  const failedAtMs = minutesAgo.map((minutes) => NOW - minutes * MINUTE);
  const expected = endsInMinutes === undefined ? undefined : NOW + endsInMinutes * MINUTE;
  expect(lockedUntilMs(failedAtMs, NOW)).toBe(expected);
});

/** The statuses of logins of the demo's supervisor, one after the other. */
async function loginAll(instances: readonly Portcullis[], password: string): Promise<number[]> {
  const statuses: number[] = [];
  for (const { call, demo } of instances) {
    const json = { grant_type: 'password', ...demo.client, username: demo.supervisor.username, password };
    statuses.push((await call('POST', '/v2/oauth/token', { json })).status);
  }
  return statuses;
}

describeReal(['postgres', 'redis'], 'instances on one database', () => {
  it('D3-17: a lock is still in force after a restart', async () => {
    await using p = await startPortcullis();
    {
      await using first = await startReplica(p);
      expect(await loginAll(Array(5).fill(first), 'wrong')).toEqual([401, 401, 401, 401, 401]);
    }
    await using second = await startReplica(p);
    expect(await loginAll([second], second.demo.supervisor.password)).toEqual([401]);
    await second.service.context.locks.unlock(second.demo.node_id, second.demo.supervisor.username);
    expect(await loginAll([second], second.demo.supervisor.password)).toEqual([200]);
  });

  it('D3-17: count failures together, both reject a locked username, and both accept it after one unlocks it', async () => {
    await using p = await startOnSharedStores();
    await using other = await startReplica(p);
    const both = [p, other];
    const { password, username } = p.demo.supervisor;
    await loginAll([...both, ...both], 'wrong');
    expect(await loginAll(both, password)).toEqual([200, 200]);
    await loginAll([...both, ...both, p], 'wrong');
    expect(await loginAll(both, password)).toEqual([401, 401]);
    expect(await rows(p).run((k) => k.selectFrom('login_failures').select('username'))).toHaveLength(5);
    await p.service.context.locks.unlock(p.demo.node_id, username);
    expect(await loginAll(both, password)).toEqual([200, 200]);
  });
});
