import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { COMMAND_NAMES } from '../../src/cli/commands.ts';
import { KafkaBus } from '../../src/events/bus/kafka-bus.ts';
import { ALL_TOPICS, TOPICS } from '../../src/events/bus/topics.ts';
import { embeddedClusterDir } from '../../src/platform/config/secrets.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { portcullis as commandInProcess } from '../support/cli/in-process.ts';
import { message } from '../support/events/recorder.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import {
  createTopics,
  deleteTopics,
  freshDatabase,
  freshRedis,
  kafkaConnection,
  topicPrefix,
} from '../support/services/isolation.ts';
import { freePorts } from '../support/services/ports.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { emptyFolder, migratedFolder, type TestFolder } from '../support/start/folders.ts';
import { ROOT } from '../support/start/process.ts';

const NODE = '0190b8a4-6a54-7c3e-9d2f-3f0c5a1b2c3d';
const PROGRAM = join(ROOT, 'bin/portcullis');
const STACK = /\n\s+at /;

/** Where the commands of a run work, and what former ones have made. */
interface Run {
  env: NodeJS.ProcessEnv;
  folder: TestFolder;
  ids: Record<string, string>;
}

/** A step of a run: a command with its arguments, and what must be in its output. */
interface Step {
  args(run: Run): readonly string[];
  prints: RegExp;
  /** How it ends; 0 unless given. */
  exits?: number;
  /** The command that has to end before this one starts; `migrate` if none is named. */
  after?: string;
  input?: string;
  /** The name by which later steps know a member of the document that the command prints. */
  keeps?: readonly [id: string, member: string];
}

/** So many processes at once as there are cores, and one that waits: more would only wait for each other. */
const turns = Array.from({ length: availableParallelism() + 1 }, () => Promise.resolve());

/** Commands that a quick run starts as processes: each reads, connects or ends in its own way. It runs the others in this process. */
const STARTED = ['migrate', 'supervisor set-password', 'transactions replay', 'status'];
const isStarted = (name: string) => inject('isThorough') || STARTED.includes(name);

/** Runs a command when it has its turn: `bin/portcullis` as an operator does, in another folder than the repository's, or in this process. */
async function portcullis(run: Run, args: readonly string[], input = '', start = spawned) {
  const turn = (turns.shift() ?? Promise.resolve()).then(() => start(run, args, input));
  turns.push(
    turn.then(
      () => undefined,
      () => undefined,
    ),
  );
  return turn;
}

async function spawned({ env, folder }: Run, args: readonly string[], input: string) {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(PROGRAM, args, { cwd: folder.path, env: { PATH, HOME, ...env } });
  child.stdin.on('error', () => undefined).end(input);
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: Number(code), out, err };
}

async function inProcess({ env }: Run, args: readonly string[], input: string) {
  return await commandInProcess(args, env, input === '' ? undefined : input.split('\n')[0]);
}

/** Every command but `start` and `simulate transaction`, which need one another; each after what it needs. */
const STEPS: Readonly<Record<string, Step>> = {
  'config check': { args: () => [], prints: /LOG_LEVEL/ },
  migrate: { args: () => [], prints: /migrations/ },
  seed: { args: () => ['--json'], prints: /"demo"/ },
  'node create': { args: () => ['--name', 'Acme', '--id', NODE], prints: new RegExp(NODE) },
  'node list': { args: () => [], prints: /Acme/, after: 'node create' },
  'reference load': { args: ({ folder }) => [join(folder.path, 'platform.ndjson')], prints: /1/, after: 'node create' },
  'client create': {
    args: () => [
      '--node',
      NODE,
      '--name',
      'Machine',
      '--grants',
      'client_credentials',
      '--scopes',
      'accounts:read',
      '--json',
    ],
    prints: /client_secret/,
    keeps: ['client', 'client_id'],
    after: 'node create',
  },
  'client list': { args: () => ['--node', NODE], prints: /Machine/, after: 'client create' },
  'client show': { args: ({ ids }) => [ids.client ?? ''], prints: /^client_id /, after: 'client create' },
  'client update': {
    args: ({ ids }) => [ids.client ?? '', '--monthly-limit', '5'],
    prints: /updated/,
    after: 'client create',
  },
  'client rotate-secret': { args: ({ ids }) => [ids.client ?? ''], prints: /./, after: 'client create' },
  'client disable': { args: ({ ids }) => [ids.client ?? ''], prints: /disabled/, after: 'client rotate-secret' },
  'client enable': { args: ({ ids }) => [ids.client ?? ''], prints: /active/, after: 'client disable' },
  'supervisor create': {
    args: () => ['--node', NODE, '--username', 'grace', '--role', 'viewer', '--json'],
    prints: /password/,
    keeps: ['supervisor', 'id'],
    after: 'node create',
  },
  'supervisor list': { args: () => ['--node', NODE], prints: /grace/, after: 'supervisor create' },
  'supervisor set-password': {
    args: ({ ids }) => [ids.supervisor ?? ''],
    input: 'correct horse battery staple\n',
    prints: /./,
    after: 'supervisor create',
  },
  'supervisor unlock': { args: ({ ids }) => [ids.supervisor ?? ''], prints: /./, after: 'supervisor set-password' },
  'supervisor rename': {
    args: ({ ids }) => [ids.supervisor ?? '', '--username', 'grace.hopper'],
    prints: /grace\.hopper/,
    after: 'supervisor unlock',
  },
  'supervisor disable': { args: ({ ids }) => [ids.supervisor ?? ''], prints: /disabled/, after: 'supervisor rename' },
  'supervisor enable': { args: ({ ids }) => [ids.supervisor ?? ''], prints: /active/, after: 'supervisor disable' },
  'users import': {
    args: ({ folder }) => [join(folder.path, 'users.csv'), '--node', NODE],
    prints: /1/,
    after: 'node create',
  },
  'users rename': {
    args: ({ ids }) => [ids.user ?? '', '--email', 'two@program.example'],
    prints: /two@program\.example/,
    after: 'users import',
  },
  'users erase': { args: ({ ids }) => [ids.user ?? ''], prints: /./, after: 'users rename' },
  clashes: { args: () => [], prints: /^No clashes/ },
  'transactions replay': { args: () => ['--dlq'], prints: /^[01] messages of transactions\.user\.dlq published/m },
  'dead-letters list': { args: () => [], prints: /^(?:No dead letters|\S+dlq-)/ },
  'dead-letters show': { args: () => ['transactions.user.dlq-0-999'], prints: /^$/, exits: 1 },
  'dead-letters replay': { args: () => ['transactions.user.dlq-0-999'], prints: /^$/, exits: 1 },
  'dead-letters discard': {
    args: () => ['transactions.user.dlq-0-999', '--reason', 'a trial'],
    prints: /^$/,
    exits: 1,
  },
  status: { args: () => ['--json'], prints: /"findings"/, exits: 1 },
  recover: {
    args: () => ['--since', '2026-11-21T10:00:00Z'],
    prints: /^Revoked the tokens of \d+ clients/m,
    after: 'transactions replay',
  },
  'audit list': { args: () => ['--json'], prints: /^/ },
  'audit export': {
    args: ({ folder }) => ['--out', join(folder.path, 'export')],
    prints: /^Exported \d+ records? to/,
    // It signs by the key that this generates.
    after: 'client create',
  },
  'audit redact': { args: () => ['--path', '/health', '--reason', 'a trial'], prints: /^/, after: 'audit list' },
  'audit verify': { args: () => [], prints: /^OK/, after: 'audit list' },
  completion: { args: () => [], prints: /^complete /m },
};

/** The commands of a running instance: `start` is ended by SIGTERM once the other has done its work. */
const OF_A_RUNNING_INSTANCE = ['start', 'simulate transaction'];

async function furnished(env: NodeJS.ProcessEnv, folder: TestFolder): Promise<Run> {
  await writeFile(join(folder.path, 'users.csv'), 'wallet_address,email\n0xd0c1,one@program.example\n');
  const chain = {
    topic: 'reference.chains',
    key: '0190b8a4-6a54-7c3e-9d2f-3f0c5a1b2c01',
    value: { name: 'A chain', version: 1 },
  };
  await writeFile(join(folder.path, 'platform.ndjson'), `${JSON.stringify(chain)}\n`);
  const { NODE_COMPILE_CACHE } = process.env;
  // `seed` writes the address of the instance down before it is started.
  const [port = 0] = await freePorts(1);
  return { env: { NODE_COMPILE_CACHE, PORT: String(port), ADMIN_PORT: '0', ...env }, folder, ids: {} };
}

/** Runs one command and checks what it prints. */
async function expectToRun(run: Run, name: string, { args, prints, exits = 0, input, keeps }: Step): Promise<void> {
  const command = [...name.split(' '), ...args(run)];
  const { code, out, err } = await portcullis(run, command, input, isStarted(name) ? spawned : inProcess);
  expect({ name, code, out, err }).toEqual({
    name,
    code: exits,
    out: expect.stringMatching(prints),
    err: expect.not.stringMatching(STACK),
  });
  if (keeps) run.ids[keeps[0]] = JSON.parse(out)[keeps[1]];
}

/**
 * Runs commands: all at once that need nothing of one another, or in turn where one process at a time may open the
 * stores. `userOf` returns the id of the user that the import has made.
 */
async function expectAllToRun(
  run: Run,
  steps: typeof STEPS,
  mode: 'at once' | 'in turn',
  userOf: () => Promise<string>,
) {
  const ends: Record<string, Promise<void>> = {};
  let previous: Promise<void> | undefined;
  for (const [name, step] of Object.entries(steps)) {
    const before = mode === 'in turn' ? previous : ends[step.after ?? 'migrate'];
    const work = async () => {
      await before;
      if (name === 'users rename') run.ids.user = await userOf();
      await expectToRun(run, name, step);
    };
    previous = work();
    ends[name] = previous;
  }
  await Promise.all(Object.values(ends));
}

/** Starts the program, posts a transaction to it, and ends it. */
async function expectToServe(run: Run): Promise<void> {
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH, HOME, ...run.env };
  const child = spawn(PROGRAM, ['start'], { cwd: run.folder.path, env });
  const errors = text(child.stderr);
  try {
    const ended = once(child, 'close');
    let printed = '';
    let found: RegExpExecArray | null = null;
    while (!found) {
      const [more] = await Promise.race([once(child.stdout, 'data'), ended.then(() => [undefined])]);
      if (more === undefined) throw new Error(`start has ended: ${await errors}`);
      printed += more;
      found = /"base_url":"(?<url>[^"]+)".*"msg":"started"/.exec(printed);
    }
    child.stdout.resume();
    const { status } = await fetch(`${found.groups?.url}/health`);
    expect(status).toBe(200);
    const start = isStarted('simulate transaction') ? spawned : inProcess;
    const posted = await portcullis(run, ['simulate', 'transaction', '--json'], '', start);
    expect(posted).toMatchObject({ code: 0, err: '' });
    child.kill('SIGTERM');
    expect([...(await ended), await errors]).toEqual([0, null, '']);
  } finally {
    child.kill('SIGKILL');
  }
}

/** The id of the user of the import. */
async function importedUser(location: Parameters<typeof openDatabase>[0]): Promise<string> {
  await using database = await openDatabase(location);
  const rows = await database.db
    .unscoped('a test')
    .run((k) => k.selectFrom('users').select('id').where('email', '=', 'one@program.example'));
  return rows[0]?.id ?? '';
}

it('D1-12: (every command is run here or needs a running instance)', () => {
  expect([...Object.keys(STEPS), ...OF_A_RUNNING_INSTANCE].sort()).toEqual([...COMMAND_NAMES].sort());
});

it('D1-12: the program prints its help and its version from any working directory', async () => {
  const run = promisify(execFile);
  expect((await run(PROGRAM, ['--version'], { cwd: '/' })).stdout).toMatch(/^\d+\.\d+\.\d+\S*\n$/);
  expect((await run(PROGRAM, ['--help'], { cwd: '/' })).stdout).toContain('recover');
});

// Each command opens a database of its own, which takes seconds. A quick run has those of test/cli/beside-instance.test.ts.
describeEmbedded('bin/portcullis on an embedded instance', () => {
  it('D1-12 D6-18: every command works', async () => {
    await using folder = await migratedFolder();
    const run = await furnished({ DATA_DIR: folder.path }, folder);
    await expectAllToRun(run, STEPS, 'in turn', () => importedUser({ dataDir: embeddedClusterDir(folder.path) }));
    await expectToServe(run);
  });
});

describeReal(['postgres', 'redis', 'kafka'], 'bin/portcullis on real servers', () => {
  const prefix = topicPrefix();
  const stack = new AsyncDisposableStack();
  let env: NodeJS.ProcessEnv;
  beforeAll(async () => {
    const brokers = serviceAddress('kafka');
    await createTopics(brokers, prefix, ALL_TOPICS);
    stack.defer(() => deleteTopics(brokers, prefix));
    const [database, redis] = [stack.use(await freshDatabase()), stack.use(await freshRedis())];
    const bus = stack.adopt(new KafkaBus(kafkaConnection(prefix), () => undefined), (opened) => opened.stop());
    await bus.publish([message(`${TOPICS.user}.dlq`, 'user-1')]);
    env = { DATABASE_URL: database.url, REDIS_URL: redis.url, KAFKA_BROKERS: brokers, TOPIC_PREFIX: prefix };
  });
  afterAll(() => stack.disposeAsync());

  it('D1-12 D6-18: every command works', async () => {
    await using folder = await emptyFolder();
    const run = await furnished({ DATA_DIR: folder.path, ...env }, folder);
    await expectAllToRun(run, STEPS, 'at once', () => importedUser({ url: env.DATABASE_URL ?? '' }));
    await expectToServe(run);
  });
});
