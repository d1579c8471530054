import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { makeFolder } from '../../lib/files.ts';
import type { Log } from '../../lib/log.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import {
  byShortPath,
  instanceSocket,
  type LinkAnswer,
  type LinkRequest,
  receive,
  send,
} from '../embedded/instance-link.ts';
import type { Db } from './database.ts';

/** How long a command may leave the only connection idle in a transaction, in milliseconds. */
const IDLE_MS = 5_000;
const DONE: LinkAnswer = { rows: [] };
const ROLLBACK = new Error('the command rolls its transaction back');

/**
 * Lets commands of the same user run statements on the embedded database while this process has it, until `stack` is
 * disposed of. Where the file system has no sockets, a warning says so.
 */
export async function shareDatabase(
  { db, dataDir, log }: { db: Db; dataDir: string; log: Log },
  stack: AsyncDisposableStack,
): Promise<void> {
  const path = instanceSocket(dataDir);
  const sessions = new Map<Socket, Promise<void>>();
  const server = createServer((socket) => {
    // A command may leave at any time.
    const session = serve(
      db,
      socket.on('error', () => undefined),
    ).catch(() => undefined);
    sessions.set(socket, session);
    void session.then(() => sessions.delete(socket));
  });
  stack.defer(async () => {
    server.close();
    for (const socket of sessions.keys()) socket.destroy();
    await Promise.all(sessions.values());
    rmSync(path, { force: true });
  });
  try {
    makeFolder(dirname(path), 0o700);
    chmodSync(dirname(path), 0o700);
    // A socket that is left over has no listener: this process holds the lock of the folder.
    rmSync(path, { force: true });
    await byShortPath(path, (short) => once(server.listen(short), 'listening'));
    chmodSync(path, 0o600);
  } catch (error) {
    log.warn({ err: error }, 'cannot listen in DATA_DIR; commands cannot run until this process stops');
  }
}

/** Answers the requests of a command, one after the other. A transaction that it leaves open is rolled back. */
async function serve(db: Db, socket: Socket): Promise<void> {
  const requests = receive<LinkRequest>(socket);
  const next = () =>
    withTimeout(requests.next(), IDLE_MS, () => {
      socket.destroy();
      return ROLLBACK;
    });
  const transaction = async () => {
    send(socket, DONE);
    for (;;) {
      const { value: request } = await next();
      if (!request || isStatement(request, 'rollback')) throw ROLLBACK;
      if (isStatement(request, 'commit')) return DONE;
      send(socket, await answer(db, request));
    }
  };
  for await (const request of requests) {
    const result = isStatement(request, 'begin') ? db.transaction(transaction).catch(failure) : answer(db, request);
    send(socket, await result);
  }
}

function isStatement(request: LinkRequest, sql: string): boolean {
  return 'sql' in request && request.sql === sql;
}

async function answer(db: Db, request: LinkRequest): Promise<LinkAnswer> {
  const unscoped = db.unscoped('statements of commands, which are scoped there');
  try {
    if ('target' in request) {
      await unscoped.copyInto(request.target, request.rows);
      return DONE;
    }
    return await unscoped.compiled(request.sql, request.parameters);
  } catch (error) {
    return failure(error);
  }
}

/** Returns an error as an answer, with its members that are texts, such as PostgreSQL's code. */
function failure(error: unknown): LinkAnswer {
  if (error === ROLLBACK) return DONE;
  const { message } = error instanceof Error ? error : { message: String(error) };
  const texts = Object.entries(Object(error)).filter(([, member]) => typeof member === 'string');
  return { error: { ...Object.fromEntries(texts), message } };
}
