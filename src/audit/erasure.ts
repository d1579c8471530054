import type { Selectable } from 'kysely';
import type { Db } from '../platform/database/database.ts';
import type { Tables } from '../tables/tables.ts';
import { columnDigest, newSalts, saltAt } from './audit-chain.ts';
import { ERASABLE_COLUMNS, erasableTexts } from './audit-record.ts';
import type { AuditSeals, ErasedRecord } from './seals.ts';

type StoredRecord = Selectable<Tables['audit_records']>;
export type ErasableRow = Pick<StoredRecord, (typeof ERASABLE_COLUMNS)[number]>;

/** The columns of a stored audit record that its erasure needs. */
export type FoundRecord = ErasableRow &
  Pick<StoredRecord, 'at' | 'id' | 'chain_id' | 'chain_index' | 'salts' | 'erased'>;

/** What names a stored audit record. */
type RecordPlace = Pick<StoredRecord, 'at' | 'id'>;

/**
 * Erases columns of audit records and seals it: of an erased column its digests before and after stay, by which the
 * chain is verified, and its salt goes, without which nobody can check a guess of the text.
 */
export class AuditErasure {
  readonly #db: Db;
  readonly #seals: AuditSeals;

  constructor(db: Db, seals: AuditSeals) {
    this.#db = db;
    this.#seals = seals;
  }

  /**
   * Erases all of these records, by one seal, or none. What `leftOf` leaves of each is made of the record as it is when
   * no other process can erase: otherwise this would write back what another erasure has removed meanwhile.
   */
  async erase(places: readonly RecordPlace[], leftOf: (found: FoundRecord) => ErasableRow | undefined): Promise<void> {
    if (places.length === 0) return;
    const unscoped = this.#db.unscoped('an audit record that names a user can belong to no node');
    let erased: ReturnType<typeof erasedColumns>[] = [];
    const stated = async () => {
      const found = await unscoped.run((k) =>
        k
          .selectFrom('audit_records')
          .select(['at', 'id', 'chain_id', 'chain_index', 'salts', 'erased', ...ERASABLE_COLUMNS])
          .where((eb) => eb.or(places.map(({ at, id }) => eb.and({ at, id })))),
      );
      erased = found.flatMap((row) => {
        const left = leftOf(row);
        return left ? [erasedColumns(row, left)] : [];
      });
      if (erased.length === 0) return undefined;
      const records = erased.map(({ sealed }) => sealed).filter((sealed) => sealed !== undefined);
      return { kind: 'erased', records, unchained: erased.length - records.length } as const;
    };
    await this.#seals.add(stated, async (seal, position) => {
      const rows = erased.map(({ row, seals }) => ({ ...row, erased: seals && [...seals, position] }));
      await unscoped.raw((sql) => sql`select audit_erase(${JSON.stringify(rows)}::json, ${seal}::json)`);
    });
  }
}

/** Returns the row that an erasure stores, without the position of its seal, and what the seal states of it. */
function erasedColumns(found: FoundRecord, left: ErasableRow) {
  const { at, id, chain_id: chain, chain_index: index, salts, erased } = found;
  if (chain === null || salts === null) return { row: { at, id, ...left } };
  const [oldSalts, freshSalts] = [Buffer.from(salts).toString('hex'), newSalts()];
  const [before, after] = [erasableTexts(found), erasableTexts(left)];
  const columns: ErasedRecord['columns'] = {};
  let keptSalts = '';
  for (const [place, name] of ERASABLE_COLUMNS.entries()) {
    const isErased = before[place] !== after[place];
    const [oldSalt, newSalt] = [saltAt(oldSalts, place), saltAt(freshSalts, place)];
    keptSalts += isErased ? newSalt : oldSalt;
    if (!isErased) continue;
    columns[name] = [columnDigest(before[place] ?? null, oldSalt), columnDigest(after[place] ?? null, newSalt)];
  }
  return {
    row: { at, id, ...left, salts: `\\x${keptSalts}` },
    seals: erased ?? [],
    sealed: { chain, index: Number(index), columns },
  };
}
