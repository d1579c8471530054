import { expect, inject, it, vi } from 'vitest';
import { Client, type Got, type Moving, startMoving, whole } from '../support/gateway/reload-load.ts';
import { changingFile, hangUp } from '../support/gateway/reloaded.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder } from '../support/start/folders.ts';
import { type Running, startInstance } from '../support/start/process.ts';

const RELOADS = inject('isThorough') ? 100 : 8;
const LONG_ONES_EVERY = RELOADS / 4;

/** What is known of the table in force: it is one of these, and those between. */
interface Known {
  atLeast: number;
  atMost: number;
  isOver: boolean;
}

type Faults = string[];

/** Asks again and again what every table has: each answer is of a table that can have been in force. */
async function askMoving(client: Client, known: Known, faults: Faults): Promise<number> {
  let asked = 0;
  for (; !known.isOver; asked++) {
    const { atLeast } = known;
    const got = await client.get('/moving');
    const generation = generationOf(got);
    if (generation === undefined || generation < atLeast || generation > known.atMost) {
      faults.push(`/moving between ${atLeast} and ${known.atMost}: ${JSON.stringify(got)}`);
    }
  }
  return asked;
}

/** Asks for what one table alone has: it is not there, or at the place that the same table names. */
async function askLatest(client: Client, known: Known, faults: Faults): Promise<number> {
  let found = 0;
  while (!known.isOver) {
    const { atLeast, atMost } = known;
    const got = await client.get(`/at/${atMost}`);
    const isThere = got.status === 200 && generationOf(got) === atMost;
    if (isThere) found += 1;
    else if (got.status !== 404 || atLeast === known.atMost) faults.push(`/at/${atMost}: ${JSON.stringify(got)}`);
  }
  return found;
}

async function askSame(client: Client, path: string, known: Known, faults: Faults): Promise<number> {
  let asked = 0;
  for (; !known.isOver; asked++) {
    const got = await client.get(path);
    if (got.status !== 200) faults.push(`${path}: ${JSON.stringify(got)}`);
  }
  return asked;
}

function generationOf({ status, text }: Got): number | undefined {
  return status === 200 ? JSON.parse(text).generation : undefined;
}

/** Answers and bodies under way: each gets a piece with every table, and is asked for all of them at the end. */
class LongOnes {
  readonly #client: Client;
  readonly #streams = new Map<number, Promise<Got>>();
  readonly #uploads = new Map<number, { sent: ReturnType<Client['open']>; got: Promise<Got> }>();

  constructor(client: Client) {
    this.#client = client;
  }

  /** Begins one of each, and waits until the stream is there. */
  async begin(generation: number, moving: Moving): Promise<void> {
    const before = moving.streams.length;
    this.#streams.set(generation, this.#client.get('/slow'));
    const sent = this.#client.open('POST', '/upload');
    this.#uploads.set(generation, { sent, got: whole(sent) });
    sent.write(`${generation};`);
    await vi.waitFor(() => expect(moving.streams.length).toBe(before + 1));
    moving.streams[before]?.write(`${generation};`);
  }

  step(generation: number, moving: Moving): void {
    for (const stream of moving.streams) stream.write(`${generation};`);
    for (const { sent } of this.#uploads.values()) sent.write(`${generation};`);
  }

  /** What each was given, by when it began, and the generation that the upload says. */
  async end(moving: Moving): Promise<{ streams: unknown[]; uploads: unknown[] }> {
    for (const stream of moving.streams) stream.end();
    for (const { sent } of this.#uploads.values()) sent.end();
    const streams = await Promise.all([...this.#streams].map(async ([from, got]) => [from, await got]));
    const uploads = await Promise.all(
      [...this.#uploads].map(async ([from, { got }]) => [from, generationOf(await got), JSON.parse((await got).text)]),
    );
    return { streams, uploads };
  }
}

function pieces(from: number): string {
  return Array.from({ length: RELOADS - from + 1 }, (_, index) => `${from + index};`).join('');
}

async function metricsOf({ adminUrl }: Running): Promise<string> {
  return (await fetch(`${adminUrl}/metrics`)).text();
}

/** What the process holds open, by its kind. */
function resources(metrics: string): Record<string, number> {
  const found = metrics.matchAll(/^nodejs_active_resources\{type="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...found].map(([, type, count]) => [type, Number(count)]));
}

describeReal('postgres', 'an instance whose file changes', () => {
  it(`${RELOADS} reloads under load: no request fails, each is answered by one table, and nothing is left behind`, async () => {
    await using moving = await startMoving();
    await using folder = await emptyFolder();
    await using database = await realDatabase();
    await using file = await changingFile(moving.table(0));
    const stores = { DATA_DIR: folder.path, DATABASE_URL: database.url };
    await using instance = await startInstance({ ...stores, GATEWAY_CONFIG: file.path });
    using client = new Client(instance.baseUrl);
    const known: Known = { atLeast: 0, atMost: 0, isOver: false };
    const faults: Faults = [];
    const load = [
      ...[askMoving(client, known, faults), askMoving(client, known, faults), askLatest(client, known, faults)],
      ...[askSame(client, '/steady', known, faults), askSame(client, '/health', known, faults)],
    ];
    const longOnes = new LongOnes(client);
    await longOnes.begin(0, moving);
    const before = resources(await metricsOf(instance));
    // Whatever fails here, the load is to end.
    using _end = { [Symbol.dispose]: () => Object.assign(known, { isOver: true }) };
    for (let generation = 1; generation <= RELOADS; generation++) {
      known.atMost = generation;
      await file.replace(moving.table(generation));
      hangUp(instance);
      for (let seen: number | undefined = 0; seen !== generation && faults.length === 0; ) {
        seen = generationOf(await client.get('/moving'));
      }
      known.atLeast = generation;
      longOnes.step(generation, moving);
      if (generation % LONG_ONES_EVERY === 0) await longOnes.begin(generation, moving);
    }
    known.isOver = true;
    const asked = await Promise.all(load);
    expect(faults).toEqual([]);
    expect(Math.min(...asked)).toBeGreaterThan(RELOADS / 2);
    const begun = [0, 1, 2, 3, 4].map((part) => part * LONG_ONES_EVERY);
    expect(await longOnes.end(moving)).toEqual({
      streams: begun.map((from) => [from, { status: 200, text: pieces(from) }]),
      uploads: begun.map((from) => [from, from, { generation: from, path: '/upload', text: pieces(from) }]),
    });

    expect(moving.steadyConnections()).toBe(1);
    // One table has a connection for each client and each of the long ones that began under it.
    await vi.waitFor(async () => expect(await moving.connections()).toBeLessThanOrEqual(6));
    const metrics = await metricsOf(instance);
    expect(metrics).toContain('portcullis_upstream_requests{service="moving",state="going"} 0');
    const after = resources(metrics);
    for (const [type, count] of Object.entries(after)) {
      expect(count, type).toBeLessThanOrEqual((before[type] ?? 0) + 10);
    }
  });
});
