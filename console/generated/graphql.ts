/* eslint-disable */
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
import type { DocumentTypeDecoration } from '@graphql-typed-document-node/core';
/** Filters accounts; all given members must match. */
export type AccountFilter = {
  /** Whether to include deleted accounts; false by default. */
  includeDeleted?: boolean | null | undefined;
  /** Part of the name, ignoring case. */
  search?: string | null | undefined;
  /** The exact status: 1 active, 2 suspended, 3 closed. */
  status?: number | null | undefined;
  /** The exact type, such as `organisation`. */
  type?: string | null | undefined;
};

/** A kind of what needs a person's decision. */
export type AttentionKind =
  /** Transactions that were reported as done and as failed. Needs transactions:read. */
  | 'CONFLICT'
  /** Transactions that failed within a day, by their error. Needs transactions:read. */
  | 'FAILED'
  /** Supervisors who are locked after wrong passwords. Needs clients:manage. */
  | 'LOCKED'
  /** User migrations of seven days that failed, or of which rows did. Needs users:read. */
  | 'MIGRATION'
  /** Clients that have used 80 % of the requests of the month. Needs clients:manage. */
  | 'QUOTA'
  /** Transactions without a report for an hour, by their status. Needs transactions:read. */
  | 'STUCK';

/** The status of an export. */
export type AuditExportStatus =
  /** Its files were deleted after 24 hours, or replaced by a later export. */
  | 'EXPIRED'
  /** It has no files; `reason` says why. */
  | 'FAILED'
  /** It can be downloaded. */
  | 'READY'
  /** Its records are being written, or have been and are being verified. */
  | 'RUNNING'
  /** Exports of other tenants come first. */
  | 'WAITING';

/** Filters audit records; all given members must match. */
export type AuditFilter = {
  /** The username that a refused sign-in named, whether or not a supervisor has it; compared as sign-ins compare it. At most 1,024 characters. */
  attemptedUsername?: string | null | undefined;
  /** Whether to leave out what anybody read: GET and HEAD requests, and GraphQL operations other than mutations. */
  changesOnly?: boolean | null | undefined;
  /** The client id, whatever the subject: also of requests with a wrong secret of it. */
  clientId?: string | number | null | undefined;
  /** The exact correlation id. */
  correlationId?: string | null | undefined;
  /** Up to 100 correlation ids, of which a record has one: those of the versions of a rule, for example. */
  correlationIds?: Array<string> | null | undefined;
  /** Leave out what this subject read: GET and HEAD requests, and GraphQL operations other than mutations. */
  hideReadsOf?: string | null | undefined;
  /** The exact method, such as `POST`, or `WS`. */
  method?: string | null | undefined;
  /** The exact operation, or one of the root fields of a GraphQL operation. */
  operation?: string | null | undefined;
  /** The exact path. */
  path?: string | null | undefined;
  /** The beginning of the path. */
  pathPrefix?: string | null | undefined;
  /** Received at this time or later. */
  since?: string | null | undefined;
  /** The first digit of the HTTP status: 4 for 400 to 499. */
  statusClass?: number | null | undefined;
  /** The exact HTTP status, such as 404. */
  statusCode?: number | null | undefined;
  /** The exact subject: a supervisor, a client, or `unknown:` and the hash of a name. */
  subject?: string | null | undefined;
  /** Received before this time. */
  until?: string | null | undefined;
};

/** The condition, amount and target of an automatic transfer. */
export type AutoTransferRuleInput = {
  /** The amount to transfer, more than 0. */
  amount: string | number;
  /** A condition {field, op, value, network_currency_id} or a group {and: […]}, {or: […]}, {not: {…}}, at most 8 levels deep and with at most 64 conditions. `op` is one of lt, lte, gt, gte, eq, neq, or another spelling of one. All interfaces share this JSON, so its names are spelt as in REST (`network_currency_id`). */
  ruleLogic: unknown;
  /** The UUID of the target wallet. */
  targetWalletId: string | number;
  /** `auto` or `auto_with_approve`. */
  type: string;
};

/** Whether an automatic transfer waits for approval. */
export type AutoTransferType =
  /** It is made at once. */
  | 'auto'
  /** It waits for approval. */
  | 'auto_with_approve';

/** The value of a field in a currency. */
export type BalanceInput = {
  /** The field's name as in conditions, such as `target.balance`. */
  field: string;
  /** The UUID of the currency. */
  networkCurrencyId: string | number;
  /** Its value, in units of the currency. */
  value: string | number;
};

/** A client. Absent members get their defaults. */
export type ClientInput = {
  /** The IP addresses and CIDR ranges that it may call from; absent or empty means any address. */
  allowedIps?: Array<string> | null | undefined;
  /** The SHA-1, SHA-256, SHA-384 or SHA-512 fingerprint of its client certificate: hexadecimal, with or without colons. */
  certFingerprint?: string | null | undefined;
  /** The grants that it may use: at least one. */
  grantTypes: Array<GrantType>;
  /** Whether it is for signing in to the console only; false by default. Such a client has no secret and no limits, and the grants PASSWORD and REFRESH_TOKEN. It cannot be changed. */
  isConsole?: boolean | null | undefined;
  /** Its quota of requests per calendar month (UTC), at least 1; absent means no limit. */
  monthlyLimit?: number | null | undefined;
  /** The display name: 1 to 255 characters. */
  name: string;
  /** Its rate limits; absent means no limit. */
  rateLimit?: RateLimitInput | null | undefined;
  /** Whether each refresh token works only once; false by default. */
  refreshReuseDetection?: boolean | null | undefined;
  /** Whether it must present a client certificate; false by default. */
  requireCertificate?: boolean | null | undefined;
  /** The permissions of its own tokens, such as `accounts:read`. The caller must have each of them. */
  scopes: Array<string>;
  /** The lifetime of its own tokens; 3600 seconds by default. */
  tokenExpiry?: TokenExpiryInput | null | undefined;
};

/** Whether a client can get and use tokens. */
export type ClientStatus =
  /** It can get tokens. */
  | 'ACTIVE'
  /** Its credentials and tokens are rejected. */
  | 'DISABLED';

/** What another object already has. */
export type DuplicateReason =
  /** The email, compared by its key. */
  | 'duplicate_email'
  /** The external id. */
  | 'duplicate_external_id'
  /** The id. */
  | 'duplicate_id'
  /** The username, compared by its key. */
  | 'duplicate_username'
  /** The wallet address. */
  | 'duplicate_wallet';

/** A way to get a token (RFC 6749). */
export type GrantType =
  /** The client gets a token for itself. */
  | 'CLIENT_CREDENTIALS'
  /** A supervisor logs in through the client. */
  | 'PASSWORD'
  /** Exchanges a refresh token for a new pair. */
  | 'REFRESH_TOKEN';

/** The status of a migration of users. */
export type MigrationStatus =
  /** It was cancelled before its last row; the users that it created are kept. */
  | 'CANCELLED'
  /** Every row has been applied. */
  | 'DONE'
  /** It could not continue; the users that it created are kept. */
  | 'FAILED'
  /** Rows are still being applied. */
  | 'RUNNING';

/** The limit on transfers within a time window. */
export type PermissionlessTransferLimitRuleInput = {
  /** The maximum in the window: a whole number above 0. */
  maxAmount: string | number;
  /** `hour`, `day`, `week`, `month` or `year`. */
  timePeriod: string;
  /** The number of periods in the window, at least 1. */
  timePeriodValue: number;
};

/** The facts to evaluate rules against. */
export type PreviewFacts = {
  /** The time of the evaluation; now by default. The window of a limit ends at this time and excludes its start; months and years are calendar months and years in UTC. */
  at?: string | null | undefined;
  /** The wallet's balances: at most 1000. */
  balances: Array<BalanceInput>;
  /** The wallet's transfers, at most 10000. A limit counts the transfers in its currency within its window; without a list it cannot be evaluated. */
  transfers?: Array<TransferInput> | null | undefined;
};

/** A rule or its id, and the facts to evaluate it against. */
export type PreviewWalletRuleInput = {
  /** The time of the evaluation; now by default. The window of a limit ends at this time and excludes its start; months and years are calendar months and years in UTC. */
  at?: string | null | undefined;
  /** The wallet's balances: at most 1000. */
  balances: Array<BalanceInput>;
  /** The rule. Give either this or `ruleId`. */
  rule?: WalletRuleInput | null | undefined;
  /** The UUID of a stored rule. Give either this or `rule`. */
  ruleId?: string | number | null | undefined;
  /** The wallet's transfers, at most 10000. A limit counts the transfers in its currency within its window; without a list it cannot be evaluated. */
  transfers?: Array<TransferInput> | null | undefined;
  /** With `rule`: the UUID of the wallet that it is for, which the warnings consider. */
  walletId?: string | number | null | undefined;
};

/** The maximum number of requests of a client, in windows aligned to the clock; absent means no limit. */
export type RateLimitInput = {
  /** Requests per hour, at least 1. */
  requestsPerHour?: number | null | undefined;
  /** Requests per minute, at least 1. */
  requestsPerMinute?: number | null | undefined;
  /** Requests per second, at least 1. */
  requestsPerSecond?: number | null | undefined;
};

/** A kind of what a search finds. */
export type SearchKind =
  /** An account: by its id or its beginning, or part of the name. Needs accounts:read. */
  | 'ACCOUNT'
  /** An asset: by its id or its beginning, or part of the name, symbol or contract address. Needs tokens:read. */
  | 'ASSET'
  /** A client: by its id or its beginning, or part of the name. Needs clients:manage. */
  | 'CLIENT'
  /** A user migration: by its id or its beginning. Needs users:read. */
  | 'MIGRATION'
  /** A request of the last seven days: by its exact correlation id. Needs audit:read. */
  | 'REQUEST'
  /** A rule of a wallet: by its id or its beginning, or part of the name. Needs wallet-rules:read. */
  | 'RULE'
  /** A supervisor: by the id or its beginning, or part of the username. Needs clients:manage. */
  | 'SUPERVISOR'
  /** A transaction: by its id or hash, or their beginning. Needs transactions:read. */
  | 'TRANSACTION'
  /** A user: by the id or its beginning, or as `users` searches. Needs users:read. */
  | 'USER'
  /** A wallet: by its id or its beginning. Needs wallets:read. */
  | 'WALLET';

/** The approvals that are required. */
export type SignAndApproveRuleInput = {
  /** The UUID of a user who must approve. */
  mandatoryUserId?: string | number | null | undefined;
  /** The highest priority of an approver, 1 to 100. */
  maxPriority?: number | null | undefined;
  /** The lowest priority of an approver, 1 to 100. */
  minPriority?: number | null | undefined;
  /** The number of approvals required, at least 1. */
  minUserCount?: number | null | undefined;
};

/** A supervisor. */
export type SupervisorInput = {
  /** 8 to 1024 characters after normalisation to NFC. */
  password: string;
  /** `admin`, `operator` or `viewer`. */
  role: string;
  /** The name to log in with, trimmed: 1 to 255 characters; unique within the tenant. Letter case, composition and invisible characters do not count. */
  username: string;
};

/** Whether a supervisor can log in. */
export type SupervisorStatus =
  /** Can log in. */
  | 'ACTIVE'
  /** Cannot log in, and has no session. */
  | 'DISABLED';

/** The period of the window of a limit. */
export type TimePeriod =
  /** 24 hours. */
  | 'day'
  /** 60 minutes. */
  | 'hour'
  /** A calendar month in UTC. */
  | 'month'
  /** Seven days. */
  | 'week'
  /** A calendar year in UTC. */
  | 'year';

/** The lifetime of a client's tokens. */
export type TokenExpiryInput = {
  /** Seconds from the issue of a token to its expiry, at least 1; used if `enabled`. */
  duration: number;
  /** Whether the tokens expire. */
  enabled: boolean;
};

/** The collection of a transaction; it determines the meaning of the type code. */
export type TransactionCollection =
  /** Transactions of currency tokens. */
  | 'CURRENCY_TOKEN_TRANSACTIONS'
  /** Transactions of the tenant (node) itself. */
  | 'NODE_TRANSACTIONS'
  /** Transactions of users over the counter. */
  | 'OTC_TRANSACTIONS'
  /** Transactions of users on the secondary market. */
  | 'SECONDARY_MARKET_TRANSACTIONS'
  /** Transactions of tokenized assets. */
  | 'TOKEN_TRANSACTIONS'
  /** Transactions of users on the primary market. */
  | 'USER_TRANSACTIONS';

/** Filters transactions; all given members must match. */
export type TransactionFilter = {
  /** The collection of the transaction. */
  collection?: TransactionCollection | null | undefined;
  /** Whether both DONE and ERROR were reported. */
  conflict?: boolean | null | undefined;
  /** With exactly this error. */
  error?: string | null | undefined;
  /** Whether the type code is unknown in the collection. */
  flagged?: boolean | null | undefined;
  /** With exactly this id or transaction hash. */
  idOrHash?: string | null | undefined;
  /** With an id or transaction hash that begins with this text. */
  search?: string | null | undefined;
  /** With this status. */
  status?: TransactionStatus | null | undefined;
  /** With this type code. */
  type?: number | null | undefined;
  /** Last updated at or after this time, by the clock of the chain processor. */
  updatedSince?: string | null | undefined;
  /** Last updated before this time, by the same clock. */
  updatedUntil?: string | null | undefined;
};

/** The status of a transaction. */
export type TransactionStatus =
  /** It is confirmed on the chain. Final. */
  | 'DONE'
  /** It failed. Final. */
  | 'ERROR'
  /** The chain processor is preparing or signing it. */
  | 'IN_PROGRESS'
  /** It was broadcast and waits for its receipt. */
  | 'PENDING_RECEIPT'
  /** The chain processor has queued it. */
  | 'STARTED';

/** A past or planned transfer. */
export type TransferInput = {
  /** The amount, at least 0. */
  amount: string | number;
  /** When it was or will be made. */
  at: string;
  /** The UUID of the currency. */
  networkCurrencyId: string | number;
};

/** Filters users; all given members must match. */
export type UserFilter = {
  /** Whether the user is verified. */
  kycVerified?: boolean | null | undefined;
  /** Part of the name, surname, email, external id or address, ignoring case. */
  search?: string | null | undefined;
};

/** A rule. The object of its type is required; the object of the other type is stored but not evaluated. */
export type WalletRuleInput = {
  /** The automatic transfer. */
  autoTransferRule?: AutoTransferRuleInput | null | undefined;
  /** The display name. */
  name: string;
  /** The UUID of the currency that it applies to. */
  networkCurrencyId: string | number;
  /** The UUID of the network that it applies to. */
  networkId: string | number;
  /** The limit on transfers. */
  permissionlessTransferLimitRule?: PermissionlessTransferLimitRuleInput | null | undefined;
  /** The priority, 1 to 100; stored as sent. */
  priority?: number | null | undefined;
  /** The approvals that are required. */
  signAndApproveRule?: SignAndApproveRuleInput | null | undefined;
  /** `auto_transfer` or `permissionless_transfer_limit`. */
  type: string;
};

/** Whether a rule can fire. */
export type WalletRuleStatus =
  /** It fires when its conditions are true. */
  | 'ACTIVE'
  /** It is stored but never fires. */
  | 'DISABLED';

export type AccountsQueryVariables = Exact<{
  filter?: AccountFilter | null | undefined;
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type AccountsQuery = { accounts: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, name: string, type: string, status: number, createdAt: string, deletedAt: string | null } }> } };

export type AccountWalletsQueryVariables = Exact<{
  id: string | number;
  withWallets: boolean;
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type AccountWalletsQuery = { account: { id: string, name: string, type: string, status: number, createdAt: string, updatedAt: string, deletedAt: string | null, wallets?: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, chain: string, createdAt: string } }> } } | null };

export type AuditRecordsQueryVariables = Exact<{
  filter?: AuditFilter | null | undefined;
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type AuditRecordsQuery = { auditRecords: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, at: string, correlationId: string, method: string, path: string, query: string | null, statusCode: number, elapsed: number, headers: unknown, remoteAddress: string, realIp: string, requestBody: string | null, responseBody: string | null, isApi: boolean, subject: string | null, clientId: string | null, operation: string | null } }> } };

export type ExportPartsFragment = { id: string, status: AuditExportStatus, asked: unknown, records: number, total: number | null, bytes: number, problems: number | null, reason: string | null, requestedBy: string, createdAt: string, expiresAt: string | null, downloadPath: string | null };

export type AuditExportsQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type AuditExportsQuery = { auditExports: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, status: AuditExportStatus, asked: unknown, records: number, total: number | null, bytes: number, problems: number | null, reason: string | null, requestedBy: string, createdAt: string, expiresAt: string | null, downloadPath: string | null } }> } };

export type RequestAuditExportMutationVariables = Exact<{
  filter: AuditFilter;
}>;


export type RequestAuditExportMutation = { result:
    | { id: string }
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'PreconditionError', message: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type ClientPartsFragment = { id: string, name: string, grantTypes: Array<GrantType>, scopes: Array<string>, allowedIps: Array<string>, requireCertificate: boolean, certFingerprint: string | null, monthlyLimit: number | null, refreshReuseDetection: boolean, isConsole: boolean, status: ClientStatus, lastUsedAt: string | null, createdAt: string, previousSecretExpiresAt: string | null, tokenExpiry: { enabled: boolean, duration: number } | null, rateLimit: { requestsPerSecond: number | null, requestsPerMinute: number | null, requestsPerHour: number | null } | null };

export type ClientsQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type ClientsQuery = { list: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, name: string, grantTypes: Array<GrantType>, scopes: Array<string>, allowedIps: Array<string>, requireCertificate: boolean, certFingerprint: string | null, monthlyLimit: number | null, refreshReuseDetection: boolean, isConsole: boolean, status: ClientStatus, lastUsedAt: string | null, createdAt: string, previousSecretExpiresAt: string | null, tokenExpiry: { enabled: boolean, duration: number } | null, rateLimit: { requestsPerSecond: number | null, requestsPerMinute: number | null, requestsPerHour: number | null } | null } }> } };

export type CreateClientMutationVariables = Exact<{
  input: ClientInput;
}>;


export type CreateClientMutation = { result:
    | { clientSecret: string, client: { id: string, name: string, grantTypes: Array<GrantType>, scopes: Array<string>, allowedIps: Array<string>, requireCertificate: boolean, certFingerprint: string | null, monthlyLimit: number | null, refreshReuseDetection: boolean, isConsole: boolean, status: ClientStatus, lastUsedAt: string | null, createdAt: string, previousSecretExpiresAt: string | null, tokenExpiry: { enabled: boolean, duration: number } | null, rateLimit: { requestsPerSecond: number | null, requestsPerMinute: number | null, requestsPerHour: number | null } | null } }
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type UpdateClientMutationVariables = Exact<{
  id: string | number;
  input: ClientInput;
}>;


export type UpdateClientMutation = { result:
    | { id: string, name: string, grantTypes: Array<GrantType>, scopes: Array<string>, allowedIps: Array<string>, requireCertificate: boolean, certFingerprint: string | null, monthlyLimit: number | null, refreshReuseDetection: boolean, isConsole: boolean, status: ClientStatus, lastUsedAt: string | null, createdAt: string, previousSecretExpiresAt: string | null, tokenExpiry: { enabled: boolean, duration: number } | null, rateLimit: { requestsPerSecond: number | null, requestsPerMinute: number | null, requestsPerHour: number | null } | null }
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type RotateClientSecretMutationVariables = Exact<{
  id: string | number;
  overlapSeconds?: number | null | undefined;
}>;


export type RotateClientSecretMutation = { result:
    | { clientSecret: string, client: { id: string, name: string, grantTypes: Array<GrantType>, scopes: Array<string>, allowedIps: Array<string>, requireCertificate: boolean, certFingerprint: string | null, monthlyLimit: number | null, refreshReuseDetection: boolean, isConsole: boolean, status: ClientStatus, lastUsedAt: string | null, createdAt: string, previousSecretExpiresAt: string | null, tokenExpiry: { enabled: boolean, duration: number } | null, rateLimit: { requestsPerSecond: number | null, requestsPerMinute: number | null, requestsPerHour: number | null } | null } }
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type SetClientStatusMutationVariables = Exact<{
  id: string | number;
  status: ClientStatus;
}>;


export type SetClientStatusMutation = { result:
    | { id: string, name: string, grantTypes: Array<GrantType>, scopes: Array<string>, allowedIps: Array<string>, requireCertificate: boolean, certFingerprint: string | null, monthlyLimit: number | null, refreshReuseDetection: boolean, isConsole: boolean, status: ClientStatus, lastUsedAt: string | null, createdAt: string, previousSecretExpiresAt: string | null, tokenExpiry: { enabled: boolean, duration: number } | null, rateLimit: { requestsPerSecond: number | null, requestsPerMinute: number | null, requestsPerHour: number | null } | null }
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type MigrationPartsFragment = { id: string, status: MigrationStatus, total: number, success: number, skipped: number, failed: number, dryRun: boolean, fileName: string | null, createdBy: string, createdAt: string, finishedAt: string | null };

export type RowsPageFragment = { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { index: number, email: string | null, externalId: string | null, userId: string | null, status: string, reason: string | null, warning: string | null } }> };

export type MigrationsQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type MigrationsQuery = { migrations: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, status: MigrationStatus, total: number, success: number, skipped: number, failed: number, dryRun: boolean, fileName: string | null, createdBy: string, createdAt: string, finishedAt: string | null } }> } };

export type MigrationRowsQueryVariables = Exact<{
  id: string | number;
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type MigrationRowsQuery = { migration: { id: string, status: MigrationStatus, total: number, success: number, skipped: number, failed: number, dryRun: boolean, fileName: string | null, createdBy: string, createdAt: string, finishedAt: string | null, list: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { index: number, email: string | null, externalId: string | null, userId: string | null, status: string, reason: string | null, warning: string | null } }> } } | null };

export type RejectedRowsQueryVariables = Exact<{
  id: string | number;
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type RejectedRowsQuery = { migration: { id: string, status: MigrationStatus, total: number, success: number, skipped: number, failed: number, dryRun: boolean, fileName: string | null, createdBy: string, createdAt: string, finishedAt: string | null, list: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { index: number, email: string | null, externalId: string | null, userId: string | null, status: string, reason: string | null, warning: string | null } }> } } | null };

export type StartUserMigrationMutationVariables = Exact<{
  file: null;
  dryRun?: boolean | null | undefined;
  name?: string | null | undefined;
}>;


export type StartUserMigrationMutation = { result:
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { id: string, dryRun: boolean }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'PreconditionError', message: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type CancelUserMigrationMutationVariables = Exact<{
  id: string | number;
}>;


export type CancelUserMigrationMutation = { result:
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { id: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'PreconditionError', message: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type TransactionStatsQueryVariables = Exact<{
  since: string;
  until: string;
}>;


export type TransactionStatsQuery = { transactionStats: Array<{ at: string, status: TransactionStatus, count: number }> };

export type GroupPartsFragment = { id: string, kind: AttentionKind, reason: string | null, count: number, since: string, ids: Array<string>, marking: string, seen: { seenBy: string, seenAt: string, note: string | null } | null };

export type MarkSeenMutationVariables = Exact<{
  kind: AttentionKind;
  id: string | number;
  seen: boolean;
  note?: string | null | undefined;
}>;


export type MarkSeenMutation = { result:
    | { id: string }
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'PreconditionError', message: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type AttentionQueryVariables = Exact<{
  rulesSince: string;
  withRules: boolean;
  withTransactions: boolean;
}>;


export type AttentionQuery = { flagged?: { totalCountAtLeast: number }, needsAttention: Array<{ id: string, kind: AttentionKind, reason: string | null, count: number, since: string, ids: Array<string>, marking: string, seen: { seenBy: string, seenAt: string, note: string | null } | null }>, walletRules?: { edges: Array<{ node: { id: string, walletId: string, name: string, version: number, updatedAt: string, versions: { edges: Array<{ node: { subject: string } }> } } }> } };

export type WalletsQueryVariables = Exact<{
  search?: string | null | undefined;
}>;


export type WalletsQuery = { accounts: { edges: Array<{ node: { id: string, name: string, wallets: { edges: Array<{ node: { id: string, chain: string } }> } } }> } };

export type WalletQueryVariables = Exact<{
  id: string | number;
}>;


export type WalletQuery = { wallet: { id: string, chain: string, account: { name: string } } | null };

export type CurrenciesQueryVariables = Exact<{
  after?: string | null | undefined;
}>;


export type CurrenciesQuery = { networkCurrencies: { pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, symbol: string, name: string | null, networkId: string } }> }, networks: { edges: Array<{ node: { id: string, name: string, chain: string } }> } };

export type FindActorsQueryVariables = Exact<{ [key: string]: never; }>;


export type FindActorsQuery = { supervisors: { edges: Array<{ node: { id: string, username: string } }> }, clients: { edges: Array<{ node: { id: string, name: string } }> } };

export type ChangeOwnPasswordMutationVariables = Exact<{
  current: string;
  new: string;
}>;


export type ChangeOwnPasswordMutation = { result:
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { id: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type EndOwnSessionsMutationVariables = Exact<{ [key: string]: never; }>;


export type EndOwnSessionsMutation = { result:
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { id: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type NetworksQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type NetworksQuery = { networks: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, name: string, chain: string, explorerUrl: string | null } }> } };

export type AssetsQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type AssetsQuery = { assets: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, name: string, symbol: string, type: string, status: string, networkId: string, contractAddress: string | null, createdAt: string } }> } };

export type AssetQueryVariables = Exact<{
  id: string | number;
  withTransactions: boolean;
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type AssetQuery = { asset: { id: string, name: string, symbol: string, type: string, status: string, networkId: string, contractAddress: string | null, createdAt: string, transactions?: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, collection: TransactionCollection, type: number, typeName: string | null, typeFlagged: boolean, status: TransactionStatus | null, transactionHash: string, contractAddress: string, gasUsed: string, error: string | null, conflict: boolean, createdAt: string | null, updatedAt: string | null } }> } } | null };

export type FeesQueryVariables = Exact<{ [key: string]: never; }>;


export type FeesQuery = { gasFees: Array<{ networkId: string, gasPrice: string | null, updatedAt: string | null, error: string | null, priorityFee: { slow: string, standard: string, fast: string } | null }> };

export type RulePartsFragment = { id: string, walletId: string, name: string, type: string, networkId: string, networkCurrencyId: string, priority: number | null, status: WalletRuleStatus, version: number, createdAt: string, updatedAt: string, autoTransferRule: { type: AutoTransferType, ruleLogic: unknown, amount: string, targetWalletId: string } | null, signAndApproveRule: { mandatoryUserId: string | null, minPriority: number | null, maxPriority: number | null, minUserCount: number | null } | null, permissionlessTransferLimitRule: { maxAmount: string, timePeriod: TimePeriod, timePeriodValue: number } | null };

export type WalletPartsQueryVariables = Exact<{
  id: string | number;
  withAccount: boolean;
}>;


export type WalletPartsQuery = { wallet: { id: string, chain: string, createdAt: string, account?: { id: string, name: string }, networks: { totalCount: number, edges: Array<{ node: { id: string, name: string } }> }, rules: { totalCount: number } } | null };

export type RulesQueryVariables = Exact<{
  walletId?: string | number | null | undefined;
  type?: string | null | undefined;
  changedSince?: string | null | undefined;
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type RulesQuery = { walletRules: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, walletId: string, name: string, type: string, priority: number | null, status: WalletRuleStatus, version: number, updatedAt: string, versions: { edges: Array<{ node: { subject: string } }> } } }> } };

export type WalletRuleQueryVariables = Exact<{
  id: string | number;
}>;


export type WalletRuleQuery = { walletRule: { id: string, walletId: string, name: string, type: string, networkId: string, networkCurrencyId: string, priority: number | null, status: WalletRuleStatus, version: number, createdAt: string, updatedAt: string, autoTransferRule: { type: AutoTransferType, ruleLogic: unknown, amount: string, targetWalletId: string } | null, signAndApproveRule: { mandatoryUserId: string | null, minPriority: number | null, maxPriority: number | null, minUserCount: number | null } | null, permissionlessTransferLimitRule: { maxAmount: string, timePeriod: TimePeriod, timePeriodValue: number } | null } | null };

export type RuleVersionsQueryVariables = Exact<{
  ruleId: string | number;
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type RuleVersionsQuery = { walletRuleVersions: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { version: number, rule: unknown, status: WalletRuleStatus, deleted: boolean, subject: string, clientId: string | null, correlationId: string | null, reason: string | null, at: string } }> } };

export type PreviewWalletRuleQueryVariables = Exact<{
  input: PreviewWalletRuleInput;
}>;


export type PreviewWalletRuleQuery = { previewWalletRule: { fires: boolean, explanation: Array<{ path: string, field: string, op: string, expected: string | null, actual: string | null, result: boolean, reason: string | null }>, warnings: Array<{ path: string, message: string }> } };

export type PreviewWalletQueryVariables = Exact<{
  walletId: string | number;
  facts: PreviewFacts;
}>;


export type PreviewWalletQuery = { previewWallet: { rules: Array<{ ruleId: string, name: string, fires: boolean, unmet: { path: string, field: string, op: string, expected: string | null, actual: string | null, result: boolean, reason: string | null } | null }> } };

export type WalletConditionsQueryVariables = Exact<{
  walletId: string | number;
}>;


export type WalletConditionsQuery = { walletRules: { edges: Array<{ node: { status: WalletRuleStatus, autoTransferRule: { ruleLogic: unknown } | null } }> } };

export type CreateWalletRuleMutationVariables = Exact<{
  walletId: string | number;
  input: WalletRuleInput;
}>;


export type CreateWalletRuleMutation = { result:
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
    | { id: string, walletId: string, name: string, type: string, networkId: string, networkCurrencyId: string, priority: number | null, status: WalletRuleStatus, version: number, createdAt: string, updatedAt: string, autoTransferRule: { type: AutoTransferType, ruleLogic: unknown, amount: string, targetWalletId: string } | null, signAndApproveRule: { mandatoryUserId: string | null, minPriority: number | null, maxPriority: number | null, minUserCount: number | null } | null, permissionlessTransferLimitRule: { maxAmount: string, timePeriod: TimePeriod, timePeriodValue: number } | null }
   };

export type ReplaceWalletRuleMutationVariables = Exact<{
  walletId: string | number;
  id: string | number;
  input: WalletRuleInput;
  ifVersion?: number | null | undefined;
  reason?: string | null | undefined;
}>;


export type ReplaceWalletRuleMutation = { result:
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'PreconditionError', message: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
    | { id: string, walletId: string, name: string, type: string, networkId: string, networkCurrencyId: string, priority: number | null, status: WalletRuleStatus, version: number, createdAt: string, updatedAt: string, autoTransferRule: { type: AutoTransferType, ruleLogic: unknown, amount: string, targetWalletId: string } | null, signAndApproveRule: { mandatoryUserId: string | null, minPriority: number | null, maxPriority: number | null, minUserCount: number | null } | null, permissionlessTransferLimitRule: { maxAmount: string, timePeriod: TimePeriod, timePeriodValue: number } | null }
   };

export type SetWalletRuleStatusMutationVariables = Exact<{
  id: string | number;
  status: WalletRuleStatus;
  ifVersion?: number | null | undefined;
}>;


export type SetWalletRuleStatusMutation = { result:
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'PreconditionError', message: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
    | { id: string, walletId: string, name: string, type: string, networkId: string, networkCurrencyId: string, priority: number | null, status: WalletRuleStatus, version: number, createdAt: string, updatedAt: string, autoTransferRule: { type: AutoTransferType, ruleLogic: unknown, amount: string, targetWalletId: string } | null, signAndApproveRule: { mandatoryUserId: string | null, minPriority: number | null, maxPriority: number | null, minUserCount: number | null } | null, permissionlessTransferLimitRule: { maxAmount: string, timePeriod: TimePeriod, timePeriodValue: number } | null }
   };

export type SearchQueryVariables = Exact<{
  search: string;
}>;


export type SearchQuery = { search: Array<{ kind: SearchKind, id: string, title: string, within: string | null }> };

type Failure_DuplicateError_Fragment = { __typename: 'DuplicateError', reason: DuplicateReason, message: string };

type Failure_ForbiddenError_Fragment = { __typename: 'ForbiddenError', permission: string, message: string };

type Failure_NotFoundError_Fragment = { __typename: 'NotFoundError', message: string };

type Failure_PreconditionError_Fragment = { __typename: 'PreconditionError', message: string };

type Failure_ValidationError_Fragment = { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> };

export type FailureFragment =
  | Failure_DuplicateError_Fragment
  | Failure_ForbiddenError_Fragment
  | Failure_NotFoundError_Fragment
  | Failure_PreconditionError_Fragment
  | Failure_ValidationError_Fragment
;

export type PagePartsFragment = { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null };

export type ActivityPageFragment = { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, at: string, isNew: boolean, changes: unknown, subject: string | null, clientId: string | null, correlationId: string | null } }> };

export type ActivityQueryVariables = Exact<{
  id: string | number;
  client?: boolean | null | undefined;
  supervisor?: boolean | null | undefined;
  user?: boolean | null | undefined;
  wallet?: boolean | null | undefined;
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type ActivityQuery = { client?: { activity: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, at: string, isNew: boolean, changes: unknown, subject: string | null, clientId: string | null, correlationId: string | null } }> } } | null, supervisor?: { activity: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, at: string, isNew: boolean, changes: unknown, subject: string | null, clientId: string | null, correlationId: string | null } }> } } | null, user?: { activity: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, at: string, isNew: boolean, changes: unknown, subject: string | null, clientId: string | null, correlationId: string | null } }> } } | null, wallet?: { activity: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, at: string, isNew: boolean, changes: unknown, subject: string | null, clientId: string | null, correlationId: string | null } }> } } | null };

export type ViewerQueryVariables = Exact<{ [key: string]: never; }>;


export type ViewerQuery = { me: { nodeId: string, tenantName: string | null, clientId: string | null, subject: string, username: string | null, tokenUse: string, permissions: Array<string> } };

export type SupervisorPartsFragment = { id: string, username: string, role: string, status: SupervisorStatus, lockedUntil: string | null, createdAt: string };

export type SupervisorsQueryVariables = Exact<{
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type SupervisorsQuery = { list: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, username: string, role: string, status: SupervisorStatus, lockedUntil: string | null, createdAt: string } }> } };

export type CreateSupervisorMutationVariables = Exact<{
  input: SupervisorInput;
}>;


export type CreateSupervisorMutation = { result:
    | { __typename: 'DuplicateError', reason: DuplicateReason, message: string }
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { id: string, username: string, role: string, status: SupervisorStatus, lockedUntil: string | null, createdAt: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type SetSupervisorRoleMutationVariables = Exact<{
  id: string | number;
  role: string;
}>;


export type SetSupervisorRoleMutation = { result:
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'PreconditionError', message: string }
    | { id: string, username: string, role: string, status: SupervisorStatus, lockedUntil: string | null, createdAt: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type SetSupervisorPasswordMutationVariables = Exact<{
  id: string | number;
  password: string;
}>;


export type SetSupervisorPasswordMutation = { result:
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'PreconditionError', message: string }
    | { id: string, username: string, role: string, status: SupervisorStatus, lockedUntil: string | null, createdAt: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type UnlockSupervisorMutationVariables = Exact<{
  id: string | number;
}>;


export type UnlockSupervisorMutation = { result:
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'PreconditionError', message: string }
    | { id: string, username: string, role: string, status: SupervisorStatus, lockedUntil: string | null, createdAt: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type SetSupervisorStatusMutationVariables = Exact<{
  id: string | number;
  status: SupervisorStatus;
}>;


export type SetSupervisorStatusMutation = { result:
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'PreconditionError', message: string }
    | { id: string, username: string, role: string, status: SupervisorStatus, lockedUntil: string | null, createdAt: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type RevokeSessionsMutationVariables = Exact<{
  id: string | number;
}>;


export type RevokeSessionsMutation = { result:
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'PreconditionError', message: string }
    | { id: string, username: string, role: string, status: SupervisorStatus, lockedUntil: string | null, createdAt: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type TransactionPartsFragment = { id: string, collection: TransactionCollection, type: number, typeName: string | null, typeFlagged: boolean, status: TransactionStatus | null, transactionHash: string, contractAddress: string, gasUsed: string, error: string | null, conflict: boolean, createdAt: string | null, updatedAt: string | null };

export type TransactionsQueryVariables = Exact<{
  filter?: TransactionFilter | null | undefined;
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type TransactionsQuery = { transactions: { pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, collection: TransactionCollection, type: number, typeName: string | null, typeFlagged: boolean, status: TransactionStatus | null, transactionHash: string, contractAddress: string, gasUsed: string, error: string | null, conflict: boolean, createdAt: string | null, updatedAt: string | null } }> } };

export type TransactionCountsQueryVariables = Exact<{
  STARTED: TransactionFilter;
  IN_PROGRESS: TransactionFilter;
  PENDING_RECEIPT: TransactionFilter;
  DONE: TransactionFilter;
  ERROR: TransactionFilter;
  CONFLICT: TransactionFilter;
  FLAGGED: TransactionFilter;
  STUCK_STARTED: TransactionFilter;
  STUCK_IN_PROGRESS: TransactionFilter;
  STUCK_PENDING_RECEIPT: TransactionFilter;
}>;


export type TransactionCountsQuery = { STARTED: { totalCount: number | null }, IN_PROGRESS: { totalCount: number | null }, PENDING_RECEIPT: { totalCount: number | null }, DONE: { totalCount: number | null }, ERROR: { totalCount: number | null }, CONFLICT: { totalCount: number | null }, FLAGGED: { totalCount: number | null }, STUCK_STARTED: { totalCount: number | null }, STUCK_IN_PROGRESS: { totalCount: number | null }, STUCK_PENDING_RECEIPT: { totalCount: number | null } };

export type TransactionQueryVariables = Exact<{
  id: string | number;
  withAsset: boolean;
}>;


export type TransactionQuery = { transaction: { id: string, collection: TransactionCollection, type: number, typeName: string | null, typeFlagged: boolean, status: TransactionStatus | null, transactionHash: string, contractAddress: string, gasUsed: string, error: string | null, conflict: boolean, createdAt: string | null, updatedAt: string | null, asset?: { id: string, name: string, networkId: string } | null, events: { totalCount: number, pageInfo: { hasPreviousPage: boolean }, edges: Array<{ node: { cursor: string, status: TransactionStatus, previousStatus: TransactionStatus | null, error: string | null, correlationId: string | null, occurredAt: string } }> } } | null };

export type UpdatesSubscriptionVariables = Exact<{
  filter?: TransactionFilter | null | undefined;
  after?: string | null | undefined;
}>;


export type UpdatesSubscription = { transactionUpdates: { cursor: string, transaction: { id: string, collection: TransactionCollection, type: number, typeName: string | null, typeFlagged: boolean, status: TransactionStatus | null, transactionHash: string, contractAddress: string, gasUsed: string, error: string | null, conflict: boolean, createdAt: string | null, updatedAt: string | null } } };

export type UserPartsFragment = { id: string, externalId: string | null, name: string, surname: string, email: string, address: string, createdAt: string, erasedAt: string | null, kyc: { tokenSentAt: string | null } | null, erasure: { records: number, responses: number, by: string | null, migrations: Array<string> | null, seal: { body: string, signature: string | null } | null } | null };

export type UsersQueryVariables = Exact<{
  filter?: UserFilter | null | undefined;
  first?: number | null | undefined;
  after?: string | null | undefined;
  last?: number | null | undefined;
  before?: string | null | undefined;
}>;


export type UsersQuery = { users: { totalCount: number, pageInfo: { hasNextPage: boolean, hasPreviousPage: boolean, startCursor: string | null, endCursor: string | null }, edges: Array<{ node: { id: string, externalId: string | null, name: string, surname: string, email: string, address: string, createdAt: string, erasedAt: string | null, kyc: { tokenSentAt: string | null } | null, erasure: { records: number, responses: number, by: string | null, migrations: Array<string> | null, seal: { body: string, signature: string | null } | null } | null } }> } };

export type UserQueryVariables = Exact<{
  id: string | number;
}>;


export type UserQuery = { user: { id: string, externalId: string | null, name: string, surname: string, email: string, address: string, createdAt: string, erasedAt: string | null, kyc: { tokenSentAt: string | null } | null, erasure: { records: number, responses: number, by: string | null, migrations: Array<string> | null, seal: { body: string, signature: string | null } | null } | null } | null };

export type EraseUserMutationVariables = Exact<{
  id: string | number;
}>;


export type EraseUserMutation = { result:
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { id: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
   };

export type AssignNetworkMutationVariables = Exact<{
  walletId: string | number;
  networkId: string | number;
}>;


export type AssignNetworkMutation = { result:
    | { __typename: 'ForbiddenError', permission: string, message: string }
    | { __typename: 'NotFoundError', message: string }
    | { __typename: 'ValidationError', message: string, issues: Array<{ path: Array<string>, message: string }> }
    | { id: string }
   };

export class TypedDocumentString<TResult, TVariables>
  extends String
  implements DocumentTypeDecoration<TResult, TVariables>
{
  __apiType?: NonNullable<DocumentTypeDecoration<TResult, TVariables>['__apiType']>;
  private value: string;
  public __meta__?: Record<string, any> | undefined;

  constructor(value: string, __meta__?: Record<string, any> | undefined) {
    super(value);
    this.value = value;
    this.__meta__ = __meta__;
  }

  override toString(): string & DocumentTypeDecoration<TResult, TVariables> {
    return this.value;
  }
}
export const ExportPartsFragmentDoc = new TypedDocumentString(`
    fragment ExportParts on AuditExport {
  id
  status
  asked
  records
  total
  bytes
  problems
  reason
  requestedBy
  createdAt
  expiresAt
  downloadPath
}
    `, {"fragmentName":"ExportParts"}) as unknown as TypedDocumentString<ExportPartsFragment, unknown>;
export const ClientPartsFragmentDoc = new TypedDocumentString(`
    fragment ClientParts on Client {
  id
  name
  grantTypes
  scopes
  tokenExpiry {
    enabled
    duration
  }
  allowedIps
  requireCertificate
  certFingerprint
  rateLimit {
    requestsPerSecond
    requestsPerMinute
    requestsPerHour
  }
  monthlyLimit
  refreshReuseDetection
  isConsole
  status
  lastUsedAt
  createdAt
  previousSecretExpiresAt
}
    `, {"fragmentName":"ClientParts"}) as unknown as TypedDocumentString<ClientPartsFragment, unknown>;
export const MigrationPartsFragmentDoc = new TypedDocumentString(`
    fragment MigrationParts on Migration {
  id
  status
  total
  success
  skipped
  failed
  dryRun
  fileName
  createdBy
  createdAt
  finishedAt
}
    `, {"fragmentName":"MigrationParts"}) as unknown as TypedDocumentString<MigrationPartsFragment, unknown>;
export const PagePartsFragmentDoc = new TypedDocumentString(`
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}
    `, {"fragmentName":"PageParts"}) as unknown as TypedDocumentString<PagePartsFragment, unknown>;
export const RowsPageFragmentDoc = new TypedDocumentString(`
    fragment RowsPage on MigrationRowConnection {
  totalCount
  pageInfo {
    ...PageParts
  }
  edges {
    node {
      index
      email
      externalId
      userId
      status
      reason
      warning
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`, {"fragmentName":"RowsPage"}) as unknown as TypedDocumentString<RowsPageFragment, unknown>;
export const GroupPartsFragmentDoc = new TypedDocumentString(`
    fragment GroupParts on Attention {
  id
  kind
  reason
  count
  since
  ids
  marking
  seen {
    seenBy
    seenAt
    note
  }
}
    `, {"fragmentName":"GroupParts"}) as unknown as TypedDocumentString<GroupPartsFragment, unknown>;
export const RulePartsFragmentDoc = new TypedDocumentString(`
    fragment RuleParts on WalletRule {
  id
  walletId
  name
  type
  networkId
  networkCurrencyId
  priority
  status
  version
  createdAt
  updatedAt
  autoTransferRule {
    type
    ruleLogic
    amount
    targetWalletId
  }
  signAndApproveRule {
    mandatoryUserId
    minPriority
    maxPriority
    minUserCount
  }
  permissionlessTransferLimitRule {
    maxAmount
    timePeriod
    timePeriodValue
  }
}
    `, {"fragmentName":"RuleParts"}) as unknown as TypedDocumentString<RulePartsFragment, unknown>;
export const FailureFragmentDoc = new TypedDocumentString(`
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}
    `, {"fragmentName":"Failure"}) as unknown as TypedDocumentString<FailureFragment, unknown>;
export const ActivityPageFragmentDoc = new TypedDocumentString(`
    fragment ActivityPage on ActivityConnection {
  totalCount
  pageInfo {
    ...PageParts
  }
  edges {
    node {
      id
      at
      isNew
      changes
      subject
      clientId
      correlationId
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`, {"fragmentName":"ActivityPage"}) as unknown as TypedDocumentString<ActivityPageFragment, unknown>;
export const SupervisorPartsFragmentDoc = new TypedDocumentString(`
    fragment SupervisorParts on Supervisor {
  id
  username
  role
  status
  lockedUntil
  createdAt
}
    `, {"fragmentName":"SupervisorParts"}) as unknown as TypedDocumentString<SupervisorPartsFragment, unknown>;
export const TransactionPartsFragmentDoc = new TypedDocumentString(`
    fragment TransactionParts on Transaction {
  id
  collection
  type
  typeName
  typeFlagged
  status
  transactionHash
  contractAddress
  gasUsed
  error
  conflict
  createdAt
  updatedAt
}
    `, {"fragmentName":"TransactionParts"}) as unknown as TypedDocumentString<TransactionPartsFragment, unknown>;
export const UserPartsFragmentDoc = new TypedDocumentString(`
    fragment UserParts on User {
  id
  externalId
  name
  surname
  email
  address
  kyc {
    tokenSentAt
  }
  createdAt
  erasedAt
  erasure {
    records
    responses
    by
    migrations
    seal {
      body
      signature
    }
  }
}
    `, {"fragmentName":"UserParts"}) as unknown as TypedDocumentString<UserPartsFragment, unknown>;
export const AccountsDocument = new TypedDocumentString(`
    query Accounts($filter: AccountFilter, $first: Int, $after: String, $last: Int, $before: String) {
  accounts(
    filter: $filter
    first: $first
    after: $after
    last: $last
    before: $before
  ) {
    totalCount
    pageInfo {
      ...PageParts
    }
    edges {
      node {
        id
        name
        type
        status
        createdAt
        deletedAt
      }
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`) as unknown as TypedDocumentString<AccountsQuery, AccountsQueryVariables>;
export const AccountWalletsDocument = new TypedDocumentString(`
    query AccountWallets($id: ID!, $withWallets: Boolean!, $first: Int, $after: String, $last: Int, $before: String) {
  account(id: $id) {
    id
    name
    type
    status
    createdAt
    updatedAt
    deletedAt
    wallets(first: $first, after: $after, last: $last, before: $before) @include(if: $withWallets) {
      totalCount
      pageInfo {
        ...PageParts
      }
      edges {
        node {
          id
          chain
          createdAt
        }
      }
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`) as unknown as TypedDocumentString<AccountWalletsQuery, AccountWalletsQueryVariables>;
export const AuditRecordsDocument = new TypedDocumentString(`
    query AuditRecords($filter: AuditFilter, $first: Int, $after: String, $last: Int, $before: String) {
  auditRecords(
    filter: $filter
    first: $first
    after: $after
    last: $last
    before: $before
  ) {
    totalCount
    pageInfo {
      ...PageParts
    }
    edges {
      node {
        id
        at
        correlationId
        method
        path
        query
        statusCode
        elapsed
        headers
        remoteAddress
        realIp
        requestBody
        responseBody
        isApi
        subject
        clientId
        operation
      }
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`) as unknown as TypedDocumentString<AuditRecordsQuery, AuditRecordsQueryVariables>;
export const AuditExportsDocument = new TypedDocumentString(`
    query AuditExports($first: Int, $after: String, $last: Int, $before: String) {
  auditExports(first: $first, after: $after, last: $last, before: $before) {
    totalCount
    pageInfo {
      ...PageParts
    }
    edges {
      node {
        ...ExportParts
      }
    }
  }
}
    fragment ExportParts on AuditExport {
  id
  status
  asked
  records
  total
  bytes
  problems
  reason
  requestedBy
  createdAt
  expiresAt
  downloadPath
}
fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`) as unknown as TypedDocumentString<AuditExportsQuery, AuditExportsQueryVariables>;
export const RequestAuditExportDocument = new TypedDocumentString(`
    mutation RequestAuditExport($filter: AuditFilter!) {
  result: requestAuditExport(filter: $filter) {
    ... on AuditExport {
      id
    }
    ...Failure
  }
}
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<RequestAuditExportMutation, RequestAuditExportMutationVariables>;
export const ClientsDocument = new TypedDocumentString(`
    query Clients($first: Int, $after: String, $last: Int, $before: String) {
  list: clients(first: $first, after: $after, last: $last, before: $before) {
    totalCount
    pageInfo {
      ...PageParts
    }
    edges {
      node {
        ...ClientParts
      }
    }
  }
}
    fragment ClientParts on Client {
  id
  name
  grantTypes
  scopes
  tokenExpiry {
    enabled
    duration
  }
  allowedIps
  requireCertificate
  certFingerprint
  rateLimit {
    requestsPerSecond
    requestsPerMinute
    requestsPerHour
  }
  monthlyLimit
  refreshReuseDetection
  isConsole
  status
  lastUsedAt
  createdAt
  previousSecretExpiresAt
}
fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`) as unknown as TypedDocumentString<ClientsQuery, ClientsQueryVariables>;
export const CreateClientDocument = new TypedDocumentString(`
    mutation CreateClient($input: ClientInput!) {
  result: createClient(input: $input) {
    ... on CreatedClient {
      clientSecret
      client {
        ...ClientParts
      }
    }
    ...Failure
  }
}
    fragment ClientParts on Client {
  id
  name
  grantTypes
  scopes
  tokenExpiry {
    enabled
    duration
  }
  allowedIps
  requireCertificate
  certFingerprint
  rateLimit {
    requestsPerSecond
    requestsPerMinute
    requestsPerHour
  }
  monthlyLimit
  refreshReuseDetection
  isConsole
  status
  lastUsedAt
  createdAt
  previousSecretExpiresAt
}
fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<CreateClientMutation, CreateClientMutationVariables>;
export const UpdateClientDocument = new TypedDocumentString(`
    mutation UpdateClient($id: ID!, $input: ClientInput!) {
  result: updateClient(id: $id, input: $input) {
    ...ClientParts
    ...Failure
  }
}
    fragment ClientParts on Client {
  id
  name
  grantTypes
  scopes
  tokenExpiry {
    enabled
    duration
  }
  allowedIps
  requireCertificate
  certFingerprint
  rateLimit {
    requestsPerSecond
    requestsPerMinute
    requestsPerHour
  }
  monthlyLimit
  refreshReuseDetection
  isConsole
  status
  lastUsedAt
  createdAt
  previousSecretExpiresAt
}
fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<UpdateClientMutation, UpdateClientMutationVariables>;
export const RotateClientSecretDocument = new TypedDocumentString(`
    mutation RotateClientSecret($id: ID!, $overlapSeconds: Int) {
  result: rotateClientSecret(id: $id, overlapSeconds: $overlapSeconds) {
    ... on CreatedClient {
      clientSecret
      client {
        ...ClientParts
      }
    }
    ...Failure
  }
}
    fragment ClientParts on Client {
  id
  name
  grantTypes
  scopes
  tokenExpiry {
    enabled
    duration
  }
  allowedIps
  requireCertificate
  certFingerprint
  rateLimit {
    requestsPerSecond
    requestsPerMinute
    requestsPerHour
  }
  monthlyLimit
  refreshReuseDetection
  isConsole
  status
  lastUsedAt
  createdAt
  previousSecretExpiresAt
}
fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<RotateClientSecretMutation, RotateClientSecretMutationVariables>;
export const SetClientStatusDocument = new TypedDocumentString(`
    mutation SetClientStatus($id: ID!, $status: ClientStatus!) {
  result: setClientStatus(id: $id, status: $status) {
    ...ClientParts
    ...Failure
  }
}
    fragment ClientParts on Client {
  id
  name
  grantTypes
  scopes
  tokenExpiry {
    enabled
    duration
  }
  allowedIps
  requireCertificate
  certFingerprint
  rateLimit {
    requestsPerSecond
    requestsPerMinute
    requestsPerHour
  }
  monthlyLimit
  refreshReuseDetection
  isConsole
  status
  lastUsedAt
  createdAt
  previousSecretExpiresAt
}
fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<SetClientStatusMutation, SetClientStatusMutationVariables>;
export const MigrationsDocument = new TypedDocumentString(`
    query Migrations($first: Int, $after: String, $last: Int, $before: String) {
  migrations(first: $first, after: $after, last: $last, before: $before) {
    totalCount
    pageInfo {
      ...PageParts
    }
    edges {
      node {
        ...MigrationParts
      }
    }
  }
}
    fragment MigrationParts on Migration {
  id
  status
  total
  success
  skipped
  failed
  dryRun
  fileName
  createdBy
  createdAt
  finishedAt
}
fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`) as unknown as TypedDocumentString<MigrationsQuery, MigrationsQueryVariables>;
export const MigrationRowsDocument = new TypedDocumentString(`
    query MigrationRows($id: ID!, $first: Int, $after: String, $last: Int, $before: String) {
  migration(id: $id) {
    ...MigrationParts
    list: rows(first: $first, after: $after, last: $last, before: $before) {
      ...RowsPage
    }
  }
}
    fragment MigrationParts on Migration {
  id
  status
  total
  success
  skipped
  failed
  dryRun
  fileName
  createdBy
  createdAt
  finishedAt
}
fragment RowsPage on MigrationRowConnection {
  totalCount
  pageInfo {
    ...PageParts
  }
  edges {
    node {
      index
      email
      externalId
      userId
      status
      reason
      warning
    }
  }
}
fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`) as unknown as TypedDocumentString<MigrationRowsQuery, MigrationRowsQueryVariables>;
export const RejectedRowsDocument = new TypedDocumentString(`
    query RejectedRows($id: ID!, $first: Int, $after: String, $last: Int, $before: String) {
  migration(id: $id) {
    ...MigrationParts
    list: rejectedRows(first: $first, after: $after, last: $last, before: $before) {
      ...RowsPage
    }
  }
}
    fragment MigrationParts on Migration {
  id
  status
  total
  success
  skipped
  failed
  dryRun
  fileName
  createdBy
  createdAt
  finishedAt
}
fragment RowsPage on MigrationRowConnection {
  totalCount
  pageInfo {
    ...PageParts
  }
  edges {
    node {
      index
      email
      externalId
      userId
      status
      reason
      warning
    }
  }
}
fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`) as unknown as TypedDocumentString<RejectedRowsQuery, RejectedRowsQueryVariables>;
export const StartUserMigrationDocument = new TypedDocumentString(`
    mutation StartUserMigration($file: File!, $dryRun: Boolean, $name: String) {
  result: startUserMigration(file: $file, dryRun: $dryRun, name: $name) {
    ... on Migration {
      id
      dryRun
    }
    ...Failure
  }
}
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<StartUserMigrationMutation, StartUserMigrationMutationVariables>;
export const CancelUserMigrationDocument = new TypedDocumentString(`
    mutation CancelUserMigration($id: ID!) {
  result: cancelUserMigration(id: $id) {
    ... on Migration {
      id
    }
    ...Failure
  }
}
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<CancelUserMigrationMutation, CancelUserMigrationMutationVariables>;
export const TransactionStatsDocument = new TypedDocumentString(`
    query TransactionStats($since: DateTime!, $until: DateTime!) {
  transactionStats(since: $since, until: $until, bucket: HOUR) {
    at
    status
    count
  }
}
    `) as unknown as TypedDocumentString<TransactionStatsQuery, TransactionStatsQueryVariables>;
export const MarkSeenDocument = new TypedDocumentString(`
    mutation MarkSeen($kind: AttentionKind!, $id: ID!, $seen: Boolean!, $note: String) {
  result: markSeen(kind: $kind, id: $id, seen: $seen, note: $note) {
    ... on Attention {
      id
    }
    ...Failure
  }
}
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<MarkSeenMutation, MarkSeenMutationVariables>;
export const AttentionDocument = new TypedDocumentString(`
    query Attention($rulesSince: DateTime!, $withRules: Boolean!, $withTransactions: Boolean!) {
  flagged: transactions(filter: { flagged: true }, first: 0) @include(if: $withTransactions) {
    totalCountAtLeast
  }
  needsAttention {
    ...GroupParts
  }
  walletRules(changedSince: $rulesSince, first: 50) @include(if: $withRules) {
    edges {
      node {
        id
        walletId
        name
        version
        updatedAt
        versions(first: 1) {
          edges {
            node {
              subject
            }
          }
        }
      }
    }
  }
}
    fragment GroupParts on Attention {
  id
  kind
  reason
  count
  since
  ids
  marking
  seen {
    seenBy
    seenAt
    note
  }
}`) as unknown as TypedDocumentString<AttentionQuery, AttentionQueryVariables>;
export const WalletsDocument = new TypedDocumentString(`
    query Wallets($search: String) {
  accounts(filter: { search: $search }, first: 10) {
    edges {
      node {
        id
        name
        wallets(first: 10) {
          edges {
            node {
              id
              chain
            }
          }
        }
      }
    }
  }
}
    `) as unknown as TypedDocumentString<WalletsQuery, WalletsQueryVariables>;
export const WalletDocument = new TypedDocumentString(`
    query Wallet($id: ID!) {
  wallet(id: $id) {
    id
    chain
    account {
      name
    }
  }
}
    `) as unknown as TypedDocumentString<WalletQuery, WalletQueryVariables>;
export const CurrenciesDocument = new TypedDocumentString(`
    query Currencies($after: String) {
  networkCurrencies(first: 100, after: $after) {
    pageInfo {
      ...PageParts
    }
    edges {
      node {
        id
        symbol
        name
        networkId
      }
    }
  }
  networks(first: 100) {
    edges {
      node {
        id
        name
        chain
      }
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`) as unknown as TypedDocumentString<CurrenciesQuery, CurrenciesQueryVariables>;
export const FindActorsDocument = new TypedDocumentString(`
    query FindActors {
  supervisors(first: 100) {
    edges {
      node {
        id
        username
      }
    }
  }
  clients(first: 100) {
    edges {
      node {
        id
        name
      }
    }
  }
}
    `) as unknown as TypedDocumentString<FindActorsQuery, FindActorsQueryVariables>;
export const ChangeOwnPasswordDocument = new TypedDocumentString(`
    mutation ChangeOwnPassword($current: String!, $new: String!) {
  result: changeOwnPassword(current: $current, new: $new) {
    ... on Supervisor {
      id
    }
    ...Failure
  }
}
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<ChangeOwnPasswordMutation, ChangeOwnPasswordMutationVariables>;
export const EndOwnSessionsDocument = new TypedDocumentString(`
    mutation EndOwnSessions {
  result: endOwnSessions {
    ... on Supervisor {
      id
    }
    ...Failure
  }
}
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<EndOwnSessionsMutation, EndOwnSessionsMutationVariables>;
export const NetworksDocument = new TypedDocumentString(`
    query Networks($first: Int, $after: String, $last: Int, $before: String) {
  networks(first: $first, after: $after, last: $last, before: $before) {
    totalCount
    pageInfo {
      ...PageParts
    }
    edges {
      node {
        id
        name
        chain
        explorerUrl
      }
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`) as unknown as TypedDocumentString<NetworksQuery, NetworksQueryVariables>;
export const AssetsDocument = new TypedDocumentString(`
    query Assets($first: Int, $after: String, $last: Int, $before: String) {
  assets(first: $first, after: $after, last: $last, before: $before) {
    totalCount
    pageInfo {
      ...PageParts
    }
    edges {
      node {
        id
        name
        symbol
        type
        status
        networkId
        contractAddress
        createdAt
      }
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`) as unknown as TypedDocumentString<AssetsQuery, AssetsQueryVariables>;
export const AssetDocument = new TypedDocumentString(`
    query Asset($id: ID!, $withTransactions: Boolean!, $first: Int, $after: String, $last: Int, $before: String) {
  asset(id: $id) {
    id
    name
    symbol
    type
    status
    networkId
    contractAddress
    createdAt
    transactions(first: $first, after: $after, last: $last, before: $before) @include(if: $withTransactions) {
      totalCount: totalCountAtLeast
      pageInfo {
        ...PageParts
      }
      edges {
        node {
          ...TransactionParts
        }
      }
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}
fragment TransactionParts on Transaction {
  id
  collection
  type
  typeName
  typeFlagged
  status
  transactionHash
  contractAddress
  gasUsed
  error
  conflict
  createdAt
  updatedAt
}`) as unknown as TypedDocumentString<AssetQuery, AssetQueryVariables>;
export const FeesDocument = new TypedDocumentString(`
    query Fees {
  gasFees {
    networkId
    gasPrice
    updatedAt
    error
    priorityFee {
      slow
      standard
      fast
    }
  }
}
    `) as unknown as TypedDocumentString<FeesQuery, FeesQueryVariables>;
export const WalletPartsDocument = new TypedDocumentString(`
    query WalletParts($id: ID!, $withAccount: Boolean!) {
  wallet(id: $id) {
    id
    chain
    createdAt
    account @include(if: $withAccount) {
      id
      name
    }
    networks(first: 100) {
      totalCount
      edges {
        node {
          id
          name
        }
      }
    }
    rules(first: 0) {
      totalCount
    }
  }
}
    `) as unknown as TypedDocumentString<WalletPartsQuery, WalletPartsQueryVariables>;
export const RulesDocument = new TypedDocumentString(`
    query Rules($walletId: ID, $type: String, $changedSince: DateTime, $first: Int, $after: String, $last: Int, $before: String) {
  walletRules(
    walletId: $walletId
    type: $type
    changedSince: $changedSince
    first: $first
    after: $after
    last: $last
    before: $before
  ) {
    totalCount
    pageInfo {
      ...PageParts
    }
    edges {
      node {
        id
        walletId
        name
        type
        priority
        status
        version
        updatedAt
        versions(first: 1) {
          edges {
            node {
              subject
            }
          }
        }
      }
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`) as unknown as TypedDocumentString<RulesQuery, RulesQueryVariables>;
export const WalletRuleDocument = new TypedDocumentString(`
    query WalletRule($id: ID!) {
  walletRule(id: $id) {
    ...RuleParts
  }
}
    fragment RuleParts on WalletRule {
  id
  walletId
  name
  type
  networkId
  networkCurrencyId
  priority
  status
  version
  createdAt
  updatedAt
  autoTransferRule {
    type
    ruleLogic
    amount
    targetWalletId
  }
  signAndApproveRule {
    mandatoryUserId
    minPriority
    maxPriority
    minUserCount
  }
  permissionlessTransferLimitRule {
    maxAmount
    timePeriod
    timePeriodValue
  }
}`) as unknown as TypedDocumentString<WalletRuleQuery, WalletRuleQueryVariables>;
export const RuleVersionsDocument = new TypedDocumentString(`
    query RuleVersions($ruleId: ID!, $first: Int, $after: String, $last: Int, $before: String) {
  walletRuleVersions(
    ruleId: $ruleId
    first: $first
    after: $after
    last: $last
    before: $before
  ) {
    totalCount
    pageInfo {
      ...PageParts
    }
    edges {
      node {
        version
        rule
        status
        deleted
        subject
        clientId
        correlationId
        reason
        at
      }
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}`) as unknown as TypedDocumentString<RuleVersionsQuery, RuleVersionsQueryVariables>;
export const PreviewWalletRuleDocument = new TypedDocumentString(`
    query PreviewWalletRule($input: PreviewWalletRuleInput!) {
  previewWalletRule(input: $input) {
    fires
    explanation {
      path
      field
      op
      expected
      actual
      result
      reason
    }
    warnings {
      path
      message
    }
  }
}
    `) as unknown as TypedDocumentString<PreviewWalletRuleQuery, PreviewWalletRuleQueryVariables>;
export const PreviewWalletDocument = new TypedDocumentString(`
    query PreviewWallet($walletId: ID!, $facts: PreviewFacts!) {
  previewWallet(walletId: $walletId, facts: $facts) {
    rules {
      ruleId
      name
      fires
      unmet {
        path
        field
        op
        expected
        actual
        result
        reason
      }
    }
  }
}
    `) as unknown as TypedDocumentString<PreviewWalletQuery, PreviewWalletQueryVariables>;
export const WalletConditionsDocument = new TypedDocumentString(`
    query WalletConditions($walletId: ID!) {
  walletRules(walletId: $walletId, first: 100) {
    edges {
      node {
        status
        autoTransferRule {
          ruleLogic
        }
      }
    }
  }
}
    `) as unknown as TypedDocumentString<WalletConditionsQuery, WalletConditionsQueryVariables>;
export const CreateWalletRuleDocument = new TypedDocumentString(`
    mutation CreateWalletRule($walletId: ID!, $input: WalletRuleInput!) {
  result: createWalletRule(walletId: $walletId, input: $input) {
    ...RuleParts
    ...Failure
  }
}
    fragment RuleParts on WalletRule {
  id
  walletId
  name
  type
  networkId
  networkCurrencyId
  priority
  status
  version
  createdAt
  updatedAt
  autoTransferRule {
    type
    ruleLogic
    amount
    targetWalletId
  }
  signAndApproveRule {
    mandatoryUserId
    minPriority
    maxPriority
    minUserCount
  }
  permissionlessTransferLimitRule {
    maxAmount
    timePeriod
    timePeriodValue
  }
}
fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<CreateWalletRuleMutation, CreateWalletRuleMutationVariables>;
export const ReplaceWalletRuleDocument = new TypedDocumentString(`
    mutation ReplaceWalletRule($walletId: ID!, $id: ID!, $input: WalletRuleInput!, $ifVersion: Int, $reason: String) {
  result: replaceWalletRule(
    walletId: $walletId
    id: $id
    input: $input
    ifVersion: $ifVersion
    reason: $reason
  ) {
    ...RuleParts
    ...Failure
  }
}
    fragment RuleParts on WalletRule {
  id
  walletId
  name
  type
  networkId
  networkCurrencyId
  priority
  status
  version
  createdAt
  updatedAt
  autoTransferRule {
    type
    ruleLogic
    amount
    targetWalletId
  }
  signAndApproveRule {
    mandatoryUserId
    minPriority
    maxPriority
    minUserCount
  }
  permissionlessTransferLimitRule {
    maxAmount
    timePeriod
    timePeriodValue
  }
}
fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<ReplaceWalletRuleMutation, ReplaceWalletRuleMutationVariables>;
export const SetWalletRuleStatusDocument = new TypedDocumentString(`
    mutation SetWalletRuleStatus($id: ID!, $status: WalletRuleStatus!, $ifVersion: Int) {
  result: setWalletRuleStatus(id: $id, status: $status, ifVersion: $ifVersion) {
    ...RuleParts
    ...Failure
  }
}
    fragment RuleParts on WalletRule {
  id
  walletId
  name
  type
  networkId
  networkCurrencyId
  priority
  status
  version
  createdAt
  updatedAt
  autoTransferRule {
    type
    ruleLogic
    amount
    targetWalletId
  }
  signAndApproveRule {
    mandatoryUserId
    minPriority
    maxPriority
    minUserCount
  }
  permissionlessTransferLimitRule {
    maxAmount
    timePeriod
    timePeriodValue
  }
}
fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<SetWalletRuleStatusMutation, SetWalletRuleStatusMutationVariables>;
export const SearchDocument = new TypedDocumentString(`
    query Search($search: String!) {
  search(search: $search, first: 5) {
    kind
    id
    title
    within
  }
}
    `) as unknown as TypedDocumentString<SearchQuery, SearchQueryVariables>;
export const ActivityDocument = new TypedDocumentString(`
    query Activity($id: ID!, $client: Boolean = false, $supervisor: Boolean = false, $user: Boolean = false, $wallet: Boolean = false, $first: Int, $after: String, $last: Int, $before: String) {
  client(id: $id) @include(if: $client) {
    activity(first: $first, after: $after, last: $last, before: $before) {
      ...ActivityPage
    }
  }
  supervisor(id: $id) @include(if: $supervisor) {
    activity(first: $first, after: $after, last: $last, before: $before) {
      ...ActivityPage
    }
  }
  user(id: $id) @include(if: $user) {
    activity(first: $first, after: $after, last: $last, before: $before) {
      ...ActivityPage
    }
  }
  wallet(id: $id) @include(if: $wallet) {
    activity(first: $first, after: $after, last: $last, before: $before) {
      ...ActivityPage
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}
fragment ActivityPage on ActivityConnection {
  totalCount
  pageInfo {
    ...PageParts
  }
  edges {
    node {
      id
      at
      isNew
      changes
      subject
      clientId
      correlationId
    }
  }
}`) as unknown as TypedDocumentString<ActivityQuery, ActivityQueryVariables>;
export const ViewerDocument = new TypedDocumentString(`
    query Viewer {
  me {
    nodeId
    tenantName
    clientId
    subject
    username
    tokenUse
    permissions
  }
}
    `) as unknown as TypedDocumentString<ViewerQuery, ViewerQueryVariables>;
export const SupervisorsDocument = new TypedDocumentString(`
    query Supervisors($first: Int, $after: String, $last: Int, $before: String) {
  list: supervisors(first: $first, after: $after, last: $last, before: $before) {
    totalCount
    pageInfo {
      ...PageParts
    }
    edges {
      node {
        ...SupervisorParts
      }
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}
fragment SupervisorParts on Supervisor {
  id
  username
  role
  status
  lockedUntil
  createdAt
}`) as unknown as TypedDocumentString<SupervisorsQuery, SupervisorsQueryVariables>;
export const CreateSupervisorDocument = new TypedDocumentString(`
    mutation CreateSupervisor($input: SupervisorInput!) {
  result: createSupervisor(input: $input) {
    ...SupervisorParts
    ...Failure
  }
}
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}
fragment SupervisorParts on Supervisor {
  id
  username
  role
  status
  lockedUntil
  createdAt
}`) as unknown as TypedDocumentString<CreateSupervisorMutation, CreateSupervisorMutationVariables>;
export const SetSupervisorRoleDocument = new TypedDocumentString(`
    mutation SetSupervisorRole($id: ID!, $role: String!) {
  result: setSupervisorRole(id: $id, role: $role) {
    ...SupervisorParts
    ...Failure
  }
}
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}
fragment SupervisorParts on Supervisor {
  id
  username
  role
  status
  lockedUntil
  createdAt
}`) as unknown as TypedDocumentString<SetSupervisorRoleMutation, SetSupervisorRoleMutationVariables>;
export const SetSupervisorPasswordDocument = new TypedDocumentString(`
    mutation SetSupervisorPassword($id: ID!, $password: String!) {
  result: setSupervisorPassword(id: $id, password: $password) {
    ...SupervisorParts
    ...Failure
  }
}
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}
fragment SupervisorParts on Supervisor {
  id
  username
  role
  status
  lockedUntil
  createdAt
}`) as unknown as TypedDocumentString<SetSupervisorPasswordMutation, SetSupervisorPasswordMutationVariables>;
export const UnlockSupervisorDocument = new TypedDocumentString(`
    mutation UnlockSupervisor($id: ID!) {
  result: unlockSupervisor(id: $id) {
    ...SupervisorParts
    ...Failure
  }
}
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}
fragment SupervisorParts on Supervisor {
  id
  username
  role
  status
  lockedUntil
  createdAt
}`) as unknown as TypedDocumentString<UnlockSupervisorMutation, UnlockSupervisorMutationVariables>;
export const SetSupervisorStatusDocument = new TypedDocumentString(`
    mutation SetSupervisorStatus($id: ID!, $status: SupervisorStatus!) {
  result: setSupervisorStatus(id: $id, status: $status) {
    ...SupervisorParts
    ...Failure
  }
}
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}
fragment SupervisorParts on Supervisor {
  id
  username
  role
  status
  lockedUntil
  createdAt
}`) as unknown as TypedDocumentString<SetSupervisorStatusMutation, SetSupervisorStatusMutationVariables>;
export const RevokeSessionsDocument = new TypedDocumentString(`
    mutation RevokeSessions($id: ID!) {
  result: revokeSessions(supervisorId: $id) {
    ...SupervisorParts
    ...Failure
  }
}
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}
fragment SupervisorParts on Supervisor {
  id
  username
  role
  status
  lockedUntil
  createdAt
}`) as unknown as TypedDocumentString<RevokeSessionsMutation, RevokeSessionsMutationVariables>;
export const TransactionsDocument = new TypedDocumentString(`
    query Transactions($filter: TransactionFilter, $first: Int, $after: String, $last: Int, $before: String) {
  transactions(
    filter: $filter
    first: $first
    after: $after
    last: $last
    before: $before
  ) {
    pageInfo {
      ...PageParts
    }
    edges {
      node {
        ...TransactionParts
      }
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}
fragment TransactionParts on Transaction {
  id
  collection
  type
  typeName
  typeFlagged
  status
  transactionHash
  contractAddress
  gasUsed
  error
  conflict
  createdAt
  updatedAt
}`) as unknown as TypedDocumentString<TransactionsQuery, TransactionsQueryVariables>;
export const TransactionCountsDocument = new TypedDocumentString(`
    query TransactionCounts($STARTED: TransactionFilter!, $IN_PROGRESS: TransactionFilter!, $PENDING_RECEIPT: TransactionFilter!, $DONE: TransactionFilter!, $ERROR: TransactionFilter!, $CONFLICT: TransactionFilter!, $FLAGGED: TransactionFilter!, $STUCK_STARTED: TransactionFilter!, $STUCK_IN_PROGRESS: TransactionFilter!, $STUCK_PENDING_RECEIPT: TransactionFilter!) {
  STARTED: transactions(first: 0, filter: $STARTED) {
    totalCount
  }
  IN_PROGRESS: transactions(first: 0, filter: $IN_PROGRESS) {
    totalCount
  }
  PENDING_RECEIPT: transactions(first: 0, filter: $PENDING_RECEIPT) {
    totalCount
  }
  DONE: transactions(first: 0, filter: $DONE) {
    totalCount
  }
  ERROR: transactions(first: 0, filter: $ERROR) {
    totalCount
  }
  CONFLICT: transactions(first: 0, filter: $CONFLICT) {
    totalCount
  }
  FLAGGED: transactions(first: 0, filter: $FLAGGED) {
    totalCount
  }
  STUCK_STARTED: transactions(first: 0, filter: $STUCK_STARTED) {
    totalCount
  }
  STUCK_IN_PROGRESS: transactions(first: 0, filter: $STUCK_IN_PROGRESS) {
    totalCount
  }
  STUCK_PENDING_RECEIPT: transactions(first: 0, filter: $STUCK_PENDING_RECEIPT) {
    totalCount
  }
}
    `) as unknown as TypedDocumentString<TransactionCountsQuery, TransactionCountsQueryVariables>;
export const TransactionDocument = new TypedDocumentString(`
    query Transaction($id: ID!, $withAsset: Boolean!) {
  transaction(id: $id) {
    ...TransactionParts
    asset @include(if: $withAsset) {
      id
      name
      networkId
    }
    events(last: 100) {
      totalCount
      pageInfo {
        hasPreviousPage
      }
      edges {
        node {
          cursor
          status
          previousStatus
          error
          correlationId
          occurredAt
        }
      }
    }
  }
}
    fragment TransactionParts on Transaction {
  id
  collection
  type
  typeName
  typeFlagged
  status
  transactionHash
  contractAddress
  gasUsed
  error
  conflict
  createdAt
  updatedAt
}`) as unknown as TypedDocumentString<TransactionQuery, TransactionQueryVariables>;
export const UpdatesDocument = new TypedDocumentString(`
    subscription Updates($filter: TransactionFilter, $after: String) {
  transactionUpdates(filter: $filter, after: $after) {
    cursor
    transaction {
      ...TransactionParts
    }
  }
}
    fragment TransactionParts on Transaction {
  id
  collection
  type
  typeName
  typeFlagged
  status
  transactionHash
  contractAddress
  gasUsed
  error
  conflict
  createdAt
  updatedAt
}`) as unknown as TypedDocumentString<UpdatesSubscription, UpdatesSubscriptionVariables>;
export const UsersDocument = new TypedDocumentString(`
    query Users($filter: UserFilter, $first: Int, $after: String, $last: Int, $before: String) {
  users(
    filter: $filter
    first: $first
    after: $after
    last: $last
    before: $before
  ) {
    totalCount
    pageInfo {
      ...PageParts
    }
    edges {
      node {
        ...UserParts
      }
    }
  }
}
    fragment PageParts on PageInfo {
  hasNextPage
  hasPreviousPage
  startCursor
  endCursor
}
fragment UserParts on User {
  id
  externalId
  name
  surname
  email
  address
  kyc {
    tokenSentAt
  }
  createdAt
  erasedAt
  erasure {
    records
    responses
    by
    migrations
    seal {
      body
      signature
    }
  }
}`) as unknown as TypedDocumentString<UsersQuery, UsersQueryVariables>;
export const UserDocument = new TypedDocumentString(`
    query User($id: ID!) {
  user(id: $id) {
    ...UserParts
  }
}
    fragment UserParts on User {
  id
  externalId
  name
  surname
  email
  address
  kyc {
    tokenSentAt
  }
  createdAt
  erasedAt
  erasure {
    records
    responses
    by
    migrations
    seal {
      body
      signature
    }
  }
}`) as unknown as TypedDocumentString<UserQuery, UserQueryVariables>;
export const EraseUserDocument = new TypedDocumentString(`
    mutation EraseUser($id: ID!) {
  result: eraseUser(id: $id) {
    ... on User {
      id
    }
    ...Failure
  }
}
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<EraseUserMutation, EraseUserMutationVariables>;
export const AssignNetworkDocument = new TypedDocumentString(`
    mutation AssignNetwork($walletId: ID!, $networkId: ID!) {
  result: assignNetwork(walletId: $walletId, networkId: $networkId) {
    ... on Wallet {
      id
    }
    ...Failure
  }
}
    fragment Failure on Error {
  __typename
  message
  ... on ValidationError {
    issues {
      path
      message
    }
  }
  ... on ForbiddenError {
    permission
  }
  ... on DuplicateError {
    reason
  }
}`) as unknown as TypedDocumentString<AssignNetworkMutation, AssignNetworkMutationVariables>;