import { type Argon2Parameters, argon2 as argon2WithCallback, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { Semaphore } from '../../lib/semaphore.ts';
import { passwordsAtOnce } from '../../lib/thread-pool.ts';
import { serviceUnavailable } from '../../platform/errors.ts';
import { MAX_WAIT_MS, requestSignal } from '../../platform/held-memory.ts';

const argon2 = promisify(argon2WithCallback);
export const MEMORY_KIB = 19 * 1024;
const PASSES = 2;
const PARALLELISM = 1;
const TAG_BYTES = 32;
const SALT_BYTES = 16;
/** The most computations of tenants that wait. */
export const MAX_WAITING_PASSWORDS = 64;
const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/** The parameters of a computation; the salt is the `nonce`. */
type Parameters = Pick<Argon2Parameters, 'memory' | 'passes' | 'parallelism' | 'nonce' | 'tagLength'>;

/**
 * Hashes and verifies passwords with Argon2id (RFC 9106) outside the event loop: on all cores but one, with a bounded
 * queue that serves tenants in round robin.
 */
export class Passwords {
  readonly semaphore = new Semaphore({
    permits: passwordsAtOnce(),
    maxWaiting: MAX_WAITING_PASSWORDS,
    // A tenant may use all permits while no other waits: a hash is so short that others then hardly wait.
    mayBorrow: true,
    waitMs: MAX_WAIT_MS,
    refusal: serviceUnavailable,
    signalOf: requestSignal,
  });
  /** A hash of no known password: its tag is random. */
  readonly #unknownUser = phc(randomBytes(SALT_BYTES), randomBytes(TAG_BYTES));
  /** The number of Argon2 computations so far. */
  runs = 0;

  /**
   * Returns the hash of a password as a PHC string. `nodeId` is the tenant in whose queue the computation waits, if
   * any.
   * @throws Refusal `service_unavailable` when the queue is full.
   */
  async hash(password: string, nodeId?: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES);
    const cost = { memory: MEMORY_KIB, passes: PASSES, parallelism: PARALLELISM };
    return phc(salt, await this.#run(nodeId, password, { ...cost, nonce: salt, tagLength: TAG_BYTES }));
  }

  /**
   * Checks whether a password matches a hash. Without a hash (an unknown user), or with a malformed one, it does the
   * same work and returns false.
   * @throws Refusal `service_unavailable` when the tenant's queue is full.
   */
  async verify(nodeId: string, password: string, hash: string | undefined): Promise<boolean> {
    const known = hash === undefined ? null : PHC.exec(hash);
    const [, memory, passes, parallelism, salt, tag] = known ?? PHC.exec(this.#unknownUser) ?? [];
    if (!memory || !passes || !parallelism || !salt || !tag) return false;
    const expected = Buffer.from(tag, 'base64');
    const actual = await this.#run(nodeId, password, {
      memory: Number(memory),
      passes: Number(passes),
      parallelism: Number(parallelism),
      nonce: Buffer.from(salt, 'base64'),
      tagLength: expected.length,
    });
    return timingSafeEqual(expected, actual) && known !== null;
  }

  #run(nodeId: string | undefined, password: string, parameters: Parameters): Promise<Buffer> {
    return this.semaphore.run(nodeId, () => {
      this.runs++;
      return argon2('argon2id', { message: Buffer.from(password, 'utf8'), ...parameters });
    });
  }
}

function phc(salt: Buffer, tag: Buffer): string {
  return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${PARALLELISM}$${unpadded(salt)}$${unpadded(tag)}`;
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
