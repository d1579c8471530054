import { defineEntity, p } from '@mikro-orm/core';

/** What a tombstone has deleted: no version up to `version` comes back. The place in the log is that of its topic. */
export const ReferenceTombstone = defineEntity({
  name: 'ReferenceTombstone',
  tableName: 'reference_tombstones',
  properties: {
    kind: p.text().primary(),
    id: p.uuid().primary(),
    version: p.bigint().$type<string>(),
    logOffset: p.bigint().$type<string>().nullable(),
    logTimeMs: p.bigint().$type<string>().nullable(),
  },
});

/** A row that waits for its parent, or, with a reason, that its parent has shown to be impossible. */
export const ReferenceParked = defineEntity({
  name: 'ReferenceParked',
  tableName: 'reference_parked',
  properties: {
    kind: p.text().primary(),
    id: p.uuid().primary(),
    version: p.bigint().$type<string>(),
    value: p.json().$type<Record<string, string | number | null>>(),
    waitsForKind: p.text().nullable(),
    waitsForId: p.uuid().nullable(),
    reason: p.text().nullable(),
  },
});
