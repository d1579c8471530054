import { type KeyObject, randomUUID } from 'node:crypto';
import { type AuditFilter, type AuditRecordRow, auditConditions } from '../../audit/audit-filter.ts';
import { RECORD_COLUMNS } from '../../audit/audit-record.ts';
import { withdrawExports } from '../../audit/erasure.ts';
import {
  type AuditExportRow,
  ExportError,
  LostExportError,
  StoredExport,
  storedFile,
} from '../../audit/export/export-targets.ts';
import { type ExportState, exportTo, FILES } from '../../audit/export/record-export.ts';
import { zipOf } from '../../audit/export/zip.ts';
import { iso, isoFromPg } from '../../lib/instants.ts';
import { newestFirst, type Page, type PageKey, type PageRequest, pageOf, pageRead } from '../../lib/keyset.ts';
import type { Log } from '../../lib/log.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { WorkLoop } from '../../lib/work-loop.ts';
import type { Db, DbAndClock } from '../../platform/database/database.ts';
import { keysetList, keysetPage } from '../../platform/database/keyset-list.ts';
import { isServerAway, notFound, Refusal } from '../../platform/errors.ts';

const EXPORT_POLL_MS = 1_000;
const CLEANUP_INTERVAL_MS = 60_000;
/** The duration of a lease, in ms: how long others wait for a process that has died. */
const LEASE_MS = 10_000;
/** For how long an export may hold the only connection of the embedded database to read records, in ms. */
const PART_MS = 100;
/** For how long it is known that somebody has asked for an export, in ms. */
const KNOWN_MS = 30 * 24 * 3_600_000;
/** The most exports of a tenant whose files are kept; another one replaces the oldest. */
const MAX_READY = 4;
/** The files of an export, in the order of its archive. */
const ARCHIVED = ['manifest.json', 'manifest.sig', ...Object.values(FILES)];

/** The exports of a tenant, newest first. */
export class AuditExportPages extends keysetList({
  rows: (k) => k.selectFrom('audit_exports').selectAll(),
  order: ['created_at', 'id'],
  isNewestFirst: true,
}) {}

/**
 * Runs the exports that tenants have asked for, one at a time in each process, in the order of the requests. The export of
 * a process that has died is continued by another one.
 */
export class AuditExports extends WorkLoop {
  readonly #deps;
  readonly #owner = uuidV7();
  #cleanedAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    deps: DbAndClock & {
      log: Log;
      /** The keys whose signatures count; the first one signs manifests. */
      keys: readonly KeyObject[];
      /** Returns the path of a download, with `{id}` and `{key}`. */
      downloadPath(): string;
    },
  ) {
    super({
      iterate: (signal) => this.iterate(signal),
      onFailure: (error) => deps.log.warn({ err: error }, 'audit exports paused; database unavailable'),
      pollMs: EXPORT_POLL_MS,
    });
    this.#deps = deps;
  }

  /**
   * Stores a request, and returns the export that is waiting then.
   * @throws Refusal `precondition_failed` while another export of the tenant is waiting or running.
   */
  async request(
    nodeId: string,
    {
      asked,
      filter,
      by,
    }: {
      /** The filter as it was written, which the manifest has as texts. */
      asked: Readonly<Record<string, unknown>>;
      filter: AuditFilter;
      by: string;
    },
  ): Promise<AuditExportRow> {
    const created_at = iso(this.#deps.nowMs());
    const members = Object.entries(asked).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    );
    const [row] = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .insertInto('audit_exports')
        .values({
          ...{ id: uuidV7(), status: 'waiting', requested_by: by, created_at },
          asked: { node: nodeId, ...Object.fromEntries(members) },
          filter: { ...filter, nodeId, until: filter.until ?? created_at },
        })
        .onConflict((conflict) => conflict.doNothing())
        .returningAll(),
    );
    if (!row)
      throw new Refusal('precondition_failed', {
        message: 'another export of this tenant is waiting or running: repeat this when it has ended',
      });
    this.notify();
    return row;
  }

  /** Returns the status of an export, which expires at its time. */
  statusOf({ status, expires_at: end }: AuditExportRow): AuditExportRow['status'] {
    return status === 'ready' && this.#deps.nowMs() >= Date.parse(isoFromPg(end ?? '')) ? 'expired' : status;
  }

  /** Returns the path of the next download of an export; null unless it is ready. */
  downloadPathOf(row: AuditExportRow): string | null {
    if (this.statusOf(row) !== 'ready') return null;
    return this.#deps
      .downloadPath()
      .replace('{id}', row.id)
      .replace('{key}', row.download_key ?? '');
  }

  /**
   * Returns the archive of an export, once for each key: the next download has another. It fails if the export is withdrawn
   * meanwhile.
   * @throws Refusal `not_found`
   */
  async download(nodeId: string, id: string, key: string): Promise<AsyncIterable<Buffer>> {
    const [row] = await this.#deps.db
      .forNode(nodeId)
      .run((k) =>
        k
          .updateTable('audit_exports')
          .set({ download_key: randomUUID() })
          .where('id', '=', id)
          .where('download_key', '=', key)
          .where('status', '=', 'ready')
          .where('expires_at', '>', iso(this.#deps.nowMs()))
          .returningAll(),
      );
    if (!row) throw notFound();
    return zipOf(ARCHIVED.map((name) => [name, this.#whole(row, name)] as const));
  }

  /** Works at the export that has waited longest, until it ends or `signal` aborts. Returns whether there was one. */
  async iterate(signal: AbortSignal): Promise<boolean> {
    await this.#cleanUp();
    const row = await this.#claim();
    if (!row) return false;
    await this.#work(row, signal);
    return true;
  }

  async *#whole(row: AuditExportRow, name: string): AsyncGenerator<Uint8Array> {
    yield* storedFile(this.#deps.db, row, name);
    const ready = await this.#deps.db
      .forNode(row.node_id)
      .run((k) => k.selectFrom('audit_exports').select('id').where('id', '=', row.id).where('status', '=', 'ready'));
    if (ready.length === 0) throw new LostExportError('the export was withdrawn while it was downloaded');
  }

  async #claim(): Promise<AuditExportRow | undefined> {
    const nowMs = this.#deps.nowMs();
    const [row] = await this.#unscoped().run((k) =>
      k
        .updateTable('audit_exports')
        .set({ status: 'running', lease_owner: this.#owner, lease_until: iso(nowMs + LEASE_MS) })
        .where('id', '=', (eb) =>
          eb
            .selectFrom('audit_exports as free')
            .select('free.id')
            .where((free) =>
              free.or([
                free('free.status', '=', 'waiting'),
                free.and([
                  free('free.status', '=', 'running'),
                  free.or([free('free.lease_until', '<=', iso(nowMs)), free('free.lease_owner', '=', this.#owner)]),
                ]),
              ]),
            )
            .orderBy('free.created_at')
            .limit(1)
            .forUpdate()
            .skipLocked(),
        )
        .returningAll(),
    );
    return row;
  }

  async #work(row: AuditExportRow, stopping: AbortSignal): Promise<void> {
    const { db, log, nowMs, keys } = this.#deps;
    const [key, ...former] = keys;
    const target = new StoredExport<ExportState>(this.#deps, row);
    const lost = new AbortController();
    using _renewal = setInterval(() => {
      target
        .update({ lease_until: iso(nowMs() + LEASE_MS) })
        .catch((error: unknown) => error instanceof LostExportError && lost.abort());
    }, LEASE_MS / 3);
    try {
      if (!key) throw new ExportError('this installation has no AUDIT_SIGNING_KEY: ask its operator to set one');
      await exportTo(target, {
        ...{ db, keys: [key, ...former], partMs: PART_MS, signal: AbortSignal.any([stopping, lost.signal]) },
        asked: { filter: row.asked, by: row.requested_by, at: isoFromPg(row.created_at) },
        filter: row.filter as AuditFilter,
        onProgress: ({ what, done, total }) => {
          if (what === 'exported') target.progress = { records: done, total };
        },
      });
      this.#cleanedAtMs = Number.NEGATIVE_INFINITY;
    } catch (error) {
      if (error instanceof LostExportError || lost.signal.aborted) return;
      if (stopping.aborted) await target.update({ lease_until: iso(nowMs()) }).catch(() => undefined);
      else if (isServerAway(error)) throw error;
      else if (error instanceof ExportError) await withdrawExports(db, error.message, [row.id]);
      else {
        log.error({ err: error, export_id: row.id }, 'audit export failed');
        await withdrawExports(db, 'an unexpected error, which the log of the service has', [row.id]);
      }
    }
  }

  /** Deletes the files of exports that have expired, or that newer ones replace, and rows of exports that are a month old. */
  async #cleanUp(): Promise<void> {
    const nowMs = this.#deps.nowMs();
    if (nowMs - this.#cleanedAtMs < CLEANUP_INTERVAL_MS) return;
    await this.#unscoped().raw(
      (sql) => sql`
        with expired as (
          update audit_exports e set status = 'expired', expires_at = least(expires_at, ${iso(nowMs)})
          where status = 'ready' and (expires_at <= ${iso(nowMs)} or ${MAX_READY} <= (
            select count(*) from audit_exports newer
            where newer.node_id = e.node_id and newer.status = 'ready' and newer.finished_at > e.finished_at))
          returning id)
        delete from audit_export_chunks where export_id in (select id from expired)`,
    );
    await this.#unscoped().run((k) => k.deleteFrom('audit_exports').where('created_at', '<', iso(nowMs - KNOWN_MS)));
    this.#cleanedAtMs = nowMs;
  }

  #unscoped() {
    return this.#deps.db.unscoped('one queue for the exports of all nodes');
  }
}

/** Lists audit records, newest first, by keyset pagination. */
export class AuditPages {
  readonly #db: Db;
  /** The path patterns at which clients and supervisors sign in. */
  readonly signIns: readonly (string | null)[];

  constructor(db: Db, signIns: readonly string[]) {
    this.#db = db;
    this.signIns = signIns;
  }

  /** Returns a page of one tenant's audit records. Records without a tenant are on no page. */
  async page(nodeId: string, filter: AuditFilter, request: PageRequest): Promise<Page<AuditRecordRow>> {
    const rows = await this.#db.forNode(nodeId).run((k) =>
      keysetPage(
        k
          .selectFrom('audit_records')
          .select(RECORD_COLUMNS)
          .where((eb) => eb.and(auditConditions(eb, filter))),
        pageRead(newestFirst(request)),
        ['at', 'id'],
      ),
    );
    return pageOf(rows, request);
  }

  /** Returns the number of the tenant's audit records that match the filter. */
  async count(nodeId: string, filter: AuditFilter): Promise<number> {
    const [counted] = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('audit_records')
        .select((eb) => eb.fn.countAll<string>().as('total'))
        .where((eb) => eb.and(auditConditions(eb, filter))),
    );
    return Number(counted?.total ?? 0);
  }

  /** Returns the sort key of a record, for its cursor. */
  keyOf({ at, id }: AuditRecordRow): PageKey {
    return { at, id };
  }
}
