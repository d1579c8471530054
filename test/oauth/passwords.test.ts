import { availableParallelism } from 'node:os';
import { expect, it } from 'vitest';
import { Passwords } from '../../src/access/credentials/passwords.ts';
import { Refusal } from '../../src/platform/errors.ts';
import { cheapHash } from '../support/oauth/cheap-hash.ts';

const AT_ONCE = Math.max(1, availableParallelism() - 1);
const QUEUE = 64;

/** The work of this many passwords, once the one of the unknown user is done. */
it('D3-17: a hash is Argon2id in the PHC format, salted, and matches only its password', async () => {
  const passwords = new Passwords();
  const [hash, again] = await Promise.all([passwords.hash('correct'), passwords.hash('correct')]);
  expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
  expect(again).not.toBe(hash);
  const tried = ['correct', 'Correct', 'correct ', ''].map((password) => passwords.verify('node', password, hash));
  expect(await Promise.all(tried)).toEqual([true, false, false, false]);
});

it.each([
  ['no hash', undefined],
  ['a malformed hash', 'plain'],
  ['an empty hash', ''],
  ['a hash of another kind', '$2b$10$aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'],
])('D3-17: verification with %s runs Argon2 once and fails', async (_what, hash) => {
  const passwords = new Passwords();
  const before = passwords.runs;
  expect(await passwords.verify('node', 'x', hash)).toBe(false);
  expect(passwords.runs - before).toBe(1);
});

it('D3-17: runs one fewer than the cores, queues 64, rejects the next with 503, and answers the others', async () => {
  const passwords = new Passwords();
  const before = passwords.runs;
  const hash = cheapHash('right');
  const tried = Array.from({ length: AT_ONCE + QUEUE }, (_, index) => (index % 3 === 0 ? 'right' : 'wrong'));
  const answers = tried.map((password) => passwords.verify('node', password, hash));
  for (const call of [passwords.hash('x', 'node'), passwords.verify('node', 'right', hash)]) {
    const error = await call.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Refusal);
    expect(error).toMatchObject({ code: 'service_unavailable', details: { retryAfterSeconds: 1 } });
  }
  expect(passwords.runs - before).toBe(AT_ONCE);
  expect(await Promise.all(answers)).toEqual(tried.map((password) => password === 'right'));
  expect(passwords.runs - before).toBe(AT_ONCE + QUEUE);
  expect(await passwords.verify('node', 'right', hash)).toBe(true);
});

it('D2-25: a node that has filled the queue keeps half of it when another arrives, which runs next', async () => {
  const passwords = new Passwords();
  const hash = cheapHash('right');
  const ended: string[] = [];
  const verify = (nodeId: string) =>
    passwords.verify(nodeId, 'right', hash).then(
      () => ended.push(nodeId),
      (error: unknown) => {
        expect(error).toMatchObject({ code: 'service_unavailable', details: { retryAfterSeconds: 1 } });
        return ended.push(`${nodeId} refused`);
      },
    );
  const many = Array.from({ length: AT_ONCE + QUEUE }, () => verify('many'));
  const few = [verify('few'), passwords.hash('x', 'few').then(() => ended.push('few'))];
  expect([passwords.semaphore.waiting('many'), passwords.semaphore.waiting('few')]).toEqual([QUEUE / 2, 2]);
  await Promise.all([...many, ...few]);
  const of = (what: string) => ended.filter((one) => one === what).length;
  expect([of('many'), of('many refused'), of('few')]).toEqual([AT_ONCE + QUEUE / 2, QUEUE / 2, 2]);
  // Of those that ran, no more came before than were at it, and one of its turns between two of the other's.
  expect(ended.filter((one) => one !== 'many refused').lastIndexOf('few')).toBeLessThanOrEqual(2 * AT_ONCE + 2);
});
