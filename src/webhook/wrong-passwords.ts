import { Counter } from 'prom-client';
import { MemoryFailureCounts } from '../cache/memory-failure-counts.ts';
import type { Log } from '../lib/log.ts';

const MANY = 20;

interface WrongPasswordsParts {
  log: Log;
  nowMs(): number;
}

/** Counts wrong passwords of the webhook by address, for who watches: its statuses are a closed list, and each is a 401. */
export class WrongPasswords {
  /** For the registry of the process. */
  readonly counted = new Counter({
    name: 'portcullis_webhook_wrong_passwords_total',
    help: 'Wrong passwords at the webhook: repeated where their address had sent twenty within the minute, else single.',
    labelNames: ['kind'],
    registers: [],
  });
  readonly #parts: WrongPasswordsParts;
  readonly #byAddress = new MemoryFailureCounts();

  constructor(parts: WrongPasswordsParts) {
    this.#parts = parts;
    for (const kind of ['single', 'repeated']) this.counted.inc({ kind }, 0);
  }

  /** Counts one; every twentieth of an address within a minute is in the log. */
  add(address: string): void {
    const { log, nowMs } = this.#parts;
    const { count } = this.#byAddress.count(address, nowMs());
    this.counted.inc({ kind: count > MANY ? 'repeated' : 'single' });
    if (count % MANY > 0) return;
    log.warn({ real_ip: address, count }, 'many wrong webhook passwords came from an address within a minute');
  }
}
