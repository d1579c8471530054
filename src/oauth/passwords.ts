import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { serviceUnavailable } from '../errors/app-error.ts';
import { passwordsAtOnce } from '../lib/thread-pool.ts';
import { TurnsByNode } from '../lib/turns-by-node.ts';

const MEMORY_KIB = 19 * 1024;
const PASSES = 2;
const PARALLELISM = 1;
const TAG_BYTES = 32;
const SALT_BYTES = 16;
const QUEUE = 64;
const PHC = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

interface Parameters {
  memory: number;
  passes: number;
  parallelism: number;
  salt: Buffer;
  tagBytes: number;
}

/**
 * Argon2id (RFC 9106) off the event loop: as many runs at once as cores less one, and a bounded queue behind them, which
 * is served in turn by node.
 */
export class Passwords {
  readonly turns = new TurnsByNode({
    atOnce: passwordsAtOnce(),
    waiting: QUEUE,
    kept: 0,
    // A run is over before another node would mind.
    lends: true,
    refusal: serviceUnavailable,
  });
  readonly #unknownUser: Promise<string>;
  /** How many Argon2 runs have been made. */
  runs = 0;

  constructor() {
    this.#unknownUser = this.hash(randomBytes(18).toString('base64'));
    this.#unknownUser.catch(() => undefined);
  }

  /**
   * The PHC string of a password that somebody of the node is given; without one, of nobody's.
   * @throws AppError 503 when as many of the node wait as may; `verify` too.
   */
  async hash(password: string, nodeId?: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES);
    const parameters = { memory: MEMORY_KIB, passes: PASSES, parallelism: PARALLELISM, salt, tagBytes: TAG_BYTES };
    const tag = await this.#run(nodeId, password, parameters);
    return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${PARALLELISM}$${unpadded(salt)}$${unpadded(tag)}`;
  }

  /**
   * Whether the password is the hash's. Without a hash (an unknown user), or with one that is none, it does the same
   * work and says no.
   */
  async verify(nodeId: string, password: string, hash: string | undefined): Promise<boolean> {
    const known = hash === undefined ? null : PHC.exec(hash);
    const parts = known ?? PHC.exec(await this.#unknownUser);
    const [, memory, passes, parallelism, salt, tag] = parts ?? [];
    if (!memory || !passes || !parallelism || !salt || !tag) return false;
    const expected = Buffer.from(tag, 'base64');
    const actual = await this.#run(nodeId, password, {
      memory: Number(memory),
      passes: Number(passes),
      parallelism: Number(parallelism),
      salt: Buffer.from(salt, 'base64'),
      tagBytes: expected.length,
    });
    return timingSafeEqual(expected, actual) && known !== null;
  }

  #run(nodeId: string | undefined, password: string, parameters: Parameters): Promise<Buffer> {
    return this.turns.run(nodeId, () => {
      this.runs++;
      return derive(password, parameters);
    });
  }
}

function derive(password: string, { memory, passes, parallelism, salt, tagBytes }: Parameters): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    argon2(
      'argon2id',
      { message: Buffer.from(password, 'utf8'), nonce: salt, parallelism, tagLength: tagBytes, memory, passes },
      (error, tag) => (error ? reject(error) : resolve(Buffer.from(tag))),
    );
  });
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
