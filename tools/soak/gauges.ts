import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TOPICS } from '../../src/events/bus/topics.ts';
import type { PostgresClient } from '../../test/support/services/pg-client.ts';
import type { MemorySample } from './verdict.rules.ts';
import type { World } from './world.ts';

/** How the instance is at one time. */
export interface Gauge extends MemorySample {
  /** Processor seconds so far. */
  cpuSeconds: number;
  /** Messages that the consumers have not committed. */
  lag: number;
  outbox: number;
  spoolBytes: number;
}

const GROUPS = [TOPICS.admin, TOPICS.user].map((topic) => ({ topic, groupId: `portcullis.${topic}` }));
const MB = 1_000_000;
/** The signal is taken between two turns of the loop. */
const COLLECTED_MS = 300;

/** Reads how the instance of a world is: its memory from its own metrics, the queues where they are. */
export class Gauges {
  readonly #world: World;
  readonly #client: PostgresClient;

  constructor(world: World, client: PostgresClient) {
    this.#world = world;
    this.#client = client;
  }

  /** How it is now, all garbage collected. */
  async read(): Promise<Gauge> {
    process.kill(this.#world.instance.pid, 'SIGUSR2');
    await delay(COLLECTED_MS);
    const [metrics, lag, outbox, spoolBytes] = await Promise.all([
      fetch(`${this.#world.instance.adminUrl}/metrics`).then((answer) => answer.text()),
      this.#lag(),
      this.number('select count(*) from outbox'),
      bytesIn(this.#world.spool),
    ]);
    const metric = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1] ?? Number.NaN);
    return {
      residentMb: metric('process_resident_memory_bytes') / MB,
      heapMb: metric('nodejs_heap_size_used_bytes') / MB,
      cpuSeconds: metric('process_cpu_seconds_total'),
      lag,
      outbox,
      spoolBytes,
    };
  }

  /** The number that a statement gives. */
  async number(sql: string, ...values: unknown[]): Promise<number> {
    const { rows } = await this.#client.query(sql, values);
    return Number(Object.values(rows[0] ?? {})[0] ?? 0);
  }

  /** Audit records by the kind of what was asked, which stands in their correlation ids. */
  async auditByKind(prefix: string): Promise<Map<string, { records: number; requests: number }>> {
    const { rows } = await this.#client.query(
      `select split_part(correlation_id, '-', 2) as kind, count(*) as records, count(distinct correlation_id) as requests
       from audit_records where correlation_id like $1 group by 1`,
      [`${prefix}%`],
    );
    return new Map(
      rows.map(({ kind, records, requests }) => [
        String(kind),
        { records: Number(records), requests: Number(requests) },
      ]),
    );
  }

  async #lag(): Promise<number> {
    const { admin, prefix } = this.#world;
    const lags = await Promise.all(
      GROUPS.map(async ({ topic, groupId }) => {
        const [ends, [committed]] = await Promise.all([
          admin.fetchTopicOffsets(prefix + topic),
          admin.fetchOffsets({ groupId: prefix + groupId, topics: [prefix + topic] }),
        ]);
        const sum = (offsets: readonly { offset: string }[]) =>
          offsets.reduce((total, { offset }) => total + Math.max(0, Number(offset)), 0);
        return sum(ends) - sum(committed?.partitions ?? []);
      }),
    );
    return Math.max(...lags);
  }
}

async function bytesIn(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const sizes = names.map((name) => stat(join(folder, name)).then((stats) => (stats.isFile() ? stats.size : 0)));
  const known = await Promise.all(sizes.map((size) => size.catch(() => 0)));
  return known.reduce((sum, size) => sum + size, 0);
}
