import type { ExpressionBuilder, StringReference } from 'kysely';
import { MASK } from '../audit/mask-keys.ts';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { piecesOf, tellsInQuery } from './erased-query.rules.ts';
import { ESCAPED_LETTER, erasedText, type PersonalData, readable, tellingIdentifiers } from './erased-text.rules.ts';

const PAGE = 100;
const BODIES = ['request_body', 'response_body'] as const;
const COLUMNS = ['query', ...BODIES] as const;

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
          .select(['at', 'id', ...COLUMNS])
          .where('at', '>=', since)
          .where((eb) =>
            eb.or([
              ...BODIES.flatMap((column) => [...shows(eb, column, traces), eb(column, '~*', ESCAPED_LETTER)]),
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
          query: kept.query !== null && tellsInQuery(kept.query, identifiers) ? MASK : kept.query,
          request_body: erasedBody(kept.request_body, traces, data),
          response_body: erasedBody(kept.response_body, traces, data),
        };
        if (COLUMNS.every((column) => erased[column] === kept[column])) continue;
        await door.run((k) => k.updateTable('audit_records').set(erased).where('at', '=', at).where('id', '=', id));
      }
      after = page.at(-1);
      if (page.length < PAGE) return;
    }
  }
}

function erasedBody(body: string | null, traces: readonly string[], data: PersonalData): string | null {
  if (body === null) return null;
  const text = readable(body);
  return traces.some((trace) => text.includes(trace)) ? erasedText(body, data) : body;
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
