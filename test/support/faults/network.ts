import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findPython3 } from '../services/python.ts';
import { type NameServer, nameServer } from './names.ts';

/** What the line between the processes and a store does to the packets of one port; see relay.py. */
export interface Line {
  port: number;
  loss?: number;
  delay_ms?: number;
  jitter_ms?: number;
  in?: boolean;
  out?: boolean;
  gone?: string;
}

/** A network namespace for processes, whose packets to and from the stores pass a relay, and whose names a test answers. */
export interface Network extends AsyncDisposable {
  /** Where the stores are for the processes, and where they are as well. */
  address: string;
  otherAddress: string;
  /** An address at which nobody is. */
  nowhere: string;
  names: NameServer;
  /** What comes before a command that is to run there. */
  through: readonly string[];
  /** The variables with which processes there find the stores, by name, given those of this side. */
  variablesOf(env: Record<string, string>): Record<string, string>;
  /** Changes the line; undefined lets everything pass. */
  set(line: Line | undefined): void;
}

export const NAMES = { postgres: 'postgres.lab', redis: 'redis.lab', kafka: 'kafka.lab' } as const;

/** Why no such network can be made here; undefined where it can. */
export function networkRefusal(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root makes network namespaces';
  if (findPython3() === undefined) return 'no python3 on the PATH';
  const probe = `portcullis-probe-${process.pid}`;
  try {
    accessSync('/dev/net/tun', constants.R_OK | constants.W_OK);
    ip('netns', 'add', probe);
    ip('netns', 'exec', probe, 'ip', 'link', 'add', 'one', 'type', 'veth', 'peer', 'name', 'other');
    return undefined;
  } catch (error) {
    return `the kernel refuses: ${error instanceof Error ? error.message.split('\n')[0] : error}`;
  } finally {
    try {
      ip('netns', 'delete', probe);
    } catch {
      // It could not be made.
    }
  }
}

/** Makes the namespace, the relay, and a second way without faults, by which clients come and names are asked. */
export async function startNetwork(): Promise<Network> {
  await using stack = new AsyncDisposableStack();
  const name = `portcullis-${process.pid}`;
  const third = 1 + (process.pid % 250);
  const [address, inside, otherAddress, nowhere] = [1, 2, 5, 9].map((last) => `10.77.${third}.${last}`) as string[];
  const [outer, inner] = [1, 2].map((last) => `10.78.${third}.${last}`) as string[];
  ip('netns', 'add', name);
  stack.defer(() => ip('netns', 'delete', name));
  const within = (...args: string[]) => ip('netns', 'exec', name, 'ip', ...args);
  within('link', 'set', 'lo', 'up');
  const link = `clean${third}`;
  ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'clean', 'netns', name);
  ip('address', 'add', `${outer}/30`, 'dev', link);
  ip('link', 'set', link, 'up');
  within('address', 'add', `${inner}/30`, 'dev', 'clean');
  within('link', 'set', 'clean', 'up');
  const relay = await startRelay(name, `${address}`, `${inside}`);
  stack.defer(() => ended(relay));
  ip('address', 'add', `${otherAddress}/32`, 'dev', nearOf(relay));
  for (const there of [otherAddress, nowhere]) within('route', 'add', `${there}`, 'dev', 'far0');
  const settings = join('/etc/netns', name);
  await mkdir(settings, { recursive: true });
  stack.defer(() => rm(settings, { recursive: true, force: true }));
  await writeFile(join(settings, 'resolv.conf'), `nameserver ${outer}\noptions timeout:1 attempts:2\n`);
  const names = stack.use(await nameServer(`${outer}`));
  for (const host of Object.values(NAMES)) names.names.set(host, `${address}`);
  const held = stack.move();
  return {
    address: `${address}`,
    otherAddress: `${otherAddress}`,
    nowhere: `${nowhere}`,
    names,
    through: ['ip', 'netns', 'exec', name],
    variablesOf: ({ DATABASE_URL = '', REDIS_URL = '', KAFKA_BROKERS = '' }) => ({
      DATABASE_URL: DATABASE_URL.replace('127.0.0.1', NAMES.postgres),
      REDIS_URL: REDIS_URL.replace('127.0.0.1', NAMES.redis),
      KAFKA_BROKERS: KAFKA_BROKERS.replace('127.0.0.1', NAMES.kafka),
      HOST: `${inner}`,
    }),
    set: (line) => void relay.stdin?.write(`${JSON.stringify(line ?? {})}\n`),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

async function startRelay(namespace: string, here: string, there: string): Promise<ChildProcess> {
  const script = join(import.meta.dirname, 'relay.py');
  const relay = spawn(findPython3() ?? 'python3', [script, namespace, here, there], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  relay.stdin?.on('error', () => undefined);
  const said = await Promise.race([once(relay.stdout, 'data'), once(relay, 'exit')]);
  if (!String(said[0]).startsWith('ready')) throw new Error(`the relay ended: ${said}`);
  return relay;
}

/** The relay's device in this namespace, which bears its process id. */
function nearOf({ pid }: ChildProcess): string {
  return `near${`${pid}`.slice(-6)}`;
}

async function ended(relay: ChildProcess): Promise<void> {
  const exit = once(relay, 'exit');
  relay.stdin?.end();
  if (relay.exitCode === null) await exit;
}

function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}
