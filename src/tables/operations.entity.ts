import { defineEntity, p } from '@mikro-orm/core';

/** What a process last reported of itself. It removes its row when it stops; one that was killed leaves it for a day. */
export const Process = defineEntity({
  name: 'Process',
  tableName: 'processes',
  properties: {
    id: p.uuid().primary(),
    role: p.text(),
    version: p.text(),
    host: p.text(),
    state: p.json().$type<ProcessState>(),
    startedAt: p.datetime(6).$type<string>(),
    seenAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
});

/**
 * What a process says of its own: its parts with since when, its audit spool, its accounts near their limit, and digests of
 * the secrets that it must share, of each the current value first.
 */
export interface ProcessState {
  parts: Readonly<Record<string, { state: string; since: string; code?: string | undefined }>>;
  spool: { records: number; bytes: number; share: number };
  accounts_near: number;
  secrets: Readonly<Record<string, readonly string[]>>;
}

/**
 * What an operator has decided about a dead letter, which its topic keeps. The topic has the installation's prefix.
 * Rows of letters that no topic keeps any more are deleted with the next decision.
 */
export const DeadLetterDecision = defineEntity({
  name: 'DeadLetterDecision',
  tableName: 'dead_letter_decisions',
  properties: {
    topic: p.text().primary(),
    partition: p.integer().primary(),
    offset: p.bigint().$type<string>().primary(),
    decision: p.text().$type<'replayed' | 'discarded'>(),
    reason: p.text().nullable(),
    decidedBy: p.text(),
    decidedAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
});

/** A complete verification of the audit: the position of the last seal that it has seen, and how many problems it found. */
export const AuditVerification = defineEntity({
  name: 'AuditVerification',
  tableName: 'audit_verifications',
  properties: {
    at: p.datetime(6).$type<string>().primary().defaultRaw('now()'),
    seal: p.bigint().$type<string>(),
    problems: p.integer(),
  },
});
