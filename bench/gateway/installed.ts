import { accessSync, constants, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { freePort, startServer } from '../lib/product.ts';
import { tell } from '../lib/report.ts';
import type { Contender } from './contenders.ts';
import { envoyConfig } from './envoy.ts';
import { haproxyConfig } from './haproxy.ts';
import type { GatewayOptions } from './peer.ts';

/** A gateway that is no package of npm: it takes part where it is installed. */
interface Installed {
  command: string;
  title: string;
  file: string;
  config(options: GatewayOptions): string;
  args(path: string): string[];
}

const ALL: readonly Installed[] = [
  {
    command: 'envoy',
    title: 'Envoy: jwt_authn, local_ratelimit',
    file: 'envoy.json',
    config: envoyConfig,
    args: (path) => ['--config-path', path, '--concurrency', '1', '--disable-hot-restart', '--log-level', 'warn'],
  },
  {
    command: 'haproxy',
    title: 'HAProxy: jwt_verify, stick table',
    file: 'haproxy.cfg',
    config: haproxyConfig,
    args: (path) => ['-db', '-f', path],
  },
];

interface Surroundings extends Omit<GatewayOptions, 'port'> {
  folder: string;
}

/** How to start those that are on the PATH; of the others it says that they are left out. */
export function installedStarts(surroundings: Surroundings): (() => Promise<Contender>)[] {
  return ALL.flatMap((one) => {
    const command = onPath(one.command);
    if (command !== undefined) return [() => start(one, command, surroundings)];
    tell(`${one.command} is not on the PATH: left out`);
    return [];
  });
}

async function start(
  { title, file, config, args }: Installed,
  command: string,
  { folder, ...options }: Surroundings,
): Promise<Contender> {
  const port = await freePort();
  const path = join(folder, file);
  writeFileSync(path, config({ ...options, port }));
  const url = `http://127.0.0.1:${port}`;
  const server = await startServer({ command, args: args(path), env: process.env, url, logPath: `${path}.log` });
  return { title, server };
}

function onPath(command: string): string | undefined {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(folder, command))
    .find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
