import type { ExpressionBuilder, StringReference } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { erasedText, type PersonalData } from './erased-text.rules.ts';

const PAGE = 100;

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

  /** The same for bodies of the node's audit records, those of a time and later. */
  async eraseAudited(
    nodeId: string,
    traces: readonly string[],
    data: PersonalData,
    since = '-infinity',
  ): Promise<void> {
    const door = this.#db.forNode(nodeId);
    for (let after: { at: string; id: string } | undefined; ; ) {
      const page = await door.run((k) =>
        k
          .selectFrom('audit_records')
          .select(['at', 'id', 'request_body', 'response_body'])
          .where('at', '>=', since)
          .where((eb) => eb.or([...shows(eb, 'request_body', traces), ...shows(eb, 'response_body', traces)]))
          .$if(after !== undefined, (query) =>
            query.where((eb) => eb(eb.refTuple('at', 'id'), '>', eb.tuple(after?.at ?? '', after?.id ?? ''))),
          )
          .orderBy('at')
          .orderBy('id')
          .limit(PAGE),
      );
      for (const { at, id, ...bodies } of page) {
        const request_body = erasedOrNull(bodies.request_body, data);
        const response_body = erasedOrNull(bodies.response_body, data);
        if (request_body === bodies.request_body && response_body === bodies.response_body) continue;
        const erased = { request_body, response_body };
        await door.run((k) => k.updateTable('audit_records').set(erased).where('at', '=', at).where('id', '=', id));
      }
      after = page.at(-1);
      if (page.length < PAGE) return;
    }
  }
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

function erasedOrNull(text: string | null, data: PersonalData): string | null {
  return text === null ? null : erasedText(text, data);
}
