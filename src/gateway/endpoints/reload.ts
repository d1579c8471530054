import { once } from 'node:events';
import { type StatsListener, unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Worker } from 'node:worker_threads';
import type { Gauge } from 'prom-client';
import type { Log } from '../../lib/log.ts';
import { gauge } from '../../lib/meters.ts';
import { SharedRuns } from '../../lib/shared-runs.ts';
import { ConfigError } from '../../platform/config/config.ts';
import { type GatewayConfig, parseGatewayConfig, unreadable } from './gateway-config.ts';

/**
 * Compares two endpoint tables. Identifies an endpoint by its methods and path, a service by its name. The members of the
 * result are fields of the log.
 */
export function tableChanges(before: GatewayConfig, after: GatewayConfig) {
  return {
    endpoints: after.endpoints.length,
    ...difference('endpoints', endpointsOf(before), endpointsOf(after)),
    ...difference('services', new Map(Object.entries(before.services)), new Map(Object.entries(after.services))),
  };
}

function endpointsOf({ endpoints }: GatewayConfig): ReadonlyMap<string, unknown> {
  return new Map(endpoints.map((endpoint) => [`${endpoint.methods.join()} ${endpoint.path}`, endpoint]));
}

function difference(name: string, before: ReadonlyMap<string, unknown>, after: ReadonlyMap<string, unknown>) {
  let added = 0;
  let changed = 0;
  for (const [key, value] of after) {
    if (!before.has(key)) added += 1;
    else if (!isDeepStrictEqual(before.get(key), value)) changed += 1;
  }
  const removed = before.size + added - after.size;
  return { [`${name}_added`]: added, [`${name}_removed`]: removed, [`${name}_changed`]: changed };
}

/**
 * The length, in characters, above which a file is parsed in a thread so that it does not delay requests; about 300
 * endpoints.
 */
const HERE_CHARACTERS = 32 * 1024;

/** The input of the parser thread: path and text of `gateway.yaml`. */
export interface TableText {
  path: string;
  source: string;
}

/** The output of the parser thread: the table as JSON, which transfers faster than objects, or its issues. */
export type ParsedTable = { table: string } | { faults: readonly string[] };

/**
 * Reads the text of `gateway.yaml`.
 * @throws ConfigError when the file cannot be read.
 */
export async function readTableText(path: string): Promise<TableText> {
  try {
    return { path, source: await readFile(path, 'utf8') };
  } catch (error) {
    throw unreadable(path, error);
  }
}

/**
 * Validates the text of `gateway.yaml` as `parseGatewayConfig` does, in a thread if it is long.
 * @throws ConfigError as that function does; the reason of `signal` when it is aborted.
 */
export async function parseTable(text: TableText, signal: AbortSignal): Promise<GatewayConfig> {
  if (text.source.length <= HERE_CHARACTERS) return parseGatewayConfig(text.path, text.source);
  const result = await parseInThread(text, signal);
  if ('faults' in result) throw new ConfigError(result.faults);
  return JSON.parse(result.table);
}

async function parseInThread(text: TableText, signal: AbortSignal): Promise<ParsedTable> {
  signal.throwIfAborted();
  await using worker = new Worker(new URL('./table-thread.ts', import.meta.url), { workerData: text, execArgv: [] });
  try {
    const [parsed] = await once(worker, 'message', { signal });
    return parsed;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

const SHOWN_FAULTS = 20;

/** Replaces the endpoint table when `gateway.yaml` changes. A file with issues is logged and has no effect. */
export class Reloads {
  /** Whether the file, as last read, is in use. */
  isInForce = true;
  /** The metric that says so. */
  readonly inForce: Gauge;
  readonly #deps;
  readonly #stop = new AbortController();
  #use: ((table: GatewayConfig) => void) | undefined;
  #table: GatewayConfig;
  /** The text of the file as last read; undefined when it could not be read. */
  #source: string | undefined;
  readonly #reads = new SharedRuns(() => this.#run());
  /** Whether an operator asked for the next read. */
  #isAsked = false;

  constructor(deps: {
    /** The path of `gateway.yaml`. */
    path: string;
    /** The current endpoint table; `source` is the text that it was parsed from. */
    table: GatewayConfig;
    source: string;
    /**
     * Adds the endpoints that do not come from the file.
     * @throws ConfigError when the two conflict.
     */
    complete(table: GatewayConfig): GatewayConfig;
    log: Log;
  }) {
    this.#deps = deps;
    this.#table = deps.table;
    this.#source = deps.source;
    this.inForce = gauge(
      'portcullis_gateway_file_in_force',
      '1 if the latest gateway.yaml is in use, 0 if it was rejected and older routes are in use.',
      () => Number(this.isInForce),
    );
  }

  /** Starts to accept new endpoint tables; `use` replaces the whole table at once. */
  start(use: (table: GatewayConfig) => void): void {
    this.#use = use;
  }

  /**
   * Reads the file and replaces the endpoint table. Never rejects. Calls during a read share one more read after it, so
   * that the table is at least as new as the file at the time of the call.
   */
  async reload(): Promise<void> {
    if (!this.#use) {
      this.#deps.log.info({}, 'nothing to reload: this process is not a gateway');
      return;
    }
    this.#isAsked = true;
    return this.#reads.run();
  }

  /** Does the same as `reload`, unless the text of the file is unchanged. */
  fileChanged(): Promise<void> {
    return this.#reads.run();
  }

  /** Stops replacing the endpoint table, and resolves when no read is in progress. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#reads.ended();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    const { path, log } = this.#deps;
    const isAsked = this.#isAsked;
    this.#isAsked = false;
    try {
      await this.#replace(isAsked);
    } catch (error) {
      if (signal.aborted) return;
      this.isInForce = false;
      const details =
        error instanceof ConfigError
          ? { faults: error.faults.slice(0, SHOWN_FAULTS), fault_count: error.faults.length }
          : { err: error };
      log.error({ file: path, ...details }, 'gateway.yaml is invalid; keeping the current routes');
    }
  }

  async #replace(isAsked: boolean): Promise<void> {
    const { signal } = this.#stop;
    const { path, complete, log } = this.#deps;
    const before = this.#source;
    this.#source = undefined;
    const text = await readTableText(path);
    this.#source = text.source;
    if (signal.aborted || (!isAsked && text.source === before)) return;
    const table = complete(await parseTable(text, signal));
    const changes = tableChanges(this.#table, table);
    if (!isDeepStrictEqual(this.#table.transactions_lookup, table.transactions_lookup)) {
      log.warn({ file: path }, 'transactions_lookup changed; restart to apply it');
    }
    // Comparing and replacing take some milliseconds each with thousands of endpoints; requests run in between.
    await setImmediate();
    if (signal.aborted) return;
    this.#use?.(table);
    this.#table = table;
    this.isInForce = true;
    log.info({ file: path, ...changes }, 'loaded gateway.yaml');
  }
}

const FILE_POLL_MS = 500;
/**
 * The debounce time, in ms: editors write in several steps, usually within this time. Shorter than the polling
 * interval.
 */
const SETTLED_MS = 200;

/**
 * Calls `onChange` soon after a file has changed, until it is disposed. Polls instead of using file events, which stop
 * when an editor replaces the file by renaming another one over it.
 */
export function watchTable(path: string, onChange: () => void): Disposable {
  let settling: NodeJS.Timeout | undefined;
  const listener: StatsListener = () => {
    clearTimeout(settling);
    settling = setTimeout(onChange, SETTLED_MS).unref();
  };
  watchFile(path, { interval: FILE_POLL_MS, persistent: false }, listener);
  return {
    [Symbol.dispose]() {
      unwatchFile(path, listener);
      clearTimeout(settling);
    },
  };
}
