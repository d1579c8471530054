import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Gauge } from 'prom-client';
import { ConfigError } from '../config/config.ts';
import type { Log } from '../lib/log.ts';
import type { GatewayConfig } from './gateway-config.ts';
import { tableChanges } from './table-changes.rules.ts';
import { parseTable, readTableText } from './table-file.ts';

const SHOWN_FAULTS = 20;

interface ReloadsParts {
  /** Of `gateway.yaml`. */
  path: string;
  /** The table in force, and the text that it is from. */
  table: GatewayConfig;
  source: string;
  /** Adds what is not from the file. Throws ConfigError for what does not go together with it. */
  complete(table: GatewayConfig): GatewayConfig;
  log: Log;
}

/** Replaces the gateway's table by what its file says. A file at fault is logged and changes nothing. */
export class Reloads {
  /** Whether the table in force is that of the file, as it was read last. */
  readonly inForce: Gauge;
  readonly #parts: ReloadsParts;
  readonly #stop = new AbortController();
  #use: ((table: GatewayConfig) => void) | undefined;
  #table: GatewayConfig;
  /** Undefined: it could not be read. */
  #source: string | undefined;
  #latest = Promise.resolve();
  /** The one that has not begun, and whether it was asked for. */
  #next: Promise<void> | undefined;
  #isAsked = false;

  constructor(parts: ReloadsParts) {
    this.#parts = parts;
    this.#table = parts.table;
    this.#source = parts.source;
    this.inForce = new Gauge({
      name: 'portcullis_gateway_file_in_force',
      help: 'Whether gateway.yaml is in force as it was read last (1), or was refused and an older table is (0).',
      registers: [],
    });
    this.inForce.set(1);
  }

  /** From now on a table can come in force: `use` puts it there, all at once. */
  start(use: (table: GatewayConfig) => void): void {
    this.#use = use;
  }

  /**
   * Reads the file and replaces the table; the promise never rejects. Whoever asks while that goes on is served by one
   * more reading after it, so that the file as it is at the call, or later, is what comes in force.
   */
  async reload(): Promise<void> {
    if (!this.#use) {
      this.#parts.log.info({}, 'nothing to reload: this process has no gateway');
      return;
    }
    this.#isAsked = true;
    return this.#enqueue();
  }

  /** As `reload`, but the same text again is no reason to do or to log anything. */
  fileChanged(): Promise<void> {
    return this.#enqueue();
  }

  /** Lets nothing come in force from now on. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#latest;
  }

  #enqueue(): Promise<void> {
    if (this.#next) return this.#next;
    this.#latest = this.#latest.then(() => {
      this.#next = undefined;
      const isAsked = this.#isAsked;
      this.#isAsked = false;
      return this.#run(isAsked);
    });
    this.#next = this.#latest;
    return this.#latest;
  }

  async #run(isAsked: boolean): Promise<void> {
    const { signal } = this.#stop;
    const { path, log } = this.#parts;
    try {
      await this.#replace(isAsked);
    } catch (error) {
      if (signal.aborted) return;
      this.inForce.set(0);
      const told =
        error instanceof ConfigError
          ? { faults: error.faults.slice(0, SHOWN_FAULTS), fault_count: error.faults.length }
          : { err: error };
      log.error({ file: path, ...told }, 'the gateway table stays as it was: its file is at fault');
    }
  }

  async #replace(isAsked: boolean): Promise<void> {
    const { signal } = this.#stop;
    const { path, complete, log } = this.#parts;
    const before = this.#source;
    this.#source = undefined;
    const text = await readTableText(path);
    this.#source = text.source;
    if (signal.aborted || (!isAsked && text.source === before)) return;
    const table = complete(await parseTable(text, signal));
    const changes = tableChanges(this.#table, table);
    if (!isDeepStrictEqual(this.#table.transactions_lookup, table.transactions_lookup)) {
      log.warn({ file: path }, 'transactions_lookup has changed: that needs a restart');
    }
    // Both take some milliseconds with thousands of endpoints: requests may pass in between.
    await setImmediate();
    if (signal.aborted) return;
    this.#use?.(table);
    this.#table = table;
    this.inForce.set(1);
    log.info({ file: path, ...changes }, 'the gateway table was replaced');
  }
}
