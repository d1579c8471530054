import { every } from '../../lib/shared-ticks.ts';

/** A connection of the driver `pg`, with the members that tell which server is at its end. */
export interface ServerConnection {
  readonly connection: { readonly stream: { destroy(): unknown } };
  /** The id of the backend; behind a pooler, one that the pooler has made up. */
  readonly processID?: number | null;
  once(event: 'end', listener: () => void): unknown;
}

/** A connection, or a pool, that can be asked. */
interface Queryable {
  query(statement: { text: string; values: unknown[]; query_timeout: number }): Promise<{ rows: Identity[] }>;
}

/** What a server says of itself. */
interface Identity {
  standby: boolean;
  server: string;
  pid: number;
  /** The backends that work, or have worked until just now, among those that were asked about. */
  busy?: readonly number[];
}

/** The SQLSTATE of a write to a server that takes none. */
export const READ_ONLY = '25006';
const SILENT_MS = 3_000;
const LOOK_MS = 1_000;
/** How long, in milliseconds, a statement is waited for while its server answers nothing at all. */
const HOPELESS_MS = 10_000;
/**
 * What a server says of itself. So that the backends of a machine that is gone end too, the server looks after its side
 * of each connection.
 */
const SELF = `pg_is_in_recovery() as standby, pg_postmaster_start_time()::text as server, pg_backend_pid() as pid,
    set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
    set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '25000', false)`;
/**
 * Of the backends $1 of the server $2, those that have no work are ended as well: their connections will be closed,
 * which they may never hear of, and hold locks until then. Each new connection asks without them: the view of all
 * backends takes a third of the CPU of opening one.
 */
const SELF_AND_BACKENDS = `with backends as (
      select pid, coalesce(state = 'active' or state_change > statement_timestamp() - interval '3 seconds', true) as busy
      from pg_stat_activity where pid = any($1))
    select ${SELF}, array(select pid from backends where busy) as busy,
      (select count(pg_terminate_backend(pid)) from backends where not busy and pg_postmaster_start_time()::text = $2)
        as ended`;

/**
 * Asks a server what it is, and, given `backends`, which of them work.
 * @throws an error with the code READ_ONLY where it is a standby.
 */
async function identify(
  pool: Queryable,
  backends?: [pids: readonly (number | null | undefined)[], server: string],
): Promise<Identity> {
  const text = backends ? SELF_AND_BACKENDS : `select ${SELF}`;
  const [identity] = (await pool.query({ text, query_timeout: SILENT_MS, values: backends ?? [] })).rows;
  if (identity && !identity.standby) return identity;
  throw Object.assign(new Error('the server is a standby'), { code: READ_ONLY });
}

/**
 * Keeps a pool at the server that its address names, since another may take the address over while connections to the
 * former one stay open. A new connection to a standby is refused. If a statement has had no answer for three seconds,
 * the address is checked again: connections to another server are closed, those whose statement that server does not
 * have, and after ten seconds those of a server that answers nothing. So no caller waits for a server that is gone, and
 * a long statement continues.
 */
export class ServerWatch {
  /** A number that changes when another server is met, which may lack what was last committed. */
  generation = 0;
  readonly #pool: Queryable;
  readonly #uses = new Map<
    ServerConnection,
    {
      open: number;
      tick: number;
      /** The server that it leads to; undefined behind a pooler, which moves its connections itself. */
      server: string | undefined;
    }
  >();
  /** Ends the watch. */
  readonly stop = every(LOOK_MS, () => void this.#look());
  #server: string | undefined;
  #isAsking = false;

  /** Takes what answers on a new connection each time. */
  constructor(pool: Queryable) {
    this.#pool = pool;
  }

  /** Begins to watch a new connection. @throws what `identify` throws. */
  async admit(client: ServerConnection & Queryable): Promise<void> {
    const { server, pid } = await identify(client);
    this.#noteServer(server);
    this.#uses.set(client, { open: 0, tick: 0, server: pid === client.processID ? server : undefined });
    client.once('end', () => this.#uses.delete(client));
  }

  /** Notes that a connection has begun a statement (1) or ended one (-1). */
  note(client: ServerConnection, change: 1 | -1, tick: number): void {
    const use = this.#uses.get(client);
    if (!use) return;
    use.open += change;
    use.tick = tick;
  }

  async #look(): Promise<void> {
    const silentTick = performance.now() - SILENT_MS;
    const silent = [...this.#uses].filter(([, { open, tick }]) => open > 0 && tick < silentTick);
    if (silent.length === 0 || this.#isAsking) return;
    this.#isAsking = true;
    // A pooler makes up the numbers of its backends.
    const pids = silent.flatMap(([{ processID }, { server }]) => (server === undefined ? [] : processID));
    const identity = await identify(this.#pool, [pids, this.#server ?? '']).catch(() => undefined);
    this.#isAsking = false;
    if (identity) this.#noteServer(identity.server);
    for (const [{ connection, processID }, { tick, server }] of silent) {
      // A server that does not answer may soon come back with all its connections.
      const isLost = identity
        ? server !== undefined && tick < silentTick && !identity.busy?.includes(processID ?? 0)
        : tick < performance.now() - HOPELESS_MS;
      if (isLost) connection.stream.destroy();
    }
  }

  #noteServer(met: string): void {
    if (this.#server !== undefined && this.#server !== met) this.generation += 1;
    this.#server = met;
    for (const [{ connection }, { server }] of this.#uses) {
      if (server !== undefined && server !== met) connection.stream.destroy();
    }
  }
}
