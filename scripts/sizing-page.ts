import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/** The load of an installation, each figure a second. */
export interface Load {
  proxied: number;
  pages: number;
  tokens: number;
  notifications: number;
  deliveries: number;
}

/** The three examples of docs/operations/sizing.md. `bench/sizing.ts` runs the first. */
export const EXAMPLES: Readonly<Record<'small' | 'medium' | 'large', Load>> = {
  small: { proxied: 200, pages: 0, tokens: 5, notifications: 0, deliveries: 0 },
  medium: { proxied: 4_000, pages: 500, tokens: 100, notifications: 200, deliveries: 2_000 },
  large: { proxied: 2_000, pages: 500, tokens: 100, notifications: 10_000, deliveries: 100_000 },
};

/** The share of a core that a process uses at most, so that it has room for bursts. */
const UTILIZATION = 0.7;
const SECONDS_PER_DAY = 86_400;
const RECORD_KB = 1.2;

/** The costs of docs/measured.md and docs/scaling.md: µs for each unit of load, ms a second and MB of a process at rest. */
export function costs() {
  const pages = ['docs/measured.md', 'docs/scaling.md'].map((path) => readFileSync(join(ROOT, path), 'utf8'));
  const [measured = '', scaling = ''] = pages;
  const figure = (label: string) => {
    const row = measured.split('\n').find((line) => line.startsWith(`| ${label}`));
    const cell = row?.split('|')[4]?.trim();
    if (!cell) throw new Error(`docs/measured.md has no row ${label}`);
    return Number(cell);
  };
  const applied = /^\| a notification out of Kafka into the mirror \| (\d+) \|/m.exec(scaling)?.[1];
  if (!applied) throw new Error('docs/scaling.md has no row of a notification out of Kafka');
  return {
    unit: {
      proxied: figure('proxied GET, in production: µs'),
      pages: figure('GraphQL page, 16 connections: µs'),
      tokens: figure('token, client credentials: µs'),
      notifications: figure('webhook into two topics, 64 connections: µs'),
      deliveries: figure('SSE, one event to 1000: µs'),
    },
    applied: Number(applied),
    restMs: figure('CPU at rest: ms a second'),
    restMb: figure('memory at rest: MB'),
  };
}

/** What a load takes: milliseconds of CPU a second of all gateways and of all workers, processes, memory and disk. */
export function sizeOf(load: Load) {
  const { unit, applied, restMs, restMb } = costs();
  const loads = Object.entries(load) as [keyof Load, number][];
  const gatewayMs = loads.reduce((sum, [name, rate]) => sum + (rate * unit[name]) / 1_000, 0);
  const workerMs = (2 * load.notifications * applied) / 1_000;
  const processes = (ms: number) => Math.max(2, Math.ceil(ms / (1_000 * UTILIZATION - restMs)));
  const [gateways, workers] = [processes(gatewayMs), processes(workerMs)];
  const requests = load.proxied + load.pages + load.tokens + load.notifications;
  return {
    gatewayMs,
    workerMs,
    restMs,
    gateways,
    workers,
    memoryMb: (gateways + workers) * restMb,
    connections: 10 * (gateways + workers),
    recordsGbPerDay: (requests * SECONDS_PER_DAY * RECORD_KB) / 1_000_000,
  };
}

/** Returns the table of docs/operations/sizing.md. */
export function sizingTable(): string {
  const names = Object.keys(EXAMPLES) as (keyof typeof EXAMPLES)[];
  const sizes = names.map((name) => sizeOf(EXAMPLES[name]));
  const counted = (value: number) => value.toLocaleString('en', { maximumFractionDigits: 0 });
  const row = (title: string, cells: readonly number[]) => `| ${title} | ${cells.map(counted).join(' | ')} |`;
  const loadRow = (title: string, name: keyof Load) =>
    row(
      title,
      names.map((example) => EXAMPLES[example][name]),
    );
  const sizeRow = (title: string, name: keyof (typeof sizes)[number]) =>
    row(
      title,
      sizes.map((size) => size[name]),
    );
  return [
    `| a second | ${names.join(' | ')} |`,
    '|---|---|---|---|',
    loadRow('requests to remote services', 'proxied'),
    loadRow('GraphQL pages of 50 rows with their children', 'pages'),
    loadRow('tokens', 'tokens'),
    loadRow('notifications', 'notifications'),
    loadRow('events delivered to subscribers', 'deliveries'),
    sizeRow('**CPU of all gateways without rest, ms**', 'gatewayMs'),
    sizeRow('**CPU of all workers without rest, ms**', 'workerMs'),
    sizeRow('**gateways of one core**', 'gateways'),
    sizeRow('**workers of one core**', 'workers'),
    sizeRow('**memory of all processes at rest, MB**', 'memoryMb'),
    sizeRow('**connections to PostgreSQL**', 'connections'),
    sizeRow('**audit records, GB a day if the load lasts all day**', 'recordsGbPerDay'),
  ].join('\n');
}

if (import.meta.main) process.stdout.write(`${sizingTable()}\n`);
