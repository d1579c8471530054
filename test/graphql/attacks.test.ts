import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Log, silentLog } from '../../src/lib/log.ts';
import type { Attack } from '../support/graphql/attacks/attack.ts';
import { launch, type Outcome, type Target } from '../support/graphql/attacks/launch.ts';
import { ATTACKS } from '../support/graphql/attacks.ts';
import { type Fixture, startFixture } from '../support/graphql/fixture.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

const faults: object[] = [];
let portcullis: Portcullis;
let production: Fixture;
let open: Target;
let closed: Target;

beforeAll(async () => {
  const log: Log = { ...silentLog, error: (fields) => void faults.push(fields) };
  portcullis = await startPortcullis({ overrides: { log } });
  production = await startFixture({ production: true, introspection: false });
  open = { url: portcullis.url, token: await portcullis.clientToken() };
  closed = { url: new URL(production.url).origin, token: production.token };
});

afterEach(() => {
  expect([...faults.splice(0), ...production.faults.splice(0)]).toEqual([]);
});

afterAll(async () => {
  await portcullis[Symbol.asyncDispose]();
  await production[Symbol.asyncDispose]();
});

/** Frames of a stack, and what only an unexpected error says. */
const INSIDES = /\bat [\w.<>]+ \(|node_modules|\.[jt]s:\d+|RangeError|TypeError|INTERNAL_SERVER_ERROR/;

function textOf(outcome: Outcome): string {
  return 'text' in outcome ? outcome.text : outcome.messages.join('\n');
}

function expectAnswer({ expected }: Attack, outcome: Outcome): void {
  expect(textOf(outcome)).not.toMatch(INSIDES);
  if ('closed' in expected) expect(outcome).toMatchObject(expected);
  else expect(textOf(outcome)).toMatch(expected.says);
  if ('status' in expected) expect(outcome).toMatchObject({ status: expected.status });
}

/** Long ones; in a quick run another one that is refused by the same rule is launched in the place of each. */
const STAND_INS: Record<string, string> = {
  'a list of 19,000 strings': 'a list of 19,000 different strings',
  'a list of 300,000 empty objects': 'lists of 150,000 members within a list',
  '50,000 variables that are not declared': 'an object of 50,000',
};
const launched = ATTACKS.filter(({ name }) => inject('isThorough') || !Object.hasOwn(STAND_INS, name));

describe.each(
  Map.groupBy(launched, ({ group }) => group)
    .entries()
    .toArray(),
)('%s', (_group, attacks) => {
  it.each(attacks.map((attack): [string, Attack] => [attack.name, attack]))(
    'DG-06: %s has no effect and reveals no internals',
    async (_name, attack) => {
      expectAnswer(attack, await launch(attack, attack.isProduction ? closed : open));
    },
  );
});

describe('after all attacks', () => {
  it('DG-06: ordinary queries are answered, and no prototype was polluted', async () => {
    const json = { query: '{ me { nodeId } accounts(first: 2) { totalCount edges { node { id } } } }' };
    const answer = await portcullis.call('POST', '/graphql', { token: open.token, json });
    expect(answer.json).toMatchObject({ data: { me: { nodeId: portcullis.demo.node_id } } });
    expect((await production.query('{ me { subject } }')).json).toEqual({ data: { me: { subject: 'somebody' } } });
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  it('DG-06: there are at least sixty attacks, with distinct names', () => {
    const names = new Set(ATTACKS.map(({ group, name }) => `${group}: ${name}`));
    expect(names.size).toBe(ATTACKS.length);
    expect(ATTACKS.length).toBeGreaterThanOrEqual(60);
    for (const name of Object.values(STAND_INS)) expect(launched.map((attack) => attack.name)).toContain(name);
  });
});
