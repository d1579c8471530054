import type { AccountPages } from '../accounts/account-pages.service.ts';
import type { Assets } from '../assets/assets.service.ts';
import type { AuditPages } from '../audit/audit-pages.service.ts';
import type { ClientAdministration } from '../clients/client-administration.service.ts';
import type { ClientPages } from '../clients/client-pages.service.ts';
import type { GasFees } from '../gas-fee/gas-fees.service.ts';
import type { PageCursors } from '../lib/keyset.ts';
import type { NetworkAssignments } from '../networks/network-assignments.service.ts';
import type { NetworkPages } from '../networks/network-pages.service.ts';
import type { LoginLocks } from '../oauth/login-locks.ts';
import type { Principal } from '../oauth/principal.ts';
import type { LoggedEvent } from '../realtime/logged-event.ts';
import type { SupervisorAdministration } from '../supervisors/supervisor-administration.service.ts';
import type { SupervisorPages } from '../supervisors/supervisor-pages.service.ts';
import type { TransactionEventPages } from '../transactions/transaction-event-pages.service.ts';
import type { TransactionPages } from '../transactions/transaction-pages.service.ts';
import type { NewTransaction } from '../transactions/transactions.service.ts';
import type { MigrationFiles } from '../user-migrations/migration-files.service.ts';
import type { MigrationPages } from '../user-migrations/migration-pages.service.ts';
import type { ProgressFeeds } from '../user-migrations/progress-feeds.ts';
import type { UserMigrations } from '../user-migrations/user-migrations.service.ts';
import type { UserErasure } from '../users/user-erasure.service.ts';
import type { UserPages } from '../users/user-pages.service.ts';
import type { WalletRulePreviews } from '../wallet-rules/preview.service.ts';
import type { WalletRulePages } from '../wallet-rules/wallet-rule-pages.service.ts';
import type { WalletRules } from '../wallet-rules/wallet-rules.service.ts';
import type { WalletPages } from '../wallets/wallet-pages.service.ts';
import type { SharedPrincipal } from './answer-key.rules.ts';

/** A node's events as they are logged, from a place in the log on. */
export interface EventSource {
  subscribe(options: {
    nodeId: string;
    /** The last number that was seen; 0: everything kept; undefined: only what comes now. */
    after?: bigint | undefined;
    matches: (event: LoggedEvent) => boolean;
    /** Where only the events of one transaction can match. */
    transactionId?: string | undefined;
    /** When the subscriber's token ends, in ms since 1970. */
    expiresAtMs?: number | undefined;
    /** Watches whether it ends before; returns the function that stops watching. */
    watchToken?: ((onEnd: (error?: unknown) => void) => () => void) | undefined;
  }): AsyncIterator<LoggedEvent, undefined> & {
    /** The number after which events are delivered. Rejects where the stream ends before that is known. */
    started: Promise<bigint>;
  };
}

/** What the fields call: the domain, below this adapter. */
export interface GraphqlServices {
  accountPages: AccountPages;
  walletPages: WalletPages;
  walletRulePages: WalletRulePages;
  walletRules: WalletRules;
  walletRulePreviews: WalletRulePreviews;
  networkPages: NetworkPages;
  networkAssignments: NetworkAssignments;
  transactionPages: TransactionPages;
  transactionEventPages: TransactionEventPages;
  transactions: { registerByMutation(transaction: NewTransaction): Promise<'registered' | 'duplicate'> };
  userPages: UserPages;
  userMigrations: Pick<UserMigrations, 'inTurn' | 'migrateOne' | 'migrateMany'>;
  userErasure: Pick<UserErasure, 'erase'>;
  migrationPages: MigrationPages;
  migrationFiles: Pick<MigrationFiles, 'start' | 'cancel' | 'progress'>;
  migrationProgress: Pick<ProgressFeeds, 'follow'>;
  assets: Pick<Assets, 'page' | 'count' | 'byIds'>;
  clientPages: ClientPages;
  clientAdministration: ClientAdministration;
  supervisorPages: SupervisorPages;
  supervisorAdministration: SupervisorAdministration;
  locks: Pick<LoginLocks, 'lockedUntil'>;
  auditPages: AuditPages;
  gasFees: Pick<GasFees, 'list'>;
  streams: EventSource;
  /** Calls back when the token has ended before its time. @returns the function that stops watching. */
  watchAccess(principal: Principal, onEnd: (error?: unknown) => void): () => void;
  cursors: PageCursors;
}

/** What is the own of whoever asked for an operation. */
export interface Asker {
  principal: Principal;
  correlationId: string;
  /** Where the trace of the request goes on, if it has one. */
  traceparent: string | undefined;
  /** The cursor that an SSE client gives when it comes back; it outranks the operation's own. */
  lastEventId: string | undefined;
}

/** One operation. A fresh one for each event of a subscription, whose answer goes to all whose principal is the same here. */
export interface GraphqlContext {
  principal: SharedPrincipal;
  /** Undefined where an event is answered. */
  asker: Asker | undefined;
  services: GraphqlServices;
}

/** Who asked for the operation. @throws Error where an event is answered: others are told the same. */
export function askerOf({ asker }: Pick<GraphqlContext, 'asker'>): Asker {
  if (!asker) throw new Error('the answer to an event goes to many: it has nothing of whoever asked');
  return asker;
}
