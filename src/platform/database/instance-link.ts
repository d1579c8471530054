import { once } from 'node:events';
import { chmodSync, mkdtempDisposableSync, rmSync, symlinkSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import type { PostgresPool, PostgresPoolClient } from 'kysely';
import { makeFolder } from '../../lib/files.ts';
import type { Log } from '../../lib/log.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { StartError } from '../errors.ts';
import type { Db } from './database.ts';

/** What a command asks of the instance that runs on its `DATA_DIR`: a statement, or rows in the format `text` of `COPY`. */
export type LinkRequest =
  | { sql: string; parameters: readonly unknown[] }
  | { target: string; rows: Buffer<ArrayBuffer> };

/** The answer to a request: its rows, or the members of the error with which it failed. */
export type LinkAnswer =
  | { rows: readonly unknown[]; numAffectedRows?: bigint | undefined }
  | { error: { message: string } & Record<string, string> };

/** Returns the path of the socket at which an embedded instance takes statements of commands; its folder is private. */
export function instanceSocket(dataDir: string): string {
  return join(dataDir, 'run', 'database');
}

/** The longest path of a socket that every system takes, in bytes. */
const MAX_PATH_BYTES = 100;

/**
 * Calls `use` with a path of the socket that is short enough to listen or connect to: where its own is not, by way of a
 * link in a new private folder, which is removed when `use` has ended.
 */
export async function byShortPath<Result>(path: string, use: (path: string) => Promise<Result>): Promise<Result> {
  if (Buffer.byteLength(path) <= MAX_PATH_BYTES) return use(path);
  using folder = mkdtempDisposableSync(join(tmpdir(), 'portcullis-'));
  symlinkSync(resolve(dirname(path)), join(folder.path, 'run'));
  return await use(join(folder.path, 'run', 'database'));
}

/** Sends a message as a line. */
export function send(socket: Socket, message: LinkRequest | LinkAnswer): void {
  socket.write(`${serialize(message).toString('base64')}\n`);
}

/** Yields the messages of the other side until it leaves. */
export async function* receive<Message>(socket: Socket): AsyncGenerator<Message, undefined> {
  let text = '';
  for await (const part of socket.setEncoding('latin1')) {
    text += part;
    // Long lines arrive in many parts, which are only joined at their end.
    if (!part.includes('\n')) continue;
    const lines = text.split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) yield deserialize(Buffer.from(line, 'base64'));
  }
}

function noAnswer(dataDir: string): StartError {
  return new StartError(
    `no instance answers on ${dataDir}: it starts or stops, or another command uses the folder. Repeat this in a moment`,
  );
}

/** A connection to the database of a running instance. */
class InstanceLink {
  readonly #dataDir: string;
  readonly #socket: Socket;
  readonly #answers: AsyncGenerator<LinkAnswer, undefined>;

  constructor(dataDir: string, socket: Socket) {
    this.#dataDir = dataDir;
    this.#socket = socket;
    this.#answers = receive(socket);
  }

  /** Connects. @throws StartError if no instance listens, or that of another user. */
  static open(dataDir: string): Promise<InstanceLink> {
    return byShortPath(instanceSocket(dataDir), async (path) => {
      // An error without a listener would end the process; `ask` notices that the connection has ended.
      const socket = connect(path).on('error', () => undefined);
      try {
        await once(socket, 'connect');
        return new InstanceLink(dataDir, socket);
      } catch (error) {
        const isRefused = error instanceof Error && 'code' in error && error.code === 'EACCES';
        if (!isRefused) throw noAnswer(dataDir);
        throw new StartError(`an instance of another user is running on ${dataDir}: run this as that user`);
      }
    });
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed;
  }

  /** @throws StartError when the instance stops; the error of the database. */
  async ask(request: LinkRequest): Promise<Exclude<LinkAnswer, { error: unknown }>> {
    send(this.#socket, request);
    const { value: answer } = await this.#answers.next().catch(() => ({ value: undefined }));
    if (!answer) throw noAnswer(this.#dataDir);
    if ('error' in answer) throw Object.assign(new Error(answer.error.message), answer.error);
    return answer;
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** The database of a running instance as a pool with one connection, which is opened again after the instance was. */
export class InstancePool implements PostgresPool {
  readonly options = {};
  readonly #dataDir: string;
  #link: Promise<InstanceLink> | undefined;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  async connect(): Promise<PostgresPoolClient> {
    const link = await this.#opened();
    const query = async (sql: unknown, parameters: readonly unknown[] = []) => {
      const { rows, numAffectedRows: count } = await link.ask({ sql: String(sql), parameters });
      return { command: count === undefined ? 'SELECT' : 'UPDATE', rowCount: Number(count ?? 0), rows };
    };
    return { query, release: () => undefined } as PostgresPoolClient;
  }

  /** Copies rows into a table, as the driver of a server does. */
  async copyInto(target: string, rows: Buffer<ArrayBuffer>): Promise<void> {
    await (await this.#opened()).ask({ target, rows });
  }

  async end(): Promise<void> {
    (await this.#link?.catch(() => undefined))?.close();
  }

  async #opened(): Promise<InstanceLink> {
    const known = await this.#link?.catch(() => undefined);
    if (known?.isOpen) return known;
    this.#link = InstanceLink.open(this.#dataDir);
    return this.#link;
  }
}

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
