import type { ExpressionBuilder, StringReference } from 'kysely';
import { MASK } from '../audit/mask-keys.ts';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { erasedText, type PersonalData, readable, tellingIdentifiers } from './erased-text.rules.ts';

const PAGE = 100;
const SHORTEST_PIECE = 3;

/** The texts that are kept of requests: answers under a key, and the bodies of audit records. */
export class KeptTexts {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Erases personal data from the node's kept answers that show one of the traces (in lower case). */
  async eraseAnswers(nodeId: string, traces: readonly string[], data: PersonalData): Promise<void> {
    const door = this.#db.forNode(nodeId);
    const found = await door.run((k) =>
      k
        .selectFrom('idempotent_answers')
        .select(['scope', 'body'])
        .where((eb) => eb.or(shows(eb, 'body', traces))),
    );
    for (const { scope, body } of found) {
      if (body === null) continue;
      const erased = erasedText(body, data);
      if (erased === body) continue;
      await door.run((k) =>
        k
          .updateTable('idempotent_answers')
          .set({ body: erased ?? '{}' })
          .where('scope', '=', scope),
      );
    }
  }

  /** The same for bodies and queries of the node's audit records, those of a time and later. */
  async eraseAudited(
    nodeId: string,
    traces: readonly string[],
    data: PersonalData,
    since = '-infinity',
  ): Promise<void> {
    const door = this.#db.forNode(nodeId);
    const identifiers = tellingIdentifiers(data);
    for (let after: { at: string; id: string } | undefined; ; ) {
      const page = await door.run((k) =>
        k
          .selectFrom('audit_records')
          .select(['at', 'id', 'query', 'request_body', 'response_body'])
          .where('at', '>=', since)
          .where((eb) =>
            eb.or([
              ...BODIES.flatMap((column) => [...shows(eb, column, traces), eb(column, '~*', ESCAPES)]),
              ...shows(eb, 'query', identifiers.flatMap(piecesOf)),
            ]),
          )
          .$if(after !== undefined, (query) =>
            query.where((eb) => eb(eb.refTuple('at', 'id'), '>', eb.tuple(after?.at ?? '', after?.id ?? ''))),
          )
          .orderBy('at')
          .orderBy('id')
          .limit(PAGE),
      );
      for (const { at, id, ...kept } of page) {
        const erased = {
          query: kept.query !== null && tells(kept.query, identifiers) ? MASK : kept.query,
          request_body: erasedBody(kept.request_body, traces, data),
          response_body: erasedBody(kept.response_body, traces, data),
        };
        if (isSame(erased, kept)) continue;
        await door.run((k) => k.updateTable('audit_records').set(erased).where('at', '=', at).where('id', '=', id));
      }
      after = page.at(-1);
      if (page.length < PAGE) return;
    }
  }
}

const BODIES = ['request_body', 'response_body'] as const;
/** Letters and digits that are escaped though JSON does not ask for it. */
const ESCAPES = '\\\\u00[2-7]';

function erasedBody(body: string | null, traces: readonly string[], data: PersonalData): string | null {
  if (body === null) return null;
  const text = readable(body);
  return traces.some((trace) => text.includes(trace)) ? erasedText(body, data) : body;
}

/** Whether the query of a URL has one of the identifiers, however it is encoded. */
function tells(query: string, identifiers: readonly string[]): boolean {
  const text = readable(decoded(query.replaceAll('+', ' '))).replaceAll('\\"', '"');
  return identifiers.some((identifier) => text.includes(identifier));
}

/** Escapes that are none stay as they are. */
function decoded(query: string): string {
  return query.replace(/(?:%[0-9a-f]{2})+/gi, (escaped) => {
    try {
      return decodeURIComponent(escaped);
    } catch {
      return escaped;
    }
  });
}

/** What of an identifier stands in a query whichever way it is encoded: its longest run of letters that never are. */
function piecesOf(identifier: string): string[] {
  const longest = (identifier.match(/[a-z0-9]+/g) ?? []).reduce((a, b) => (b.length > a.length ? b : a), '');
  return [longest.length >= SHORTEST_PIECE ? longest : encodeURIComponent(identifier).toLowerCase()];
}

function isSame(a: object, b: object): boolean {
  return JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());
}

function shows<Table extends 'idempotent_answers' | 'audit_records'>(
  eb: ExpressionBuilder<Tables, Table>,
  column: StringReference<Tables, Table>,
  traces: readonly string[],
) {
  return traces.map((trace) =>
    eb(eb.fn<string>('lower', [column]), 'like', `%${trace.replaceAll(/[\\%_]/g, '\\$&')}%`),
  );
}
