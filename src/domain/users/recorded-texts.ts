import { isDeepStrictEqual } from 'node:util';
import type { ExpressionBuilder } from 'kysely';
import { ERASABLE_COLUMNS as COLUMNS } from '../../audit/audit-record.ts';
import type { AuditErasure, ErasableRow } from '../../audit/erasure.ts';
import { MASK } from '../../audit/mask-keys.ts';
import { isUuid } from '../../lib/input.ts';
import type { Db } from '../../platform/database/database.ts';
import type { Tables } from '../../tables/tables.ts';
import {
  ESCAPED_LETTER,
  erasedText,
  identifiesPerson,
  namesUser,
  PERCENT_LETTER,
  type PersonalData,
  piecesOf,
  readable,
  type TextSide,
} from './erased-text.rules.ts';

const WINDOW = 200;
const NO_ID = '00000000-0000-0000-0000-000000000000';

/** The user to erase, with the texts that identify them in stored texts. */
export interface Person {
  data: PersonalData;
  /**
   * The user's id and identifiers in lower case, to search for in texts of any format; short ones count only as words.
   */
  identifiers: readonly string[];
  /** The user's id and identifiers in their JSON spellings, in lower case. */
  traces: readonly string[];
}

interface Place {
  at: string;
  id: string;
}

/** Erases personal data from the stored texts of requests: idempotent responses and audit records. */
export class RecordedTexts {
  readonly #db: Db;
  readonly #audit: AuditErasure;

  constructor(db: Db, audit: AuditErasure) {
    this.#db = db;
    this.#audit = audit;
  }

  /**
   * Erases personal data from those of the tenant's idempotent responses that contain one of the traces (in lower
   * case).
   */
  async eraseAnswers(nodeId: string, traces: readonly string[], data: PersonalData): Promise<void> {
    const scoped = this.#db.forNode(nodeId);
    const found = await scoped.run((k) =>
      k
        .selectFrom('idempotent_answers')
        .select(['scope', 'body'])
        .where((eb) => eb.or(traces.map((trace) => eb(eb.fn<string>('lower', ['body']), 'like', likeOf(trace))))),
    );
    for (const { scope, body } of found) {
      if (body === null) continue;
      const erased = erasedText(body, data);
      if (erased === body) continue;
      await scoped.run((k) =>
        k
          .updateTable('idempotent_answers')
          .set({ body: erased ?? '{}' })
          .where('scope', '=', scope),
      );
    }
  }

  /**
   * Erases personal data from the audit records of the tenant and of no tenant, from the time `since` on. When one
   * column of a record identifies the user, all its columns are erased. It works in windows along an index, so that no
   * statement takes long. In records of no tenant, which are the operator's, only identifiers that are UUIDs or contain
   * `@` count: an external id invented by a tenant must not erase the operator's records.
   */
  async eraseAudited(nodeId: string, person: Person, since = '-infinity'): Promise<void> {
    const identifiers = person.identifiers.filter((text) => text.includes('@') || isUuid(text));
    for (const [node, named] of [[nodeId, person] as const, [null, { ...person, identifiers, traces: [] }] as const]) {
      for (let after: Place | undefined = { at: since, id: NO_ID }; after !== undefined; ) {
        after = await this.#eraseWindow(node, named, after);
      }
    }
  }

  /**
   * Erases personal data from the next window of audit records; returns its end, or undefined after the last window.
   */
  async #eraseWindow(nodeId: string | null, person: Person, after: Place): Promise<Place | undefined> {
    const unscoped = this.#db.unscoped('an audit record that names a user can belong to no node');
    const window = await unscoped.run((k) =>
      k
        .selectFrom('audit_records')
        .select(['at', 'id'])
        .where('node_id', nodeId === null ? 'is' : '=', nodeId)
        .where((eb) => eb(eb.refTuple('at', 'id'), '>', eb.tuple(after.at, after.id)))
        .orderBy('at')
        .orderBy('id')
        .limit(WINDOW),
    );
    const last = window.at(-1);
    if (last === undefined) return undefined;
    const found = await unscoped.run((k) =>
      k
        .selectFrom('audit_records')
        .select(['at', 'id', ...COLUMNS])
        .where('node_id', nodeId === null ? 'is' : '=', nodeId)
        .where((eb) => eb(eb.refTuple('at', 'id'), '>', eb.tuple(after.at, after.id)))
        .where((eb) => eb(eb.refTuple('at', 'id'), '<=', eb.tuple(last.at, last.id)))
        .where((eb) => eb.or(mayName(eb, person))),
    );
    const named = found.filter((row) => leftOf(row, person) !== undefined);
    await this.#audit.erase(named, (row) => leftOf(row, person));
    return window.length < WINDOW ? undefined : last;
  }
}

/** Returns what is left of an audit record, if that is not all of it. */
function leftOf(found: ErasableRow, person: Person): ErasableRow | undefined {
  const { path, query, correlation_id, headers, request_body, response_body } = found;
  const kept = { path, query, correlation_id, headers, request_body, response_body };
  const left = erasedRecord(kept, person);
  return isDeepStrictEqual(left, kept) ? undefined : left;
}

/**
 * Returns the columns of an audit record without the user's personal data; unchanged when none of them identifies the
 * user.
 */
function erasedRecord(kept: ErasableRow, { identifiers, traces, data }: Person): ErasableRow {
  const { request_body: asked, response_body: told } = kept;
  const hasTrace = (body: string | null) => body !== null && traces.some((trace) => readable(body).includes(trace));
  const texts = [
    kept.path,
    kept.query ?? '',
    kept.correlation_id,
    JSON.stringify(kept.headers),
    asked ?? '',
    told ?? '',
  ];
  const isNamed = texts.some((text) => namesUser(text, identifiers));
  const erasedBody = (body: string | null, side: TextSide) =>
    body !== null && (isNamed || hasTrace(body)) ? erasedText(body, data, side) : body;
  const bodies = { request_body: erasedBody(asked, 'asked'), response_body: erasedBody(told, 'told') };
  if (!isNamed) return { ...kept, ...bodies };
  const shown = (text: string) => (identifiesPerson(text, data) ? MASK : text);
  return {
    path: shown(kept.path),
    query: kept.query === null ? null : shown(kept.query),
    correlation_id: shown(kept.correlation_id),
    headers: Object.fromEntries(
      Object.entries(kept.headers).map(([name, value]) => [
        name,
        Array.isArray(value) ? value.map(shown) : shown(value),
      ]),
    ),
    ...bodies,
  };
}

/**
 * Returns conditions that match the audit records that may identify a user. They find too many; the decoded texts
 * decide.
 */
function mayName(eb: ExpressionBuilder<Tables, 'audit_records'>, { identifiers, traces }: Person) {
  const columns = COLUMNS.map((column) => eb.cast<string>(column, 'text'));
  const pieces = [...new Set([...traces, ...identifiers.flatMap(piecesOf)])];
  return columns.flatMap((column) => [
    ...pieces.map((piece) => eb(eb.fn<string>('lower', [column]), 'like', likeOf(piece))),
    eb(column, '~*', ESCAPED_LETTER),
    eb(column, '~*', PERCENT_LETTER),
  ]);
}

function likeOf(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
}
