import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { appendFile, chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startChild } from './child.ts';
import { runCommand } from './commands.ts';
import { withPostgres } from './pg-client.ts';
import { onFreePorts } from './ports.ts';
import { type PostgresBinaries, postgresBinaries } from './postgres-binaries.ts';
import { type SystemUser, unprivilegedUser } from './unprivileged.ts';
import { watch } from './watchdog.ts';

export interface PostgresOptions {
  /** A folder of this server's own; one that a server has used before is used again with its data. */
  dataDir: string;
  /** A free port unless prescribed. */
  port?: number | undefined;
  /** Whether clients send their password itself: without the proof a connection takes a quarter less CPU. */
  takesPasswords?: boolean;
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
  if (!existsSync(cluster)) await initialise(binaries, cluster, options, user);
  const password = await readFile(join(dataDir, 'password'), 'utf8');
  return onFreePorts(1, options.port, async ([port = 0]) => {
    const child = await startChild({
      name: 'PostgreSQL',
      command: binaries.postgres,
      args: ['-D', cluster, '-p', `${port}`, ...settings()],
      dataDir,
      ...user,
      // A standby takes those that read.
      ready: /database system is ready to accept (?:read-only )?connections/,
      stopSignal: 'SIGINT',
      abandonSignal: 'SIGQUIT',
    });
    return { ...child, port, url: `postgresql://postgres:${password}@127.0.0.1:${port}/postgres` };
  });
}

/**
 * Starts a standby that streams from a running server, as application `standby`: a copy of the primary's files, taken
 * between `pg_backup_start` and `pg_backup_stop`, which is what `pg_basebackup` does. `primaryPort` is where it finds
 * the primary, which may be a proxy's.
 */
export async function startStandby(
  primary: { url: string; dataDir: string },
  options: PostgresOptions & { primaryPort: number },
): Promise<PostgresServer> {
  const { dataDir, primaryPort } = options;
  await copyCluster(primary, dataDir);
  const { username, password } = new URL(primary.url);
  const login = `user=${username} password=${password} host=127.0.0.1 port=${primaryPort}`;
  const cluster = join(dataDir, 'cluster');
  const settings = { primary_conninfo: `${login} application_name=standby`, wal_receiver_timeout: '2s' };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
  await appendFile(join(cluster, 'postgresql.auto.conf'), lines.join(''));
  await writeAs(join(cluster, 'standby.signal'), '', await unprivilegedUser());
  return startPostgres(options);
}

/** Copies the files of a running server, so that one that starts on the copy has the state at the copy's end. */
export async function copyCluster(from: { url: string; dataDir: string }, dataDir: string): Promise<void> {
  const user = await unprivilegedUser();
  await mkdir(dataDir, { recursive: true });
  await withPostgres(from.url, async (client) => {
    await client.query(`select pg_backup_start('copy', true)`);
    // A file that goes while it is copied is made anew from the log.
    await runCommand('cp', ['-a', join(from.dataDir, 'cluster'), join(from.dataDir, 'password'), dataDir]).catch(
      (error) => {
        if (!/No such file/.test(String(error))) throw error;
      },
    );
    const { rows } = await client.query('select labelfile from pg_backup_stop(false)');
    await writeAs(join(dataDir, 'cluster', 'backup_label'), String(rows[0]?.labelfile), user);
  });
  // What the log has gained since the copy of its files began belongs to the copy.
  await runCommand('cp', ['-a', join(from.dataDir, 'cluster', 'pg_wal'), join(dataDir, 'cluster')]);
  await rm(join(dataDir, 'cluster', 'postmaster.pid'), { force: true });
}

async function writeAs(path: string, text: string, user: SystemUser | undefined): Promise<void> {
  await writeFile(path, text, { mode: 0o600 });
  if (user !== undefined) await chown(path, user.uid, user.gid);
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
  { dataDir, takesPasswords = false }: PostgresOptions,
  user: SystemUser | undefined,
): Promise<void> {
  const passwordFile = join(dataDir, 'password');
  const unfinished = `${cluster}.new`;
  await rm(unfinished, { recursive: true, force: true });
  await writeFile(passwordFile, randomBytes(16).toString('hex'), { mode: 0o600 });
  if (user !== undefined) await chown(passwordFile, user.uid, user.gid);
  const locale = ['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'];
  const auth = takesPasswords ? 'password' : 'scram-sha-256';
  const login = ['--username=postgres', `--auth=${auth}`, `--pwfile=${passwordFile}`];
  // Without the sync initdb loses nothing when a process is killed, and the server syncs all it writes itself.
  // By the usual rounds each connection would take a millisecond more, and a run opens thousands.
  const cheap = ['--set=scram_iterations=1'];
  const args = [`--pgdata=${unfinished}`, ...login, ...locale, ...cheap, '--no-sync', '--no-instructions'];
  const running = { dismiss: () => {} };
  const started = (pid: number) => {
    running.dismiss = watch({ pid, signal: 'SIGKILL', dataDir });
  };
  const env = { ...process.env, LC_ALL: 'C' };
  await runCommand(binaries.initdb, args, { ...user, cwd: dataDir, env, started }).finally(() => running.dismiss());
  await rename(unfinished, cluster);
}
