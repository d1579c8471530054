import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, it } from 'vitest';
import { impactOf, startAttackHarness } from '../support/attacks/attack.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';

const HEAP = '--max-old-space-size=512';
const BASELINE_MS = 5_000;
const AT_ONCE = 40;
const ROWS = 100;
/** The most bytes that an audit record keeps of a body. */
const BODY = 65_536;
/** The most characters of a user's name. */
const NAME = 1_024;
/** An account has the name that the reference topic gives it, of any length. */
const ACCOUNT_NAME = 900_000;
/** Twice what a tenant may hold, as rows and as what is made of them. */
const MORE_MEBIBYTES = 400;

const AUDIT = Array.from(
  { length: 20 },
  (_, at) => `r${at}: auditRecords(first: ${ROWS}) { edges { node { id requestBody responseBody } } }`,
);
const NAMES = Array.from({ length: 12 }, (_, at) => `n${at}: name s${at}: surname`);

type Request = [path: string, query?: string];

const ATTACKS: Record<string, Request> = {
  'lists of audit records': ['/graphql', `{ ${AUDIT.join(' ')} }`],
  'one list of audit records': ['/graphql', `{ ${AUDIT[0]} }`],
  'lists of users with each name requested twelve times': [
    '/graphql',
    `{ users(last: ${ROWS}) { edges { node { ${NAMES.join(' ')} } } } }`,
  ],
  'pages of accounts by REST': [`/v1/accounts?limit=${ROWS / 5}`],
  'pages of accounts by GraphQL': ['/graphql', '{ accounts(first: 9) { edges { node { name } } } }'],
};
/** What each request gets: its page, or that it is too large, or that others are before it. */
const REFUSALS = /PAGE_TOO_LARGE|SERVICE_UNAVAILABLE|service_unavailable|request fewer/;

describeReal(['postgres', 'redis', 'kafka'], 'pages that take much memory', () => {
  const target = beforeTests(() => startAttackHarness({ NODE_OPTIONS: HEAP }));
  beforeAll(async () => {
    const [, { nodeId }] = target.attackers;
    await withPostgres(target.cluster.direct.databaseUrl, async (client) => {
      await client.query(`
        insert into audit_records (at, id, node_id, correlation_id, method, path, status_code, elapsed, headers,
          remote_address, real_ip, request_bytes, response_bytes, is_api, request_body, response_body)
        select now(), gen_random_uuid(), '${nodeId}', 'x', 'GET', '/', 200, 1, '{}', '', '', 0, 0, true,
          repeat('x', ${BODY}), repeat('y', ${BODY}) from generate_series(1, ${ROWS})`);
      await client.query(`
        insert into users (id, node_id, address, email, name, surname, created_at)
        select gen_random_uuid(), '${nodeId}', 'a' || n, 'e' || n, repeat('表', ${NAME}), repeat('é', ${NAME}), now()
        from generate_series(1, ${ROWS}) n`);
      await client.query(`
        insert into accounts (id, node_id, name, type, status, created_at, updated_at)
        select gen_random_uuid(), '${nodeId}', repeat('x', ${ACCOUNT_NAME}), 'long', 1, '2020-01-01', now()
        from generate_series(1, ${ROWS})`);
    });
    // The first requests load what later ones use.
    await impactOf(target, () => delay(BASELINE_MS));
  });

  it.each(Object.entries(ATTACKS))('D7-13: %s do not exhaust a heap of 512 MB', async (_what, [path, query]) => {
    const { gateways, attackers } = target;
    const [, { token }] = attackers;
    const baseline = await impactOf(target, () => delay(BASELINE_MS));
    const answers: string[] = [];
    const ask = async () => {
      const response = await fetch(`${gateways[0]?.baseUrl}${path}`, {
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(query && { method: 'POST', body: JSON.stringify({ query }) }),
      });
      const text = await response.text();
      answers.push(
        response.status === 200 && !text.includes('"errors"')
          ? 'page'
          : (REFUSALS.exec(text)?.[0] ?? text.slice(0, 1_000)),
      );
    };
    const impact = await impactOf(target, async () => {
      await Promise.all(Array.from({ length: AT_ONCE }, ask));
    });
    process.stdout.write(
      `${JSON.stringify({ baseline, impact, answers: Object.groupBy(answers, (answer) => answer) }, (_key, value) => (Array.isArray(value) ? value.length : value))}\n`,
    );
    expect(impact.failed).toEqual([]);
    expect(answers).toHaveLength(AT_ONCE);
    for (const answer of answers)
      expect(answer).toMatch(/^page$|^(PAGE_TOO_LARGE|SERVICE_UNAVAILABLE|service_unavailable|request fewer)$/);
    expect(impact.memory).toBeLessThan(baseline.memory + MORE_MEBIBYTES);
  });
});
