import { decodeJwt } from 'jose';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { OPERATOR } from '../../src/access/administration/administration.ts';
import { type Portcullis, startOnSharedStores, startReplica } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';

const SKEW_MS = 5_000;
const INTERVAL_MS = 250;

interface Issued {
  by: number;
  token: string;
}

describeReal(['postgres', 'redis'], 'replicas whose clocks are five seconds ahead and behind', () => {
  let replicas: Portcullis[];
  beforeAll(async () => {
    const first = await startOnSharedStores();
    const skewed = [SKEW_MS, -SKEW_MS].map((skewMs) => startReplica(first, { overrides: { skewMs } }));
    replicas = [...(await Promise.all(skewed)), first];
  });
  afterAll(async () => {
    for (const replica of replicas) await replica[Symbol.asyncDispose]();
  });

  const issue = (take: (replica: Portcullis) => Promise<string>): Promise<Issued[]> =>
    Promise.all(replicas.map(async (replica, by) => ({ by, token: await take(replica) })));
  const apiTokens = () => issue((replica) => replica.clientToken());
  const logins = () => issue((replica) => replica.loginToken());

  /** What each replica answers to each token. */
  async function answers(issued: readonly Issued[]): Promise<string[]> {
    const asked = issued.flatMap(({ by, token }) =>
      replicas.map(async (replica, at) => {
        const { status } = await replica.call('GET', '/v1/accounts', { token });
        return `of ${by} at ${at}: ${status}`;
      }),
    );
    return Promise.all(asked);
  }
  const all = (issued: readonly Issued[], status: number) =>
    issued.flatMap(({ by }) => replicas.map((_, at) => `of ${by} at ${at}: ${status}`));

  async function expectAll(issued: readonly Issued[], status: number): Promise<void> {
    await expect.poll(() => answers(issued), { interval: INTERVAL_MS }).toEqual(all(issued, status));
  }

  it.each([0, 1, 2])(
    'D3-07: disabling a client at replica %i invalidates its earlier tokens on every replica; later ones are valid',
    async (at) => {
      const { demo, service } = replicas[at] as Portcullis;
      const { clientAdministration } = service.context;
      const set = (status: 'active' | 'disabled') =>
        clientAdministration.setStatus(demo.node_id, OPERATOR, demo.client.client_id, status);
      const rounds = inject('isThorough') || at === 0 ? 2 : 1;
      for (let round = 0; round < rounds; round += 1) {
        const before = [...(await apiTokens()), ...(await logins())];
        await expectAll(before, 200);
        await set('disabled');
        await expectAll(before, 401);
        await set('active');
        await expect
          .poll(
            () =>
              apiTokens().then(
                () => 'issued',
                () => 'refused',
              ),
            { interval: INTERVAL_MS },
          )
          .toBe('issued');
        const after = [...(await apiTokens()), ...(await logins())];
        await expectAll(after, 200);
        expect(await answers(before)).toEqual(all(before, 401));
      }
    },
  );

  it('D3-01: the iat of a token follows the shared clock, not the clock of the replica', async () => {
    for (const { token } of await apiTokens()) {
      const { iat = 0 } = decodeJwt(token);
      // A client that was disabled is told the second from which on its tokens are good.
      expect(Math.abs(iat * 1_000 - Date.now())).toBeLessThan(SKEW_MS - 1_000);
    }
  });
});
