import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startChild } from './child.ts';
import { runCommand } from './commands.ts';
import { onFreePorts } from './ports.ts';
import { type PostgresBinaries, postgresBinaries } from './postgres-binaries.ts';
import { type SystemUser, unprivilegedUser } from './unprivileged.ts';
import { watch } from './watchdog.ts';

export interface PostgresOptions {
  /** A folder of this server's own; one that a server has used before is used again with its data. */
  dataDir: string;
  /** A free port unless prescribed. */
  port?: number | undefined;
}

export interface PostgresServer {
  url: string;
  pid: number;
  port: number;
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL on 127.0.0.1, as another user where this process is root's. It keeps every promise of durability
 * (fsync stays on), so that it can be killed. `dataDir` stays after `stop`; it goes if this process dies without it.
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const { dataDir } = options;
  const user = await unprivilegedUser();
  await mkdir(dataDir, { recursive: true });
  if (user !== undefined) await chown(dataDir, user.uid, user.gid);
  const binaries = await postgresBinaries(user, dataDir);
  const cluster = join(dataDir, 'cluster');
  if (!existsSync(cluster)) await initialise(binaries, cluster, dataDir, user);
  const password = await readFile(join(dataDir, 'password'), 'utf8');
  return onFreePorts(1, options.port, async ([port = 0]) => {
    const child = await startChild({
      name: 'PostgreSQL',
      command: binaries.postgres,
      args: ['-D', cluster, '-p', `${port}`, ...settings()],
      dataDir,
      ...user,
      ready: /database system is ready to accept connections/,
      stopSignal: 'SIGINT',
      abandonSignal: 'SIGQUIT',
    });
    return { ...child, port, url: `postgresql://postgres:${password}@127.0.0.1:${port}/postgres` };
  });
}

function settings(): string[] {
  const values = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '300',
    fsync: 'on',
    timezone: 'UTC',
  };
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

async function initialise(
  binaries: PostgresBinaries,
  cluster: string,
  dataDir: string,
  user: SystemUser | undefined,
): Promise<void> {
  const passwordFile = join(dataDir, 'password');
  const unfinished = `${cluster}.new`;
  await rm(unfinished, { recursive: true, force: true });
  await writeFile(passwordFile, randomBytes(16).toString('hex'), { mode: 0o600 });
  if (user !== undefined) await chown(passwordFile, user.uid, user.gid);
  const locale = ['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'];
  const login = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  // Without the sync initdb loses nothing when a process is killed, and the server syncs all it writes itself.
  const args = [`--pgdata=${unfinished}`, ...login, ...locale, '--no-sync', '--no-instructions'];
  const running = { dismiss: () => {} };
  const started = (pid: number) => {
    running.dismiss = watch({ pid, signal: 'SIGKILL', dataDir });
  };
  const env = { ...process.env, LC_ALL: 'C' };
  await runCommand(binaries.initdb, args, { ...user, cwd: dataDir, env, started }).finally(() => running.dismiss());
  await rename(unfinished, cluster);
}
